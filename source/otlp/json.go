package otlp

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"unsafe"

	"blobtail/record"
	"blobtail/source/body"
)

// walkJSON walks through one ExportLogsServiceRequest, or several one after the other, as a
// file of the Collector has them.
func (w *walker) walkJSON() {
	w.cursor = cursor{src: w.body}
	c := &w.cursor
	if bytes.HasPrefix(w.body, []byte("\xef\xbb\xbf")) {
		c.at = 3
	}
	for c.next() != 0 {
		from := c.at
		has, wrong := c.enter('{')
		none := has || wrong // of the logs, so far
		for ; has; has = c.more('{') {
			switch string(c.key()) {
			case "resourceLogs", "resource_logs":
				none = false
				if !w.each(w.walkResourceJSON) {
					return
				}
			default:
				c.skip()
			}
		}
		// The rest of a broken body is one reject: where it goes on is not known.
		if c.fault != "" {
			w.reject(max(from, w.passed), len(w.body), body.Rejection{Reason: c.fault, Syntax: true})
			return
		}
		if none && !w.reject(from, c.at, body.Rejection{Reason: "no resourceLogs in the request: it is not OTLP", Syntax: true}) {
			return
		}
	}
}

// each calls walk for each object of an array. A value of another kind is a reject.
func (w *walker) each(walk func() bool) bool {
	c := &w.cursor
	from := c.start()
	has, wrong := c.enter('[')
	if wrong && c.fault == "" {
		return w.reject(from, c.at, body.Rejection{Reason: "not OTLP logs: an array should be here", Syntax: true})
	}
	for ; has; has = c.more('[') {
		from = c.start()
		switch c.next() {
		case '{':
			if !walk() {
				return false
			}
		case 'n':
			c.skip()
		default:
			c.skip()
			if c.fault == "" && !w.reject(from, c.at, body.Rejection{Reason: "not OTLP logs: an object should be here", Syntax: true}) {
				return false
			}
		}
	}
	return true
}

// start returns the offset of the next token.
func (c *cursor) start() int {
	c.next()
	return c.at
}

// ahead reads the member with one of two names that an object has behind the value at the
// cursor, and returns its offset, 0 if there is none. The cursor stays where it is.
func (c *cursor) ahead(name, older string, read func()) (at int) {
	here := *c
	c.skip()
	for c.more('{') {
		if key := c.key(); string(key) == name || string(key) == older {
			at = c.start()
			read()
			break
		}
		c.skip()
	}
	*c = here
	return at
}

// walkResourceJSON walks through ResourceLogs.
func (w *walker) walkResourceJSON() bool {
	w.resource.clear()
	w.scope.clear()
	w.service = nil
	read := func() {
		w.attributesJSON(&w.resource, "resource", nil)
		w.nameService()
		w.price()
	}
	return w.walkPartsJSON("resource", "resource", read, w.walkScopeJSON, "scopeLogs", "scope_logs",
		"instrumentationLibraryLogs", "instrumentation_library_logs")
}

// walkScopeJSON walks through ScopeLogs.
func (w *walker) walkScopeJSON() bool {
	s := &w.scope
	s.clear()
	w.price()
	read := func() {
		w.attributesJSON(&s.set, "scope", func(key []byte) bool {
			switch string(key) {
			case "name":
				s.name = w.cursor.text(&s.set)
			case "version":
				s.version = w.cursor.text(&s.set)
			default:
				return false
			}
			return true
		})
		w.price()
	}
	return w.walkPartsJSON("scope", "instrumentationLibrary", read, w.walkRecordJSON, "logRecords", "log_records", "logs")
}

// walkPartsJSON walks through an object with a head, which has one of two names, and
// arrays, which have one of names. A head behind an array counts for it as well.
func (w *walker) walkPartsJSON(head, older string, read func(), walk func() bool, names ...string) bool {
	c := &w.cursor
	at, known := 0, false
	for has, _ := c.enter('{'); has; has = c.more('{') {
		key := c.key()
		switch {
		case string(key) == head || string(key) == older:
			from := c.start()
			if !known {
				known, at = true, from
				read()
			} else if c.skip(); from != at && c.fault == "" &&
				!w.reject(from, c.at, body.Rejection{Reason: "a second " + head + " of the same logs"}) {
				return false
			}
		case isOneOf(key, names):
			if !known {
				known, at = true, c.ahead(head, older, read)
			}
			if !w.each(walk) {
				return false
			}
		default:
			c.skip()
		}
	}
	return true
}

