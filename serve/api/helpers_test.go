package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
	"blobtail/internal/door"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/reading/readingtest"
	"blobtail/serve/api"
)

// then is the time of the first record of most tests.
var then = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// server is a server over a house, behind its doors.
type server struct {
	t      testing.TB
	h      *readingtest.House
	url    string
	secret string // id.secret; "": none is sent
	http   *httptest.Server
	reads  *door.Reads
}

// serve starts a server for clients with a token that may read some services; none: they need no
// token.
func serve(t testing.TB, h *readingtest.House, read ...string) *server {
	t.Helper()
	return serveWith(t, h, 0, read...)
}

// serveWith is serve with a limit of bytes.
func serveWith(t testing.TB, h *readingtest.House, most int64, read ...string) *server {
	t.Helper()
	return serveWithin(t, h, most, door.ReadsOptions{}, read...)
}

// serveWithin is serveWith with doors of its own.
func serveWithin(t testing.TB, h *readingtest.House, most int64, o door.ReadsOptions, read ...string) *server {
	t.Helper()
	return serveForms(t, h, "", most, o, read...)
}

// serveForms is serveWithin with the forms of questions that name none.
func serveForms(t testing.TB, h *readingtest.House, forms string, most int64, o door.ReadsOptions, read ...string) *server {
	t.Helper()
	s := &server{t: t, h: h}
	o.Log, o.Route = zerolog.Nop(), func(path string) door.Route {
		if strings.HasSuffix(path, "/tail") {
			return door.Route{Name: "tail", Kind: door.Tail}
		}
		return door.Route{Name: "query", Kind: door.Query}
	}
	guard := door.Options{Form: func(w http.ResponseWriter, _ *http.Request, f *door.Refusal) { api.Refuse(w, f) }}
	if len(read) > 0 {
		guard.Tokens, s.secret = tokens(t, read)
	}
	o.Guard = door.New(guard)
	s.reads = door.NewReads(o)
	var reader *reading.Reader
	if h != nil {
		reader = h.ReaderWith(reading.Options{MaxRaw: most})
	}
	s.http = httptest.NewUnstartedServer(s.reads.Wrap(api.New(api.Options{
		Reader: reader, Version: "v1.2.3", Forms: forms,
	})))
	s.http.EnableHTTP2 = true
	s.http.Start()
	t.Cleanup(s.stop)
	s.url = s.http.URL + api.Prefix
	return s
}

// stop ends the server, as serve ends it.
func (s *server) stop() {
	s.reads.DropTails()
	s.http.Close()
}

// tokens returns the tokens of a file with one, and the text that its client sends.
func tokens(t testing.TB, read []string) (*access.Tokens, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	secret, hash := access.NewSecret()
	if _, err := access.Add(file, access.Entry{ID: "reader", Hash: hash, Read: read}); err != nil {
		t.Fatal(err)
	}
	all, err := access.Open(file, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return all, "reader." + secret
}

// answer is the answer to a request, read to its end.
type answer struct {
	status  int
	header  http.Header
	trailer http.Header
	body    string
	err     error // of reading the body
}

// get sends a GET for a path below the prefix.
func (s *server) get(path string, header ...string) answer {
	s.t.Helper()
	return s.do(http.MethodGet, path, header...)
}

// request makes a request for a path below the prefix.
func (s *server) request(method, path string, header ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.secret != "" {
		r.Header.Set("Authorization", "Bearer "+s.secret)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// do sends a request and reads the answer to its end.
func (s *server) do(method, path string, header ...string) answer {
	s.t.Helper()
	r := s.request(method, path, header...)
	resp, err := s.http.Client().Transport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	a := answer{resp.StatusCode, resp.Header, resp.Trailer, string(body), err}
	check(s.t, r, &a)
	return a
}

// object decodes the answer to a request, which must have a status of 200.
func object[T any](s *server, path string) (v T) {
	s.t.Helper()
	a := s.get(path)
	if a.status != http.StatusOK || a.header.Get("Content-Type") != form.JSON {
		s.t.Fatalf("%s: %d %s", path, a.status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		s.t.Fatalf("%s: %v: %s", path, err, a.body)
	}
	return v
}

// events decodes a stream of events.
func (s *server) events(path string) (all []form.Event) {
	s.t.Helper()
	a := s.get(path)
	if a.status != http.StatusOK || a.err != nil {
		s.t.Fatalf("%s: %d %v %s", path, a.status, a.err, a.body)
	}
	for line := range strings.Lines(a.body) {
		var e form.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatalf("%s: %v: %s", path, err, line)
		}
		all = append(all, e)
	}
	return all
}

// fill sends n records of a service, a second apart. Each tenth is an error.
func fill(h *readingtest.House, ingester int, service string, from time.Time, n int) {
	var lines []readingtest.Line
	for i := range n {
		l := readingtest.Line{Time: from.Add(time.Duration(i) * time.Second), Service: service, Msg: fmt.Sprintf("%s %d", service, i), Fields: fmt.Sprintf(`"status":%d,"path":"/p%d"`, 200+i%3, i%7)}
		if i%10 == 9 {
			l.Level = "error"
		}
		lines = append(lines, l)
	}
	h.Send(ingester, lines...)
}

// secure serves the handler of a server with TLS and HTTP/2.
func secure(s *server) *httptest.Server {
	next := httptest.NewUnstartedServer(s.http.Config.Handler)
	next.EnableHTTP2 = true
	next.StartTLS()
	s.t.Cleanup(next.Close)
	return next
}
