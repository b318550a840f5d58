package record_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"blobtail/record"
	"blobtail/record/times"
)

// FuzzScan compares the parser with encoding/json. Both accept the same objects, of
// the same length. The canonical line has the result of applying the rules to
// encoding/json's fields.
func FuzzScan(f *testing.F) {
	for _, src := range []string{
		`{}`,
		`{"ts":"2026-11-20T15:04:05.000000000Z","level":"error","service":"web","msg":"m","a":[1,{"b":null}]}`,
		`{"time":1795187045.25,"severity":"WARN","message":"\u00e9\/","app":"Web","x": -0.5e+3 } {"next":1}`,
		`{"ts":"soon","ts.original":1,"service":"A","service.name":"B","service.original":"C"}`,
		`{"a":1,"\u0061":2}`,
		"{\"\xff\":\"\xed\xa0\x80\\ud83d\\ude00\\ud83d\"}",
		`{"a":[[[{"b":[]}]],{}],"c":tru}`,
		`{"@timestamp":"2026-11-20T15:04:05Z","log":{"a":[1,{"level":2}],"level":"WARN"},"service":{"id":1, "n\u0061me":"My Web"},"message":"m"}`,
		`{"log":{"level":-30},"service":{},"app":"B"}`,
	} {
		f.Add([]byte(src), []byte(`{}`), "")
		f.Add([]byte(src), []byte(src), "web")
		f.Add([]byte(src), []byte(`{"a":1,"service":2,"ts":3}`), "Web")
	}
	f.Fuzz(func(t *testing.T, src, before []byte, path string) {
		if len(src) == 0 || src[0] != '{' {
			return
		}
		d := record.Defaults{Time: arrival}
		if path != "" {
			d.Service = record.FoldService(path)
		}
		p := record.NewParser()
		n, err := p.Scan(src)
		taken := compareScan(t, src, n, err)
		line, stamp := p.AppendLine(nil, d)

		// A parser's memory of other records makes no difference.
		used := record.NewParser()
		for range 5 {
			_, _ = used.Scan(before)
			used.AppendLine(nil, d)
		}
		n2, err2 := used.Scan(src)
		line2, stamp2 := used.AppendLine(nil, d)
		if n2 != n || !reflect.DeepEqual(err2, err) || !bytes.Equal(line2, line) || stamp2 != stamp {
			t.Fatalf("Scan(%q) = %d, %v: %q; after %q = %d, %v: %q", src, n, err, line, before, n2, err2, line2)
		}
		if !taken {
			return
		}
		if !bytes.HasSuffix(line, []byte("}\n")) || bytes.Count(line, []byte("\n")) != 1 || !json.Valid(line) || !utf8.Valid(line) {
			t.Fatalf("%q is no line", line)
		}
		checkStamp(t, line, stamp)
		if len(line) <= record.MaxRecord {
			checkAgain(t, line, stamp.Service)
		}
		// encoding/json replaces invalid text by U+FFFD.
		if utf8.Valid(src[:n]) && !bytes.Contains(bytes.ToLower(src[:n]), []byte(`\ud`)) {
			got, want := members(t, line), reference(members(t, src[:n]), d)
			if !reflect.DeepEqual(plain(got), plain(want)) {
				t.Fatalf("%s\ngot  %v\nwant %v", src, got, want)
			}
		}
	})
}

// compareScan compares an outcome with encoding/json's, and reports whether the
// record was accepted.
func compareScan(t *testing.T, src []byte, n int, err error) bool {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(src))
	var raw json.RawMessage
	jsonErr := dec.Decode(&raw)
	var re *record.RejectError
	if err != nil && !errors.As(err, &re) {
		t.Fatalf("%v is no RejectError", err)
	}
	switch {
	case err != nil && (re.Offset < 0 || re.Offset > len(src)):
		t.Fatalf("%v outside of %d bytes", err, len(src))
	case err != nil && strings.HasPrefix(re.Reason, "longer"):
	case err != nil && re.Syntax:
		if jsonErr == nil {
			t.Fatalf("Scan(%q) = %v, encoding/json takes it", src, err)
		}
	case jsonErr != nil:
		t.Fatalf("Scan(%q) = %d, %v; encoding/json: %v", src, n, err, jsonErr)
	case int64(n) != dec.InputOffset():
		t.Fatalf("Scan(%q) = %d, encoding/json %d", src, n, dec.InputOffset())
	}
	return err == nil
}

