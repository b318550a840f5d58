package main

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/config"
	"blobtail/internal/signpost"
)

// wrongDoors are paths of each listener of ours, and of programs that users come from.
func wrongDoors() []string {
	return []string{
		"/", "/x", "/web", "/a/b/c", "//ingest/web", "/ingest", "/ingest/", "/ingest/a/b", "/live", "/live/", "/live/a/b", "/favicon.ico", "/index.html",
		"/metrics", "/healthz", "/readyz", "/livez", "/ready", "/health", "/ping", "/flush", "/drain", "/debug/pprof", "/debug/pprof/", "/debug/pprof/none", "/debug/pprof/symbol",
		"/loki/api/v1/query", "/loki/api/v1/query_range", "/loki/api/v1/labels", "/loki/api/v1/label/app/values", "/loki/api/v1/series", "/loki/api/v1/tail", "/loki/api/v1/rules",
		"/loki/api/v1/push", "/api/prom/push", "/api/prom/query", "/json/loki/api/v1/query", "/prometheus/api/v1/rules",
		"/api/v1/services", "/api/v1/records", "/api/v1/records/web/1", "/api/v1/count", "/api/v1/tail", "/api/v1/blobs/x", "/api/v1/whoami", "/api/v1/none",
		"/api/health", "/api/datasources", "/api/v1/query", "/api/v1/query_range", "/api/v1/labels", "/api/v1/write", "/api/v1/push", "/api/v1/status/buildinfo", "/receive",
		"/v1/logs", "/otlp/v1/logs", "/v1/traces", "/v1/metrics", "/v1/profiles", "/api/v2/spans", "/api/traces", "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
		"/_bulk", "/web/_bulk", "/web", "/web/_doc", "/web/_doc/1", "/web/_search", "/_search", "/_cluster/health", "/_template/x", "/_license", "/_sql", "/elasticsearch/", "/app/kibana", "/.kibana",
		"/services/collector", "/services/collector/event", "/services/collector/raw", "/services/collector/ack", "/services/collector/health", "/services/collector/x", "/services/search/jobs",
		"/gelf", "/upload", "/entries", "/api/v2/logs", "/api/v1/validate", "/v1/input", "/v1/input/KEY", "/api/v1/series", "/api/v2/series", "/intake", "/v0.4/traces",
		"/write", "/api/v2/write", "/query", "/insert/jsonline", "/insert/loki/api/v1/push", "/insert/elasticsearch/_bulk", "/insert/opentelemetry/v1/logs", "/select/logsql/query",
		"/api/default/web/_json", "/log/v1", "/v2/entries:write", "/api/logs", "/api/12/envelope/", "/inputs/TOKEN/tag/http/", "/dataCollectionRules/x/streams/y",
	}
}

// ask returns the answer to a request with a small body of JSON.
func ask(t *testing.T, method, url string) (*http.Response, string) {
	t.Helper()
	q, err := http.NewRequest(method, url, strings.NewReader(`{"msg":"hello"}`))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, strings.TrimSpace(string(text))
}

// No answer of any listener is bare words of net/http. A method that is not taken is answered with
// those that are.
func TestNoBareAnswers(t *testing.T) {
	var g guarded
	g.log = new(safeBuffer)
	g.start(t, func(*config.Config) {})
	for name, address := range map[string]string{"records": g.listen, "admin": g.admin} {
		for _, path := range wrongDoors() {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"} {
				if method == "POST" && slices.Contains([]string{"/drain", "/debug/pprof/symbol"}, path) {
					continue // one ends the test, the other is a tool of Go
				}
				resp, text := ask(t, method, "http://"+address+path)
				where := method + " " + path + " at " + name
				bare := []string{"404 page not found", "Not Found", "Method Not Allowed", "Bad Request", "400 Bad Request", ""}
				if resp.StatusCode >= 400 && slices.Contains(bare, text) && method != "HEAD" {
					t.Errorf("%s: %d %q", where, resp.StatusCode, text)
				}
				if _, told := resp.Header["Allow"]; told != (resp.StatusCode == http.StatusMethodNotAllowed) || strings.Contains(resp.Header.Get("Allow"), method) {
					t.Errorf("%s: %d, Allow %q: %s", where, resp.StatusCode, resp.Header.Get("Allow"), text)
				}
				if s := resp.StatusCode; s >= 500 || s == 429 || s == 408 {
					t.Errorf("%s: %d makes clients try for ever: %s", where, s, text)
				}
				if s := resp.StatusCode; s >= 300 && s < 400 && path != "/debug/pprof" && path != "//ingest/web" {
					t.Errorf("%s: %d sends elsewhere, which clients take for success", where, s)
				}
			}
		}
	}
}

// The paths to which signs lead are there.
func TestSignsAreTrue(t *testing.T) {
	var g guarded
	g.log = new(safeBuffer)
	g.start(t, func(*config.Config) {})
	for _, r := range routes() {
		if r.protocol == "" || r.path == "/nowhere" || r.path == "/" || r.path == "/ready" || strings.HasPrefix(r.path, "/_") && r.probe {
			continue
		}
		if !signpost.Records(r.path) {
			t.Errorf("%s is not known as a path of an ingester", r.path)
		}
		if resp, text := ask(t, r.method, "http://"+g.admin+r.path); resp.StatusCode != 404 || !strings.Contains(text, "http://"+g.listen+r.path) {
			t.Errorf("%s at the admin listener: %d %s", r.path, resp.StatusCode, text)
		}
	}
	for _, path := range wrongDoors() {
		resp, text := ask(t, "GET", "http://"+g.listen+path)
		if here := strings.Contains(text, "the admin listener, "); here && resp.StatusCode == 404 && !strings.Contains(text, "the probe of this listener") {
			resp, text = ask(t, "GET", "http://"+g.admin+path)
			if resp.StatusCode == 404 && path != "/debug/pprof/none" {
				t.Errorf("%s is not at the admin listener: %s", path, text)
			}
		}
	}
	resp, text := ask(t, "GET", "http://"+g.admin+"/")
	if resp.StatusCode != 200 || !strings.Contains(text, "POST       /flush") || !strings.Contains(text, "http://"+g.listen+"/ingest/{service}") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if resp, text := ask(t, "POST", "http://"+g.admin+"/flush"); resp.StatusCode != 200 || !strings.Contains(text, `"flushed":true`) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}
