package otlp

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"unsafe"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/names"
	"blobtail/source/body"
)

// A kind is the type of a value.
type kind uint8

const (
	null kind = iota
	text
	integer
	double
	boolean
	data    // bytes
	nested  // an array or a map: JSON, at the end of the set's when it was made
	literal // other JSON, as the sender wrote it
	members
)

// A value is an AnyValue. The members of a map are apart if it is the body of a record.
type value struct {
	kind  kind
	bytes []byte
	bits  uint64 // of an integer, double or boolean
}

type attribute struct {
	key   []byte
	value value
}

// A set is a list of attributes, with the memory for their texts that are not in the body.
type set struct {
	list       []attribute
	text, json []byte
	why        body.Rejection // the first reason that the set cannot be used
}

// clear forgets the attributes and keeps the memory of usual ones.
func (s *set) clear() {
	const kept = 64 << 10
	s.list, s.text, s.json = s.list[:0], s.text[:0], s.json[:0]
	if s.why.Reason != "" {
		s.why = body.Rejection{}
	}
	if cap(s.text)+cap(s.json) > kept {
		s.text, s.json = nil, nil
	}
}

// next adds an attribute, nil if the record may not have one more.
func (s *set) next() *attribute {
	n := len(s.list)
	if n == record.MaxFields {
		s.tooMany()
		return nil
	}
	if n == cap(s.list) {
		s.list = append(s.list, attribute{})
	}
	s.list = s.list[:n+1]
	return &s.list[n]
}

// reject notes a reason. syntax says that this is no OTLP.
func (s *set) reject(reason string, syntax bool) {
	if s.why.Reason == "" {
		s.why = body.Rejection{Reason: reason, Syntax: syntax}
	}
}

func (s *set) tooMany() { s.reject("more than 256 fields", false) }

func (s *set) tooDeep() { s.reject("nested deeper than 64", false) }

func (s *set) tooLong() { s.reject("longer than 1 MiB", false) }

func (s *set) failed() bool { return s.why.Reason != "" }

// An entry is a log record.
type entry struct {
	set             // its own attributes
	time, seen      uint64
	badTime         []byte // a time that is no number
	number          uint64 // of its severity
	severity        []byte
	body            value
	members         []attribute // of a body that is a map
	trace, span     []byte
	event           []byte
	dropped, flags  uint64
	unknownSeverity []byte
}

// clear forgets the record. It is called for each one: clearing all at once takes longer.
func (e *entry) clear() {
	e.set.clear()
	e.time, e.seen, e.number, e.dropped, e.flags = 0, 0, 0, 0, 0
	e.badTime, e.severity, e.trace, e.span, e.event, e.unknownSeverity = nil, nil, nil, nil, nil, nil
	e.body, e.members = value{}, e.members[:0]
}

// A scope is an InstrumentationScope.
type scope struct {
	set
	name, version []byte
}

func (s *scope) clear() {
	s.set.clear()
	*s = scope{set: s.set}
}

// A walker passes the records of a body to a sink.
type walker struct {
	body     []byte
	to       body.Sink
	resource set
	service  []byte // of the resource
	named    string // the attribute that service is of
	from     []string
	scope    scope
	entry    entry
	cost     int // about the bytes that resource and scope add to a record
	shared   body.Shared
	passed   int       // end of the last record
	words    [6][]byte // of the levels
	pairs    []names.Pair
	scratch  []byte
	cursor   cursor // of JSON
}

func newWalker(from []string) *walker {
	w := &walker{from: from}
	for l := record.Trace; l <= record.Critical; l++ {
		w.words[l] = []byte(l.String())
	}
	return w
}

// forget makes the walker ready for another body. It holds nothing of this one.
func (w *walker) forget() {
	w.resource.clear()
	w.scope.clear()
	w.entry.clear()
	clear(w.resource.list[:cap(w.resource.list)])
	clear(w.scope.list[:cap(w.scope.list)])
	clear(w.entry.list[:cap(w.entry.list)])
	clear(w.entry.members[:cap(w.entry.members)])
	clear(w.pairs[:cap(w.pairs)])
	if cap(w.scratch) > 64<<10 {
		w.scratch = nil
	}
	*w = walker{resource: w.resource, scope: w.scope, entry: w.entry, words: w.words, from: w.from, pairs: w.pairs, scratch: w.scratch[:0]}
}

