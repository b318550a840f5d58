package signpost_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"blobtail/internal/signpost"
)

// posts are the three listeners as the programs have them.
func posts() map[string]signpost.Post {
	const get = "GET, HEAD"
	return map[string]signpost.Post{
		"ingester": {At: signpost.Ingester, Admin: "0.0.0.0:9515", Own: map[string]string{"/live/": "GET"}},
		"admin": {
			At: signpost.Admin, Ingester: "https://logs.example:9514",
			Own: map[string]string{"/metrics": get, "/healthz": get, "/readyz": get, "/flush": "POST", "/drain": "POST", "/debug/pprof/": get},
		},
		"reads": {
			At: signpost.Reads, Own: map[string]string{"/livez": get, "/ready": get, "/readyz": get, "/metrics": get, "/": get, "/ui/": get},
			More: map[string]string{"/api/v1/": "GET", "/loki/api/v1/": "GET, POST"},
		},
	}
}

// Each request at the wrong listener is told the right one.
func TestFind(t *testing.T) {
	const reads = "logquery serve answers reads: its port is 8516 by default"
	for _, c := range []struct {
		post, method, path string
		status             int
		allow, want        string
	}{
		{"ingester", "GET", "/loki/api/v1/query_range", 404, "", reads + " (/loki/api/v1/query_range there)"},
		{"ingester", "POST", "/loki/api/v1/query", 404, "", reads},
		{"ingester", "GET", "/api/prom/query", 404, "", reads},
		{"ingester", "GET", "/api/v1/count", 404, "", reads},
		{"ingester", "GET", "/livez", 404, "", reads},
		{"ingester", "GET", "/api/health", 404, "", reads},
		{"ingester", "GET", "/api/v1/query", 404, "", reads},
		{"reads", "GET", "/api/v1/query", 404, "", "GET /loki/api/v1/"},
		{"ingester", "POST", "/insert/native", 404, "", "are sent to /ingest, by vlagent with -remoteWrite.format=jsonline"},
		{"ingester", "POST", "/internal/insert", 404, "", "-remoteWrite.format=jsonline"},
		{"ingester", "GET", "/flush", 404, "", "curl -X POST http://127.0.0.1:9515/flush"},
		{"ingester", "GET", "/metrics", 404, "", "/metrics is answered at the admin listener, 0.0.0.0:9515 (--admin of ingest)"},
		{"ingester", "GET", "/health", 404, "", "the probe of this listener is /ready"},
		{"ingester", "POST", "/web", 404, "", "is it /ingest/web?"},
		{"ingester", "PUT", "/my-index", 404, "", "is it /ingest/my-index?"},
		{"ingester", "POST", "/ingset/web", 404, "", "is it /ingest/web?"},
		{"ingester", "POST", "//ingest/web", 404, "", "is it /ingest/web?"},
		{"ingester", "POST", "/ingest/web/", 404, "", "is it /ingest/web?"},
		{"ingester", "POST", "/ingest/a/b", 404, "", "is it /ingest/a-b?"},
		{"ingester", "POST", "/ingest/", 404, "", "is it /ingest/{service}, or /ingest?"},
		{"ingester", "POST", "/v1/log", 404, "", "is it /v1/logs?"},
		{"ingester", "POST", "/v1/logs/", 404, "", "is it /v1/logs?"},
		{"ingester", "POST", "/loki/api/v1/pus", 404, "", reads},
		{"ingester", "POST", "/v1/traces", 404, "", "OTEL_TRACES_EXPORTER=none"},
		{"ingester", "POST", "/api/v2/spans", 404, "", "traces elsewhere"},
		{"ingester", "POST", "/api/traces", 404, "", "traces elsewhere"},
		{"ingester", "POST", "/v1/metrics", 404, "", "OTEL_METRICS_EXPORTER=none"},
		{"ingester", "POST", "/api/v1/write", 404, "", "metrics elsewhere"},
		{"ingester", "POST", "/write", 404, "", "metrics elsewhere"},
		{"ingester", "POST", "/opentelemetry.proto.collector.logs.v1.LogsService/Export", 404, "", "http/protobuf"},
		{"ingester", "POST", "/insert/jsonline", 404, "", "/insert/jsonline: JSON lines of VictoriaLogs are sent to /ingest"},
		{"ingester", "POST", "/insert/journald/upload", 404, "", "entries of a journal are sent to /upload"},
		{"ingester", "POST", "/insert/loki/api/v1/push", 404, "", "is it /loki/api/v1/push?"},
		{"ingester", "POST", "/api/default/web/_json", 404, "", "to /ingest/{service}"},
		{"ingester", "GET", "/select/logsql/query", 404, "", reads},
		{"ingester", "DELETE", "/live/web", 405, "GET", "DELETE /live/web: ask with GET"},
		{"ingester", "GET", "/" + strings.Repeat("x", 5000), 404, "", "..."},
		{"ingester", "GET", "/%0a%ff", 404, "", "no such path /??;"},

		{"admin", "GET", "/flush", 405, "POST", "GET /flush: send it with POST: curl -X POST http://example.com/flush"},
		{"admin", "GET", "/drain", 405, "POST", "curl -X POST http://example.com/drain"},
		{"admin", "POST", "/metrics", 405, "GET, HEAD", "ask with GET"},
		{"admin", "POST", "/debug/pprof/heap", 405, "GET, HEAD", "ask with GET"},
		{"admin", "POST", "/ingest/web", 404, "", "this is the admin listener; records are sent to the one of --listen: https://logs.example:9514/ingest/web"},
		{"admin", "POST", "/_bulk", 404, "", "https://logs.example:9514/_bulk"},
		{"admin", "POST", "/insert/jsonline", 404, "", "JSON lines of VictoriaLogs"},
		{"admin", "GET", "/loki/api/v1/labels", 404, "", reads},
		{"admin", "GET", "/health", 404, "", "is it /healthz?"},
		{"admin", "GET", "/metric", 404, "", "is it /metrics?"},
		{"admin", "GET", "/x", 404, "", "this is the admin listener, and has GET /debug/pprof/, POST /drain, POST /flush"},

		{"reads", "POST", "/ingest/web", 405, "", "send records to the ingester, at its --listen (port 8514 unless told otherwise): /ingest/web"},
		{"reads", "POST", "/ingest", 405, "", "send records to the ingester"},
		{"reads", "POST", "/_bulk", 405, "", "send records to the ingester"},
		{"reads", "POST", "/web/_bulk", 405, "", "send records to the ingester"},
		{"reads", "POST", "/v1/logs", 405, "", "send records to the ingester"},
		{"reads", "POST", "/services/collector/event", 405, "", "send records to the ingester"},
		{"reads", "POST", "/gelf", 405, "", "send records to the ingester"},
		{"reads", "GET", "/_cluster/health", 405, "", "send records to the ingester"},
		{"reads", "POST", "/insert/jsonline", 404, "", "are sent to /ingest"},
		{"reads", "POST", "/u1", 404, "", "GET /ui/; send records to the ingester"},
		{"reads", "GET", "/ui", 404, "", "is it /ui/?"},
		{"reads", "POST", "/web", 404, "", "send records to the ingester"},
		{"reads", "POST", "/", 405, "GET, HEAD", "POST /: ask with GET; send records to the ingester, at its --listen"},
		{"reads", "DELETE", "/", 405, "GET, HEAD", "ask with GET"},
		{"reads", "POST", "/livez", 405, "GET, HEAD", "ask with GET"},
		{"reads", "GET", "/flush", 404, "", "curl -X POST http://127.0.0.1:8515/flush"},
		{"reads", "GET", "/healthz", 404, "", "the admin listener, 127.0.0.1:8515 unless told otherwise"},
		{"reads", "GET", "/health", 404, "", "GET /livez, GET /loki"},
		{"reads", "GET", "/x", 404, "", "GET /api/v1/, GET /livez, GET /loki/api/v1/"},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		got := posts()[c.post].Find(r)
		if got.Status != c.status || got.Allow != c.allow || !strings.Contains(got.Text, c.want) {
			t.Errorf("%s at %s: %d %q %q; want %d %q %q", r.Method+" "+c.path[:min(80, len(c.path))], c.post, got.Status, got.Allow, got.Text, c.status, c.allow, c.want)
		}
		if strings.ContainsAny(got.Text, "\n\r") || len(got.Text) > 600 || !utf8.ValidString(got.Text) {
			t.Errorf("%s at %s is no line of text: %q", c.path, c.post, got.Text)
		}
	}
}

