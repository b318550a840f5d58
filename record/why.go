package record

import (
	"iter"
	"math/bits"

	"blobtail/record/times"
)

// A Place is where a record has a part of its head from.
type Place uint8

// The places.
const (
	Nowhere      Place = iota // there is no such part: the time is that of arrival
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
)

// Why says where the parts of a record's head come from.
type Why struct{ Time, Level, Message, Service Cause }

// Why explains the head of the object scanned last, after [Parser.AppendLine] or [Parser.Head]
// with these defaults: by the notes of these, and by the readers that they ask.
func (p *Parser) Why(d *Defaults) (w Why) {
	h := p.last
	w.Time, w.Level = p.whyTime(d), p.whyLevel()
	if d.Mapping != nil {
		defer p.whyMapped(&w, d)
		for _, at := range []*int{&h.msg, &h.service} {
			if *at >= len(p.fields) { // a member, which the mapping knows
				*at = -1
			}
		}
	}
	if h.msg >= 0 {
		w.Message = p.field(h.msg)
	} else if _, path := p.nestedMsg(); path != "" {
		w.Message = Cause{Place: FromMember, Name: path}
	}
	switch {
	case d.Service != "":
		w.Service.Place = FromPath
	case h.service >= 0 && p.isObject(h.service):
		w.Service = p.field(h.service)
		w.Service.Place = FromMember
		if p.fields[h.service].known == nameService {
			w.Service.Name += ".name"
		} else {
			w.Service.Name += ".container_name"
		}
	case h.service >= 0:
		w.Service = p.field(h.service)
	case d.Fallback != "":
		w.Service.Place = FromFallback
	}
	return w
}

// Sought reports whether the time and the level of the record appended or begun last are those
// that [Defaults.Seek] found.
func (p *Parser) Sought() (ns, level bool) { return p.last.soughtTime, p.last.soughtLevel }

// field is the cause that is a field.
func (p *Parser) field(at int) Cause { return Cause{Place: FromField, Name: p.keyText(at)} }

// whyMapped explains the parts that a mapping names.
func (p *Parser) whyMapped(w *Why, d *Defaults) {
	for _, part := range []struct {
		part, at int
		cause    *Cause
	}{{partTime, p.last.time, &w.Time}, {partLevel, p.last.level, &w.Level}, {partMsg, p.last.msg, &w.Message}, {partService, p.last.service, &w.Service}} {
		if o := p.wasOffered(part.part, part.at); o != nil && (part.part != partService || d.Service == "") {
			*part.cause = Cause{Place: FromField, Name: o.name}
			if o.rest != "" {
				part.cause.Place = FromMember
			}
		}
	}
}

// keyText is the key of a field.
func (p *Parser) keyText(at int) string {
	return string(AppendUnescaped(nil, p.key(p.src, &p.fields[at])))
}

// tried iterates over the fields with the names of a kind, in the order in which they are tried.
func (p *Parser) tried(kind, first name) iter.Seq[int] {
	return func(yield func(at int) bool) {
		for left := p.candidates(kind) &^ (1<<(first%perKind) - 1); left != 0; left &= left - 1 {
			n := kind + name(bits.TrailingZeros64(left))
			for at := int(p.slots[n]); at >= 0; at = p.next(at) {
				if !yield(at) {
					return
				}
			}
		}
	}
}

// isTried reports whether a field has one of these names. Another was used before all of them.
func (p *Parser) isTried(at int, kind name) bool { return p.fields[at].known/perKind == kind/perKind }

func (p *Parser) whyTime(d *Defaults) (c Cause) {
	first := nameTs
	if d.ForeignTs {
		first++
	}
	var s Stamp
	at, _ := p.findTime(first, d, &s)
	switch {
	case at >= 0:
		c = p.field(at)
	case s.OwnTime && p.dayAt < 0:
		_, path := p.nestedTime(s.Time)
		c = Cause{Place: FromMember, Name: path}
	case s.OwnTime:
		c = Cause{Place: FromFields, Name: p.keyText(p.dayAt), Also: p.keyText(p.clockAt)}
	}
	if at >= 0 && !p.isTried(at, kindTime) {
		return c
	}
	for i := range p.tried(kindTime, first) {
		part, reason := p.partOf(i, d)
		switch {
		case i == at && part == times.Full:
			return c
		case i == at, c.Place == FromFields && (i == p.dayAt || i == p.clockAt), p.isEmptyTime(&p.fields[i]):
		default:
			c.Passed = append(c.Passed, Passed{p.keyText(i), p.shown(i), reason})
		}
	}
	return c
}

// partOf says which part of a time a field has, and why that is not the time of a record that
// defaults.
func (p *Parser) partOf(at int, d *Defaults) (part times.Part, reason string) {
	f := &p.fields[at]
	text, _ := p.timeText(f)
	ns, part := p.readTime(f, text, d)
	switch {
	case part == times.None:
		return part, NoTime
	case d.Arrived != 0 && part != times.Clock && ns > d.Arrived+MaxAhead.Nanoseconds():
		return part, TooFarAhead
	case part != times.Clock && isGuess(f.known, p.src[f.val:f.valEnd]) && !d.believes(ns, part == times.Full && f.known == nameDate):
		return part, "guessed, too far"
	case part == times.Date:
		return part, "is a date alone"
	case part == times.Clock:
		return part, "is a clock alone"
	}
	return part, "is a time, and another field was used"
}

func (p *Parser) whyLevel() (c Cause) {
	at, l := p.findLevel()
	stays := at < 0 && l != Other
	if stays {
		at = p.levelAt
	}
	if at >= 0 {
		c = p.field(at)
		if _, by := p.levelOf(&p.fields[at]); by != nil {
			c.By = by.by
		}
		if !p.isTried(at, kindLevel) {
			return c
		}
	}
	for i := range p.tried(kindLevel, kindLevel) {
		f := &p.fields[i]
		if i == at && l != Other {
			break
		}
		if i != at && f.known < namePriority && !p.isEmpty(f) {
			reason := "is no level"
			if n, _ := p.levelOf(f); n != Other {
				reason = "is a number, and a word comes before it"
			}
			c.Passed = append(c.Passed, Passed{p.keyText(i), p.shown(i), reason})
		}
	}
	if at < 0 {
		if _, _, path := p.nestedLevel(); path != "" {
			c.Place, c.Name = FromMember, path
		}
	}
	return c
}

// shown is the beginning of a value, as it stands in the source.
func (p *Parser) shown(at int) string {
	const most = 60
	f := &p.fields[at]
	v := p.src[f.val:f.valEnd]
	if len(v) <= most {
		return string(v)
	}
	return string(CutText(v, most)) + "..."
}
