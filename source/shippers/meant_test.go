package shippers_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"blobtail/source/httpsource"
	"blobtail/source/shippers"
	"blobtail/source/sourcetest"
)

// bodies are requests of all protocols, and other files, by their names.
func bodies(t *testing.T) map[string][]byte {
	t.Helper()
	decoded := func(text string) []byte {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	field := func(n byte, b []byte) []byte { return append([]byte{n<<3 | 2, byte(len(b))}, b...) }
	push := field(1, append(field(1, []byte(`{app="web"}`)), field(2, append(field(1, []byte{8, 1}), field(2, []byte("boom"))...))...))
	otlp := field(1, append(field(1, field(1, append(field(1, []byte("service.name")), field(2, field(1, []byte("web")))...))), field(2, field(2, field(5, field(1, []byte("boom")))))...))
	text := []byte(strings.Repeat("2026-11-20 10:00:06 ERROR boom\n", 20))
	random := make([]byte, 3000)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(random)
	all := map[string][]byte{
		"JSON":       []byte(`{"time":"2026-11-20T10:00:06Z","service":"web","level":"error","msg":"boom"}`),
		"array":      []byte(`[{"msg":"a"},{"msg":"b"}]`),
		"text":       text,
		"loki":       []byte(`{"streams":[{"stream":{"app":"web"},"values":[["1795168806000000000","boom"]]}]}`),
		"otlp":       []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"boom"}}]}]}]}`),
		"traces":     []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x"}]}]}]}`),
		"bulk":       []byte(`{"create":{"_index":"web"}}` + "\n" + `{"message":"boom"}` + "\n"),
		"splunk":     []byte(`{"time":1795168806,"source":"web","event":"boom"}`),
		"gelf":       []byte(`{"version":"1.1","host":"web","short_message":"boom"}`),
		"datadog":    []byte(`[{"ddsource":"nginx","service":"web","message":"boom"}]`),
		"zipkin":     []byte(`[{"traceId":"5982fe77008310cc80f1da5e10147517","id":"bd7a977555f6b982","name":"get"}]`),
		"cloudwatch": []byte(`{"logGroup":"g","logStream":"s","logEvents":[{"timestamp":1,"message":"boom"}]}`),
		"journal":    []byte("__CURSOR=s=1;i=1\n__REALTIME_TIMESTAMP=1795168806000000\nMESSAGE=boom\n\n"),
		"xml":        []byte("<Event><System><Level>2</Level></System></Event>"),
		"push":       push,
		"logs":       otlp,
		"bzip2":      decoded("QlpoOTFBWSZTWZ+GPgkAAAHZgAAQQAAAEAACEiAgACKaNAZGQgwIxjnZeLuSKcKEhPwx8Eg="),
		"xz":         []byte("\xfd7zXZ\x00\x00\x04"),
		"ELF":        append([]byte("\x7fELF\x02\x01\x01\x00"), random[:200]...),
		"PNG":        append([]byte("\x89PNG\r\n\x1a\n"), random[:200]...),
		"cut":        []byte(`{"version":"1.1","host":"x","mess`),
		"UTF-16":     []byte("\xff\xfeh\x00e\x00l\x00l\x00o\x00\n\x00"),
		"random":     random,
	}
	all["snappy"] = sourcetest.Encode(t, "snappy", push)
	for _, enc := range []string{"gzip", "zstd", "deflate"} {
		all[enc] = sourcetest.Encode(t, enc, text)
	}
	return all
}

// everything is a source of all protocols.
func everything(l *sourcetest.Log) *httpsource.Source {
	return httpsource.New(httpsource.Options{Accept: l, Patience: time.Millisecond, Protocols: shippers.Protocols(shippers.Options{}), Now: sourcetest.Now})
}

