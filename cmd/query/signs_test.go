package main

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/signpost"
)

// send returns the answer to a request with a body and headers, Host too.
func (s *serving) send(method, path, body string, header ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	r.Host = r.Header.Get("Host") // "" is that of the URL
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, strings.TrimSpace(string(text))
}

// Records that are sent to the server, and questions for other listeners, are told where they belong.
// No answer is bare words of net/http.
func TestSigns(t *testing.T) {
	s := serve(t)
	records := []string{
		"/ingest", "/ingest/", "/ingest/web", "/_bulk", "/web/_bulk", "/loki/api/v1/push", "/api/prom/push", "/v1/logs", "/otlp/v1/logs", "/services/collector", "/services/collector/event",
		"/services/collector/raw", "/gelf", "/upload", "/api/v2/logs", "/v1/input", "/api/v1/validate", "/_cluster/health", "/web/_doc", "/live/web",
	}
	for _, path := range records {
		resp, text := s.send("POST", path, strings.Repeat("x", 3<<20)) // more than a question may have
		if _, told := resp.Header["Allow"]; resp.StatusCode != 405 || !told || !strings.Contains(text, "ingester") || !strings.Contains(text, "8514") {
			t.Errorf("POST %s: %d %s", path, resp.StatusCode, text)
		}
	}
	for path, want := range map[string]string{
		"/flush": "curl -X POST http://127.0.0.1:8515/flush", "/healthz": "127.0.0.1:8515", "/debug/pprof/heap": "127.0.0.1:8515", "/health": "GET /livez",
		"/v1/traces": "OTEL_TRACES_EXPORTER=none", "/api/v1/write": "metrics elsewhere", "/api/v1/query": "no such route", "/api/health": "GET /api/v1/",
		"/web/_search": "GET /loki/api/v1/", "/select/logsql/query": "GET /loki/api/v1/", "/x": "GET /api/v1/", "/loki/api/v1/rules": "404 page not found; Loki's API has here: ",
		"/loki/api/v1/query_rang": "query_range", "/api/v1/record": "is it records?", "/prometheus/api/v1/query": "404 page not found; ",
	} {
		if resp, text := s.send("GET", path, ""); resp.StatusCode != 404 || !strings.Contains(text, want) {
			t.Errorf("GET %s: %d %s; want %s", path, resp.StatusCode, text, want)
		}
	}
	for _, path := range append(records, "/", "/x", "/livez", "/ready", "/readyz", "/metrics", "/flush", "/api/v1/services", "/api/v1/none", "/loki/api/v1/labels", "/loki/api/v1/none", "/json/x", "/prometheus/x") {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"} {
			resp, text := s.send(method, path, "")
			if bare := []string{"404 page not found", "Not Found", "Method Not Allowed", "Bad Request", ""}; resp.StatusCode >= 400 && slices.Contains(bare, text) {
				t.Errorf("%s %s: %d %q", method, path, resp.StatusCode, text)
			}
			if _, told := resp.Header["Allow"]; told != (resp.StatusCode == 405) || resp.StatusCode >= 300 && resp.StatusCode < 400 {
				t.Errorf("%s %s: %d, Allow %q", method, path, resp.StatusCode, resp.Header["Allow"])
			}
		}
	}
	_, doc := s.send("GET", "/api/v1/openapi.json", "")
	for _, m := range regexp.MustCompile(`"(?:/api/v1)?(/[a-z][a-z./{}]*)": ?\{`).FindAllStringSubmatch(doc, -1) {
		if path := "/api/v1" + m[1]; !signpost.Reading(path) {
			t.Errorf("an ingester does not know %s as a path of logquery serve", path)
		}
	}
	if resp, text := s.send("GET", "/", ""); resp.StatusCode != 200 || !strings.Contains(text, "/loki/api/v1/") || !strings.Contains(text, "port 8514 unless told otherwise") {
		t.Errorf("GET /: %d %s", resp.StatusCode, text)
	}
}

// A sender is told the right listener whatever its token may do. Anything else needs a token, and a
// header without the word Bearer is told so in the form of each API.
func TestSignsWithTokens(t *testing.T) {
	s := serve(t, "--tokens", tokenFile(t, `sends , write: ["*"]`, `reads , read: ["*"]`))
	for _, token := range []string{"", "Bearer sends.s3cret", "Bearer reads.s3cret", "Bearer x.y"} {
		for _, path := range []string{"/ingest/web", "/_bulk", "/v1/logs", "/loki/api/v1/push"} {
			if resp, text := s.send("POST", path, "x", "Authorization", token); resp.StatusCode != 405 || !strings.Contains(text, "8514") {
				t.Errorf("POST %s with %q: %d %s", path, token, resp.StatusCode, text)
			}
		}
	}
	for _, path := range []string{"/api/v1/services", "/loki/api/v1/labels", "/", "/x", "/flush"} {
		for header, want := range map[string]string{
			"": "a token is needed", "reads.s3cret": "the word Bearer is missing", "Token reads.s3cret": "another word than Bearer", "Bearer \"reads.s3cret\"": "quotation marks",
		} {
			resp, text := s.send("GET", path, "", "Authorization", header)
			if resp.StatusCode != 401 || !strings.Contains(text, want) || strings.Contains(text, "s3cret") || len(resp.Header["Www-Authenticate"]) != 2 {
				t.Errorf("GET %s with %q: %d %s", path, header, resp.StatusCode, text)
			}
		}
		for _, scheme := range []string{"Bearer ", "bearer ", "BEARER   "} {
			if resp, text := s.send("GET", path, "", "Authorization", scheme+"reads.s3cret "); resp.StatusCode == 401 || resp.StatusCode == 403 {
				t.Errorf("GET %s with %s: %d %s", path, scheme, resp.StatusCode, text)
			}
		}
	}
}