func isOneOf(key []byte, names []string) bool {
	for _, name := range names {
		if string(key) == name {
			return true
		}
	}
	return false
}

// attributesJSON reads the attributes of a resource or scope into s. also reads the value
// of another member, or returns false.
func (w *walker) attributesJSON(s *set, message string, also func(key []byte) bool) {
	c := &w.cursor
	from := c.start()
	has, wrong := c.enter('{')
	if wrong {
		s.reject("not OTLP logs: a "+message+" is no object", true)
	}
	for ; has; has = c.more('{') {
		switch key := c.key(); {
		case string(key) == "attributes":
			w.listJSON(s)
		case also == nil || !also(key):
			c.skip()
		}
	}
	if c.at-from > record.MaxRecord {
		s.reject("its "+message+" is longer than 1 MiB", false)
	}
}

// listJSON reads an array of attributes into s.
func (w *walker) listJSON(s *set) {
	c := &w.cursor
	has, wrong := c.enter('[')
	if wrong {
		s.reject("not OTLP logs: attributes are no array", true)
	}
	for ; has; has = c.more('[') {
		a := s.next()
		if a != nil && a.plainJSON(c) {
			continue
		}
		if key, v := w.pairJSON(s, 1, false); a != nil {
			a.key, a.value = key, v
		}
	}
}

// plainJSON reads a KeyValue of the usual form, and reports whether it is one: without white
// space and escapes, with a text, a number or a boolean.
func (a *attribute) plainJSON(c *cursor) bool {
	from := c.at
	if c.has(`{"key":"`) && c.plain(&a.key) && c.has(`,"value":{"`) && a.value.plainJSON(c) && c.has(`}}`) {
		return true
	}
	c.at = from
	return false
}

// plainJSON reads the member of an AnyValue of the usual form, behind its first quote.
func (v *value) plainJSON(c *cursor) bool {
	switch {
	case c.has(`stringValue":"`):
		v.kind = text
		return c.plain(&v.bytes)
	case c.has(`intValue":`):
		quoted := c.has(`"`)
		*v = integerOf(c.number())
		return v.kind == integer && (!quoted || c.has(`"`))
	case c.has(`doubleValue":`):
		*v = doubleOf(c.number())
		return v.kind == double
	case c.has(`boolValue":true`):
		*v = value{kind: boolean, bits: 1}
		return true
	case c.has(`boolValue":false`):
		*v = value{kind: boolean}
		return true
	}
	return false
}

// walkRecordJSON reads and passes a LogRecord.
func (w *walker) walkRecordJSON() bool {
	c, e := &w.cursor, &w.entry
	from := c.start()
	e.clear()
	for has, _ := c.enter('{'); has; has = c.more('{') {
		w.readMemberJSON(c.key())
	}
	if c.fault != "" {
		return true // the caller finds it
	}
	if c.at-from > record.MaxRecord {
		e.tooLong()
	}
	return w.pass(from, c.at)
}

// readMemberJSON reads a member of a LogRecord.
func (w *walker) readMemberJSON(key []byte) {
	c, e := &w.cursor, &w.entry
	switch string(key) {
	case "timeUnixNano", "time_unix_nano":
		t := c.text(&e.set)
		if n, ok := number(t); ok {
			e.time = n
		} else {
			e.badTime = t
		}
	case "observedTimeUnixNano", "observed_time_unix_nano":
		e.seen, _ = number(c.text(&e.set))
	case "severityNumber", "severity_number":
		t := c.text(&e.set)
		var ok bool
		if e.number, ok = number(t); !ok {
			e.number = severityOf(t)
		}
	case "severityText", "severity_text":
		e.severity = c.text(&e.set)
	case "body":
		w.readBodyJSON()
	case "attributes":
		w.listJSON(&e.set)
	case "droppedAttributesCount", "dropped_attributes_count":
		e.dropped, _ = number(c.text(&e.set))
	case "flags":
		e.flags, _ = number(c.text(&e.set))
	case "traceId", "trace_id":
		e.trace = e.idText(c.text(&e.set))
	case "spanId", "span_id":
		e.span = e.idText(c.text(&e.set))
	case "eventName", "event_name":
		e.event = c.text(&e.set)
	default:
		c.skip()
	}
}