// A header may show a protocol that no path takes.
func TestForeign(t *testing.T) {
	for header, want := range map[string]string{
		"X-Amz-Target: Logs_20140328.PutLogEvents":     "CloudWatch",
		"X-Amz-Target: Firehose_20150804.PutRecord":    "AWS",
		"Content-Type: application/grpc":               "send OTLP over HTTP to /v1/logs",
		"Content-Type: application/grpc+proto; q=text": "send OTLP over HTTP to /v1/logs",
		"Content-Type: application/json":               "",
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
		if got := signpost.Foreign(r); got != (want != "") {
			t.Errorf("%s: %v", header, got)
		}
		if got := posts()["ingester"].Find(r); want != "" && !strings.Contains(got.Text, want) {
			t.Errorf("%s: %q, want %q", header, got.Text, want)
		}
	}
}

// The first bytes of a connection show its protocol.
func TestSpeech(t *testing.T) {
	for bytes, want := range map[string]signpost.Speech{
		"GET / HTTP/1.1\r\n": signpost.HTTP, "P": signpost.HTTP, "PRI * HTTP/2.0\r\n": signpost.HTTP2, "\x16\x03\x01\x02": signpost.TLS, "\x16": signpost.TLS,
		"<13>1 x": signpost.Syslog, "46 <13>1 x": signpost.Syslog, "2W\x00\x00": signpost.Beats, "1J": signpost.Beats, `{"a":1}`: signpost.Other,
		"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n": signpost.Proxy, "\r\n\r\n\x00\r\nQUIT\n": signpost.Proxy,
		"": signpost.Other, "\x92\x01": signpost.Other, "<html>": signpost.Other, "12 monkeys": signpost.Other, "hello": signpost.Other,
	} {
		if got := signpost.SpeechOf([]byte(bytes)); got != want {
			t.Errorf("%q: %d, want %d", bytes, got, want)
		}
	}
	for line, want := range map[string]bool{
		"GET / HTTP/1.1\r": true, "POST /ingest/web HTTP/1.0": true, "GET some text": false, "ERROR disk full": false, "GET / FTP/1.1": false, "get / HTTP/1.1": false, "": false, "A B HTTP/1.1 D": false,
	} {
		if got := signpost.IsRequest([]byte(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// No path and no method makes a sign without a status or a text.
func FuzzFind(f *testing.F) {
	f.Add("GET", "/loki/api/v1/query")
	f.Add("POST", "//ingest//web/")
	f.Fuzz(func(t *testing.T, method, path string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Method, r.URL.Path = method, path
		for name, p := range posts() {
			if s := p.Find(r); s.Status != 404 && s.Status != 405 || s.Text == "" || len(s.Text) > 2000 || !utf8.ValidString(s.Text) || strings.Contains(s.Text, "\n") {
				t.Errorf("%s %q at %s: %+v", method, path, name, s)
			}
		}
	})
}
