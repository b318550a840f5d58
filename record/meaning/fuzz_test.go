package meaning_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"blobtail/record"
	"blobtail/record/meaning"
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
		`{"a":NaN,"b":[-Infinity,{"c":Infinity}],"ts":NaN,"level":NaN,"msg":"a	b` + "\x00\x1b" + `[0m"}`,
		`{"@t":"2026-11-20T15:04:05Z","@mt":"m","log":"a\\n","context":{"logLevel":30},"Body":{"Value":"b"}}`,
		`{"text":"m\n","_meta":{"date":"soon","logLevelName":"WARN"},"_logMeta":{"date":1795168806,"logLevelName":"SILLY"},"record":{"level":{"name":"WARNING"},"message":"m","time":{"timestamp":1795168806.257}}}`,
		`{"log":"a\n","@m":"x","@T":"2026-11-20T15:04:05Z"}`,
	} {
		f.Add([]byte(src), []byte(journalled), "")
		f.Add([]byte(src), []byte(src), "web")
		f.Add([]byte(src), []byte(`{"a":1,"service":2,"ts":3}`), "Web")
	}
	f.Fuzz(func(t *testing.T, src, before []byte, path string) {
		if len(src) == 0 || src[0] != '{' {
			return
		}
		d := meaning.Defaults{Time: arrival}
		if path != "" {
			d.Service = record.FoldService(path)
		}
		p := meaning.NewReader()
		n, err := p.Scan(src)
		taken := compareScan(t, src, n, err)
		line, stamp := p.AppendLine(nil, &d)

		// A parser's memory of other records makes no difference.
		used := meaning.NewReader()
		for range 5 {
			_, _ = used.Scan(before)
			used.AppendLine(nil, &d)
		}
		n2, err2 := used.Scan(src)
		line2, stamp2 := used.AppendLine(nil, &d)
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
		// It keeps the last of nested keys that come twice.
		if utf8.Valid(src[:n]) && !unlike(src[:n]) && !repeatsWithin(members(t, mended(src[:n]))) {
			got, want := members(t, line), reference(members(t, mended(src[:n])), d)
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
	case jsonErr != nil && n > 0 && n <= len(src) && json.Valid(mended(src[:n])):
	case jsonErr != nil:
		t.Fatalf("Scan(%q) = %d, %v; encoding/json: %v", src, n, err, jsonErr)
	case int64(n) != dec.InputOffset():
		t.Fatalf("Scan(%q) = %d, encoding/json %d", src, n, dec.InputOffset())
	}
	return err == nil
}

// mended is an object with words for numbers as texts, and with escapes for control characters in
// strings.
func mended(object []byte) []byte {
	token := regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|NaN|-?Infinity`)
	return token.ReplaceAllFunc(object, func(s []byte) []byte {
		if s[0] != '"' {
			return []byte(`"` + string(s) + `"`)
		}
		var b []byte
		for _, c := range s {
			if c < ' ' && c != '\n' && c != '\r' {
				b = fmt.Appendf(b, `\u%04x`, c)
			} else {
				b = append(b, c)
			}
		}
		return b
	})
}

// checkAgain makes sure that a canonical line is its own canonical line.
func checkAgain(t *testing.T, line []byte, service string) {
	t.Helper()
	p := meaning.NewReader()
	if n, err := p.Scan(line); err != nil || n != len(line)-1 {
		t.Fatalf("Scan(%q) = %d, %v", line, n, err)
	}
	for _, d := range []meaning.Defaults{{Service: service}, {}} {
		if d.Service == "" && record.FoldService(service) != service {
			continue
		}
		if again, _ := p.AppendLine(nil, &d); !bytes.Equal(again, line) {
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

// reference applies the rules to the fields of a record, in the simplest code.
func reference(in []member, d meaning.Defaults) []member {
	names := meaning.KnownNames()
	in, was := unrepeated(in)
	name := func(i int) string { return lowerASCII(was[i]) }
	among := func(list []string, last string, i int) bool {
		return slices.Index(list, name(i)) <= slices.Index(list, last)
	}
	hasText := func(i int) bool { s, ok := in[i].Value.(string); return ok && s != "" }

	stamps := candidates(was, names.Time)
	has := func(part times.Part) func(i int) bool {
		return func(i int) bool { _, p := timeOf(in[i]); return p == part }
	}
	ts, apart := first(stamps, has(times.Full)), int64(0)
	if day, clock := first(stamps, has(times.Date)), first(stamps, has(times.Clock)); ts < 0 && day >= 0 && clock >= 0 {
		at, _ := timeOf(in[day])
		since, _ := timeOf(in[clock])
		apart = at + since
	} else if ts < 0 {
		ts = day
	}
	levels := candidates(was, names.Level)
	level := first(levels, func(i int) bool { return levelIn(in[i], name(i)) != record.Other })
	own := first(levels, func(i int) bool {
		_, isNumber := in[i].Value.(json.Number)
		return among(names.Level, "level_name", i) && (hasText(i) || isNumber)
	})
	word := ""
	switch {
	case level >= 0 && !among(names.Level, "level_value", level) && own >= 0:
		level, word = own, textOf(in[own])
	case level >= 0:
		word = levelIn(in[level], name(level)).String()
		if !among(names.Level, "level_value", level) {
			level = -1
		}
	case own >= 0:
		level, word = own, textOf(in[own])
	case slices.Contains(candidatesOf(was, "@t"), true) && (slices.Contains(candidatesOf(was, "@m"), true) || slices.Contains(candidatesOf(was, "@mt"), true)):
		word = "info"
	default:
		for _, p := range [][]string{{"log", "level"}, {"jsonpayload", "severity"}, {"jsonpayload", "level"}, {"record", "level", "name"}, {"context", "logLevel"}, {"_meta", "logLevelName"}, {"_logmeta", "logLevelName"}} {
			if word == "" {
				word = path(in, was, true, p...)
			}
		}
		if l := record.ParseLevel([]byte(word)); l != record.Other {
			word = l.String()
		}
	}

	inner := ""
	for _, p := range [][]string{{"fields", "message"}, {"jsonpayload", "message"}, {"record", "message"}, {"body", "Value"}} {
		inner = cmp.Or(inner, path(in, was, false, p...))
	}
	msgs := candidates(was, names.Message)
	if at := slices.IndexFunc(msgs, func(i int) bool { return name(i) == "text" }); at >= 0 && inner != "" {
		msgs = msgs[:at]
	}
	msg := first(msgs, hasText)
	if msg < 0 {
		msg = first(msgs, func(i int) bool {
			_, isText := in[i].Value.(string)
			return among(names.Message, "log", i) && !isText && in[i].Value != nil && (name(i) != "log" || !isObject(in[i]))
		})
	}
	text := ""
	if msg >= 0 {
		text = textOf(in[msg])
	}
	if msg < 0 {
		text = inner
	} else if name(msg) == "log" {
		text = strings.TrimSuffix(text, "\n")
	}

	services := candidates(was, names.Service)
	firstService := first(candidates(was, []string{"service"}), func(int) bool { return true })
	called := path(in, was, false, "service", "name")
	service := first(services, func(i int) bool { return hasText(i) || i == firstService && isObject(in[i]) && called != "" })
	if service < 0 {
		service = first(services, func(i int) bool {
			_, isText := in[i].Value.(string)
			return among(names.Service, "app", i) && !isText && in[i].Value != nil && !isObject(in[i])
		})
	}
	original, kept := "", false
	if service >= 0 {
		if original = textOf(in[service]); isObject(in[service]) {
			original, kept = called, true
		}
		if d.Service != "" && !among(names.Service, "app", service) {
			service, original = -1, ""
		}
	} else if original = path(in, was, false, "kubernetes", "container_name"); d.Service != "" {
		original = ""
	}
	folded := d.Service
	if folded == "" {
		folded = record.FoldService(original)
	}
	out := []member{
		{Key: "ts", Value: string(record.AppendTime(nil, d.Time))}, {Key: "level", Value: word},
		{Key: "service", Value: folded}, {Key: "msg", Value: text},
	}
	if ts < 0 && apart == 0 {
		for _, p := range [][]string{{"record", "time", "timestamp"}, {"_meta", "date"}, {"_logmeta", "date"}} {
			if ns, part := new(times.Reader).Read([]byte(path(in, was, true, p...))); part == times.Full && apart == 0 {
				apart = ns
			}
		}
	}
	if ns := apart; ts >= 0 || apart != 0 {
		if ts >= 0 {
			ns, _ = timeOf(in[ts])
		}
		out[0].Value = string(record.AppendTime(nil, ns))
	}
	for i, m := range in {
		switch {
		case i == ts || i == level || i == msg || i == service && !kept && (original == "" || original == folded):
			continue
		case i == service && !kept && among(names.Service, "app", i) && name(i) != "service.name":
			if m.Key = "service.name"; slices.Contains(candidatesOf(was, "service.name"), true) {
				m.Key = free(in, "service.original")
			}
		case i == service && !kept:
		case m.Key == "ts":
			if ns, ok := times.Number([]byte(textOf(m))); m.Value == nil || m.Value == "" || ok && ns == 0 {
				continue
			}
			m.Key = free(in, "ts.original")
		case m.Key == "level" || m.Key == "msg" || m.Key == "service":
			if m.Value == nil || m.Value == "" {
				continue
			}
			m.Key = free(in, m.Key+".original")
		}
		out = append(out, m)
	}
	return out
}

// candidatesOf reports for each field whether it has a name.
func candidatesOf(was []string, name string) (all []bool) {
	for i := range was {
		all = append(all, lowerASCII(was[i]) == name)
	}
	return all
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
		if ns, ok := meaning.ReadTime([]byte(m.text), 0); ok {
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
		p := meaning.NewReader()
		d := meaning.Defaults{Service: "web", Time: arrival}
		line, stamp := textLine(p, nil, text, d)
		rejected := p.AppendRejected(nil, meaning.Rejected{Raw: text, Reason: string(text), Time: arrival})
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
