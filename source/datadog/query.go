package datadog

import (
	"bytes"
	"strings"

	"blobtail/record/meaning"
	"blobtail/record/names"
)

// defaults are the fields that the query of a request gives to items without them. Datadog's pages
// for clients of HTTP have them there. The API key in the query is none of them.
type defaults []names.Pair

// The places of the defaults.
const (
	service = iota
	source
	host
	tags
)

// name gives a head without a service the query's, or else the source: own, or that of the query.
func (d defaults) name(h *meaning.Head, own []byte) {
	for _, name := range [][]byte{d[service].Value, own, d[source].Value} {
		if len(h.Service) == 0 {
			h.Service = name
		}
	}
}

// add adds the fields that an item lacks: its own tags count before the others.
func (d defaults) add(b *meaning.Parts, own [4][]byte) {
	for _, at := range [...]int{source, host} {
		if own[at] == nil && d[at].Value != nil {
			b.Add(&d[at])
		}
	}
	addTags(b, own[tags], nil)
	addTags(b, d[tags].Value, own[tags])
}

// addTags adds the tags of a list such as env:prod,team:web. A tag without a value is a field
// that is true. Tags of the names of other ones are left out.
func addTags(b *meaning.Parts, list, other []byte) {
	own := namesOf(list, other)
	for tag := range bytes.SplitSeq(list, []byte(",")) {
		name, value, ok := bytes.Cut(bytes.TrimSpace(tag), []byte(":"))
		switch {
		case len(name) == 0 || own[string(bytes.TrimSpace(name))]:
		case ok:
			b.Text(strings.TrimSpace(string(name)), value)
		default:
			b.Bool(string(name), true)
		}
	}
}

// namesOf returns the names of the tags of other, beside which a list stands; nil for none.
func namesOf(list, other []byte) map[string]bool {
	if len(list) == 0 || len(other) == 0 {
		return nil
	}
	names := map[string]bool{}
	for tag := range bytes.SplitSeq(other, []byte(",")) {
		name, _, _ := bytes.Cut(bytes.TrimSpace(tag), []byte(":"))
		names[string(bytes.TrimSpace(name))] = true
	}
	return names
}

// A textSink makes records of the lines of a text, with the defaults.
type textSink struct{ *sink }

// Begin begins a line of text.
func (s *textSink) Begin(h meaning.Head) *meaning.Parts {
	h.Renames = true
	s.query.name(&h, nil)
	b := s.Sink.Begin(h)
	if s.shared.Add(s.size) {
		s.query.add(b, [4][]byte{})
	}
	return b
}

// Record passes the record begun last.
func (s *textSink) Record(raw []byte, places, end int) bool {
	if !s.shared.Fits() {
		return s.Reject(raw, s.shared.Rejection(sharing), end)
	}
	return s.Sink.Record(raw, places, end)
}
