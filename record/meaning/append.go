package meaning

import (
	"bytes"
	"cmp"
	"slices"

	"blobtail/record"
	"blobtail/record/names"
)

// Defaults are the service and time of records that have none of their own.
type Defaults struct {
	// Service is the folded name from the path or the subject. It takes precedence over
	// the record's own, which becomes a field. "" uses the record's own.
	Service string
	// Fallback is the folded name for records that have none, if Service is "". "" is
	// "unknown".
	Fallback string
	// Time is the effective time of a record without one.
	Time int64
	// Arrived is when the record came, in Unix nanoseconds. A time of a field that is more
	// than [record.MaxAhead] later is passed over, and dates without a year are of the latest year
	// before that. 0: it is not known.
	Arrived int64
	// ForeignTs says that ts is no time in records of this kind. It is kept as ts.original.
	ForeignTs bool
	// Seeks says that a message is looked into for the time and the level that the record lacks.
	Seeks bool
	// Explains says that [Reader.Why] will be asked.
	Explains bool
	// Guess reports whether a time that may be that of another thing is the record's. dated says
	// that it is a text with a clock in a field date, which is named if each record has one. Nil:
	// each is.
	Guess func(ns int64, dated bool) bool
	// Mapping has names of fields that are tried before the known ones. Nil: there are none.
	Mapping *Mapping
}

// lineRoom is more than a line needs in addition to the bytes of its source, if those
// need no new escapes.
const lineRoom = 192

// AppendLine appends the canonical line, with its newline, of the object scanned
// last.
//
// The recognised fields come first: the time, the level, the service and the message, under
// the first of [KnownNames] that is usable; the others stay fields. A value that is no time, or
// one more than [record.MaxAhead] after the arrival, is passed over, and so are empty values, objects,
// and a word that is no level if a field behind it has one. A date and a clock in two of the
// fields are the time together, and stay fields. A date alone is the time if nothing else is. A
// field passed over that is called as a part of the head gets ".original" appended to its name.
// The record's own service is kept as service.name if it differs from the line's. If another
// field has that key already, the key is service.original, or else that with a number. Without a
// time or a level the message is looked into, by [Defaults.Seeks].
//
// Objects of the Elastic Common Schema have a level and a service too: level in an object
// log, which is never the message, and name in an object service. The object log stays a
// field, and service becomes the field service.original. Flat names of the level come
// first.
func (p *Reader) AppendLine(dst []byte, d *Defaults) ([]byte, record.Stamp) {
	dst = slices.Grow(dst, len(p.Src)+lineRoom)
	s := record.Stamp{Time: d.Time, Service: d.Service}
	if d.Explains {
		p.seeker.found = sought{}
	}
	if d.Mapping != nil {
		p.offer(d, nil)
	}

	first := names.Ts
	if d.ForeignTs {
		first++
	}
	text := p.find(first, d, &s)
	h := &p.last
	if named := h.level >= 0 || p.notes.word != nil || s.Level != record.Other; d.Seeks && !(s.OwnTime && named) {
		if msg := p.message(); len(msg) > 0 {
			p.sought(d, msg, &s, named)
		}
	}
	if s.Level == record.Other {
		s.LevelUnread = h.level >= 0 || p.triedLevel()
	}
	h.service, h.keepService = p.findService(d.Fallback, &s)
	dst = p.appendHead(dst, text, &s)
	if d.Mapping != nil {
		p.retract(&s)
	}
	dst = p.appendFields(dst, h)
	return append(dst, "}\n"...), s
}

// appendHead appends the head that was found. text is the canonical time, if that is known.
func (p *Reader) appendHead(dst, text []byte, s *record.Stamp) []byte {
	h := &p.last
	dst = p.clock.AppendHead(dst, s.Time, text)
	switch {
	case s.Level != record.Other:
		dst = append(dst, s.Level.String()...)
	case h.level >= 0: // a word of the sender's own
		dst = p.AppendWord(dst, &p.Fields[h.level])
	case p.notes.word != nil:
		dst = record.AppendEscaped(dst, p.Unescape(p.notes.word))
	}
	dst = record.AppendService(dst, s.Service)
	if h.msg >= 0 {
		from := len(dst)
		dst = p.AppendWord(dst, &p.Fields[h.msg])
		if p.Fields[h.msg].Tag == names.Log {
			dst = cutLineFeed(dst, from)
		}
	} else if v := p.nestedMsg(); v != nil {
		dst = record.AppendEscaped(dst, p.Unescape(v))
	}
	return append(dst, '"')
}

