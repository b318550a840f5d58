package loki_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/encoding/protowire"

	"blobtail/record"
	"blobtail/source/httpsource"
	"blobtail/source/loki"
	"blobtail/source/sourcetest"
)

func send(s http.Handler, contentType, encoding string, body []byte) *httptest.ResponseRecorder {
	return sourcetest.Send(s, http.MethodPost, "/loki/api/v1/push", bytes.NewReader(body), "Content-Type", contentType, "Content-Encoding", encoding)
}

// push appends a stream to a push request in protobuf.
func push(b []byte, selector string, entries ...[]byte) []byte {
	var s []byte
	s = protowire.AppendTag(s, 1, protowire.BytesType)
	s = protowire.AppendString(s, selector)
	for _, e := range entries {
		s = protowire.AppendTag(s, 2, protowire.BytesType)
		s = protowire.AppendBytes(s, e)
	}
	s = protowire.AppendTag(s, 3, protowire.VarintType)
	s = protowire.AppendVarint(s, 12345) // hash
	b = protowire.AppendTag(b, 1, protowire.BytesType)
	return protowire.AppendBytes(b, s)
}

// line makes an entry in protobuf; meta are names and values.
func line(ns int64, text string, meta ...string) []byte {
	var ts, e []byte
	ts = protowire.AppendTag(ts, 1, protowire.VarintType)
	ts = protowire.AppendVarint(ts, uint64(ns/1e9))
	ts = protowire.AppendTag(ts, 2, protowire.VarintType)
	ts = protowire.AppendVarint(ts, uint64(ns%1e9))
	e = protowire.AppendTag(e, 1, protowire.BytesType)
	e = protowire.AppendBytes(e, ts)
	e = protowire.AppendTag(e, 2, protowire.BytesType)
	e = protowire.AppendString(e, text)
	for i := 0; i < len(meta); i += 2 {
		var m []byte
		m = protowire.AppendTag(m, 1, protowire.BytesType)
		m = protowire.AppendString(m, meta[i])
		m = protowire.AppendTag(m, 2, protowire.BytesType)
		m = protowire.AppendString(m, meta[i+1])
		e = protowire.AppendTag(e, 3, protowire.BytesType)
		e = protowire.AppendBytes(e, m)
	}
	return e
}

const ns = 1795519265123456789 // 2026-11-24T11:21:05.123456789Z

// The same entries in every form and encoding are the same records.
func TestForms(t *testing.T) {
	const json = `{"streams":[{"stream":{"app":"Web","level":"warning","host":"a\"b"},"values":[` +
		`["1795519265123456789","line \u00e9 1",{"trace_id":"t1","app":"meta"}],["1795519265123456790","2"]]}, {"stream":{},"values":null}]}`
	const late = `{"streams":[{"values":[["1795519265123456789","line é 1",{"trace_id":"t1","app":"meta"}],[1795519265123456790,"2"]],` +
		`"stream":{"app":"Web","level":"warning","host":"a\"b"}}]}`
	const old = `{"streams":[{"labels":"{app=\"Web\", level=\"warning\",host=\"a\\\"b\"}","entries":[` +
		`{"ts":"2026-11-24T11:21:05.123456789Z","line":"line é 1"},{"line":"2","ts":"2026-11-24T11:21:05.12345679Z"}]}]}`
	const selector = `{app="Web", level="warning",host="a\"b"}`
	proto := push(nil, selector, line(ns, "line é 1", "trace_id", "t1", "app", "meta"), line(ns+1, "2"))
	want := []string{
		`{"ts":"2026-11-24T11:21:05.123456789Z","level":"warn","service":"web","msg":"line é 1","trace_id":"t1","app":"meta","app.2":"Web","host":"a\"b","service.name":"Web"}`,
		`{"ts":"2026-11-24T11:21:05.123456790Z","level":"warn","service":"web","msg":"2","app":"Web","host":"a\"b","service.name":"Web"}`,
	}
	wantOld := slices.Clone(want)
	wantOld[0] = strings.Replace(want[0], `"trace_id":"t1","app":"meta","app.2"`, `"app"`, 1)
	for _, row := range []struct {
		name, contentType, body string
		inner                   string
		want                    []string
	}{
		{"JSON", "application/json; charset=utf-8", json, "", want},
		{"JSON, labels last", "application/json", late, "", want},
		{"JSON of before 2019", "application/json", old, "", wantOld},
		{"protobuf", "application/x-protobuf", string(proto), "snappy", want},
		{"no type", "", string(proto), "snappy", want},
	} {
		for _, encoding := range []string{"", "gzip", "deflate", "zstd", "snappy"} {
			t.Run(row.name+" "+encoding, func(t *testing.T) {
				b := []byte(row.body)
				if encoding != "snappy" {
					b = sourcetest.Encode(t, row.inner, b)
				}
				r := new(sourcetest.Log)
				s := r.Source(loki.New())
				for range 2 {
					if w := send(s, row.contentType, encoding, sourcetest.Encode(t, encoding, b)); w.Code != http.StatusNoContent || w.Body.Len() > 0 {
						t.Fatalf("%d %s", w.Code, w.Body)
					}
				}
				if !slices.Equal(r.Lines(), append(slices.Clone(row.want), row.want...)) {
					t.Errorf("%s", strings.Join(r.Lines(), "\n"))
				}
				if r.Origins()[0].IsZero() || r.Origins()[0] != r.Origins()[1] {
					t.Errorf("origins %v", r.Origins())
				}
			})
		}
	}
}

