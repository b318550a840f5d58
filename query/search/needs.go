package search

import (
	"strings"

	"blobtail/blobfmt/filter"
	"blobtail/record"
)

// Needs are the words and ids of a record that the pattern matches, by which blocks are ruled
// out. A record has those of one of them; nil: it may have any. service is that of the
// record.
func (p *Pattern) Needs(service string) []filter.Needs {
	var all []filter.Needs
	for i := range p.literals {
		text := string(p.literals[i].spellings[0].text) // as typed
		n := filter.NeedsOf(text, p.word, p.word)
		if len(n.Words)+len(n.Keys) == 0 || p.elsewhere(text, service) {
			return nil
		}
		all = append(all, n)
	}
	return all
}

// elsewhere reports whether a text may be in a part of a record that filters do not cover:
// in its time, in its service, or in a level.
func (p *Pattern) elsewhere(text, service string) bool {
	text = strings.ToLower(text)
	if strings.Contains(service, text) || inTime(text, p.word) {
		return true
	}
	for l := range record.Other {
		if strings.Contains(l.String(), text) {
			return true
		}
	}
	return false
}

// inTime reports whether a text in lower case may be a part of the time of a record, or a
// word of it.
func inTime(text string, word bool) bool {
	const form = "dddd-dd-ddtdd:dd:dd.dddddddddz"
	inside := func(at int) bool { return at >= 0 && at < len(form) && strings.IndexByte("-:.", form[at]) < 0 }
	for from := 0; from+len(text) <= len(form); from++ {
		fits := !word || !inside(from-1) && !inside(from+len(text))
		for i := range len(text) {
			digit := text[i]-'0' < 10
			fits = fits && (digit && form[from+i] == 'd' || !digit && form[from+i] == text[i])
		}
		if fits {
			return true
		}
	}
	return false
}