// cutLineFeed cuts an escaped line feed off the end of dst, which begins at from: Docker keeps that
// of each line in log.
func cutLineFeed(dst []byte, from int) []byte {
	text, ok := bytes.CutSuffix(dst[from:], []byte(`\n`))
	if !ok {
		return dst
	}
	slashes := len(text) - len(bytes.TrimRight(text, `\`))
	if slashes%2 == 1 { // it is a backslash and an n
		return dst
	}
	return dst[:from+len(text)]
}

// find finds the time, the level and the message of the object scanned last in its fields, and in objects
// among them. canonical is the text of the time, if the line may have that.
func (p *Reader) find(first names.Name, d *Defaults, s *record.Stamp) (canonical []byte) {
	h := &p.last
	*h = head{service: -1}
	h.time, canonical = p.findTime(first, d, s)
	h.msg = p.msgField()
	if h.level, h.is = p.findLevel(); h.level < 0 && h.is == record.Other {
		p.notes.word, h.is = p.nestedLevel()
	}
	s.Level = h.is
	return canonical
}

// Level returns the value of the level of the object scanned last, behind [Reader.AppendLine], as it
// stands in the source, for [record.ParseLevel], or else the word for it; nil if it has none.
func (p *Reader) Level() []byte {
	switch h := &p.last; {
	case h.level >= 0 && (p.notes.by == nil || p.notes.by.IsCommon()):
		return p.Src[p.Fields[h.level].Val:p.Fields[h.level].ValEnd]
	case h.is != record.Other:
		return []byte(h.is.String())
	default:
		return p.notes.word
	}
}

// head has the fields used for a line's head, -1 for none.
type head struct {
	time, level, service, msg int
	keepService               bool         // as a field
	is                        record.Level // by fields

	// The time or the level is one that the message shows.
	soughtTime, soughtLevel bool
	// The record is one by parts. The time and the service in front of its line are not the sender's.
	parts, dropTime, dropService bool
}

// message is the text of the message that was found, which is valid until the next use of the parser; nil
// if it is none.
func (p *Reader) message() []byte {
	if at := p.last.msg; at >= 0 && p.Src[p.Fields[at].Val] == '"' {
		return p.Text(&p.Fields[at])
	} else if at >= 0 {
		return nil
	}
	v := p.nestedMsg()
	if v != nil {
		v = p.Unescape(v)
	}
	return v
}

// triedLevel reports whether a field for the level has something that is no level.
func (p *Reader) triedLevel() bool {
	for _, f := range p.offered(names.Level) {
		if !p.IsEmpty(f) {
			return true
		}
	}
	if p.found()[kindLevel/names.PerKind] == 0 {
		return false
	}
	for i := range p.Fields {
		if f := &p.Fields[i]; f.Tag/names.PerKind == kindLevel/names.PerKind && f.Tag < names.Priority && !p.IsEmpty(f) {
			return true
		}
	}
	return false
}

// soughtOr is sought for a record with a level that may be assumed, if it is not named.
func (p *Reader) soughtOr(d *Defaults, msg []byte, s *record.Stamp, named bool) {
	assumed := s.Level
	if !named {
		s.Level = record.Other
	}
	if p.sought(d, msg, s, named); s.Level == record.Other {
		s.Level = assumed
	}
}

// findService determines the service. It returns the field that it used, and whether that has
// to be kept as well.
func (p *Reader) findService(fallback string, s *record.Stamp) (used int, keep bool) {
	at, text, nested := p.serviceField()
	if at >= 0 && p.Fields[at].Tag > names.App && s.Service != "" {
		return -1, false // it stays a field
	}
	keep = p.setService(text, fallback, s)
	return at, keep || nested
}

// setService is findService for the text of the record's own service.
func (p *Reader) setService(own []byte, fallback string, s *record.Stamp) (keep bool) {
	switch {
	case s.Service != "":
		return len(own) > 0 && string(own) != s.Service
	case len(own) == 0:
		s.Service = cmp.Or(fallback, record.UnknownService)
		return false
	}
	folded := p.services.fold(own)
	s.Service = folded.name
	return !folded.same
}

// appendFields appends the fields that are not in the line's head, each with the
// comma before it. Adjacent plain fields are copied together.
func (p *Reader) appendFields(dst []byte, h *head) []byte {
	var from, to int32 // source bytes that are still to be copied
	for i := range p.Fields {
		f := &p.Fields[i]
		key := ""
		if f.Tag != 0 {
			var skip bool
			if key, skip = p.renamed(i, h); skip {
				continue
			}
		}
		if f.IsPlain() && key == "" {
			if f.Key != to+2 || to == 0 { // more than `,"` between them
				dst = appendSpan(dst, p.Src[from:to])
				from = f.Key - 1
			}
			to = f.ValEnd
			continue
		}
		dst = appendSpan(dst, p.Src[from:to])
		from, to = 0, 0
		dst = append(dst, ',', '"')
		if key == "" {
			dst = append(dst, p.Key(f)...)
		} else {
			dst = append(dst, key...)
		}
		dst = append(dst, '"', ':')
		dst = append(dst, p.Compact(f)...)
	}
	return appendSpan(dst, p.Src[from:to])
}