// The service and the level come from the best of several labels, and the level from the line
// if there is none.
func TestHead(t *testing.T) {
	for _, row := range []struct {
		selector, line string
		meta           []string
		want           string // from level to the end
	}{
		{`{job="varlogs", service_name="Shop"}`, "x", nil, `"","service":"shop","msg":"x","job":"varlogs","service.name":"Shop"}`},
		{`{service="shop"}`, "x", nil, `"","service":"shop","msg":"x"}`},
		{`{}`, "x", nil, `"","service":"unknown","msg":"x"}`},
		{`{a="b"}`, "x", []string{"service_name", "m"}, `"","service":"m","msg":"x","service_name":"m","a":"b"}`},
		{`{app="a",detected_level="unknown"}`, "2026-11-24 10:00:00 ERROR no", nil, `"error","service":"a","msg":"2026-11-24 10:00:00 ERROR no","app":"a","detected_level":"unknown"}`},
		{`{app="a",level="info"}`, "x", []string{"severity", "ERROR"}, `"error","service":"a","msg":"x","app":"a","level.original":"info"}`},
		{`{app="a"}`, "x", []string{"severity_number", "17"}, `"error","service":"a","msg":"x","app":"a"}`},
		{`{app="a"}`, "x", []string{"severity_number", "9", "detected_level", "unknown"},
			`"info","service":"a","msg":"x","detected_level":"unknown","app":"a"}`},
		{`{app="a",severityNumber="13"}`, "x", nil, `"warn","service":"a","msg":"x","app":"a"}`},
		{`{app="a"}`, "x", []string{"severity_number", "99"}, `"","service":"a","msg":"x","severity_number":"99","app":"a"}`},
		{`{app="a"}`, `{"level":50,"msg":"pino"}`, nil, `"error","service":"a","msg":"{\"level\":50,\"msg\":\"pino\"}","app":"a"}`},
		{`{app="a"}`, `{"level":"warn","msg":"pino"}`, nil, `"warn","service":"a","msg":"{\"level\":\"warn\",\"msg\":\"pino\"}","app":"a"}`},
		{`{app="a"}`, `level=error msg="x"`, nil, `"error","service":"a","msg":"level=error msg=\"x\"","app":"a"}`},
		{"{app=`a\\n`,}", "", nil, `"","service":"a-n","msg":"","app":"a\\n","service.name":"a\\n"}`},
	} {
		r := new(sourcetest.Log)
		if w := send(r.Source(loki.New()), "", "", s2.EncodeSnappy(nil, push(nil, row.selector, line(ns, row.line, row.meta...)))); w.Code != http.StatusNoContent {
			t.Fatalf("%s: %d %s", row.selector, w.Code, w.Body)
		}
		want := `{"ts":"2026-11-24T11:21:05.123456789Z","level":` + row.want
		if len(r.Lines()) != 1 || r.Lines()[0] != want {
			t.Errorf("%s %s %q:\n%s, want\n%s", row.selector, row.line, row.meta, strings.Join(r.Lines(), "\n"), want)
		}
	}
}