// number reads a number of any form, as a JSON number or in a string. An empty text is 0.
func number(t []byte) (n uint64, ok bool) {
	if len(t) == 0 {
		return 0, true
	}
	s := unsafe.String(unsafe.SliceData(t), len(t))
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f < math.MaxInt64) {
		return 0, false
	}
	return uint64(f), true
}

// severityOf returns the number of a severity by its name, such as SEVERITY_NUMBER_WARN2.
func severityOf(name []byte) uint64 {
	name, _ = bytes.CutPrefix(name, []byte("SEVERITY_NUMBER_"))
	more := uint64(0)
	if n := len(name); n > 0 && name[n-1] >= '2' && name[n-1] <= '4' {
		more, name = uint64(name[n-1]-'1'), name[:n-1]
	}
	if l := record.ParseLevel(name); l != record.Other {
		return uint64(l)*4 + 1 + more
	}
	return 0
}

// idText returns an id as it is stored: in lower case, nil if it has nothing but zeros. One
// that is not hexadecimal is kept as it is.
func (s *set) idText(t []byte) []byte {
	upper := false
	for _, b := range t {
		if b-'A' < 6 {
			upper = true
		}
	}
	switch {
	case len(t) == 0 || t[0] == '0' && len(bytes.Trim(t, "0")) == 0:
		return nil
	case upper && len(bytes.Trim(t, "0123456789abcdefABCDEF")) == 0:
		from := len(s.text)
		s.text = append(s.text, bytes.ToLower(t)...)
		return s.text[from:]
	}
	return t
}

// readBodyJSON reads the body of the record. The members of a map are kept apart.
func (w *walker) readBodyJSON() {
	c, e := &w.cursor, &w.entry
	e.members, e.body = e.members[:0], value{}
	if c.next() != '{' {
		e.body = w.valueJSON(&e.set, 1)
		return
	}
	for has, _ := c.enter('{'); has; has = c.more('{') {
		key := c.key()
		if string(key) != "kvlistValue" && string(key) != "kvlist_value" {
			if v, ok := w.chosenJSON(&e.set, key, 1); ok {
				e.body = v
			}
			continue
		}
		e.body, e.members = value{kind: members}, e.members[:0]
		for has, _ := c.enter('{'); has; has = c.more('{') {
			if string(c.key()) != "values" {
				c.skip()
				continue
			}
			for has, _ := c.enter('['); has; has = c.more('[') {
				key, v := w.pairJSON(&e.set, 1, false)
				if len(e.members) == record.MaxFields {
					e.tooMany()
					continue
				}
				e.members = append(e.members, attribute{key, v})
			}
		}
	}
}

// pairJSON reads a KeyValue. depth is that of the object with the key. within says to append
// it to s.json as a member.
func (w *walker) pairJSON(s *set, depth int, within bool) (key []byte, v value) {
	c := &w.cursor
	from, known := len(s.json), false
	has, wrong := c.enter('{')
	if wrong {
		s.reject("not OTLP logs: a pair of key and value is no object", true)
	}
	for ; has; has = c.more('{') {
		switch name := c.key(); string(name) {
		case "key":
			if t := c.text(s); !known {
				key, known = t, true
			}
		case "value":
			s.json = s.json[:from]
			v = w.valueJSON(s, depth)
		default:
			c.skip()
		}
	}
	if within {
		w.insertKey(s, from, key, v)
	}
	return key, v
}

// insertKey makes a member of a key and the value that s.json has from an offset on, if it
// is nested: the key may have been behind it.
func (w *walker) insertKey(s *set, from int, key []byte, v value) {
	w.scratch = appendKey(w.scratch[:0], key)
	end := len(s.json)
	s.json = append(s.json, w.scratch...)
	if v.kind != nested {
		s.json = appendJSON(s.json, v)
		return
	}
	copy(s.json[from+len(w.scratch):], s.json[from:end])
	copy(s.json[from:], w.scratch)
}

