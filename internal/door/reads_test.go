package door_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
	"blobtail/internal/budget"
	"blobtail/internal/count"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/door"
)

// journal is a log that can be read while it is written.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// line waits for the line of a query.
func (j *journal) line(t *testing.T) (line map[string]any) {
	t.Helper()
	testkit.Until(t, "the line of a query", func() bool {
		for text := range strings.Lines(j.String()) {
			if strings.Contains(text, `"message":"query"`) {
				if err := json.Unmarshal([]byte(text), &line); err != nil {
					t.Fatal(err)
				}
				return true
			}
		}
		return false
	})
	return line
}

// routes are those of the tests: the first element of the path is the kind.
func routes(path string) door.Route {
	for prefix, kind := range map[string]door.Kind{
		"/tail": door.Tail, "/api/tail": door.Tail, "/light": door.Light, "/metrics": door.Operator, "/ready": door.Probe,
	} {
		if strings.HasPrefix(path, prefix) {
			return door.Route{Name: prefix, Kind: kind}
		}
	}
	return door.Route{Name: "query", Kind: door.Query}
}

// site is a server with doors.
type site struct {
	t     *testing.T
	url   string
	host  string
	reads *door.Reads
	srv   *http.Server
	log   *journal
	reg   *count.Registry
}

// serve serves behind doors with the defaults of reads.
func serve(t *testing.T, o door.Options, h http.HandlerFunc) *site {
	t.Helper()
	return open(t, o, door.ReadsOptions{}, h)
}

// within serves within limits, to everybody.
func within(t *testing.T, reads door.ReadsOptions, h http.HandlerFunc) *site {
	t.Helper()
	return open(t, door.Options{}, reads, h)
}

func open(t *testing.T, o door.Options, reads door.ReadsOptions, h http.HandlerFunc) *site {
	t.Helper()
	s := &site{t: t, log: new(journal), reg: new(count.Registry)}
	o.Log, o.Form, o.Refused = zerolog.New(s.log), form, door.NewRefused(s.reg, "blobtail_serve_refused_total", "Refusals.", "crowded")
	reads.Guard, reads.Route, reads.Metrics, reads.Log = door.New(o), routes, s.reg, o.Log
	s.reads = door.NewReads(reads)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.host = l.Addr().String()
	s.url = "http://" + s.host
	s.srv = s.reads.NewServer(s.reads.Wrap(h), o.Log)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.srv.Serve(l) }()
	t.Cleanup(func() { s.srv.Close(); <-done })
	return s
}

// form is the form of refusals: that of the path.
func form(w http.ResponseWriter, r *http.Request, f *door.Refusal) {
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		f.Plain(w)
		return
	}
	f.Header(w.Header())
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(f.Status)
	fmt.Fprintf(w, `{"title":%q,"status":%d,"detail":%q}`, f.Title, f.Status, f.Reason)
}

// ask sends a GET with headers, as "Name: value". Nothing is decompressed.
func (s *site) ask(path string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	r := s.request(s.t.Context(), path, headers...)
	resp, err := plain().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(body)
}

func (s *site) request(ctx context.Context, path string, headers ...string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch name {
		case "Host":
			r.Host = value
		case "Method":
			r.Method = value
		default:
			r.Header.Add(name, value)
		}
	}
	return r
}

func plain() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
}

func (s *site) metrics() string {
	return string(s.reg.Page())
}

// counted waits until the metrics have a line.
func (s *site) counted(line string) {
	s.t.Helper()
	testkit.Until(s.t, "the metrics have "+line, func() bool { return strings.Contains(s.metrics(), line+"\n") })
}

