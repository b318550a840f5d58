package door_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/count"
	"blobtail/internal/door"
)

// Each form of a refusal has the headers of its status, and the words for its readers.
func TestRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		f              *door.Refusal
		schemes        string
		after, message string
	}{
		"no token":     {&door.Refusal{Status: 401, Reason: "give a token"}, `Basic realm="blobtail", Bearer realm="blobtail"`, "", "give a token\n"},
		"forbidden":    {door.Refuse(403, "%s may not", "a"), "", "", "a may not\n"},
		"later":        {&door.Refusal{Status: 429, Reason: "too many", After: 1100 * time.Millisecond}, "", "2", "too many\n"},
		"for Grafana":  {&door.Refusal{Status: 504, Reason: "ours", Words: "theirs"}, "", "", "theirs\n"},
		"at any time":  {door.Refuse(503, "stops"), "", "", "stops\n"},
		"soon, at 503": {&door.Refusal{Status: 503, Reason: "busy", After: time.Second}, "", "1", "busy\n"},
	} {
		w := httptest.NewRecorder()
		c.f.Plain(w)
		h := w.Header()
		if got := strings.Join(h.Values("WWW-Authenticate"), ", "); got != c.schemes || h.Get("Retry-After") != c.after {
			t.Errorf("%s: %q, after %q", name, got, h.Get("Retry-After"))
		}
		if w.Code != c.f.Status || w.Body.String() != c.message || h.Get("Content-Type") != "text/plain; charset=utf-8" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %q %v", name, w.Code, w.Body, h)
		}
	}
	if f := door.Refuse(400, "in line 3: %w", io.ErrUnexpectedEOF); f.Error() != "in line 3: unexpected EOF" || !errors.Is(f, io.ErrUnexpectedEOF) {
		t.Error(f)
	}
}

// The doors of an ingester: the kind of a path says which token it needs, and a handler may
// ask by itself.
func TestKinds(t *testing.T) {
	tokens, _ := tokensOf(t, `reader , read: ["web"]`, `sender , write: ["web"]`, `watch , role: operator`)
	reg, log := new(count.Registry), new(journal)
	g := door.New(door.Options{
		Tokens: tokens, AnyName: true, Log: zerolog.New(log),
		Refused: door.NewRefused(reg, "test_refused_total", "Refused.", "limit"),
	})
	mux := http.NewServeMux()
	mux.HandleFunc("/", echo)
	mux.Handle("/here", g.Here(http.HandlerFunc(echo)))
	h := g.Wrap(func(path string) door.Kind {
		return map[string]door.Kind{"/light": door.Light, "/metrics": door.Operator, "/here": door.Operator, "/ready": door.Probe, "/ingest": door.Asks}[path]
	}, mux)
	const away = "192.0.2.1:1234"
	for _, c := range []struct {
		path, from, host, token string
		want                    int
		says                    string
	}{
		{"/light", away, "any.example", "", 401, ""},
		{"/light", away, "any.example", "sender", 403, "token sender may read no service"},
		{"/light", away, "any.example", "reader", 200, "answer for reader"},
		{"/light", "127.0.0.1:1", "localhost", "", 401, ""},
		{"/ingest", away, "any.example", "", 200, "answer for nobody"},
		{"/ready", away, "any.example", "", 200, ""},
		{"/metrics", away, "any.example", "reader", 403, "token reader has not the role operator"},
		{"/metrics", away, "any.example", "watch", 200, "answer for watch"},
		{"/metrics", "127.0.0.1:1", "localhost", "", 200, "answer for nobody"},
		{"/metrics", "127.0.0.1:1", "evil.example", "", 401, ""}, // a page with a name that was turned to this host
		{"/here", away, "any.example", "watch", 403, "/here is answered on the host itself only"},
		{"/here", "127.0.0.1:1", "evil.example", "watch", 421, ""},
		{"/here", "127.0.0.1:1", "localhost", "", 200, ""},
	} {
		r := httptest.NewRequest("GET", c.path, nil)
		r.RemoteAddr, r.Host = c.from, c.host
		if c.token != "" {
			r.Header.Set("Authorization", strings.TrimPrefix(bearer(c.token), "Authorization: "))
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
		if challenged := len(w.Header().Values("WWW-Authenticate")) == 2; challenged != (c.want == 401) {
			t.Errorf("%+v: the answer names credentials: %v", c, challenged)
		}
	}
	read := count.Read(reg.Page())
	for code, want := range map[string]float64{"missing": 3, "forbidden": 2, "host": 1, "origin": 0, "limit": 0} {
		if got, ok := read[`test_refused_total{reason="`+code+`"}`]; got != want || !ok {
			t.Errorf("%s: %v, %v", code, got, ok)
		}
	}
	if text := log.String(); !strings.Contains(text, `"reason":"host","host":"evil.example"`) || strings.Contains(text, "s3cret") {
		t.Errorf("the log:\n%s", text)
	}
}

// A request with records passes the door of an ingester without memory of its own.
func TestNoMemory(t *testing.T) {
	g := door.New(door.Options{})
	h := g.Wrap(func(string) door.Kind { return door.Asks }, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest("POST", "http://127.0.0.1:8514/ingest/web", nil)
	w := httptest.NewRecorder()
	if n := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Metrics are compressed for clients that take that.
func TestGzip(t *testing.T) {
	h := door.Gzip(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", count.ContentType)
		_, _ = io.WriteString(w, strings.Repeat("x 1\n", 1000))
	}))
	for accept, want := range map[string]string{"": "", "gzip": "gzip", "gzip;q=0": "", "deflate, gzip;q=0.5": "gzip"} {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding"); got != want || (w.Body.Len() < 4000) != (want == "gzip") || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: %q, %d bytes", accept, got, w.Body.Len())
		}
	}
}
