package body

import (
	"bytes"
	"cmp"

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

// whyObject explains the object that the parser has appended a line of.
func (g *Gatherer) whyObject(line []byte) meaning.Why {
	w := g.parser.Why(&g.defaults)
	msg, _ := record.Lookup(line, "msg")
	g.whySought(&w, record.TextOf(msg))
	return w
}

// whyParts explains the record by parts that the parser has begun.
func (g *Gatherer) whyParts(h *meaning.Head) (w meaning.Why) {
	if h.Why != nil {
		w = *h.Why
	}
	own := func(c *meaning.Cause, there bool) {
		switch {
		case !there:
			*c = meaning.Cause{Passed: c.Passed}
		case c.Place == 0:
			c.Place = meaning.FromProtocol
		}
	}
	own(w.Time(), h.Time != 0 || h.Observed != 0)
	own(w.Level(), len(h.Level) > 0)
	own(w.Message(), len(h.Msg) > 0)
	own(w.Service(), len(h.Service) > 0)
	switch {
	case g.defaults.Service != "":
		*w.Service() = meaning.Cause{Place: meaning.FromPath}
	case len(h.Service) == 0 && g.defaults.Fallback != "":
		w.Service().Place = meaning.FromFallback
	}
	g.whySought(&w, h.Msg)
	return w
}

// whySought explains a time and a level that were found in the message.
func (g *Gatherer) whySought(w *meaning.Why, msg []byte) {
	timed, levelled := g.parser.Sought()
	found := &g.seeker.found
	far := found.far != nil || found.farWithin
	if !timed && !levelled && !far {
		return
	}
	at, level, inner := w.Time(), w.Level(), cmp.Or(found.inner, new(meaning.Why))
	if found.far != nil {
		at.Pass("", found.far, tooFar)
	} else if found.farWithin {
		at.Passed = append(at.Passed, inner.Time().Passed...)
	}
	if timed {
		if *at = (meaning.Cause{Place: meaning.FromText, Text: string(found.stamp), Passed: at.Passed}); found.timeWithin {
			at.Name = inner.Time().Name
		}
	}
	if passed := level.Passed; levelled {
		switch {
		case found.level != "":
			*level = meaning.Cause{Place: meaning.FromText, Name: found.level}
		case found.levelWithin:
			*level = meaning.Cause{Place: meaning.FromText, Name: inner.Level().Name}
		default:
			*level = textCause(bytes.TrimSpace(msg), found.word)
		}
		level.Passed = passed
	}
}

// tooFar is the reason for passing over a guess in a text.
const tooFar = "guessed, too far"

// textCause is the cause of a level that a text shows: a word in its first line, or a trace.
func textCause(msg, word []byte) meaning.Cause {
	switch first := msg[:text.LineEnd(msg, 0)]; {
	case text.Uncaught(first) != nil:
		return meaning.Cause{Place: meaning.FromTrace}
	case bytes.Contains(msg, word):
		return meaning.Cause{Place: meaning.FromText, Text: string(word)}
	case string(word) == "error", string(word) == "critical":
		return meaning.Cause{Place: meaning.FromTrace}
	}
	return meaning.Cause{Place: meaning.FromText}
}

// why explains the head of a line of text, and of those that belong to it. own says that it has a
// time, and named that it has a level.
func (m *mixed) why(w *meaning.Why, h *meaning.Head, at *text.Stamp, own, named bool) {
	w.Message().Place = meaning.FromText
	switch {
	case own:
		*w.Time() = meaning.Cause{Place: meaning.FromText, Text: string(at.Text)}
	case at.Far:
		w.Time().Pass("", at.Text, tooFar)
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
		*w.Level() = textCause(h.Msg, h.Level)
	default:
		w.Level().Place = meaning.FromTrace
	}
}
