package elastic

import (
	"path"
	"strings"
)

// The parts of an item that an answer may have.
const (
	partIndex = 1 << iota
	partID
	partStatus
	allParts = partIndex | partID | partStatus
)

// A filter says which parts an answer has, by the parameter filter_path. Clients ask for
// less than all: Filebeat and Logstash for errors,items.*.error,items.*.status.
type filter struct {
	took, errors bool
	items        [numKinds]uint8 // parts of the items of each kind
}

const (
	// mostPatterns bounds the work for one parameter. With more, the answer has all parts.
	mostPatterns = 64
	// mostSegments is more than any part is deep.
	mostSegments = 8
)

// parseFilter parses filter_path: patterns with commas between them, each of names or
// wildcards with dots between them, excluding with a minus sign before it.
func parseFilter(text string) (f filter) {
	patterns := strings.Split(text, ",")
	if len(patterns) > mostPatterns {
		patterns = nil
	}
	var with, without [][]string
	for _, p := range patterns {
		p = strings.TrimSpace(p)
		p, exclude := strings.CutPrefix(p, "-")
		segments := strings.SplitN(p, ".", mostSegments+1)
		switch {
		case p == "" || len(segments) > mostSegments:
		case exclude:
			without = append(without, segments)
		default:
			with = append(with, segments)
		}
	}
	kept := func(name ...string) bool {
		return (len(with) == 0 || matchesAny(with, name)) && !matchesAny(without, name)
	}
	f.took, f.errors = kept("took"), kept("errors")
	for k := range numKinds {
		for i, name := range []string{"_index", "_id", "status"} {
			if kept("items", k.String(), name) {
				f.items[k] |= 1 << i
			}
		}
	}
	return f
}

func matchesAny(patterns [][]string, name []string) bool {
	for _, p := range patterns {
		if matches(p, name) {
			return true
		}
	}
	return false
}

// matches reports whether a pattern has the part with a name in it. A pattern that ends
// early has everything below it.
func matches(pattern, name []string) bool {
	switch {
	case len(pattern) == 0:
		return true
	case len(name) == 0:
		return false
	case pattern[0] == "**":
		return matches(pattern[1:], name) || matches(pattern, name[1:])
	}
	ok, err := path.Match(pattern[0], name[0])
	return ok && err == nil && matches(pattern[1:], name[1:])
}
