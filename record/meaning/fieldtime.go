package meaning

import (
	"bytes"
	"math"
	"math/bits"

	"blobtail/record"
	"blobtail/record/names"
	"blobtail/record/times"
)

// findTime finds the field with the time, or -1, and its text in the source if that is canonical. It looks
// at the names from first on. A value that cannot be the time of a record that arrived then
// is passed over, and so is a guess that is not believed.
func (p *Reader) findTime(first names.Name, d *Defaults, s *record.Stamp) (at int, canonical []byte) {
	latest := int64(math.MaxInt64)
	if d.Arrived != 0 && d.Arrived < latest-record.MaxAhead.Nanoseconds() {
		latest = d.Arrived + record.MaxAhead.Nanoseconds()
	}
	parts := timeParts{dayAt: -1, clockAt: -1}
	p.notes.begin(names.Time)
	if len(p.mapped.offers) > 0 {
		if at, parts = p.mappedTime(d, latest, s); at >= 0 {
			return at, nil
		}
	}
	for left := p.candidates(kindTime) &^ (1<<(first%names.PerKind) - 1); left != 0; left &= left - 1 {
		n := kindTime + names.Name(bits.TrailingZeros64(left))
		for at = int(p.Slots[n]); at >= 0; at = p.Next(at) {
			f := &p.Fields[at]
			text, ok := p.timeText(f)
			if ok {
				if ns, ok := p.day.Parse(text); ok && ns <= latest && n != names.Date && n != names.Created {
					if s.Time, s.OwnTime = ns, true; f.IsEscaped() {
						text = nil
					}
					return at, text
				}
			}
			ns, part := p.readTime(f, text, d)
			guess := isGuess(n, p.Value(f))
			switch full := part == times.Full && ns <= latest; {
			case full && (!guess || d.believes(ns, n == names.Date)):
				if s.Time, s.OwnTime, s.Guessed = ns, true, guess; n == names.TimestampSeconds {
					s.Time += nanosBeside(p)
				}
				return at, nil
			case full:
				s.TimeFar = true
				p.notes.pass(names.Time, at, farOff)
			case parts.add(at, ns, part, latest):
				parts.guess = parts.guess || guess && part == times.Date
				p.notes.pass(names.Time, at, reasonOf(part, false))
			case !emptyTime(p.Value(f)):
				s.TimeUnread = true
				p.notes.pass(names.Time, at, reasonOf(part, ns > latest))
			}
		}
	}
	if parts.guess && parts.clockAt < 0 && !d.believes(parts.day, false) {
		p.notes.pass(names.Time, parts.dayAt, farOff)
		parts.dayAt, s.TimeFar = -1, true
	}
	p.notes.day, p.notes.clock = parts.dayAt, parts.clockAt
	if at = parts.time(latest, s); !s.OwnTime {
		if ns := p.nestedTime(latest); p.notes.nested[names.Time] != nil {
			s.Time, s.OwnTime = ns, true
		}
	}
	return at, nil
}

// nanosBeside is the part of a time below a second, if that is in another field: Fluentd sends
// timestampSeconds and timestampNanos to Google.
func nanosBeside(p *Reader) int64 {
	if !p.Found.Has(names.TimestampNanos) {
		return 0
	}
	f := &p.Fields[p.Slots[names.TimestampNanos]]
	text, _ := p.timeText(f)
	if v, ok := names.Number(text); ok && v > 0 && v < 1_000_000_000 {
		return int64(v)
	}
	return 0
}

// timeParts are a date and a clock in two fields, which are the time together.
type timeParts struct {
	day, clock int64
	dayAt      int  // the field with the date, -1 for none
	clockAt    int  // that with the clock
	guess      bool // the date alone is one
}

// isGuess reports whether a time under a name may be that of another thing: a date is a number if it
// is Fluent Bit's, and the time of Python's LogRecord is one with a fraction.
func isGuess(n names.Name, value []byte) bool {
	switch n {
	case names.Date:
		text := bytes.Trim(value, `"`)
		return !isNumber(text) && !record.IsDigit(value[0])
	case names.Created:
		return value[0] == '"' || bytes.IndexByte(value, '.') < 0
	}
	return false
}

// believes reports whether a guessed time is that of its record.
func (d *Defaults) believes(ns int64, dated bool) bool { return d.Guess == nil || d.Guess(ns, dated) }

// add adds the time of the field at. It reports whether that is the first of its part.
func (t *timeParts) add(at int, ns int64, part times.Part, latest int64) bool {
	switch {
	case part == times.Date && t.dayAt < 0 && ns <= latest:
		t.day, t.dayAt = ns, at
	case part == times.Clock && t.clockAt < 0:
		t.clock, t.clockAt = ns, at
	default:
		return false
	}
	return true
}

