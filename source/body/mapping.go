package body

import (
	"bytes"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/text"
)

// beginMapped is Begin for a request with a mapping. A text has the level of a pair that the
// mapping names. No other level is sought before the fields are known.
func (g *Gatherer) beginMapped(h meaning.Head) *meaning.Parts {
	d := g.defaults
	if word := text.NamedLevel(h.Msg, g.parser.LevelNames(d.Mapping, g.serviceOf(h.Service))); word != nil && g.isOfText(&h) {
		h.Level = word
	}
	g.draft.sought = h.Sought
	d.Seek = nil
	g.draft.parts = g.parser.Begin(g.Req.Data, h, &d)
	return g.draft.parts
}

// isOfText reports whether the level of a head is none but that of the message.
func (g *Gatherer) isOfText(h *meaning.Head) bool {
	if len(h.Level) == 0 {
		return true
	}
	g.seeker.text(h.Msg)
	return bytes.Equal(h.Level, g.seeker.found.word)
}

// serviceOf is the service of a record as it is known before its fields.
func (g *Gatherer) serviceOf(own []byte) string {
	switch {
	case g.defaults.Service != "":
		return g.defaults.Service
	case len(own) > 0:
		return record.FoldService(string(own))
	}
	return g.defaults.Fallback
}

// Mapped reports whether a field is named, as in [Sink].
func (g *Gatherer) Mapped(service []byte, key string) bool {
	return g.defaults.Mapping != nil && g.parser.Mapped(g.defaults.Mapping, g.serviceOf(service), key)
}

// Takes reports whether records of a service are accepted, as in [Sink].
func (g *Gatherer) Takes(service []byte) bool {
	return g.arrival.Allow == nil || g.allowed(g.serviceOf(service))
}

// remap applies the mapping to the line that data has beyond g.Req.Data.
func (g *Gatherer) remap(data []byte, s record.Stamp) ([]byte, record.Stamp) {
	from := len(g.Req.Data)
	line, stamp, ok := g.parser.Remap(g.draft.line[:0], data[from:], s, &g.defaults, g.draft.sought)
	g.draft.line = line
	if ok {
		data = append(data[:from], line...)
	}
	return data, stamp
}