// checkAgain makes sure that a canonical line is its own canonical line.
func checkAgain(t *testing.T, line []byte, service string) {
	t.Helper()
	p := record.NewParser()
	if n, err := p.Scan(line); err != nil || n != len(line)-1 {
		t.Fatalf("Scan(%q) = %d, %v", line, n, err)
	}
	for _, d := range []record.Defaults{{Service: service}, {}} {
		if d.Service == "" && record.FoldService(service) != service {
			continue
		}
		if again, _ := p.AppendLine(nil, d); !bytes.Equal(again, line) {
			t.Fatalf("%q\nbecomes %q", line, again)
		}
	}
}

// member is a field as encoding/json parses it.
type member struct {
	Key   string
	Value any    // numbers as json.Number
	text  string // compact
}

// members are the fields of an object, in order.
func members(t *testing.T, src []byte) (all []member) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		value := json.NewDecoder(bytes.NewReader(raw))
		value.UseNumber()
		m := member{Key: key.(string)}
		if err := value.Decode(&m.Value); err != nil {
			t.Fatal(err)
		}
		switch m.Value.(type) {
		case []any, map[string]any:
			m.text = compactText(t, raw)
		}
		all = append(all, m)
	}
	return all
}

// compactText is the compact JSON of a value. encoding/json would sort the keys and
// change the escapes, so strings are re-encoded one by one.
func compactText(t *testing.T, raw []byte) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case ' ', '\t', '\r', '\n':
		case '"':
			end := i + 1
			for ; raw[end] != '"'; end++ {
				if raw[end] == '\\' {
					end++
				}
			}
			var s string
			if err := json.Unmarshal(raw[i:end+1], &s); err != nil {
				t.Fatal(err)
			}
			b.WriteString(quote(s))
			i = end
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// quote escapes a valid text like a canonical line.
func quote(s string) string {
	var b strings.Builder
	for _, r := range s {
		if short := strings.IndexRune("\"\\\b\f\n\r\t", r); short >= 0 {
			b.WriteString(`\` + `"\bfnrt`[short:short+1])
		} else if r < ' ' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

// plain keeps only keys and values.
func plain(in []member) (out [][2]any) {
	for _, m := range in {
		out = append(out, [2]any{m.Key, m.Value})
	}
	return out
}

// reference applies the rules to the fields of a record, in the simplest code.
func reference(in []member, d record.Defaults) []member {
	find := func(usable func(member) bool, names ...string) int {
		for _, name := range names {
			i := slices.IndexFunc(in, func(m member) bool { return m.Key == name })
			if i >= 0 && usable(in[i]) {
				return i
			}
		}
		return -1
	}
	anything := func(member) bool { return true }
	names := []string{"ts", "time", "timestamp", "@timestamp", "date"}
	has := func(part times.Part) func(member) bool {
		return func(m member) bool { _, p := timeOf(m); return p == part }
	}
	ts, apart := find(has(times.Full), names...), int64(0)
	if day, clock := find(has(times.Date), names...), find(has(times.Clock), names...); ts < 0 && day >= 0 && clock >= 0 {
		at, _ := timeOf(in[day])
		since, _ := timeOf(in[clock])
		apart = at + since
	} else if ts < 0 {
		ts = day
	}
	level := find(anything, "level", "severity", "lvl", "log.level")
	msg := find(anything, "msg", "message", "log")
	if msg >= 0 && in[msg].Key == "log" && isObject(in[msg]) {
		msg = -1
	}
	service := find(anything, "service", "service.name", "app")
	inner := ""
	if service >= 0 && in[service].Key == "service" && isObject(in[service]) {
		if inner = inside(in[service], "name", false); inner == "" {
			service = find(anything, "service.name", "app")
		}
	}

	ns, word, text, name, original := d.Time, "", "", d.Service, ""
	if ts >= 0 {
		ns, _ = timeOf(in[ts])
	} else if apart != 0 {
		ns = apart
	}
	if i := find(isObject, "log"); level < 0 && i >= 0 {
		word = inside(in[i], "level", true)
	}
	if level >= 0 {
		word = textOf(in[level])
	}
	if word != "" {
		if record.ParseLevel([]byte(word)) != record.Other {
			word = record.ParseLevel([]byte(word)).String()
		}
	}
	if msg >= 0 {
		text = textOf(in[msg])
	}
	if service >= 0 {
		if original = textOf(in[service]); inner != "" {
			original = inner
		}
	}
	if name == "" {
		name = record.FoldService(original)
	}
	out := []member{
		{Key: "ts", Value: string(record.AppendTime(nil, ns))}, {Key: "level", Value: word},
		{Key: "service", Value: name}, {Key: "msg", Value: text},
	}
	for i, m := range in {
		switch {
		case m.Key == "service" && isObject(m):
			m.Key = free(in, "service.original")
		case i == ts || i == level || i == msg || i == service && (original == "" || original == name):
			continue
		case i == service && m.Key != "service.name":
			if m.Key = "service.name"; free(in, m.Key) != m.Key {
				m.Key = free(in, "service.original")
			}
		case m.Key == "ts":
			if ns, ok := times.Number([]byte(textOf(m))); m.Value == nil || m.Value == "" || ok && ns == 0 {
				continue
			}
			m.Key = free(in, "ts.original")
		}
		out = append(out, m)
	}
	return out
}

// free is a key that no field has: want, or the first free one with a number.
func free(in []member, key string) string {
	taken := func(key string) bool {
		return slices.ContainsFunc(in, func(m member) bool { return m.Key == key })
	}
	if !taken(key) {
		return key
	}
	n := 2
	for taken(fmt.Sprint(key, ".", n)) {
		n++
	}
	return fmt.Sprint(key, ".", n)
}

func isObject(m member) bool { _, ok := m.Value.(map[string]any); return ok }

// inside is the text of the first member of an object with a key, if it is a string or, with
// numbers set, a number that is not negative.
func inside(m member, key string, numbers bool) string {
	dec := json.NewDecoder(strings.NewReader(m.text))
	dec.UseNumber()
	_, _ = dec.Token()
	for dec.More() {
		name, _ := dec.Token()
		var v any
		_ = dec.Decode(&v)
		if name != key {
			continue
		}
		switch v := v.(type) {
		case string:
			return v
		case json.Number:
			if numbers && v[0] != '-' {
				return v.String()
			}
		}
		return ""
	}
	return ""
}

func timeOf(m member) (int64, times.Part) {
	var r times.Reader
	switch v := m.Value.(type) {
	case string:
		return r.Read([]byte(v))
	case json.Number:
		return r.Read([]byte(v))
	case map[string]any:
		if ns, ok := record.ReadTime([]byte(m.text), 0); ok {
			return ns, times.Full
		}
	}
	return 0, times.None
}

// textOf is the text of a string, and the JSON of any other value but null.
func textOf(m member) string {
	switch v := m.Value.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return fmt.Sprint(v)
	}
	return m.text
}

// FuzzText checks that any bytes become one line with a msg that can be read back.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "plain", `"\`, "a\x00\r\n\té\xff\xed\xa0\x80", `\xff`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p := record.NewParser()
		d := record.Defaults{Service: "web", Time: arrival}
		line, stamp := textLine(p, nil, text, d)
		rejected := p.AppendRejected(nil, record.Rejected{Raw: text, Reason: string(text), Time: arrival})
		for _, l := range [][]byte{line, rejected} {
			if bytes.Count(l, []byte("\n")) != 1 || l[len(l)-1] != '\n' || !json.Valid(l) || !utf8.Valid(l) {
				t.Fatalf("%q is no line", l)
			}
		}
		checkStamp(t, line, stamp)
		if len(line) <= record.MaxRecord {
			checkAgain(t, line, "web")
		}
		var got struct{ Msg string }
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatal(err)
		}
		if utf8.Valid(text) && got.Msg != string(text) {
			t.Fatalf("msg %q, want %q", got.Msg, text)
		}
	})
}
