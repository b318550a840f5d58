package body

import (
	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/text"
)

// A Watch is told of the records of a body, in their order there. A [Seen] is valid until it
// returns.
type Watch func(Seen)

// Seen is a record that a decoder found.
type Seen struct {
	Place    int    // among those of its request, as [record.Request.Index]
	Raw      []byte // as received
	Rejected string // the reason for which it is rejected, "" if it is not
	Line     []byte // its canonical line, nil for a rejected one
	Stamp    record.Stamp
	Why      meaning.Why // where the parts of its head come from
}

// Why is where the parts of the next head are noted, as in [Sink].
func (g *Gatherer) Why() *meaning.Why {
	if g.Watch == nil {
		return nil
	}
	return new(meaning.Why)
}

// why explains the head of a line of text, and of those that belong to it. own says that it has a
// time, and named that it has a level.
func (m *mixed) why(w *meaning.Why, h *meaning.Head, at *text.Stamp, own, named bool) {
	w.Message().Place = meaning.FromText
	switch {
	case own:
		*w.Time() = meaning.Cause{Place: meaning.FromText, Text: string(at.Text)}
	case at.Far:
		w.Time().Pass("", at.Text, meaning.TooFarOff)
	case at.Text != nil:
		w.Time().Pass("", at.Text, meaning.TooFarAhead)
	}
	switch {
	case own, h.Time == 0:
	case m.begun && m.own:
		w.Time().Place = meaning.FromBefore
	default:
		w.Time().Place = meaning.FromBehind
	}
	switch {
	case len(h.Level) == 0:
	case named, !m.lines.IsTrace(): // java.util.logging has it in the second line
		*w.Level() = meaning.TextCause(h.Msg, h.Level)
	default:
		w.Level().Place = meaning.FromTrace
	}
}
