package meaning

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"blobtail/record"
	"blobtail/record/names"
	"blobtail/record/text"
	"blobtail/record/times"
)

// A Place is where a record has a part of its head from.
type Place uint8

// The places.
const (
	nowhere      Place = iota // there is no such part: the time is that of arrival
	FromField                 // a field, by its name
	FromFields                // a date and a clock in two fields
	FromMember                // a member of an object
	FromText                  // the text of the message
	FromTrace                 // a stack trace in the message
	FromBefore                // the record before
	FromBehind                // the first record behind with a time
	FromProtocol              // the protocol's own part
	FromPath                  // the path, the subject or the configuration
	FromFallback              // the sender names it for all of its records
)

// A Cause says where one part of a record's head comes from.
type Cause struct {
	Place Place
	// Name is that of the field, the member or the protocol's part; "" if it has none.
	Name string
	// Also is the name of the field with the clock, of [FromFields].
	Also string
	// Text is the word or the time in the message, as it stands there; "" if that is not one part.
	Text string
	// By is the owner of the scale on which a number is the level; "" for words.
	By string
	// Passed are the fields that were tried before, and could not be the part.
	Passed []Passed
}

// Passed is a field that was passed over.
type Passed struct{ Name, Value, Reason string }

// Reasons for passing over.
const (
	NoTime      = "is no time"
	TooFarAhead = "is more than 24 h after the arrival"
	TooFarOff   = "guessed, too far"
)

// Why says where the parts of a record's head come from. Those who decide that note it.
type Why struct{ parts [names.NumParts]Cause }

// Time is the cause of the time; nil of a nil Why: nobody asks.
func (w *Why) Time() *Cause { return w.of(names.Time) }

// Level is that of the level.
func (w *Why) Level() *Cause { return w.of(names.Level) }

// Message is that of the message.
func (w *Why) Message() *Cause { return w.of(names.Message) }

// Service is that of the service.
func (w *Why) Service() *Cause { return w.of(names.Service) }

func (w *Why) of(part names.Part) *Cause {
	if w == nil {
		return nil
	}
	return &w.parts[part]
}

// Note notes where the part is from.
func (c *Cause) Note(place Place, name string) {
	if c != nil {
		c.Place, c.Name = place, strings.Clone(name)
	}
}

// Pass notes a value that is passed over, under its name.
func (c *Cause) Pass(name string, value []byte, reason string) {
	if c != nil {
		c.Passed = append(c.Passed, Passed{name, string(value), reason})
	}
}

// Named notes the names that a protocol has for the parts.
func (w *Why) Named(time, level, message, service string) {
	if w == nil {
		return
	}
	for part, name := range [names.NumParts]string{time, level, message, service} {
		w.parts[part].Note(FromProtocol, name)
	}
}

// Why explains the head of the object scanned last, after [Reader.Head] or [Reader.AppendLine] with these
// defaults, by the notes of these. line is that of AppendLine.
func (p *Reader) Why(d *Defaults, line []byte) (w Why) {
	h, day, clock := p.last, p.notes.day, p.notes.clock
	if h.time >= 0 || day < 0 {
		day, clock = -1, -1
	}
	w.parts[names.Time] = p.cause(names.Time, h.time, day, clock)
	if day >= 0 {
		c := w.Time()
		c.Place, c.Name, c.Also = FromFields, p.field(names.Time, day).Name, p.field(names.Time, clock).Name
	}
	w.parts[names.Level], w.parts[names.Message] = p.cause(names.Level, max(h.level, p.notes.stays)), p.cause(names.Message, h.msg)
	if p.notes.by != nil {
		w.Level().By = p.notes.by.By
	}
	switch {
	case d.Service != "":
		w.Service().Place = FromPath
	case h.service >= 0:
		c := w.Service()
		*c = p.field(names.Service, h.service)
		if c.Place == FromField && p.IsObject(h.service) {
			c.Place = FromMember
			if p.Fields[h.service].Tag == names.ServiceObject {
				c.Name += ".name"
			} else {
				c.Name += ".container_name"
			}
		}
	case d.Fallback != "":
		w.Service().Place = FromFallback
	}
	msg, _ := record.Lookup(line, "msg")
	p.whySought(&w, record.TextOf(msg))
	return w
}

// field is the cause of a part that is a field, or a member that a mapping names.
func (p *Reader) field(part names.Part, at int) Cause {
	if c := p.mapped.cause(part, at); c.Place == FromMember {
		return c
	}
	return Cause{Place: FromField, Name: keyText(p, at)}
}

// cause is the cause of a part that a mapping names, in the words of that.
func (m *mapped) cause(part names.Part, at int) (c Cause) {
	for _, o := range m.before {
		if o.part == part && o.at == at {
			if c = (Cause{Place: FromField, Name: o.name}); o.rest != "" {
				c.Place = FromMember
			}
		}
	}
	return c
}