// renamed handles a field with a recognised name: it reports whether the field is
// left out, and its key if that differs from its own.
func (p *Reader) renamed(i int, h *head) (key string, skip bool) {
	f := &p.Fields[i]
	switch {
	case i == h.time || i == h.level || i == h.msg:
		return "", true
	case i == h.service && !h.keepService:
		return "", true
	case i == h.service && !h.parts && !p.IsObject(i):
		return p.serviceKey(f), false
	case h.parts && (i >= headEnd || i == headTime && h.dropTime || i == headService && h.dropService):
		return "", i < headEnd
	}
	switch own := p.Key(f); string(own) {
	case "ts":
		if emptyTime(p.Value(f)) {
			return "", true
		}
		return p.FreeKey("ts.original"), false
	case "level", "msg", "service":
		if p.IsEmpty(f) {
			return "", true
		}
		return p.FreeKey(string(own) + ".original"), false
	}
	return "", false
}

func appendSpan(dst, span []byte) []byte {
	if len(span) == 0 {
		return dst
	}
	dst = append(dst, ',')
	return append(dst, span...)
}

// serviceKey is the key for keeping the record's own service, "" for the field's own
// key.
func (p *Reader) serviceKey(f *record.Field) string {
	switch {
	case f.Tag == names.ServiceName, f.Tag > names.App, f.Tag == names.Mapped:
		return ""
	case !p.Found.Has(names.ServiceName):
		return "service.name"
	}
	return p.FreeKey("service.original")
}

// Rejected is a rejected line, with its reason and source.
type Rejected struct {
	Raw     []byte // the line as received, without its newline
	Reason  string
	Source  string // for example the path or subject
	Line    int    // its number in the source
	Time    int64
	Service string // the intended service, if known
}

// AppendRejected appends the canonical line, of the service [record.RejectedService],
// that keeps an invalid record: its first [record.MaxRejected] bytes as msg, and its length.
func (p *Reader) AppendRejected(dst []byte, r Rejected) []byte {
	h := Head{Level: []byte(record.Warn.String()), Msg: record.CutText(r.Raw, record.MaxRejected)}
	b := p.Begin(dst, h, &Defaults{Service: record.RejectedService, Time: r.Time})
	b.Text("reason", record.CutText([]byte(r.Reason), record.MaxRejected))
	b.Int("bytes", int64(len(r.Raw)))
	b.Text("source", record.CutText([]byte(r.Source), record.MaxRejected))
	b.Int("line", int64(r.Line))
	if r.Service != "" {
		b.Text("service.name", []byte(r.Service))
	}
	line, _, _ := b.End() // the parts are short enough, and no key is repeated
	return line
}