// tokensOf writes a file of tokens. The secret of each is "s3cret-" and its id.
func tokensOf(t testing.TB, entries ...string) (*access.Tokens, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	writeTokens(t, path, entries...)
	tokens, err := access.Open(path, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return tokens, path
}

func writeTokens(t testing.TB, path string, entries ...string) {
	t.Helper()
	text := "tokens:\n"
	for _, e := range entries {
		id, rest, _ := strings.Cut(e, " ")
		sum := sha256.Sum256([]byte("s3cret-" + id))
		text += fmt.Sprintf("  - {id: %s, sha256: [%s]%s}\n", id, hex.EncodeToString(sum[:]), rest)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func bearer(id string) string { return "Authorization: Bearer " + id + ".s3cret-" + id }

func echo(w http.ResponseWriter, r *http.Request) {
	id := "nobody"
	if token := door.Token(r); token != nil {
		id = token.ID
	}
	fmt.Fprint(w, "answer for "+id)
}

// crowd is a site with both places that one client has taken until leave is called, of three. Leave
// returns when they have been answered.
func crowd(t *testing.T, patience time.Duration) (s *site, leave func()) {
	t.Helper()
	open := make(chan struct{})
	var inside, asking sync.WaitGroup
	inside.Add(2)
	s = within(t, door.ReadsOptions{Queries: 3, Waiting: 1, Tails: 1, Patience: patience}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/q/long" {
			inside.Done()
			<-open
		}
		echo(w, r)
	})
	for range 2 {
		asking.Go(func() { s.ask("/q/long") })
	}
	inside.Wait()
	return s, func() { close(open); asking.Wait() }
}

// A request for which there is no place waits a little, and is then refused. Requests that
// cost nothing, probes and tails do not wait for queries.
func TestCrowded(t *testing.T) {
	s, leave := crowd(t, 50*time.Millisecond)
	for _, path := range []string{"/light", "/ready", "/tail", "/metrics"} {
		if resp, _ := s.ask(path); resp.StatusCode != 200 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	resp, body := s.ask("/loki/api/v1/query")
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" || body != "too many queries at once\n" {
		t.Errorf("%d, Retry-After %q: %s", resp.StatusCode, resp.Header.Get("Retry-After"), body)
	}
	resp, body = s.ask("/api/v1/count")
	if resp.StatusCode != 429 || resp.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(body, `"status":429`) {
		t.Errorf("%d, %s: %s", resp.StatusCode, resp.Header.Get("Content-Type"), body)
	}
	leave()
	s.counted(`blobtail_serve_refused_total{reason="crowded"} 2`)
}

// A query that waits has the first place that is free. One more than may wait is refused
// at once: if it waited, both would be refused.
func TestCrowdWaits(t *testing.T) {
	s, leave := crowd(t, testkit.Patience)
	var asking sync.WaitGroup
	asking.Go(func() {
		if resp, _ := s.ask("/q"); resp.StatusCode != 200 {
			t.Errorf("a query that waits: %d", resp.StatusCode)
		}
	})
	s.counted("blobtail_serve_queries_waiting 1")
	if resp, _ := s.ask("/q"); resp.StatusCode != 429 {
		t.Errorf("one more than may wait: %d", resp.StatusCode)
	}
	leave()
	asking.Wait()
	s.counted(`blobtail_serve_refused_total{reason="crowded"} 1`)
}

func TestTailsApart(t *testing.T) {
	s := within(t, door.ReadsOptions{Queries: 1, Tails: 3}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("long") {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		echo(w, r)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		resp, err := plain().Do(s.request(ctx, "/tail?long"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
	}
	if resp, body := s.ask("/tail"); resp.StatusCode != 429 || body != "too many tails at once\n" {
		t.Errorf("a third tail: %d: %s", resp.StatusCode, body)
	}
	if resp, _ := s.ask("/q"); resp.StatusCode != 200 {
		t.Errorf("a query beside tails: %d", resp.StatusCode)
	}
	cancel()
	s.counted("blobtail_serve_tails 0")
}

// A query that takes too long is answered in the words of the API that was asked, and not in those
// of its handler. An answer that has begun is left to its handler.
func TestDeadline(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/light"), r.URL.Path == "/tail":
			if _, ok := r.Context().Deadline(); ok {
				t.Errorf("%s has a deadline", r.URL.Path)
			}
			return
		case r.URL.Query().Has("begun"):
			fmt.Fprint(w, "first")
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
		switch {
		case r.URL.Query().Has("says"):
			http.Error(w, "context deadline exceeded", http.StatusInternalServerError)
		case r.URL.Query().Has("begun"):
			fmt.Fprint(w, " last")
		}
	}
	s := within(t, door.ReadsOptions{Deadline: 50 * time.Millisecond}, slow)
	for path, want := range map[string]string{
		"/loki/api/v1/query?says": "request timed out, decrease the duration",
		"/json/loki/api/v1/query": "request timed out, decrease the duration",
		"/api/v1/count?says":      `"title":"Too slow","status":504,`,
		"/api/v1/count":           "longer than 50ms",
	} {
		resp, body := s.ask(path)
		if resp.StatusCode != 504 || !strings.Contains(body, want) || strings.Contains(body, "context") {
			t.Errorf("%s: %d: %s", path, resp.StatusCode, body)
		}
	}
	s.ask("/tail")
	s.ask("/light")
	// The answer must begin before the deadline.
	s = within(t, door.ReadsOptions{Deadline: time.Second}, slow)
	if resp, body := s.ask("/q?begun"); resp.StatusCode != 200 || body != "first last" {
		t.Errorf("an answer that has begun: %d: %s", resp.StatusCode, body)
	}
}

// Queries and tails have a budget, out of one pool. An ended one leaves nothing in it, and light
// requests have none.
func TestBudget(t *testing.T) {
	s := within(t, door.ReadsOptions{Made: budget.Limits{Query: 100, Sure: 10, All: 90}}, func(w http.ResponseWriter, r *http.Request) {
		made := budget.Of(r.Context())
		if light := strings.HasSuffix(r.URL.Path, "/light"); light != (made == nil) {
			t.Errorf("%s: a budget: %v", r.URL.Path, made != nil)
		}
		err := made.Take(100)
		fmt.Fprint(w, err == nil)
		if r.URL.Query().Has("over") {
			_ = made.Take(1)
			<-r.Context().Done()
		}
	})
	for _, path := range []string{"/q", "/q?over", "/tail", "/light", "/tail?over", "/q"} {
		if resp, body := s.ask(path); resp.StatusCode != 200 || body != "true" {
			t.Errorf("%s: %d: %s", path, resp.StatusCode, body)
		}
	}
}

// A client that goes away ends its query.
func TestClientGone(t *testing.T) {
	for _, path := range []string{"/q", "/tail"} {
		inside, ended := make(chan struct{}), make(chan struct{})
		s := serve(t, door.Options{}, func(w http.ResponseWriter, r *http.Request) {
			close(inside)
			<-r.Context().Done()
			close(ended)
			http.Error(w, "interrupted", http.StatusInternalServerError)
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			resp, err := plain().Do(s.request(ctx, path))
			if err == nil {
				resp.Body.Close()
			}
		}()
		<-inside
		cancel()
		testkit.Await(t, "the query of "+path+" ends", ended)
		if line := s.log.line(t); line["status"] != 499.0 || line["complete"] != false {
			t.Errorf("%s: %v", path, line)
		}
		s.counted(`blobtail_serve_requests_total{route="` + routes(path).Name + `",code="499"} 1`)
	}
}

// hangsUp is a connection whose client is gone as soon as it has the answer.
type hangsUp struct {
	*httptest.ResponseRecorder
	gone context.CancelFunc
}

// Write implements [http.ResponseWriter].
func (h hangsUp) Write(p []byte) (int, error) {
	defer h.gone()
	return h.ResponseRecorder.Write(p)
}

// A client that has its whole answer did not go away, however soon it hangs up.
func TestClientDone(t *testing.T) {
	s := serve(t, door.Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	w := hangsUp{httptest.NewRecorder(), cancel}
	s.reads.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "all of it") })).ServeHTTP(w, s.request(ctx, "/q"))
	if ctx.Err() == nil || w.Body.String() != "all of it" {
		t.Fatalf("it got %q", w.Body)
	}
	if line := s.log.line(t); line["status"] != 200.0 || line["complete"] != true {
		t.Errorf("%v", line)
	}
}

// A form is read before its query has a place, up to 1 MiB. The handler reads it again.
func TestBodies(t *testing.T) {
	s := serve(t, door.Options{}, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.FormValue("query")) })
	post := func(body string) (int, string) {
		resp, err := http.Post(s.url+"/q", "application/x-www-form-urlencoded", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	if code, text := post("query=x"); code != 200 || text != "x" {
		t.Errorf("%d: %s", code, text)
	}
	if code, text := post("query=" + strings.Repeat("x", 1<<20)); code != 413 {
		t.Errorf("a long form: %d: %.100s", code, text)
	}
	if resp, _ := s.ask("/q?x=" + strings.Repeat("x", 60<<10)); resp.StatusCode != 200 {
		t.Errorf("a long query in the URL: %d", resp.StatusCode)
	}
	if resp, _ := s.ask("/q?x=" + strings.Repeat("x", 80<<10)); resp.StatusCode != 431 {
		t.Errorf("a longer one: %d", resp.StatusCode)
	}
}

// The line of a query names the reader and the records that it read.
func TestAudit(t *testing.T) {
	tokens, _ := tokensOf(t, `reader , read: ["web"]`)
	s := serve(t, door.Options{Tokens: tokens}, func(w http.ResponseWriter, r *http.Request) {
		n := door.Note(r)
		n.Add(door.Read{Services: []string{"web"}, From: 1, To: 2, Bytes: 4000, Records: 10})
		n.Add(door.Read{Services: []string{"db", "web"}, From: 5, To: int64(time.Second), Bytes: 96, Records: 2, Incomplete: true})
		echo(w, r)
	})
	s.ask("/q?query=secret", bearer("reader"))
	line := s.log.line(t)
	for name, want := range map[string]any{
		"token": "reader", "route": "query", "from": "1970-01-01T00:00:00.000000001Z", "to": "1970-01-01T00:00:01Z",
		"bytes": 4096.0, "records": 12.0, "status": 200.0, "complete": false, "sent": 17.0,
	} {
		if line[name] != want {
			t.Errorf("%s: %v, want %v", name, line[name], want)
		}
	}
	if fmt.Sprint(line["services"]) != "[db web]" || !strings.HasPrefix(fmt.Sprint(line["client"]), "127.0.0.1:") || line["seconds"].(float64) <= 0 {
		t.Errorf("%v", line)
	}
	if strings.Contains(s.log.String(), "secret") {
		t.Errorf("the log has the query:\n%s", s.log)
	}
	s.counted("blobtail_serve_fetched_bytes_total 4096")
	s.counted("blobtail_serve_incomplete_total 1")
}

// Without a guard nobody has a token, and reads may be noted.
func TestUnguarded(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	door.Note(r).Add(door.Read{Records: 1})
	if door.Token(r) != nil {
		t.Error("there is a token without a guard")
	}
}