// valueJSON reads an AnyValue. The JSON of an array or a map is at the end of s.json. A
// plain string or number is taken for what it is.
func (w *walker) valueJSON(s *set, depth int) (v value) {
	c := &w.cursor
	switch c.next() {
	case '{':
	case '"':
		return value{kind: text, bytes: c.text(s)}
	default:
		return scalar(c.raw(s))
	}
	from := len(s.json)
	for has, _ := c.enter('{'); has; has = c.more('{') {
		key := c.key()
		s.json = s.json[:from] // of all values the last one counts
		if chosen, ok := w.chosenJSON(s, key, depth); ok {
			v = chosen
		} else if v.kind == nested {
			s.json = s.json[:from+len(v.bytes)]
		}
	}
	return v
}

// chosenJSON reads a member of an AnyValue. ok reports that it is a value.
func (w *walker) chosenJSON(s *set, key []byte, depth int) (v value, ok bool) {
	c := &w.cursor
	switch string(key) {
	case "stringValue", "string_value":
		return value{kind: text, bytes: c.text(s)}, true
	case "bytesValue", "bytes_value":
		return s.bytesOf(c.text(s)), true
	case "boolValue", "bool_value":
		return scalar(c.text(s)), true
	case "intValue", "int_value":
		return integerOf(c.text(s)), true
	case "doubleValue", "double_value":
		return doubleOf(c.text(s)), true
	case "arrayValue", "array_value":
		return w.nestedJSON(s, '[', depth+1), true
	case "kvlistValue", "kvlist_value":
		return w.nestedJSON(s, '{', depth+1), true
	}
	c.skip()
	return v, false
}

// nestedJSON reads an ArrayValue or a KeyValueList, and appends its JSON to s.json.
func (w *walker) nestedJSON(s *set, open byte, depth int) value {
	c := &w.cursor
	if depth > record.MaxDepth {
		s.tooDeep()
		c.skip()
		return value{}
	}
	from := len(s.json)
	s.json = append(s.json, open)
	for has, _ := c.enter('{'); has; has = c.more('{') {
		if string(c.key()) != "values" {
			c.skip()
			continue
		}
		for has, _ := c.enter('['); has; has = c.more('[') {
			if len(s.json) > from+1 {
				s.json = append(s.json, ',')
			}
			if open == '{' {
				w.pairJSON(s, depth, true)
			} else if v := w.valueJSON(s, depth); v.kind != nested {
				s.json = appendJSON(s.json, v)
			}
			if len(s.json) > 2*record.MaxRecord {
				s.tooLong()
				s.json = s.json[:from+1]
			}
		}
	}
	s.json = append(s.json, open+2)
	return value{kind: nested, bytes: s.json[from:]}
}

func integerOf(t []byte) value {
	n, err := strconv.ParseInt(unsafe.String(unsafe.SliceData(t), len(t)), 10, 64)
	if err != nil {
		return scalar(t)
	}
	return value{kind: integer, bits: uint64(n)}
}

// bytesOf returns the bytes of base64. Any other text is kept as it is.
func (s *set) bytesOf(t []byte) value {
	from := len(s.text)
	decoded, err := base64.StdEncoding.AppendDecode(s.text, t)
	if err != nil {
		return value{kind: text, bytes: t}
	}
	s.text = decoded
	return value{kind: data, bytes: s.text[from:]}
}

func doubleOf(t []byte) value {
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(t), len(t)), 64)
	if err != nil {
		return scalar(t)
	}
	return value{kind: double, bits: math.Float64bits(f)}
}

// scalar returns a value of the text of a number, true, false or null; of any other text
// that text.
func scalar(t []byte) value {
	switch s := string(t); {
	case s == "true":
		return value{kind: boolean, bits: 1}
	case s == "false":
		return value{kind: boolean}
	case s == "null" || s == "":
		return value{}
	case record.ValueLen(t) != len(t):
		return value{kind: text, bytes: t}
	}
	return value{kind: literal, bytes: t}
}