// reject passes bytes of the body that are no records.
func (w *walker) reject(from, end int, why body.Rejection) bool {
	w.passed = end
	return w.to.Reject(w.body[from:end], why, end)
}

// price counts the bytes that the resource and the scope add to each record.
func (w *walker) price() {
	const field = 16 // about the bytes around a name and a value, and the work on them
	w.cost = len(w.scope.name) + len(w.scope.version)
	for _, list := range [...][]attribute{w.resource.list, w.scope.list} {
		for i := range list {
			w.scratch = appendKey(w.scratch[:0], list[i].key)
			w.scratch = appendJSON(w.scratch, list[i].value) // escapes may be most of it
			w.cost += field + len(w.scratch)
		}
	}
}

// pass passes the entry, which is body[from:end].
func (w *walker) pass(from, end int) bool {
	e := &w.entry
	fits := w.shared.Add(w.cost)
	for _, s := range [...]*set{&e.set, &w.resource, &w.scope.set} {
		if s.failed() {
			return w.reject(from, end, s.why)
		}
	}
	if !fits {
		return w.reject(from, end, w.shared.Rejection("the attributes of resources and scopes add"))
	}
	w.passed = end
	h := meaning.Head{Time: timeOf(e.time), Service: w.service, Renames: true, Why: w.to.Why()}
	if h.Why != nil {
		h.Why.Named("timeUnixNano", "severityNumber", "body", "the resource's "+w.named)
	}
	h.Level = w.level(h.Why)
	if h.Time == 0 {
		w.seen(&h)
	}
	e.list = w.levelIn(e.list, &h)
	rest := w.message(&h)
	p := w.to.Begin(h)
	w.addFields(p, rest)
	return w.to.Record(w.body[from:end], 1, end)
}

// timeOf is a time of the entry in Unix nanoseconds, 0 for none.
func timeOf(t uint64) int64 {
	if t == 0 || t > math.MaxInt64 {
		return 0
	}
	return byUnit(int64(t))
}

// byUnit is a time in nanoseconds. A number that would be before the year 2000 is in the unit of
// its size, as some senders have it.
func byUnit(t int64) int64 {
	const year2000 = 946684800e9
	if t >= year2000 {
		return t
	}
	if ns, ok := meaning.ReadTime(strconv.AppendInt(nil, t, 10), 0); ok {
		return ns
	}
	return t
}

// level returns the word of the level. If the text is not a usual word, the number says
// more, and the text becomes a field.
func (w *walker) level(why *meaning.Why) []byte {
	e := &w.entry
	if len(e.severity) > 0 {
		why.Level().Note(meaning.FromProtocol, "severityText")
	}
	if e.number < 1 || e.number > 24 || len(e.severity) > 0 && record.ParseLevel(e.severity) != record.Other {
		return e.severity
	}
	e.unknownSeverity = e.severity
	why.Level().Note(meaning.FromProtocol, "severityNumber")
	return w.words[(e.number-1)/4]
}

// message sets the message. If the body is a map with a message it returns the others of
// its members, which become fields.
func (w *walker) message(h *meaning.Head) (rest []attribute) {
	e := &w.entry
	switch e.body.kind {
	case null:
		return nil
	case text:
		h.Msg = e.body.bytes
		return nil
	case members:
	default:
		w.scratch = appendWord(w.scratch[:0], e.body)
		h.Msg = w.scratch
		return nil
	}
	const behind = 1 << 10
	at := names.Best(len(e.members), func(i int) int {
		m := &e.members[i]
		m.journal()
		place := names.MessagePlace(asString(m.key))
		switch {
		case place == 0 || m.value.kind != text:
			return 0
		case len(m.value.bytes) == 0:
			place += behind // those that have a text
		}
		return place
	})
	if at >= 0 {
		h.Msg = e.members[at].value.bytes
		if h.Why != nil {
			h.Why.Message().Note(meaning.FromMember, "body."+asString(e.members[at].key))
		}
		return w.levelIn(append(e.members[:at], e.members[at+1:]...), h)
	}
	if w.mapped() {
		return w.levelIn(e.members, h)
	}
	b := append(w.scratch[:0], '{')
	for i := range e.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendKey(b, e.members[i].key)
		b = appendJSON(b, e.members[i].value)
	}
	w.scratch = append(b, '}')
	h.Msg = w.scratch
	return nil
}

