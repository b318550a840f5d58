package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/rs/zerolog"

	"blobtail/internal/cli"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/door"
	"blobtail/internal/openstore"
	"blobtail/storage"
	"blobtail/storage/dir"
)

// heard is a stderr that can be read while it is written.
type heard struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf.String()
}

// serving is a logquery serve in this process.
type serving struct {
	t      *testing.T
	url    string
	stderr *heard
	end    context.CancelFunc
	code   chan int
}

// serve runs the command over a store of the services web and hidden.
func serve(t *testing.T, args ...string) *serving {
	t.Helper()
	path := t.TempDir()
	store, err := dir.Open(path, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, service := range []string{"web", "hidden"} {
		var text bytes.Buffer
		for n := range 50 {
			fmt.Fprintf(&text, `{"ts":%d,"service":%q,"level":"info","msg":"%s %d","%s_field":1}`+"\n", 1795183200+n, service, service, n, service)
		}
		if err := addBlob(store, text.Bytes(), i+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return serveFrom(t, path, args...)
}

// serveFrom runs the command over a store in a directory.
func serveFrom(t *testing.T, path string, args ...string) *serving {
	t.Helper()
	s := &serving{t: t, stderr: new(heard), code: make(chan int, 1)}
	var ctx context.Context
	ctx, s.end = context.WithCancel(t.Context())
	e := environment{
		args:   append([]string{"serve", "--store", "dir:" + path, "--listen", "127.0.0.1:0"}, args...),
		stdout: io.Discard, stderr: s.stderr, getenv: func(string) string { return "" }, now: time.Now(), local: time.UTC,
		isFile: func(string) bool { return false },
	}
	go func() { s.code <- run(ctx, e) }()
	t.Cleanup(func() {
		s.end()
		if code := <-s.code; code != cli.OK {
			t.Errorf("exit code %d:\n%s", code, s.stderr)
		}
	})
	testkit.Until(t, "it listens", func() bool {
		for line := range strings.Lines(s.stderr.String()) {
			var said struct{ Message, URL string }
			if json.Unmarshal([]byte(line), &said) == nil && said.Message == "listening" {
				s.url = said.URL
			}
		}
		return s.url != ""
	})
	return s
}

// ask returns the status, and the answer with its header and trailer as text. The token may be
// the cookie of a session.
func (s *serving) ask(path, token string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if cookie, ok := strings.CutPrefix(token, "cookie "); ok {
		r.Header.Set("Cookie", cookie)
	} else if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Errorf("%s: %v", path, err)
	}
	return resp.StatusCode, fmt.Sprint(resp.Header, resp.Trailer, string(body))
}

// login returns the cookie of a session for ask.
func (s *serving) login(token string) string {
	s.t.Helper()
	resp, text := s.send("POST", "/api/v1/login", fmt.Sprintf(`{"token":%q}`, token), "Content-Type", "application/json")
	if cookies := resp.Cookies(); resp.StatusCode == http.StatusOK && len(cookies) == 1 {
		return "cookie " + cookies[0].Name + "=" + cookies[0].Value
	}
	s.t.Fatalf("login: %d %s", resp.StatusCode, text)
	return ""
}

func tokenFile(t *testing.T, entries ...string) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("tokens:\n")
	for _, e := range entries {
		id, rest, _ := strings.Cut(e, " ")
		sum := sha256.Sum256([]byte("s3cret"))
		fmt.Fprintf(&text, "  - {id: %s, sha256: [%s]%s}\n", id, hex.EncodeToString(sum[:]), rest)
	}
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// queries are requests to all routes but tails, each with an answer about web.
func queries() []string {
	all := url.QueryEscape(`{service_name=~".+"}`)
	hidden := url.QueryEscape(`{service_name="hidden"}`)
	counted := url.QueryEscape(`sum by (service_name) (count_over_time({service_name=~".+"}[1m]))`)
	span := "start=2026-11-20T13:00:00Z&end=2026-11-20T16:00:00Z"
	var paths []string
	for _, view := range []string{"", "/json"} {
		for _, q := range []string{all, hidden} {
			paths = append(paths, view+"/loki/api/v1/query_range?"+span+"&query="+q,
				view+"/loki/api/v1/index/stats?"+span+"&query="+q, view+"/loki/api/v1/index/volume?"+span+"&query="+q,
				view+"/loki/api/v1/index/volume_range?"+span+"&step=60&query="+q, view+"/loki/api/v1/detected_fields?"+span+"&query="+q,
				view+"/loki/api/v1/detected_labels?"+span+"&query="+q, view+"/loki/api/v1/series?"+span+"&match[]="+q,
				view+"/loki/api/v1/detected_field/web_field/values?"+span+"&query="+q)
		}
		paths = append(paths, view+"/loki/api/v1/query_range?"+span+"&step=60&query="+counted,
			view+"/loki/api/v1/query?time=2026-11-20T16:00:00Z&query="+counted,
			view+"/loki/api/v1/labels?"+span, view+"/loki/api/v1/label/service_name/values?"+span, view+"/loki/api/v1/patterns?"+span+"&query="+all,
			view+"/loki/api/v1/drilldown-limits", view+"/loki/api/v1/status/buildinfo", view+"/loki/api/v1/format_query?query="+all)
	}
	for _, route := range []string{"records", "histogram", "count", "services", "facets", "patterns", "blobs"} {
		paths = append(paths, "/api/v1/"+route+"?service=*", "/api/v1/"+route)
	}
	return append(paths, "/api/v1/whoami", "/api/v1/ingesters", "/api/v1/openapi.json", "/prometheus/api/v1/rules", "/api/v1/none", "/none", "/")
}

// A token of one service sees nothing of another one, in any byte of any answer. Without a
// token there is no answer, and one that may read all sees both.
func TestServeHides(t *testing.T) {
	s := serve(t, "--tokens", tokenFile(t, `web , read: ["web"]`, `all , read: ["*"]`, `none , write: ["*"]`, `old , read: ["*"], expires: 2020-01-01T00:00:00Z`))
	web, all := s.login("web.s3cret"), s.login("all.s3cret")
	forged := strings.Replace(web, ".web.", ".all.", 1)
	var seen []string
	for _, path := range queries() {
		named := strings.Contains(path, "hidden") // the answer may repeat the query
		for _, token := range []string{"web.s3cret", web} {
			code, answer := s.ask(path, token)
			if strings.Contains(answer, "hidden") && !named || strings.Contains(answer, "hidden_field") || strings.Contains(answer, "hidden 1") {
				t.Errorf("%s with %s: %d: %.2000s", path, token, code, answer)
			}
			if code >= 500 || code == http.StatusUnauthorized {
				t.Errorf("%s with %s: %d: %.300s", path, token, code, answer)
			}
		}
		for token, want := range map[string]int{"": 401, "old.s3cret": 401, "web.other": 401, "none.s3cret": 403, forged: 401} {
			if code, answer := s.ask(path, token); code != want {
				t.Errorf("%s with %q: %d, want %d: %.300s", path, token, code, want, answer)
			}
		}
		_, answer := s.ask(path, "all.s3cret")
		_, same := s.ask(path, all)
		if sees := strings.Contains(answer, "hidden"); sees != strings.Contains(same, "hidden") {
			t.Errorf("%s shows the other service to a cookie: %v", path, !sees)
		} else if sees && !named {
			seen = append(seen, path)
		}
	}
	if len(seen) < 15 {
		t.Errorf("only %d routes show the other service to a token that may read it: %q", len(seen), seen)
	}
	for _, path := range []string{"/api/v1/records?service=hidden", "/api/v1/count?service=hidden", "/api/v1/tail?service=hidden"} {
		for _, token := range []string{"web.s3cret", web} {
			if code, answer := s.ask(path, token); code != http.StatusNotFound {
				t.Errorf("%s with %s: %d: %.300s", path, token, code, answer)
			}
		}
	}
	if strings.Contains(s.stderr.String(), "s3cret") {
		t.Error("a secret is in the log")
	}
}

// Each route of the APIs has a name and a kind of its own in the table of serve.
func TestRoutesKnown(t *testing.T) {
	s := serve(t)
	for _, path := range queries() {
		bare, _, _ := strings.Cut(path, "?")
		code, answer := s.ask(path, "")
		if known := routeOf(bare).Name != "other"; !known && code != http.StatusNotFound {
			t.Errorf("%s: %d, and its route is %q: %.200s", path, code, routeOf(bare).Name, answer)
		}
	}
	_, doc := s.ask("/api/v1/openapi.json", "")
	for _, m := range regexp.MustCompile(`"(?:/api/v1)?(/[a-z][a-z./{}]*)": ?\{`).FindAllStringSubmatch(doc, -1) {
		path := "/api/v1" + strings.ReplaceAll(m[1], "...", "")
		if r := routeOf(path); strings.ReplaceAll(r.Name, "...", "") != path {
			t.Errorf("%s of openapi.json is %q", path, r.Name)
		}
	}
	for path, want := range map[string]door.Kind{
		"/loki/api/v1/tail": door.Tail, "/json/loki/api/v1/tail": door.Tail, "/loki/api/v1/loki/api/v1/query": door.Query, "/api/v1/tail": door.Tail,
		"/metrics": door.Operator, "/readyz": door.Probe, "/loki/api/v1/new": door.Query, "/": door.Public, "/ui/app.js": door.Public, "/ui": door.Query, "/api/v1/login": door.Asks, "/_bulk": door.Asks, "/loki/api/v1/push": door.Asks, "/x": door.Query, "/json/api/v1/tail": door.Query,
	} {
		if got := routeOf(path).Kind; got != want {
			t.Errorf("%s: kind %d, want %d", path, got, want)
		}
	}
}

// When the command ends, a WebSocket ends without a closing frame, events end, and the
// process does not wait for either.
func TestServeEnds(t *testing.T) {
	s := serve(t)
	ctx := t.Context()
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.url, "http")+"/loki/api/v1/tail?query="+url.QueryEscape(`{service_name="web"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/tail?service=web&n=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	events, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	begun := time.Now()
	s.end()
	for err == nil {
		_, _, err = conn.Read(ctx)
	}
	if status := websocket.CloseStatus(err); status != -1 {
		t.Errorf("the WebSocket was closed with %d: %v", status, err)
	}
	_, _ = io.Copy(io.Discard, events.Body)
	code := <-s.code
	s.code <- code
	if took := time.Since(begun); code != cli.OK || took > grace {
		t.Errorf("exit code %d after %v", code, took)
	}
	testkit.Until(t, "both tails have a line", func() bool { return strings.Count(s.stderr.String(), `"message":"query"`) == 2 })
}

// A client that goes away ends its query, also in the middle of an answer.
func TestServeLeft(t *testing.T) {
	s := serve(t)
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/tail?service=*&n=2", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	leave()
	testkit.Until(t, "the query ends", func() bool { return strings.Contains(s.stderr.String(), `"status":499`) })
	if _, answer := s.ask("/metrics", ""); !strings.Contains(answer, `blobtail_serve_requests_total{route="/api/v1/tail",code="499"} 1`) || !strings.Contains(answer, "blobtail_serve_tails 0") {
		t.Errorf("%s", answer)
	}
}

// away is a store that does not answer while it has an error, and counts its listings.
type away struct {
	storage.BlobStore
	err   error
	lists int
}

func (a *away) List(context.Context, string, string) iter.Seq2[storage.Blob, error] {
	a.lists++
	return func(yield func(storage.Blob, error) bool) {
		if a.err != nil {
			yield(storage.Blob{}, a.err)
		}
	}
}

// A store that does not answer makes the server not ready. The log has the reason once, and
// probes do not ask the store more often than each 5 s.
func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blobs, log := &away{err: errors.New("no route to the store")}, new(heard)
		r := &readiness{store: &openstore.Store{Blobs: blobs, Explain: func(error) string { return "" }}, log: zerolog.New(log)}
		probe := func() (int, string) {
			w := httptest.NewRecorder()
			r.answer(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			return w.Code, w.Body.String()
		}
		for range 20 {
			if code, text := probe(); code != 503 || strings.Contains(text, "route") {
				t.Errorf("%d: %s", code, text)
			}
			time.Sleep(time.Second)
		}
		if blobs.lists != 4 || strings.Count(log.String(), "no route to the store") != 1 {
			t.Errorf("%d listings; the log:\n%s", blobs.lists, log)
		}
		blobs.err = nil
		time.Sleep(5 * time.Second)
		if code, text := probe(); code != 200 || text != "ready\n" || !strings.Contains(log.String(), "ready again") {
			t.Errorf("%d: %s", code, text)
		}
	})
}
