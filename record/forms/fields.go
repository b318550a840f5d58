package forms

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"blobtail/record"
)

// Append appends a line with the fields that a form makes of its message. A name that the line has already
// gets _extracted, as Loki names it. ok is false if the message has not the form; then the line is appended
// as it is. With store the level of the line is that of the form, unless the sender has given one;
// without it the level is the field level_extracted.
func (f *Form) Append(dst, line []byte, store bool) (_ []byte, ok bool) {
	m := f.pool.Get().(*match)
	defer f.pool.Put(m)
	off, ok := record.LineMsg(line)
	text := line[off:max(off, record.StringEnd(line, off)-1)]
	if bytes.IndexByte(text, '\\') >= 0 {
		m.text = record.AppendUnescaped(m.text[:0], text)
		text = m.text
	}
	if !ok || !m.of(f, text) {
		return append(dst, line...), false
	}
	from, level := len(dst), m.level
	if level == record.Other {
		level = m.byStatus
	}
	if !store && level != record.Other {
		m.fields = append(m.fields, field{"level_extracted", []byte(level.String())})
	}
	object := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("}"))
	renamed := false
	for key, value := range record.Fields(line) {
		if store && level != record.Other && string(key) == "level" && (string(value) == `""` || string(value) == `"info"`) {
			at := bytes.Index(object, value) // the time before has another text
			dst = append(append(append(dst, object[:at]...), '"'), level.String()...)
			object = object[at+len(value)-1:]
		}
		for i := range m.fields {
			if f := &m.fields[i]; f.name != string(key) {
				continue
			} else if string(AppendValue(nil, f.value)) == string(value) {
				f.name = "" // the ingester has stored it
			} else {
				f.name, renamed = f.name+"_extracted", true
			}
		}
	}
	if renamed {
		m.fields = slices.DeleteFunc(m.fields, func(f field) bool { _, taken := record.Lookup(line, f.name); return taken })
	}
	dst = append(dst, object...)
	for i, f := range m.fields {
		if f.name != "" && !slices.ContainsFunc(m.fields[:i], func(before field) bool { return before.name == f.name }) {
			dst = AppendValue(append(append(append(dst, `,"`...), f.name...), `":`...), f.value)
		}
	}
	if dst = append(dst, "}\n"...); len(dst)-from > record.MaxRecord {
		return append(dst[:from], line...), false
	}
	return dst, true
}

// AppendValue appends a value of JSON. A text that looks like a number is one.
func AppendValue(dst, value []byte) []byte {
	if isNumber(value) {
		return append(dst, value...)
	}
	return append(record.AppendEscaped(append(dst, '"'), value), '"')
}

// A match is a text that is compared with a form.
type match struct {
	text   []byte // memory for it
	fields []field
	level  record.Level // by a place level
	// byStatus is the level of a line without another one.
	byStatus record.Level
}

// A field is a value of a text. The value lies in the text, or in memory of its own.
type field struct {
	name  string
	value []byte
}

// of finds the fields of a text, if it has the form.
func (m *match) of(f *Form, text []byte) (ok bool) {
	for i := 0; i < len(f.lines) && !ok; i++ {
		m.fields, m.level, m.byStatus = m.fields[:0], record.Other, record.Other
		s := text
		for j := range f.lines[i] {
			p := &f.lines[i][j]
			if p.kind == "number" {
				s = bytes.TrimLeft(s, " ")
			}
			end := p.end(s)
			if ok = end >= 0 && m.take(p.name, p.kind, s[:end]); !ok {
				break
			}
			s = s[end+len(p.until):]
		}
	}
	return ok
}