// time sets the time that the parts are, and returns the field that it takes up, or -1.
func (t *timeParts) time(latest int64, s *record.Stamp) (at int) {
	switch {
	case t.dayAt >= 0 && t.clockAt >= 0 && t.day+t.clock <= latest:
		s.Time, s.OwnTime = t.day+t.clock, true
		return -1
	case t.dayAt >= 0:
		s.Time, s.OwnTime, s.Guessed = t.day, true, t.guess
		return t.dayAt
	}
	s.TimeUnread = s.TimeUnread || t.clockAt >= 0
	return -1
}

// timeText is the text of a field for parsing a time. Only strings and numbers have one.
func (p *Reader) timeText(f *record.Field) ([]byte, bool) {
	v := p.Value(f)
	switch c := v[0]; {
	case c == '"':
		return p.Text(f), true
	case record.IsDigit(c):
		return v, true
	}
	return nil, false
}

// readTime reads the time of a field. text is its text, nil for a value without one.
func (p *Reader) readTime(f *record.Field, text []byte, d *Defaults) (ns int64, part times.Part) {
	p.times.Now, p.times.Guess = d.Arrived, d.Guess
	if text != nil {
		return p.times.Read(text)
	}
	return valueTime(&p.times, p.Value(f))
}

// valueTime reads the time of a JSON value: of a text, a number, an object of a known form, or an
// array of one time, as a search of Elasticsearch answers.
func valueTime(r *times.Reader, v []byte) (ns int64, part times.Part) {
	switch v[0] {
	case '{':
		return objectTime(r, v)
	case '[':
		w := record.Walk(v)
		if one, ok := w.Element(); ok && w.Leave() && one[0] != '[' {
			return valueTime(r, one)
		}
		return 0, times.None
	}
	return r.Read(record.TextOf(v))
}

// ReadTime reads the time of a JSON value that arrived then, as Unix nanoseconds: a text, a number,
// an object of a known form or an array of one of these. ok is false for any other value.
func ReadTime(value []byte, arrived int64) (ns int64, ok bool) {
	if len(value) == 0 {
		return 0, false
	}
	ns, part := valueTime(&times.Reader{Now: arrived}, value)
	return ns, part == times.Full || part == times.Date
}

// objectTime reads the time of an object: {"$date": ...} of MongoDB, {"seconds": ..., "nanos": ...}
// of Google's libraries, {"epochSecond": ..., "nanoOfSecond": ...} of Java, with the name "nano"
// from Jackson, {"date": ..., "timezone": ...} of PHP.
func objectTime(r *times.Reader, object []byte) (ns int64, part times.Part) {
	if v, ok := record.Lookup(object, "$date"); ok {
		if long, ok := record.Lookup(v, "$numberLong"); ok {
			v = long
		}
		return r.Read(record.TextOf(v))
	}
	if v, ok := record.Lookup(object, "date"); ok && record.IsString(v) {
		zone, _ := record.Lookup(object, "timezone")
		return r.Read(append(append(record.TextOf(v), ' '), record.TextOf(zone)...))
	}
	if v, ok := record.Lookup(object, "SystemTime"); ok { // of Windows, by converters of XML
		return r.Read(record.TextOf(v))
	}
	for _, names := range [...][3]string{{"seconds", "nanos"}, {"epochSecond", "nanoOfSecond", "nano"}} {
		v, ok := record.Lookup(object, names[0])
		if !ok {
			continue
		}
		sec := record.TextOf(v)
		if len(sec) == 0 || !isNumber(sec) || len(sec) > 11 {
			return 0, times.None
		}
		if v, ok = record.Lookup(object, names[1]); !ok && names[2] != "" {
			v, ok = record.Lookup(object, names[2])
		}
		if ok {
			const width = len("123456789")
			nano := record.TextOf(v)
			if len(nano) == 0 || !isNumber(nano) || len(nano) > width {
				return 0, times.None
			}
			sec = append(append(sec, ".000000000"[:1+width-len(nano)]...), nano...)
		}
		return r.Read(sec)
	}
	return 0, times.None
}

// emptyTime reports whether a JSON value that is no time has no contents to keep: it is null, an
// empty text or 0.
func emptyTime(value []byte) bool {
	switch {
	case len(value) == 0, string(value) == `""`, string(value) == "null":
		return true
	case record.IsString(value):
		value = value[1 : len(value)-1]
		if bytes.IndexByte(value, '\\') >= 0 {
			value = record.AppendUnescaped(nil, value)
		}
	case !record.IsDigit(value[0]) && value[0] != '-':
		return false
	}
	ns, ok := times.Number(value)
	return ok && ns == 0
}

// isNumber reports whether a text has digits alone.
func isNumber(s []byte) bool { return len(bytes.TrimLeft(s, "0123456789")) == 0 }
