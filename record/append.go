package record

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
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
	// than [MaxAhead] later is passed over, and dates without a year are of the latest year
	// before that. 0: it is not known.
	Arrived int64
	// ForeignTs says that ts is no time in records of this kind. It is kept as ts.original.
	ForeignTs bool
	// Seek returns the level that a message shows, Other for none, and sets the time of the stamp
	// if that has none. It is asked for records that lack one of them. Nil: nobody is.
	Seek func(msg []byte, s *Stamp) (l Level)
	// Guess reports whether a time that may be that of another thing is the record's. dated says
	// that it is a text with a clock in a field date, which is named if each record has one. Nil:
	// each is.
	Guess func(ns int64, dated bool) bool
	// Mapping has names of fields that are tried before the known ones. Nil: there are none.
	Mapping *Mapping
}

// Stamp describes an appended line.
type Stamp struct {
	Time    int64
	OwnTime bool // the record has its own time
	Guessed bool // the time is a guess that was believed
	Level   Level
	Service string
	// TimeUnread says that a field for the time, or a part of the protocol for it, is no time or
	// is too far ahead, whether another has the time or not. LevelUnread says that the record has
	// a field for the level, and none of the six levels.
	TimeUnread, LevelUnread bool
	// TimeFar says that a guessed time was too far off. There may be another one.
	TimeFar bool
}

// lineRoom is more than a line needs in addition to the bytes of its source, if those
// need no new escapes.
const lineRoom = 192

