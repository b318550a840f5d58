package readapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"blobtail/internal/access"
	"blobtail/internal/heartbeat"
	"blobtail/readapi"
	"blobtail/readapi/form"
	"blobtail/reading/readingtest"
)

// then is the time of the first record of most tests.
var then = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// server is a server over a house.
type server struct {
	t   testing.TB
	h   *readingtest.House
	url string
}

// serve starts a server for clients with a token; nil: they need none.
func serve(t testing.TB, h *readingtest.House, token *access.Token) *server {
	t.Helper()
	handler := readapi.New(readapi.Options{
		Reader: h.Reader(), Token: func(*http.Request) *access.Token { return token }, Version: "v1.2.3",
		Ingesters: func(ctx context.Context) ([]heartbeat.Ingester, time.Time, error, error) {
			rows, now, err := h.List(ctx)
			unread, err := heartbeat.Unread(err)
			return rows, now, unread, err
		},
	})
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return &server{t: t, h: h, url: s.URL + readapi.Prefix}
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
	r, err := http.NewRequest(http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, resp.Trailer, string(body), err}
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

// fill sends n records of a service, a second apart, of which each tenth is an error.
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