// end is where a value ends; -1: nowhere.
func (p *place) end(s []byte) int {
	switch {
	case len(p.until) == 0 && p.kind != "begin":
		return len(s)
	case p.kind == "address" && p.until[0] != ' ': // the colons of IPv6 do not end it
		word, _, _ := bytes.Cut(s, []byte(" "))
		return bytes.LastIndex(word, p.until)
	case p.kind == "csv":
		return outside(s, p.until)
	case !p.quoted:
		return bytes.Index(s, p.until)
	}
	for at := 0; ; at++ {
		n := bytes.IndexByte(s[at:], '"')
		if n < 0 {
			return -1
		}
		at += n
		if slashes := at - len(bytes.TrimRight(s[:at], `\`)); slashes%2 == 0 && bytes.HasPrefix(s[at:], p.until) {
			return at
		}
	}
}

// outside finds a text that is not between quotes; -1: there is none.
func outside(s, text []byte) int {
	for i, in := 0, false; i < len(s); i++ {
		if in = in != (s[i] == '"'); !in && bytes.HasPrefix(s[i:], text) {
			return i
		}
	}
	return -1
}

// take takes the value of a place, if it is of its kind.
func (m *match) take(name, kind string, s []byte) (ok bool) {
	switch ok = true; kind {
	case "begin":
		return len(s) == 0
	case "word":
		ok = len(s) > 0 && bytes.IndexByte(s, ' ') < 0
	case "address": // or the name of a host
		ok = bytes.ContainsAny(s, ".:") && bytes.IndexByte(s, ' ') < 0
	case "number":
		ok = isNumber(s) || string(s) == "-"
	case "digits":
		ok = areDigits(s[:min(1, len(s))])
	case "csv":
		if ok = bytes.IndexByte(s, ',') < 0; len(s) > 1 && s[0] == '"' {
			inner := s[1 : len(s)-1]
			ok = s[len(s)-1] == '"' && bytes.Count(inner, []byte(`"`)) == 2*bytes.Count(inner, []byte(`""`))
			s = bytes.ReplaceAll(inner, []byte(`""`), []byte(`"`))
		}
	case "klog": // W1128
		ok = len(s) == 5 && strings.IndexByte("IWEF", s[0]) >= 0 && areDigits(s[1:])
		s = s[:min(1, len(s))]
	case "priority":
		n, err := strconv.ParseUint(string(s), 10, 64)
		ok, s = err == nil && n < 192, strconv.AppendUint(nil, n&7, 10)
	case "seconds", "microseconds":
		s, ok = milliseconds(s, kind == "seconds")
	case "nginx": // a path of a client before them is between quotes
		if at := outside(s, []byte(", client: ")); at >= 0 {
			m.pairs(s[at+2:], ", ", ": ")
		}
		return true
	case "pairs":
		return m.pairs(s, " ", "=")
	case "request":
		m.request(s)
		return true
	}
	m.add(name, s)
	return ok
}

// add adds a field. The status decides on the level, unless a level does.
func (m *match) add(name string, value []byte) {
	if name == "_" || len(value) == 0 || string(value) == "-" || len(m.fields) >= mostFields {
		return
	}
	switch name {
	case "level": // the first that is known
		if m.level == record.Other {
			m.level = record.ParseLevel(value)
		}
		return
	case "status":
		if n, err := strconv.Atoi(string(value)); err == nil && n >= 100 && n < 600 {
			m.byStatus = [...]record.Level{record.Info, record.Info, record.Info, record.Warn, record.Error}[n/100-1]
		}
	}
	m.fields = append(m.fields, field{name, value})
}

// request takes a line such as GET /path HTTP/1.1 apart; another, as an attacker sends it, stays whole.
func (m *match) request(s []byte) {
	method, path, ok := bytes.Cut(s, []byte(" "))
	at := bytes.LastIndex(path, []byte(" HTTP/"))
	if !ok || len(bytes.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_")) > 0 {
		m.add("request", s)
		return
	}
	m.add("method", method)
	if at < 0 {
		at = len(path)
	}
	m.add("path", path[:at])
	m.add("protocol", path[min(at+1, len(path)):])
}

// pairs takes names with values apart: client: 10.0.0.7, request: "GET / HTTP/1.1", or a=1 b="c d". It
// reports whether the text begins with a name.
func (m *match) pairs(s []byte, between, equals string) (some bool) {
	for {
		name, rest, ok := bytes.Cut(s, []byte(equals))
		if !ok {
			return some
		}
		if at := bytes.LastIndex(name, []byte(between)); at >= 0 && some {
			name = name[at+len(between):]
		}
		odd := len(name) == 0 || len(name) > 100 || areDigits(name[:1]) || len(bytes.Trim(name, letters)) > 0
		if odd && !some {
			return false
		}
		if some, s = true, rest; odd {
			continue
		}
		value, rest, _ := bytes.Cut(s, []byte(between))
		if len(s) > 0 && s[0] == '"' {
			if end := (&place{until: s[:1], quoted: true}).end(s[1:]); end >= 0 {
				value, rest = s[1:1+end], s[2+end:]
			}
		}
		s = rest
		switch string(name) {
		case "client":
			m.add("ip", value)
		case "request":
			m.request(value)
		default:
			m.add(string(name), value)
		}
	}
}

// milliseconds makes milliseconds of seconds or microseconds. Of several times, as nginx has them of
// upstreams, it is the sum. ok is false for another text; - is no value.
func milliseconds(s []byte, seconds bool) (_ []byte, ok bool) {
	sum, some := 0.0, false
	for part := range bytes.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune(" ,:", r) }) {
		n, err := strconv.ParseFloat(string(part), 64)
		switch {
		case string(part) == "-":
		case err != nil || !isNumber(part):
			return nil, false
		default:
			sum, some = sum+n, true
		}
	}
	if !some {
		return nil, len(s) > 0
	}
	if seconds {
		sum *= 1e6
	}
	return strconv.AppendFloat(nil, math.Round(sum)/1000, 'f', -1, 64), true
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"

// isNumber reports whether a text is a number. One with an exponent is none: it is part of a hash.
func isNumber(text []byte) bool {
	whole, part, dot := bytes.Cut(bytes.TrimPrefix(text, []byte("-")), []byte("."))
	return areDigits(whole) && (len(whole) == 1 || whole[0] != '0') && (!dot || areDigits(part))
}

func areDigits(s []byte) bool {
	return len(s) > 0 && !bytes.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}