// keyText is the key of a field.
func keyText(p *Reader, at int) string {
	return string(record.AppendUnescaped(nil, p.Key(&p.Fields[at])))
}

// A reason is why a field was passed over.
type reason uint8

const (
	noTime reason = iota
	tooFarAhead
	farOff
	dateAlone
	clockAlone
	noLevel
	wordFirst
)

var reasons = [...]string{
	noTime: NoTime, tooFarAhead: TooFarAhead, farOff: TooFarOff, dateAlone: "is a date alone",
	clockAlone: "is a clock alone", noLevel: "is no level", wordFirst: "is a number, and a word comes before it",
}

// reasonOf is why a part of a time is none. ahead says that it is too far ahead.
func reasonOf(part times.Part, ahead bool) reason {
	switch {
	case part == times.None:
		return noTime
	case part == times.Clock:
		return clockAlone
	case ahead:
		return tooFarAhead
	}
	return dateAlone
}

// notes are where the parts of a head are from, and what was passed over, as far as its fields do not
// say it. A parser writes them while it decides.
type notes struct {
	day, clock int          // the fields with the date and the clock, -1 for none
	stays      int          // the field with the level, if that stays, or -1
	by         *names.Scale // of the number that is the level
	nested     [names.NumParts]*names.Nested
	passed     [names.Level + 1][]note
	word       []byte // the sender's own for the level, with its quotes, in an object
}

// A note is of a field that was passed over.
type note struct {
	at     int
	reason reason
}

// begin forgets what was passed over for the time or the level.
func (n *notes) begin(part names.Part) {
	if n.nested[part] != nil {
		n.nested[part] = nil
	}
	if len(n.passed[part]) > 0 { // pointers are written at need alone: this is for each record
		n.passed[part] = n.passed[part][:0]
	}
	if part == names.Time {
		n.day, n.clock = -1, -1
		return
	}
	if n.stays = -1; n.by != nil || n.word != nil {
		n.by, n.word = nil, nil
	}
}

// pass notes a field that is passed over, or another reason for it.
func (n *notes) pass(part names.Part, at int, why reason) {
	for i := range n.passed[part] {
		if old := &n.passed[part][i]; old.at == at {
			old.reason = why
			return
		}
	}
	n.passed[part] = append(n.passed[part], note{at, why})
}

// cause is that of a part that is in the field at, or in a member. Fields that were used are not among
// those that were passed over.
func (p *Reader) cause(part names.Part, at int, used ...int) (c Cause) {
	if at >= 0 {
		c = p.field(part, at)
	} else if n := p.notes.nested[part]; n != nil {
		c = Cause{Place: FromMember, Name: n.Path}
	}
	for i := 0; part <= names.Level && i < len(p.notes.passed[part]); i++ {
		if n := p.notes.passed[part][i]; n.at != at && !slices.Contains(used, n.at) {
			c.Passed = append(c.Passed, Passed{keyText(p, n.at), shown(p, n.at), reasons[n.reason]})
		}
	}
	return c
}

// shown is the beginning of a value, as it stands in the source.
func shown(p *Reader, at int) string {
	const most = 60
	f := &p.Fields[at]
	v := p.Value(f)
	if len(v) <= most {
		return string(v)
	}
	return string(record.CutText(v, most)) + "..."
}

// whySought explains a time and a level that were found in the message.
func (p *Reader) whySought(w *Why, msg []byte) {
	timed, levelled := p.last.soughtTime, p.last.soughtLevel
	found := &p.seeker.found
	far := found.far != nil || found.farWithin
	if !timed && !levelled && !far {
		return
	}
	at, level, inner := w.Time(), w.Level(), cmp.Or(found.inner, new(Why))
	if found.far != nil {
		at.Pass("", found.far, TooFarOff)
	} else if found.farWithin {
		at.Passed = append(at.Passed, inner.Time().Passed...)
	}
	if timed {
		if *at = (Cause{Place: FromText, Text: string(found.stamp), Passed: at.Passed}); found.timeWithin {
			at.Name = inner.Time().Name
		}
	}
	if passed := level.Passed; levelled {
		switch {
		case found.level != "":
			*level = Cause{Place: FromText, Name: found.level}
		case found.levelWithin:
			*level = Cause{Place: FromText, Name: inner.Level().Name}
		default:
			*level = TextCause(bytes.TrimSpace(msg), found.word)
		}
		level.Passed = passed
	}
}

// TextCause is the cause of a level that a text shows: a word in its first line, or a trace.
func TextCause(msg, word []byte) Cause {
	switch first := msg[:text.LineEnd(msg, 0)]; {
	case text.Uncaught(first) != nil:
		return Cause{Place: FromTrace}
	case bytes.Contains(msg, word):
		return Cause{Place: FromText, Text: string(word)}
	case string(word) == "error", string(word) == "critical":
		return Cause{Place: FromTrace}
	}
	return Cause{Place: FromText}
}