// A body at the wrong path, with the wrong type or encoding, is answered with the right one, and with
// a status that no client tries again.
func TestMeant(t *testing.T) {
	const (
		js    = "application/json"
		proto = "application/x-protobuf"
		push  = "/loki/api/v1/push"
	)
	all := bodies(t)
	for _, c := range []struct {
		path, kind, encoding, body string
		status                     int
		want                       string
	}{
		// The form of the path, with another type.
		{push, "", "", "loki", 400, "the body is JSON: send it with Content-Type: application/json"},
		{push, "application/x-www-form-urlencoded", "", "loki", 400, "the body is JSON: send it with Content-Type: application/json"},
		{"/api/prom/push", proto, "", "loki", 400, "the body is JSON: send it with Content-Type: application/json"},
		{push, js, "", "snappy", 400, "as a block of snappy, with Content-Type: application/x-protobuf"},
		{push, proto, "", "push", 400, "as a block of snappy"},
		{push, "", "", "gzip", 400, "the body is compressed with gzip: send it with Content-Encoding: gzip"},
		{"/v1/logs", proto, "", "otlp", 400, "the body is JSON: send it with Content-Type: application/json"},
		{"/v1/logs", js, "", "logs", 400, "protobuf goes to /v1/logs if it is of OTLP"},
		{"/v1/logs", js, "", "gzip", 400, "the body is compressed with gzip: send it with Content-Encoding: gzip"},
		{"/ingest/web", js, "", "text", 400, "the body is text: send it with Content-Type: text/plain"},
		{"/ingest/web", js, "", "zstd", 400, "the body is compressed with zstd: send it with Content-Encoding: zstd"},

		// The form of another path.
		{push, js, "", "otlp", 400, "send it to /v1/logs"},
		{push, js, "", "JSON", 400, "send JSON of your own to /ingest/{service}"},
		{push, "", "", "bulk", 400, "send it to /_bulk"},
		{push, "text/plain", "", "text", 400, "send lines of text to /ingest/{service}"},
		{push, "", "", "random", 400, "pushes to Loki go to /loki/api/v1/push as a block of snappy"},
		{push, js, "", "traces", 400, "an ingester takes logs only"},
		{"/v1/logs", js, "", "loki", 400, "send it to /loki/api/v1/push"},
		{"/v1/logs", js, "", "traces", 400, "an ingester takes logs only"},
		{"/v1/logs", proto, "", "snappy", 400, "pushes to Loki go to /loki/api/v1/push"},
		{"/v1/logs", "", "", "text", 400, "send lines of text to /ingest/{service}"},
		{"/_bulk", js, "", "array", 400, "send JSON of your own to /ingest/{service}"},
		{"/_bulk", js, "", "JSON", 400, "send JSON of your own to /ingest/{service}"},
		{"/_bulk", js, "", "loki", 400, "send it to /loki/api/v1/push"},
		{"/_bulk", "", "", "text", 400, "send lines of text to /ingest/{service}"},
		{"/_bulk", js, "", "splunk", 400, "send it to /services/collector/event"},
		{"/services/collector/event", "", "", "text", 400, "send lines of text to /ingest/{service}"},
		{"/services/collector/event", "", "", "snappy", 400, "pushes to Loki go to /loki/api/v1/push"},
		{"/services/collector/event", "", "", "gzip", 400, "send it with Content-Encoding: gzip"},
		{"/ingest/web", "", "", "logs", 415, "protobuf goes to /v1/logs"},
		{"/ingest/web", "", "", "snappy", 415, "/loki/api/v1/push"},
		{"/ingest/web", "", "", "deflate", 415, "send it with Content-Encoding: deflate"},
		{"/ingest", js, "", "loki", 200, "the body looks like a push to Loki: it is meant for /loki/api/v1/push"},
		{"/ingest", js, "", "otlp", 200, "the body looks like logs of OTLP: it is meant for /v1/logs"},
		{"/ingest/web", "", "", "bulk", 200, "it is meant for /_bulk"},
		{"/ingest/web", "", "", "traces", 200, "an ingester takes logs only"},

		// A header that names another encoding.
		{"/ingest/web", "", "gzip", "text", 400, "the body is text, not compressed: leave the header Content-Encoding out"},
		{"/ingest/web", "", "gzip", "JSON", 400, "the body is JSON, not compressed: leave the header Content-Encoding out"},
		{"/ingest/web", "", "gzip", "zstd", 400, "the body is zstd: send it with Content-Encoding: zstd"},
		{"/ingest/web", "", "zstd", "gzip", 400, "the body is gzip: send it with Content-Encoding: gzip"},
		{"/ingest/web", "", "zstd", "text", 400, "leave the header Content-Encoding out"},
		{"/ingest/web", "", "deflate", "JSON", 400, "leave the header Content-Encoding out"},
		{"/ingest/web", "", "snappy", "text", 400, "leave the header Content-Encoding out"},
		{"/ingest/web", "", "gzip", "bzip2", 400, "; the body is compressed with bzip2; decompress it, or send it with gzip or zstd and their Content-Encoding; nothing"},
		{"/upload", "application/vnd.fdo.journal", "gzip", "journal", 400, "leave the header Content-Encoding out"},
		{"/upload", "application/vnd.fdo.journal", "gzip", "zstd", 400, "the body is zstd: send it with Content-Encoding: zstd"},
		{"/upload", "application/vnd.fdo.journal", "zstd", "text", 400, "leave the header Content-Encoding out"},
		{"/v1/logs", js, "gzip", "loki", 400, "send it to /loki/api/v1/push"},
		{"/v1/logs", proto, "gzip", "logs", 400, "if the body is not compressed, leave the header Content-Encoding out"},
		{push, js, "gzip", "loki", 400, "leave the header Content-Encoding out"},
		{"/_bulk", js, "gzip", "bulk", 400, "leave the header Content-Encoding out"},

		// JSON that ends too early: the reason, and no other path.
		{"/gelf", js, "", "cut", 400, "in the service _rejected; record 0: at byte 33: not valid JSON: it ends too early"},
		{push, js, "", "cut", 400, "in the service _rejected; record 0: no push request in JSON: not valid JSON: it ends too early"},
		{"/services/collector", js, "", "cut", 400, "in the service _rejected; record 0: at byte 33: not valid JSON"},
		{"/api/v2/logs", js, "", "cut", 400, "in the service _rejected; record 0: at byte 33: not valid JSON"},
		{"/v1/logs", js, "", "cut", 400, "in the service _rejected; record 0: not valid JSON"},

		// Files.
		{"/_bulk", js, "", "xz", 400, "compressed with xz"},
		{"/gelf", js, "", "bzip2", 400, "compressed with bzip2"},
		{"/api/v2/logs", js, "", "UTF-16", 400, "send UTF-8"},
	} {
		w := sourcetest.Send(everything(&sourcetest.Log{}), http.MethodPost, c.path, bytes.NewReader(all[c.body]), "Content-Type", c.kind, "Content-Encoding", c.encoding)
		got := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\"`, `"`).Replace(w.Body.String())
		if w.Code != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s, %s, %q, %q: %d %s\nwant %d %s", c.body, c.path, c.kind, c.encoding, w.Code, got, c.status, c.want)
		}
	}
}

// Nothing is lost silently: a body is stored, or kept in _rejected, or the answer is an error that
// clients do not try for ever.
func TestNothingSilent(t *testing.T) {
	for name, b := range bodies(t) {
		for _, path := range []string{
			"/ingest/web", "/ingest", "/loki/api/v1/push", "/v1/logs", "/_bulk", "/web/_bulk", "/services/collector/event", "/services/collector/raw", "/gelf", "/api/v2/logs", "/upload",
		} {
			for _, kind := range []string{"", "application/json", "application/x-protobuf", "text/plain", "application/x-ndjson", "application/vnd.fdo.journal"} {
				for _, enc := range []string{"", "gzip", "snappy"} {
					l := &sourcetest.Log{}
					w := sourcetest.Send(everything(l), http.MethodPost, path, bytes.NewReader(b), "Content-Type", kind, "Content-Encoding", enc)
					where := fmt.Sprintf("%s, %s, %q, %q: %d %s", name, path, kind, enc, w.Code, w.Body)
					if w.Code < 300 && len(l.Lines()) == 0 {
						t.Errorf("%s: nothing is stored", where)
					}
					if s := w.Code; s >= 300 && s != 400 && s != 413 && s != 415 {
						t.Errorf("%s: clients try that again", where)
					}
					l.Valid(t)
				}
			}
		}
	}
}

// A truncated body says that its end is missing.
func TestCutOff(t *testing.T) {
	whole := sourcetest.Encode(t, "gzip", []byte(strings.Repeat("line of text\n", 1000)))
	w := sourcetest.Send(everything(&sourcetest.Log{}), http.MethodPost, "/ingest/web", bytes.NewReader(whole[:len(whole)/2]), "Content-Encoding", "gzip")
	var answer struct{ Error string }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 400 || !strings.Contains(answer.Error, "its end is missing: send the whole body") {
		t.Errorf("%d %s %v", w.Code, w.Body, err)
	}
}
