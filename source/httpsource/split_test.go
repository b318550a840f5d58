package httpsource_test

import (
	"fmt"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

const (
	ndjson = "application/x-ndjson"
	jsonCT = "application/json"
	text   = "text/plain; charset=utf-8"
)

// Each case lists the msg of all stored lines: accepted ones in order, then the
// rejected ones, marked with "!".
func TestShapes(t *testing.T) {
	deep := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	for _, tt := range []struct {
		name, contentType, body string
		want                    []string
	}{
		{"lines", ndjson, "{\"msg\":\"a\"}\n{\"msg\":\"b\"}\n", []string{"a", "b"}},
		{"no newline at the end", ndjson, "{\"msg\":\"a\"}\n{\"msg\":\"b\"}", []string{"a", "b"}},
		{"CRLF and blank lines", ndjson, "\r\n{\"msg\":\"a\"}\r\n \t\n\n  {\"msg\":\"b\"} \r\n", []string{"a", "b"}},
		{"BOM", ndjson, "\ufeff{\"msg\":\"a\"}\n", []string{"a"}},
		{"strict: two on a line", ndjson, `{"msg":"a"}{"msg":"b"}`, []string{`!{"msg":"a"}{"msg":"b"}`}},
		{"strict: over two lines", ndjson, "{\"msg\":\n\"a\"}\n{\"msg\":\"b\"}", []string{"b", `!{"msg":`, `!"a"}`}},
		{"strict: garbage between", ndjson, "{\"msg\":\"a\"}\nxx\n{\"msg\":\"b\"}\n{\"msg\":\"c\"} x\n", []string{"a", "b", "!xx", `!{"msg":"c"} x`}},
		{"other names for lines", "application/jsonl", "{\"msg\":\"a\"}\n[]", []string{"a", "![]"}},
		{"parameters", `application/x-ndjson; charset="UTF-8"; v=1`, `{"msg":"a"}`, []string{"a"}},
		{"bad parameter", `application/x-ndjson; v`, `{"msg":"a"}`, []string{"a"}},

		{"single object", jsonCT, ` {"msg":"a"} `, []string{"a"}},
		{"concatenated", jsonCT, `{"msg":"a"}{"msg":"b"} {"msg":"c"}`, []string{"a", "b", "c"}},
		{"pretty-printed", jsonCT, "{\n  \"msg\": \"a\",\n  \"x\": {\n    \"y\": 1\n  }\n}\n{\n  \"msg\": \"b\"\n}\n", []string{"a", "b"}},
		{"truncated line", jsonCT, "{\"msg\":\"a\"}\n{\"msg\":\"trunc\n{\"msg\":\"b\"}\n", []string{"a", "b", `!{"msg":"trunc`}},
		{"truncated in an array", jsonCT, "{\"x\":[1,\n{\"msg\":\"b\"}\n{\"msg\":\"c\"}\n", []string{"b", "c", `!{"x":[1,`}},
		{"text after an object", jsonCT, "{\"msg\":\"a\"},{\"msg\":\"b\"}\n{\"msg\":\"c\"}", []string{"c", `!{"msg":"a"},{"msg":"b"}`}},
		{"text after a pretty object", jsonCT, "{\n\"msg\":\"a\"\n} x\n{\"msg\":\"c\"}", []string{"c", "!{\n\"msg\":\"a\"\n} x"}},
		{"text between", jsonCT, "{\"msg\":\"a\"}\nfoo\n{\"msg\":\"c\"}", []string{"a", "c", "!foo"}},
		{"too deep over lines", jsonCT, "{\"a\":" + deep + ",\n\"x\":\n{\"msg\":\"no record\"}\n}\n{\"msg\":\"b\"}", []string{"b", "!{\"a\":" + deep + ",\n\"x\":\n{\"msg\":\"no record\"}\n}"}},
		{"too deep", jsonCT, `{"x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `} {"msg":"b"}`, []string{"b", `!{"x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`}},

		{"array", jsonCT, ` [ {"msg":"a"} , {"msg":"b"} ] `, []string{"a", "b"}},
		{"empty array", jsonCT, "[ ]\n", nil},
		{"other elements", jsonCT, `[{"msg":"a"},1,"s",null,[1,{"msg":"no"}],-1.5e+3,{"msg":"b"}]`, []string{"a", "b", "!1", `!"s"`, "!null", `![1,{"msg":"no"}]`, "!-1.5e+3"}},
		{"too deep in an element", jsonCT, `[{"a":` + deep + `},{"msg":"b"}]`, []string{"b", `!{"a":` + deep + `}`}},
		{"broken element", jsonCT, `[{"msg":"a"},{"msg":x},{"msg":"b"}]`, []string{"a", `!{"msg":x},{"msg":"b"}]`}},
		{"no comma", jsonCT, `[{"msg":"a"} {"msg":"b"}]`, []string{`!{"msg":"a"} {"msg":"b"}]`}},
		{"comma at the end", jsonCT, `[{"msg":"a"},]`, []string{"a", `!]`}},
		{"two commas", jsonCT, `[{"msg":"a"},,{"msg":"b"}]`, []string{"a", `!,{"msg":"b"}]`}},
		{"cut off", jsonCT, `[{"msg":"a"},{"msg":"b"}`, []string{"a", "b", "!"}},
		{"cut off in an element", jsonCT, `[{"msg":"a"},{"msg":"b`, []string{"a", `!{"msg":"b`}},
		{"cut off behind a comma", jsonCT, "[{\"msg\":\"a\"},\n", []string{"a", "!"}},
		{"text after the array", jsonCT, `[{"msg":"a"}] {"msg":"b"}`, []string{"a", `!{"msg":"b"}`}},
		{"text after an empty array", jsonCT, `[] x`, []string{"!x"}},
		{"bad number", jsonCT, `[{"msg":"a"},01]`, []string{"a", "!01]"}},

		{"sniffed object", "", `{"msg":"a"}`, []string{"a"}},
		{"sniffed, empty object", "", " { } ", []string{""}},
		{"sniffed form", "application/x-www-form-urlencoded", "\n{\"msg\":\"a=b&c\"}\n", []string{"a=b&c"}},
		{"sniffed array", "application/octet-stream", `[ {"msg":"a"}]`, []string{"a"}},
		{"sniffed array, broken", "", `[{"msg":"a"`, []string{`!{"msg":"a"`}},
		{"sniffed empty array", "", "[]\n", nil},
		{"sniffed array of numbers", "", "[1, 2]\n", []string{"!1", "!2"}},
		{"sniffed with BOM", "", "\ufeff{\"msg\":\"a\"}", []string{"a"}},
		{"text: brace", "", "{error} disk\n", []string{"{error} disk"}},
		{"text: date in brackets", "", "[2026-11-20] foo\n[2026-11-20] bar", []string{"[2026-11-20] foo", "[2026-11-20] bar"}},
		{"text: word in brackets", "", "[error] foo", []string{"[error] foo"}},
		{"text: numbers in brackets", "", "[12,3] foo\n[13] bar\n", []string{"[12,3] foo", "[13] bar"}},
		{"text: string in brackets", "", `["a"] foo`, []string{`["a"] foo`}},
		{"text: empty brackets", "", "[] foo", []string{"[] foo"}},
		{"text: open bracket", "", "[1, 2", []string{"[1, 2"}},
		{"text lines", text, "one\r\n\ntwo \nthree", []string{"one", "two ", "three"}},
		{"text, indented", text, "one\r\n\n  two \nthree", []string{"one\r\n\n  two ", "three"}},
		{"text with BOM", text, "\ufeffone", []string{"one"}},
		{"text: a=b", "application/x-www-form-urlencoded", "a=b&c", []string{"a=b&c"}},
		{"text: control characters", text, "a\x00b\x1b[1m\tc", []string{"a\x00b\x1b[1m\tc"}},
		{"text: invalid UTF-8", text, "a\xffb", []string{`a\xffb`}},
	} {
		m := &memory{}
		var header []string
		if tt.contentType != "" {
			header = []string{"Content-Type", tt.contentType}
		}
		a := send(t, newSource(m), "/ingest/web", tt.body, header...)
		var got []string
		rejected := 0
		for _, l := range m.lines(t) {
			msg := l["msg"].(string)
			if l["service"] == record.RejectedService {
				rejected++
				msg = "!" + msg
			}
			got = append(got, msg)
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if a.Rejected != rejected || a.Accepted != len(got)-rejected || len(a.Errors) != rejected {
			t.Errorf("%s: answer %+v for %q", tt.name, a, got)
		}
	}
}

// The index is the ordinal among the records, blank lines not counted.
func TestErrorsAreNumbered(t *testing.T) {
	body := "{}\n\nx\n{}\r\n\n\ny\n"
	for _, contentType := range []string{ndjson, jsonCT} {
		a := send(t, newSource(&memory{}), "/ingest/web", body, "Content-Type", contentType)
		if len(a.Errors) != 2 || a.Errors[0].Index != 1 || a.Errors[1].Index != 3 {
			t.Errorf("%s: %+v", contentType, a)
		}
	}
}

func TestContentTypes(t *testing.T) {
	for _, tt := range []struct{ contentType, has string }{
		{"application/xml", "application/x-ndjson"},
		{"application/msgpack", "application/x-ndjson"},
		{"text/html", "application/x-ndjson"},
		{"/;;", "cannot be read"},
		{"text/plain; charset=latin1", "UTF-8"},
		{"application/json; charset=utf-16", "UTF-8"},
	} {
		m := &memory{}
		a := send(t, newSource(m), "/ingest/web", "{}", "Content-Type", tt.contentType)
		wantStatus(t, a, 415, tt.has)
		if m.calls != 0 {
			t.Errorf("%s: something was appended", tt.contentType)
		}
	}
}

// A body that begins like UTF-16 is refused like charset=utf-16, compressed or not.
func TestUTF16(t *testing.T) {
	for name, body := range map[string]string{
		"little endian": "\xff\xfea\x00\n\x00", "big endian": "\xfe\xff\x00a\x00\n", "UTF-32": "\xff\xfe\x00\x00a\x00\x00\x00",
	} {
		for _, header := range [][]string{
			nil, {"Content-Type", text}, {"Content-Type", ndjson}, {"Content-Type", jsonCT}, {"Content-Encoding", "gzip"},
		} {
			m, sent := &memory{}, body
			if len(header) > 0 && header[1] == "gzip" {
				sent = compress(t, "gzip", body)
			}
			a := send(t, newSource(m), "/ingest/web", sent, header...)
			wantStatus(t, a, 415, "send UTF-8")
			if m.calls != 0 {
				t.Errorf("%s, %v: something was appended", name, header)
			}
		}
	}
}

// Lines at the edge of 1 MiB, one after the other.
func TestLongLines(t *testing.T) {
	pad := func(n int) string { return strings.Repeat("x", n) }
	object := func(n int) string { return `{"msg":"` + pad(n-len(`{"msg":""}`)) + `"}` }
	for _, tt := range []struct {
		name, contentType, body string
		accepted, rejected      int
	}{
		{"text", text, pad(record.MaxRecord) + "\n" + pad(record.MaxRecord+1) + "\n" + pad(10), 2, 1},
		{"text, CR not counted", text, pad(record.MaxRecord) + "\r\n", 1, 0},
		{"lines", ndjson, object(record.MaxRecord) + "\n" + object(record.MaxRecord+1) + "\n{}", 2, 1},
		{"objects", jsonCT, object(record.MaxRecord) + object(record.MaxRecord+1) + "{}", 2, 1},
		{"objects on lines", jsonCT, object(record.MaxRecord+1) + "\n" + object(record.MaxRecord) + "\n{}", 2, 1},
		{"array", jsonCT, "[" + object(record.MaxRecord) + "," + object(record.MaxRecord+1) + ",{}]", 2, 1},
		{"no end", jsonCT, object(3 << 20)[:2<<20] + "\n{}", 1, 1},
	} {
		m := &memory{}
		a := send(t, newSource(m), "/ingest/web", tt.body, "Content-Type", tt.contentType)
		if a.Accepted != tt.accepted || a.Rejected != tt.rejected {
			t.Errorf("%s: %+v", tt.name, a)
		}
		m.lines(t)
	}
}

// Lines that each leave an object open must not be scanned again and again.
func TestOpenLinesAreQuick(t *testing.T) {
	testkit.FullOnly(t, "many MiB in one goroutine")
	for _, line := range []string{`{"a":[`, `{"a":{"b":`, `{"a":1,"a":[`, `{"a":"` + strings.Repeat(`x`, 100) + `","b":[1,`} {
		n := (1 << 20) / len(line)
		a := send(t, newSource(&memory{}), "/ingest/web", strings.Repeat(line+"\n", n), "Content-Type", jsonCT)
		if a.Accepted != 0 || a.Rejected < n {
			t.Errorf("%s: accepted %d, rejected %d of %d", line, a.Accepted, a.Rejected, n)
		}
	}
}