// Entries whose metadata have other names at the same places, and fields of any length, are the
// records that the same entries in JSON are.
func TestChangingMetadata(t *testing.T) {
	var proto [][]byte
	var text []string
	for i, meta := range [][]string{
		{"host", "a", "user", "u"},
		{"level", "error", "host", "a"},
		{"host", "b", "level", "warn"},
		{"severity", "info", "level", "unknown"},
		{"host", "", "", "x"},
		{strings.Repeat("n", 127), strings.Repeat("v", 127), "level", "debug"},
		{strings.Repeat("n", 128), strings.Repeat("v", 128), "LEVEL", "debug"},
		{"long", strings.Repeat("v", 1<<14-1), "longer", strings.Repeat("v", 1<<14)},
		{"host", "c"},
		{},
	} {
		msg := "m" + strings.Repeat("x", 30*i)
		proto = append(proto, line(ns+int64(i), msg, meta...))
		var members []string
		for at := 0; at < len(meta); at += 2 {
			members = append(members, fmt.Sprintf("%q:%q", meta[at], meta[at+1]))
		}
		text = append(text, fmt.Sprintf(`["%d",%q,{%s}]`, int64(ns+i), msg, strings.Join(members, ",")))
	}
	lines := func(contentType, encoding string, body []byte) []string {
		r := new(sourcetest.Log)
		if w := send(r.Source(loki.New()), contentType, encoding, body); w.Code != http.StatusNoContent {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return r.Lines()
	}
	got := lines("application/x-protobuf", "", s2.EncodeSnappy(nil, push(nil, `{app="web"}`, proto...)))
	want := lines("application/json", "", fmt.Appendf(nil, `{"streams":[{"stream":{"app":"web"},"values":[%s]}]}`, strings.Join(text, ",")))
	for i, level := range []string{"", "error", "warn", "info", "", "debug", "debug", "", "", ""} {
		if i >= len(got) || i >= len(want) || got[i] != want[i] || !strings.Contains(got[i], `"level":"`+level+`"`) {
			t.Errorf("entry %d, want level %s\n got %.300q\nwant %.300q", i, level, got[min(i, len(got)-1)], want[min(i, len(want)-1)])
		}
	}
}

// A stream or an entry that is invalid costs no other, and its bytes are kept.
func TestInvalid(t *testing.T) {
	good := push(nil, `{app="a"}`, line(ns, "good"))
	for _, row := range []struct {
		name, contentType, body string
		status, good, rejected  int
		reason                  string
	}{
		{"labels that are none", "", string(push(good, `app`, line(ns, "bad"))), 204, 1, 1, "want {name="},
		{"labels without quotes", "", string(push(good, `{app=a}`, line(ns, "bad"))), 204, 1, 1, "no value in quotes"},
		{"labels without a comma", "", string(push(good, `{app="a" b="c"}`, line(ns, "bad"))), 204, 1, 1, "no comma"},
		{"cut off", "", string(good) + "\x0a\xff", 204, 1, 1, "no push request in protobuf"},
		{"no protobuf", "", "hello, this is text", 400, 0, 1, "no push request in protobuf"},
		{"a time that is none", "", string(push(good, `{app="a"}`, []byte("\x0a\x06\x08\xff\xff\xff\xff\x7f\x12\x01x"))), 204, 2, 0, ""},
		{"too far ahead", "", string(push(good, `{app="a"}`, line(ns+49*3600e9, "bad"))), 204, 1, 1, "more than 24h ahead"},
		{"JSON cut off", "application/json", `{"streams":[{"stream":{"app":"a"},"values":[["1795519265123456789","good"],["17955192651234`, 204, 1, 1, "it ends too early"},
		{"JSON of something else", "application/json", `[1,2]`, 400, 0, 1, "a push request is an object"},
		{"an entry without a line", "application/json", `{"streams":[{"stream":{"app":"a"},"values":[["1795519265123456789","good"],["1"]]}]}`, 204, 1, 1, "an entry is [time, line]"},
		{"an unreadable time", "application/json", `{"streams":[{"stream":{"app":"a"},"values":[["soon","good"]]}]}`, 204, 1, 0, ""},
		{"old labels that are none", "application/json", `{"streams":[{"labels":"app","entries":[]},{"labels":"{app=\"a\"}","entries":[{"ts":"2026-11-24T11:00:00Z","line":"x"}]}]}`, 204, 1, 1, "want {name="},
		{"a NUL", "application/json", "\x00{}", 400, 0, 1, "byte 0x00"},
		{"nothing", "application/json", ``, 204, 0, 0, ""},
		{"no streams", "application/json", `{}`, 204, 0, 0, ""},
		{"text behind", "application/json", `{"streams":[{"stream":{"app":"a"},"values":[["1795519265123456789","good"]]}]} x`, 204, 1, 1, "text after the object"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := new(sourcetest.Log)
			b := []byte(row.body)
			if row.contentType == "" {
				b = s2.EncodeSnappy(nil, b)
			}
			w := send(r.Source(loki.New()), row.contentType, "", b)
			rejected := 0
			for _, l := range r.Lines() {
				if strings.Contains(l, `"service":"_rejected"`) {
					rejected++
					if !strings.Contains(l, row.reason) {
						t.Errorf("reason %s", l)
					}
				}
			}
			if w.Code != row.status || rejected != row.rejected || len(r.Lines())-rejected != row.good {
				t.Errorf("%d %s\n%s", w.Code, w.Body, strings.Join(r.Lines(), "\n"))
			}
		})
	}
}

