package unflushed

import (
	"slices"
	"strings"
	"unicode/utf8"

	"blobtail/reading/unflushed/live"
	"blobtail/record"
)

// askable lists names and globs as ingesters accept them, in at most [live.MaxService] bytes. If
// they are more, it lists globs of their beginnings, which match other services too: those are for
// sift to leave out. An ingester refuses a whole question for one impossible name. Leaving that
// name out misses no records.
func askable(services []string) (list string, wide bool) {
	names := possible(services)
	if len(names) == 0 {
		return "-", false // no service has this name; the answer still names the ingesters
	}
	if fits(names) {
		return strings.Join(names, ","), false
	}
	longest := 0
	for _, name := range names {
		longest = max(longest, len(name))
	}
	// The longer the beginnings, the fewer other services match. Those of nothing always fit.
	least, most := 0, longest
	for least < most {
		n := (least + most + 1) / 2
		if len(beginnings(names, n)) <= live.MaxService {
			least = n
		} else {
			most = n - 1
		}
	}
	return beginnings(names, least), true
}

// possible leaves out names that no service can have.
func possible(services []string) []string {
	return slices.DeleteFunc(slices.Clone(services), func(name string) bool {
		return name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00\r\n")
	})
}

// fits reports whether a question has room for names.
func fits(names []string) bool {
	size := -1 // a comma is missing
	for _, name := range names {
		size += len(name) + 1
	}
	return size <= live.MaxService
}

// beginnings lists globs of the first n bytes of names and globs, as far as these are text. No
// glob matches system services, unless it begins with "_".
func beginnings(names []string, n int) string {
	var globs []string
	for _, name := range names {
		if len(name) <= n {
			globs = append(globs, name)
			continue
		}
		text := name
		if at := strings.IndexAny(name, wild); at >= 0 {
			text = name[:at]
		}
		end := min(n, len(text))
		if text != "" && text[0] == '_' {
			end = max(end, 1)
		}
		for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		globs = append(globs, text[:end]+"*")
	}
	slices.Sort(globs)
	return strings.Join(slices.Compact(globs), ",")
}

// wild are the characters of globs.
const wild = `*?[\`

// A sift knows the services that a query means, when its question to ingesters was wider. It
// belongs to one goroutine. nil: the question was not wider.
type sift struct {
	names map[string]bool
	globs []string
	known map[string]bool // of services that globs decided about
}

// mostKnown bounds the services that a sift remembers.
const mostKnown = 1 << 16

func newSift(services []string) *sift {
	if fits(possible(services)) {
		return nil
	}
	s := &sift{names: map[string]bool{}, known: map[string]bool{}}
	for _, name := range services {
		if strings.ContainsAny(name, wild) {
			s.globs = append(s.globs, name)
		} else {
			s.names[name] = true
		}
	}
	return s
}

// has reports whether a line is of one of the services.
func (s *sift) has(line []byte) bool {
	if s == nil {
		return true
	}
	name, ok := record.LineService(line)
	if !ok {
		return true // a line that is no record is an error for its receiver
	}
	if len(s.globs) == 0 || s.names[string(name)] {
		return s.names[string(name)]
	}
	is, known := s.known[string(name)]
	if !known {
		service := string(name)
		is = slices.ContainsFunc(s.globs, func(glob string) bool { return record.MatchService(glob, service) })
		if len(s.known) == mostKnown {
			clear(s.known)
		}
		s.known[service] = is
	}
	return is
}

// few names some of many services, for a message.
func few(services []string) string {
	const most = 20
	if len(services) > most {
		return strings.Join(services[:most], ",") + " and others"
	}
	return strings.Join(services, ",")
}
