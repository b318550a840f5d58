package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"unsafe"

	"blobtail/record"
	"blobtail/source/body"
	"blobtail/source/tokens"
)

// walkJSON walks through one ExportLogsServiceRequest, or several one after the other, as a
// file of the Collector has them.
func (w *walker) walkJSON() {
	w.cursor = cursor{tokens.Cursor{Src: w.body}}
	c := &w.cursor
	if bytes.HasPrefix(w.body, []byte("\xef\xbb\xbf")) {
		c.At = 3
	}
	from := c.At
	for ; c.Next() != 0; from = c.At {
		from = c.At
		has, wrong := c.Enter('{')
		none := has || wrong // of the logs, so far
		for ; has; has = c.More('{') {
			switch string(c.Key()) {
			case "resourceLogs", "resource_logs":
				none = false
				if !w.each(w.walkResourceJSON) {
					return
				}
			default:
				c.Skip()
			}
		}
		// The rest of a broken body is one reject: where it goes on is not known.
		if c.Fault != "" {
			w.reject(max(from, w.passed), len(w.body), body.Rejection{Reason: c.Fault, Syntax: true})
			return
		}
		if none && !w.reject(from, c.At, body.Rejection{Reason: "no resourceLogs in the request: it is not OTLP", Syntax: true}) {
			return
		}
	}
	if c.Fault != "" {
		w.reject(max(from, w.passed), len(w.body), body.Rejection{Reason: c.Fault, Syntax: true})
	}
}

// each calls walk for each object of an array. A value of another kind is a reject.
func (w *walker) each(walk func() bool) bool {
	c := &w.cursor
	from := c.start()
	has, wrong := c.Enter('[')
	if wrong && c.Fault == "" {
		return w.reject(from, c.At, body.Rejection{Reason: "not OTLP logs: an array should be here", Syntax: true})
	}
	for ; has; has = c.More('[') {
		from = c.start()
		switch c.Next() {
		case '{':
			if !walk() {
				return false
			}
		case 'n':
			c.Skip()
		default:
			c.Skip()
			if c.Fault == "" && !w.reject(from, c.At, body.Rejection{Reason: "not OTLP logs: an object should be here", Syntax: true}) {
				return false
			}
		}
	}
	return true
}

// start returns the offset of the next token.
func (c *cursor) start() int {
	c.Next()
	return c.At
}

// ahead reads the member with one of two names that an object has behind the value at the
// cursor, and returns its offset, 0 if there is none. The cursor stays where it is.
func (c *cursor) ahead(name, older string, read func()) (at int) {
	here := *c
	c.Skip()
	for c.More('{') {
		if key := c.Key(); string(key) == name || string(key) == older {
			at = c.start()
			read()
			break
		}
		c.Skip()
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
	for has, _ := c.Enter('{'); has; has = c.More('{') {
		key := c.Key()
		switch {
		case string(key) == head || string(key) == older:
			from := c.start()
			if !known {
				known, at = true, from
				read()
			} else if c.Skip(); from != at && c.Fault == "" &&
				!w.reject(from, c.At, body.Rejection{Reason: "a second " + head + " of the same logs"}) {
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
			c.Skip()
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
	has, wrong := c.Enter('{')
	if wrong {
		s.reject("not OTLP logs: a "+message+" is no object", true)
	}
	for ; has; has = c.More('{') {
		switch key := c.Key(); {
		case string(key) == "attributes":
			w.listJSON(s)
		case also == nil || !also(key):
			c.Skip()
		}
	}
	if c.At-from > record.MaxRecord {
		s.reject("its "+message+" is longer than 1 MiB", false)
	}
}

// walkRecordJSON reads and passes a LogRecord.
func (w *walker) walkRecordJSON() bool {
	c, e := &w.cursor, &w.entry
	from := c.start()
	e.clear()
	for has, _ := c.Enter('{'); has; has = c.More('{') {
		w.readMemberJSON(c.Key())
	}
	if c.Fault != "" {
		return true // the caller finds it
	}
	if c.At-from > record.MaxRecord {
		e.tooLong()
	}
	return w.pass(from, c.At)
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
		e.seen = w.numberJSON("observed_time_unix_nano")
	case "severityNumber", "severity_number":
		t := c.text(&e.set)
		var ok bool
		if e.number, ok = number(t); !ok {
			e.number = severityOf(t)
			if e.number == 0 && string(t) != "SEVERITY_NUMBER_UNSPECIFIED" {
				e.keep("severity_number", t)
			}
		}
	case "severityText", "severity_text":
		e.severity = c.text(&e.set)
	case "body":
		w.readBodyJSON()
	case "attributes":
		w.listJSON(&e.set)
	case "droppedAttributesCount", "dropped_attributes_count":
		e.dropped = w.numberJSON("dropped_attributes_count")
	case "flags":
		e.flags = w.numberJSON("flags")
	case "traceId", "trace_id":
		e.trace = e.idText(c.text(&e.set), 16)
	case "spanId", "span_id":
		e.span = e.idText(c.text(&e.set), 8)
	case "eventName", "event_name":
		e.event = c.text(&e.set)
	default:
		c.Skip()
	}
}

// numberJSON reads a number of a LogRecord. Any other value becomes a field with the name.
func (w *walker) numberJSON(name string) uint64 {
	e := &w.entry
	t := w.cursor.text(&e.set)
	n, ok := number(t)
	if !ok {
		e.keep(name, t)
	}
	return n
}

// keep adds an attribute with a text.
func (s *set) keep(name string, t []byte) {
	if a := s.next(); a != nil {
		a.key, a.value = []byte(name), value{kind: text, bytes: t}
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

// idText returns an id of so many bytes as it is stored: hexadecimal in lower case, nil if it has
// nothing but zeros. Base64, the usual form of bytes in protobuf's JSON, becomes that too. Any other
// text is kept as it is.
func (s *set) idText(t []byte, size int) []byte {
	upper := false
	if len(t) == base64.StdEncoding.EncodedLen(size) {
		var raw [24]byte
		if n, err := base64.StdEncoding.Decode(raw[:], t); err == nil && n == size {
			from := len(s.text)
			s.text = hex.AppendEncode(s.text, raw[:n])
			t = s.text[from:]
		}
	}
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