// AppendLine appends the canonical line, with its newline, of the object scanned
// last.
//
// The recognised fields come first: the time, the level, the service and the message, under
// the first of [KnownNames] that is usable; the others stay fields. A value that is no time, or
// one more than [MaxAhead] after the arrival, is passed over, and so are empty values, objects,
// and a word that is no level if a field behind it has one. A date and a clock in two of the
// fields are the time together, and stay fields. A date alone is the time if nothing else is. A
// field passed over that is called as a part of the head gets ".original" appended to its name.
// The record's own service is kept as service.name if it differs from the line's. If another
// field has that key already, the key is service.original, or else that with a number. Without a
// time or a level [Defaults.Seek] looks into the message.
//
// Objects of the Elastic Common Schema have a level and a service too: level in an object
// log, which is never the message, and name in an object service. The object log stays a
// field, and service becomes the field service.original. Flat names of the level come
// first.
func (p *Parser) AppendLine(dst []byte, d *Defaults) ([]byte, Stamp) {
	dst = slices.Grow(dst, len(p.src)+lineRoom)
	s := Stamp{Time: d.Time, Service: d.Service}
	if d.Mapping != nil {
		p.offer(d, nil)
	}

	first := nameTs
	if d.ForeignTs {
		first++
	}
	text := p.find(first, d, &s)
	h := &p.last
	if named := h.level >= 0 || p.notes.word != nil || s.Level != Other; d.Seek != nil && !(s.OwnTime && named) {
		if msg := p.message(); len(msg) > 0 {
			p.sought(d, msg, &s, named)
		}
	}
	dst = append(dst, tsPrefix...)
	if text != nil {
		dst = append(dst, text...)
	} else {
		dst = p.clock.append(dst, s.Time)
	}
	dst = append(dst, levelPrefix...)
	dst = p.appendLevel(dst, h.level, p.notes.word, &s)
	if s.Level == Other {
		s.LevelUnread = h.level >= 0 || p.triedLevel()
	}

	h.service, h.keepService = p.findService(d.Fallback, &s)
	dst = append(dst, servicePrefix...)
	dst = append(dst, s.Service...)

	dst = append(dst, msgPrefix...)
	if h.msg >= 0 {
		from := len(dst)
		dst = p.appendWord(dst, &p.fields[h.msg])
		if p.fields[h.msg].known == nameLog {
			dst = cutLineFeed(dst, from)
		}
	} else if v := p.nestedMsg(); v != nil {
		dst = appendCanonical(dst, v[1:len(v)-1])
	}
	dst = append(dst, '"')

	if d.Mapping != nil {
		p.retract(&s)
	}
	dst = p.appendFields(dst, h)
	return append(dst, "}\n"...), s
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
func (p *Parser) find(first name, d *Defaults, s *Stamp) (canonical []byte) {
	h := &p.last
	*h = head{service: -1}
	h.time, canonical = p.findTime(first, d, s)
	h.msg = p.msgField()
	if h.level, h.is = p.findLevel(); h.level < 0 && h.is == Other {
		p.notes.word, h.is = p.nestedLevel()
	}
	s.Level = h.is
	return canonical
}

// Level returns the value of the level of the object scanned last, behind [Parser.AppendLine], as it
// stands in the source, for [ParseLevel], or else the word for it; nil if it has none.
func (p *Parser) Level() []byte {
	switch h := &p.last; {
	case h.level >= 0 && (p.notes.by == nil || p.notes.by.name == 0):
		return p.src[p.fields[h.level].val:p.fields[h.level].valEnd]
	case h.is != Other:
		return []byte(h.is.String())
	default:
		return p.notes.word
	}
}

// A clock appends canonical times. It keeps the last one, because all records of a body without a
// time get the same one, and most others are of its day.
type clock struct {
	ns   int64  // the time appended last
	day  int64  // the beginning of its day, if that is not before 1970
	text []byte // of ns; nil: none so far
}

// append appends a time, as [AppendTime] does.
func (c *clock) append(dst []byte, ns int64) []byte {
	const day = daySec * second
	switch since := ns - c.day; {
	case c.text != nil && ns == c.ns:
	case c.text != nil && ns >= 0 && c.ns >= 0 && since >= 0 && since < day:
		c.ns = ns
		putClock(c.text, uint(since/second), uint(since%second))
	default:
		c.ns, c.day, c.text = ns, ns-ns%day, AppendTime(c.text[:0], ns)
	}
	return append(dst, c.text...)
}

// head has the fields used for a line's head, -1 for none.
type head struct {
	time, level, service, msg int
	keepService               bool  // as a field
	is                        Level // by fields

	// The time or the level is one that the message shows.
	soughtTime, soughtLevel bool
}

// has reports whether there is a field with a name.
func (p *Parser) has(n name) bool { return p.found.has(n) }

// next is the index of the next field with the name of the field at, -1 for none.
func (p *Parser) next(at int) int {
	if p.again {
		for i := at + 1; i < len(p.fields); i++ {
			if p.fields[i].known == p.fields[at].known {
				return i
			}
		}
	}
	return -1
}

// text is the text of a string field; it may be in scratch.
func (p *Parser) text(f *field) []byte {
	s := p.src[f.val+1 : f.valEnd-1]
	if f.flags&valEscaped == 0 {
		return s
	}
	p.scratch = AppendUnescaped(p.scratch[:0], s)
	return p.scratch
}

// message is the text of the message that was found, which is valid until the next use of the parser; nil
// if it is none.
func (p *Parser) message() []byte {
	if at := p.last.msg; at >= 0 && p.src[p.fields[at].val] == '"' {
		return p.text(&p.fields[at])
	} else if at >= 0 {
		return nil
	}
	v := p.nestedMsg()
	if v != nil {
		p.scratch = AppendUnescaped(p.scratch[:0], v[1:len(v)-1])
		v = p.scratch
	}
	return v
}

// sought looks into a message, for the time and the level that the record lacks. named says that
// it has a level.
func (p *Parser) sought(d *Defaults, msg []byte, s *Stamp, named bool) {
	h := &p.last
	h.soughtTime, h.soughtLevel = false, false
	at := &p.parts.stamp // s would escape
	*at = *s
	l := d.Seek(msg, at)
	h.soughtTime, *s = at.OwnTime && !s.OwnTime, *at
	if !named && s.Level == Other && l != Other {
		s.Level, h.soughtLevel = l, true
	}
}

// triedLevel reports whether a field for the level has something that is no level.
func (p *Parser) triedLevel() bool {
	for _, f := range p.offered(partLevel) {
		if !p.isEmpty(f) {
			return true
		}
	}
	if p.found[kindLevel/perKind] == 0 {
		return false
	}
	for i := range p.fields {
		if f := &p.fields[i]; f.known/perKind == kindLevel/perKind && f.known < namePriority && !p.isEmpty(f) {
			return true
		}
	}
	return false
}

// soughtOr is sought for a record with a level that may be assumed, if it is not named.
func (p *Parser) soughtOr(d *Defaults, msg []byte, s *Stamp, named bool) {
	assumed := s.Level
	if !named {
		s.Level = Other
	}
	if p.sought(d, msg, s, named); s.Level == Other {
		s.Level = assumed
	}
}

// appendLevel appends the inside of the level's string. A word of the sender's own is in the field at,
// or else in a member of an object, inner.
func (p *Parser) appendLevel(dst []byte, at int, inner []byte, s *Stamp) []byte {
	switch {
	case s.Level != Other:
		return append(dst, s.Level.String()...)
	case at >= 0:
		return p.appendWord(dst, &p.fields[at])
	case inner != nil:
		return appendCanonical(dst, inner[1:len(inner)-1])
	}
	return dst
}

// appendWord appends a value as the inside of a string: a string's own text, nothing
// for null, the compact JSON text of any other value.
func (p *Parser) appendWord(dst []byte, f *field) []byte {
	v := p.src[f.val:f.valEnd]
	switch {
	case v[0] == '"' && f.flags&valDirty == 0:
		return append(dst, v[1:len(v)-1]...)
	case v[0] == '"':
		return appendCanonical(dst, v[1:len(v)-1])
	case v[0] == 'n':
		return dst
	}
	return AppendEscaped(dst, p.compact(f))
}

// compact is the canonical text of a value; it may be in the parser's memory.
func (p *Parser) compact(f *field) []byte {
	v := p.src[f.val:f.valEnd]
	if f.flags&valDirty == 0 {
		return v
	}
	p.value = appendCompact(p.value[:0], v)
	if f.flags&valRepeats != 0 {
		p.value = appendUnique(nil, p.value)
	}
	return p.value
}

// findService determines the service. It returns the field that it used, and whether that has
// to be kept as well.
func (p *Parser) findService(fallback string, s *Stamp) (used int, keep bool) {
	at, text, nested := p.serviceField()
	if at >= 0 && p.fields[at].known > nameApp && s.Service != "" {
		return -1, false // it stays a field
	}
	keep = p.setService(text, fallback, s)
	return at, keep || nested
}

// setService is findService for the text of the record's own service.
func (p *Parser) setService(own []byte, fallback string, s *Stamp) (keep bool) {
	switch {
	case s.Service != "":
		return len(own) > 0 && string(own) != s.Service
	case len(own) == 0:
		s.Service = cmp.Or(fallback, unknownService)
		return false
	}
	folded := p.foldCached(own)
	s.Service = folded.name
	return !folded.same
}

// appendFields appends the fields that are not in the line's head, each with the
// comma before it. Adjacent plain fields are copied together.
func (p *Parser) appendFields(dst []byte, h *head) []byte {
	var from, to int32 // source bytes that are still to be copied
	for i := range p.fields {
		f := &p.fields[i]
		key := ""
		if f.known != 0 {
			var skip bool
			if key, skip = p.renamed(i, h); skip {
				continue
			}
		}
		if f.flags&notPlain == 0 && key == "" {
			if f.key != to+2 || to == 0 { // more than `,"` between them
				dst = appendSpan(dst, p.src[from:to])
				from = f.key - 1
			}
			to = f.valEnd
			continue
		}
		dst = appendSpan(dst, p.src[from:to])
		from, to = 0, 0
		dst = append(dst, ',', '"')
		if key == "" {
			dst = append(dst, p.key(p.src, f)...)
		} else {
			dst = append(dst, key...)
		}
		dst = append(dst, '"', ':')
		dst = append(dst, p.compact(f)...)
	}
	return appendSpan(dst, p.src[from:to])
}

// renamed handles a field with a recognised name: it reports whether the field is
// left out, and its key if that differs from its own.
func (p *Parser) renamed(i int, h *head) (key string, skip bool) {
	f := &p.fields[i]
	switch {
	case i == h.time || i == h.level || i == h.msg:
		return "", true
	case i == h.service && !h.keepService:
		return "", true
	case i == h.service && !p.isObject(i):
		return p.serviceKey(f), false
	}
	switch own := p.key(p.src, f); string(own) {
	case "ts":
		if p.isEmptyTime(f) {
			return "", true
		}
		return p.freeKey("ts.original"), false
	case "level", "msg", "service":
		if p.isEmpty(f) {
			return "", true
		}
		return p.freeKey(string(own) + ".original"), false
	}
	return "", false
}

// isEmpty reports whether a field has nothing to keep.
func (p *Parser) isEmpty(f *field) bool {
	v := p.src[f.val:f.valEnd]
	return string(v) == `""` || v[0] == 'n'
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
func (p *Parser) serviceKey(f *field) string {
	switch {
	case f.known == nameServiceName, f.known > nameApp, f.known == nameMapped:
		return ""
	case !p.has(nameServiceName):
		return "service.name"
	}
	return p.freeKey("service.original")
}

// freeKey is want, or, when the record has such a field, want with the first free
// number from 2 appended.
func (p *Parser) freeKey(want string) string {
	taken := map[string]bool{}
	for i := range p.fields {
		if key := p.key(p.src, &p.fields[i]); bytes.HasPrefix(key, []byte(want)) {
			taken[string(key)] = true
		}
	}
	key := want
	for n := 2; taken[key]; n++ {
		key = want + "." + strconv.Itoa(n)
	}
	return key
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

// AppendRejected appends the canonical line, of the service [RejectedService],
// that keeps an invalid record: its first [MaxRejected] bytes as msg, and its length.
func (p *Parser) AppendRejected(dst []byte, r Rejected) []byte {
	b := p.Begin(dst, Head{Level: []byte(Warn.String()), Msg: CutText(r.Raw, MaxRejected)}, &Defaults{Service: RejectedService, Time: r.Time})
	b.Text("reason", CutText([]byte(r.Reason), MaxRejected))
	b.Int("bytes", int64(len(r.Raw)))
	b.Text("source", CutText([]byte(r.Source), MaxRejected))
	b.Int("line", int64(r.Line))
	if r.Service != "" {
		b.Text("service.name", []byte(r.Service))
	}
	line, _, _ := b.End() // the parts are short enough, and no key is repeated
	return line
}