// A dead letter has the bytes of its own entry, and none of the entries behind it.
func TestDeadLetters(t *testing.T) {
	r := new(sourcetest.Log)
	send(r.Source(loki.New()), "application/json", "", []byte(`{"streams":[{"stream":{"app":"a"},"values":[["1895536241000000001","FIRST \u0041 long"],["1895536241000000002","B\n"],["9999-12-31T23:59:59Z","late"]]}]}`))
	got := strings.Join(r.Lines(), "\n")
	for _, want := range []string{`"msg":"[\"1895536241000000001\",\"FIRST \\u0041 long\"]"`, `"msg":"[\"1895536241000000002\",\"B\\n\"]"`,
		`{"ts":"2026-11-24T12:00:00.000000000Z","level":"","service":"a","msg":"late","app":"a","ts.original":"9999-12-31T23:59:59Z"}`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// A key makes a repeat of a request without times, as in the native protocol.
func TestKey(t *testing.T) {
	r := new(sourcetest.Log)
	s := r.Source(loki.New())
	for range 2 {
		sourcetest.Send(s, "POST", "/loki/api/v1/push", strings.NewReader(`{"streams":[{"stream":{"app":"a"},"values":[["0","x"]]}]}`),
			"Content-Type", "application/json", "Idempotency-Key", "0193b7a0-0000-7000-8000-000000000001")
	}
	if len(r.Lines()) != 2 || r.Identities() != 1 {
		t.Errorf("%d identities of %s", r.Identities(), r.Lines())
	}
	if w := sourcetest.Send(s, "POST", "/loki/api/v1/push", strings.NewReader("{}"), "Content-Type", "application/json", "Ack", "maybe"); w.Code != 400 || !strings.Contains(w.Body.String(), "Ack") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Labels of a stream are in each of its records, but a short body does not become lines without
// end.
func TestLongLabels(t *testing.T) {
	var entries [][]byte
	for range 2000 {
		entries = append(entries, line(ns, "x"))
	}
	r := new(sourcetest.Log)
	b := s2.EncodeSnappy(nil, push(nil, `{app="a",l="`+strings.Repeat("L", 100_000)+`"}`, entries...))
	if w := send(r.Source(loki.New()), "", "", b); w.Code != http.StatusNoContent {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if n, rejected := len(r.Lines()), r.Rejected(); n != 2000 || rejected < 500 || rejected > 1000 {
		t.Errorf("%d lines, %d rejected", n, rejected)
	}
}

// Requests that are refused are answered as Loki answers them, in text.
func TestRefused(t *testing.T) {
	good := s2.EncodeSnappy(nil, push(nil, `{app="a"}`, line(ns, "good")))
	for _, row := range []struct {
		name, method, path, encoding string
		body                         []byte
		err                          error
		status                       int
		text                         string
	}{
		{"a full log", "POST", "/loki/api/v1/push", "", good, record.ErrFull, 429, "the log is full"},
		{"no row", "POST", "/api/prom/push", "", good, record.ErrUnheld, 503, "nothing can be taken now"},
		{"GET", "GET", "/loki/api/v1/push", "", nil, nil, 405, "with POST"},
		{"an unknown encoding", "POST", "/loki/api/v1/push", "br", good, nil, 415, "not taken"},
		{"no snappy", "POST", "/loki/api/v1/push", "", []byte("hello"), nil, 400, "not valid snappy"},
		{"a bomb", "POST", "/loki/api/v1/push", "", []byte("\xff\xff\xff\xff\x07xx"), nil, 413, "expands"},
		{"ready", "GET", "/ready", "", nil, nil, 200, "ready"},
		{"ready by POST", "POST", "/ready", "", nil, nil, 405, "want GET"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := httptest.NewRequest(row.method, row.path, bytes.NewReader(row.body))
			r.Header.Set("Content-Encoding", row.encoding)
			w := httptest.NewRecorder()
			(&sourcetest.Log{Err: row.err}).Source(loki.New()).ServeHTTP(w, r)
			if w.Code != row.status || !strings.Contains(w.Body.String(), row.text) || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
				t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
			}
			if retry := w.Header().Get("Retry-After") != ""; retry != (row.status == 429 || row.status == 503) {
				t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
			}
		})
	}
}

// For any bytes, each entry is a record or a reject, and nothing panics.
func FuzzDecode(f *testing.F) {
	f.Add(push(push(nil, `{app="a",b="c\"d"}`, line(ns, "x", "a", "b")), `{}`, line(0, "")), false)
	f.Add([]byte(`{"streams":[{"stream":{"a":"b"},"values":[["1","x",{"k":"v","n":1}],["2","y"]]},{"labels":"{a=\"b\"}","entries":[{"ts":"1","line":"x"}]}]}`), true)
	f.Add([]byte(`{"streams":[{"values":[["1","x"]],"stream":{"a":"\u0041"}},{"stream":null,"values":null}],"x":{}}`), true)
	f.Fuzz(func(t *testing.T, b []byte, json bool) {
		r := new(sourcetest.Log)
		s := r.Source(loki.New())
		contentType := "application/json"
		if !json {
			contentType, b = "", s2.EncodeSnappy(nil, b)
		}
		w := send(s, contentType, "", b)
		if w.Code != http.StatusNoContent && w.Code != http.StatusBadRequest {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		r.Valid(t)
	})
}

func ExampleNew() {
	s := httpsource.New(httpsource.Options{Accept: sourcetest.Discard{}, Protocols: []httpsource.Protocol{loki.New()}})
	w := send(s, "application/json", "", []byte(`{"streams":[{"stream":{"app":"web"},"values":[["1795519265123456789","hello"]]}]}`))
	fmt.Println(w.Code)
	// Output: 204
}