// mapped reports whether a member of the body is named for a part of the head.
func (w *walker) mapped() bool {
	return slices.ContainsFunc(w.entry.members, func(m attribute) bool { return w.to.Mapped(w.service, asString(m.key)) })
}

// asString is a key as a string, for functions that do not keep it.
func asString(key []byte) string { return unsafe.String(unsafe.SliceData(key), len(key)) }

// addFields adds the fields. Of two with the same name the first keeps it: the ids of the trace,
// then the record's own fields, then those of its scope and its resource.
func (w *walker) addFields(p *meaning.Parts, rest []attribute) {
	e := &w.entry
	addText(p, "trace_id", e.trace)
	addText(p, "span_id", e.span)
	w.addAll(p, e.list)
	w.addAll(p, rest)
	addText(p, "event_name", e.event)
	addText(p, "severity_text", e.unknownSeverity)
	addNumber(p, "flags", e.flags)
	addNumber(p, "dropped_attributes_count", e.dropped)
	if e.number > 24 {
		addNumber(p, "severity_number", e.number)
	}
	if e.time > math.MaxInt64 {
		addNumber(p, "time_unix_nano", e.time)
	}
	addText(p, "time_unix_nano", e.badTime)
	addText(p, "otel.scope.name", w.scope.name)
	addText(p, "otel.scope.version", w.scope.version)
	w.addAll(p, w.scope.list)
	w.addAll(p, w.resource.list)
}

func addText(p *meaning.Parts, name string, s []byte) {
	if len(s) > 0 {
		p.Text(name, s)
	}
}

// addNumber adds a number that is not 0.
func addNumber(p *meaning.Parts, name string, n uint64) {
	switch {
	case n > math.MaxInt64:
		p.JSON(name, strconv.AppendUint(nil, n, 10))
	case n > 0:
		p.Int(name, int64(n))
	}
}

func (w *walker) addAll(p *meaning.Parts, list []attribute) {
	for i := range list {
		// Parts copies the key, and nothing changes it before.
		key, v := asString(list[i].key), &list[i].value
		switch v.kind {
		case text:
			p.Text(key, v.bytes)
		case integer:
			p.Int(key, int64(v.bits))
		case double:
			p.Float(key, math.Float64frombits(v.bits))
		case boolean:
			p.Bool(key, v.bits != 0)
		case nested, literal:
			p.JSON(key, v.bytes)
		case data:
			w.scratch = base64.StdEncoding.AppendEncode(w.scratch[:0], v.bytes)
			p.Text(key, w.scratch)
		default:
			w.scratch = append(w.scratch[:0], "null"...)
			p.JSON(key, w.scratch)
		}
	}
}

// appendWord appends a value as plain text.
func appendWord(dst []byte, v value) []byte {
	switch f := math.Float64frombits(v.bits); {
	case v.kind == text:
		return append(dst, v.bytes...)
	case v.kind == data:
		return base64.StdEncoding.AppendEncode(dst, v.bytes)
	case v.kind == double && (math.IsNaN(f) || math.IsInf(f, 0)):
		return strconv.AppendFloat(dst, f, 'g', -1, 64)
	}
	return appendJSON(dst, v)
}

// appendJSON appends a value as JSON.
func appendJSON(dst []byte, v value) []byte {
	switch v.kind {
	case nested, literal:
		return append(dst, v.bytes...)
	case integer:
		return strconv.AppendInt(dst, int64(v.bits), 10)
	case boolean:
		return strconv.AppendBool(dst, v.bits != 0)
	case text:
		dst = append(dst, '"')
		dst = record.AppendEscaped(dst, v.bytes)
		return append(dst, '"')
	case double:
		if f := math.Float64frombits(v.bits); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return record.AppendFloat(dst, f)
		}
		fallthrough // JSON has no such number
	case data:
		dst = append(dst, '"')
		dst = appendWord(dst, v)
		return append(dst, '"')
	}
	return append(dst, "null"...)
}

func appendKey(dst, key []byte) []byte {
	dst = append(dst, '"')
	dst = record.AppendEscaped(dst, key)
	return append(dst, '"', ':')
}
