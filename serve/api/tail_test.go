package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/form"
	"blobtail/reading/readingtest"
)

// source is a client of a tail, as EventSource in a browser is one: it connects again with its
// last id.
type source struct {
	t    testing.TB
	path string

	mu      sync.Mutex
	records []form.Record
	since   map[string]bool // the ids of records that came behind the last cursor
	again   int             // records that came again, and were dropped
	others  []form.Event
	last    string
	beats   int
	cancel  context.CancelFunc
	ended   chan struct{}
}

func (s *server) tail(path string) *source {
	src := &source{t: s.t, path: path, since: map[string]bool{}}
	src.connect(s)
	return src
}

// connect opens the stream, and reads it in the background.
func (src *source) connect(s *server) {
	src.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := s.request(http.MethodGet, src.path).WithContext(ctx)
	if src.last != "" {
		r.Header.Set("Last-Event-ID", src.last)
	}
	resp, err := s.http.Client().Transport.RoundTrip(r)
	if err != nil {
		src.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != form.SSE || resp.Header.Get("X-Accel-Buffering") != "no" {
		src.t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	src.cancel, src.ended = cancel, make(chan struct{})
	go func() {
		defer close(src.ended)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 10<<20)
		for lines.Scan() {
			src.take(lines.Text())
		}
	}()
}

func (src *source) take(line string) {
	src.mu.Lock()
	defer src.mu.Unlock()
	name, value, _ := strings.Cut(line, ": ")
	switch name {
	case ":":
		src.beats++
	case "id":
		src.last = value
		clear(src.since)
	case "data":
		var e form.Event
		doc, err := described()
		if err == nil && (len(src.records) < 5 || !strings.HasPrefix(value, `{"record"`)) {
			err = checkEvent(doc, value)
		}
		if err := errors.Join(err, json.Unmarshal([]byte(value), &e)); err != nil {
			src.t.Errorf("%v: %s", err, line)
		}
		switch {
		case e.Record == nil:
			src.others = append(src.others, e)
		case src.since[e.Record.ID]:
			src.again++
		default:
			src.since[e.Record.ID] = true
			src.records = append(src.records, *e.Record)
		}
	}
}

func (src *source) close() {
	src.cancel()
	<-src.ended
}

func (src *source) messages() (all []string) {
	src.mu.Lock()
	defer src.mu.Unlock()
	for _, r := range src.records {
		var line struct{ Msg string }
		if err := json.Unmarshal(r.Line, &line); err != nil {
			src.t.Error(err)
		}
		all = append(all, line.Msg)
	}
	return all
}

// A tail begins with the newest records and goes on with new ones.
func TestTail(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 50)
	h.Flush()
	s := serve(t, h)
	src := s.tail("tail?service=web&n=3&level=info")
	testkit.Until(t, "the newest come", func() bool { return len(src.messages()) == 3 })
	h.Send(0, readingtest.Line{Service: "web", Msg: "new"}, readingtest.Line{Service: "web", Msg: "bad", Level: "error"}, readingtest.Line{Service: "orders", Msg: "other"})
	testkit.Until(t, "the new one comes", func() bool { return len(src.messages()) == 4 })
	if got := src.messages(); !slices.Equal(got, []string{"web 46", "web 47", "web 48", "new"}) {
		t.Errorf("%q", got)
	}
	testkit.Until(t, "a cursor comes", func() bool { src.mu.Lock(); defer src.mu.Unlock(); return src.last != "" })
	src.close()
	for path, want := range map[string]string{
		"tail?service=wbe&once=1": "is it web?", "tail?service=web&after=x": "is no cursor", "tail?service=web&to=now": "no parameter",
		"tail?service=web&live=off": "leave it out", "tail?service=web&n=-1": "n=-1", "tail": "which service",
	} {
		if a := s.get(path); a.status/100 != 4 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// A client that connects again, to a server that was ended or cut off, or while an ingester was
// away, has each record once.
func TestTailOverRestarts(t *testing.T) {
	h := readingtest.New(t, 2)
	fill(h, 0, "web", then, 3)
	s := serve(t, h)
	src := s.tail("tail?service=web&n=0")
	testkit.Until(t, "it has begun", func() bool { src.mu.Lock(); defer src.mu.Unlock(); return src.last != "" })
	stop, sending := make(chan struct{}), sync.WaitGroup{}
	var mu sync.Mutex
	want := map[string]int{}
	h0 := sync.Mutex{} // of ingester 1, which is killed
	for in := range 2 {
		sending.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond):
				}
				msg := string(rune('a'+in)) + "-" + time.Now().Format("05.000000000")
				h0.Lock()
				h.Send(in, readingtest.Line{Service: "web", Msg: msg}, readingtest.Line{Service: "web", Msg: msg + "+", Time: time.Now().Add(-time.Duration(i%300) * time.Millisecond)})
				h0.Unlock()
				mu.Lock()
				want[msg]++
				want[msg+"+"]++
				mu.Unlock()
			}
		})
	}
	for round := range 4 {
		time.Sleep(time.Duration(300+171*round) * time.Millisecond)
		switch round {
		case 0: // the connection breaks
			src.close()
		case 1: // the server ends
			s.stop()
			<-src.ended
			s = serve(t, h)
		case 2:
			h0.Lock()
			h.Kill(1)
			h.Start(1)
			h0.Unlock()
			continue
		case 3:
			h.Flush()
			continue
		}
		src.connect(s)
	}
	close(stop)
	sending.Wait()
	testkit.Until(t, "all records come", func() bool { return len(src.messages()) >= len(want) })
	time.Sleep(time.Second)
	src.close()
	got := map[string]int{}
	for _, msg := range src.messages() {
		got[msg]++
	}
	missing, twice := 0, 0
	for msg := range want {
		if got[msg] == 0 {
			missing++
		}
		if got[msg] > 1 {
			twice++
		}
	}
	if missing > 0 || twice > 0 || len(got) != len(want) {
		t.Errorf("of %d records %d are missing, %d came twice, %d in all; others %+v", len(want), missing, twice, len(got), src.others)
	}
	t.Logf("%d records, %d came again and were dropped", len(want), src.again)
}

// A tail with a mistake in its filter is refused before it begins, and so is a selector that chooses
// no service that the client may read.
func TestTailWithMistakes(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 5)
	s := serve(t, h, "web")
	for query, status := range map[string]int{
		"service=web&where=status+%3E":                    http.StatusBadRequest,
		"service=web&expr=(":                              http.StatusBadRequest,
		"logql=%7B":                                       http.StatusBadRequest,
		"service=web&level=no":                            http.StatusBadRequest,
		"service=hidden":                                  http.StatusNotFound,
		"logql=%7Bservice%3D%22hidden%22%7D":              http.StatusNotFound,
		"logql=%7Bservice%3D%22%22%7D":                    http.StatusNotFound,
		"once=1&logql=%7Bservice%3D~%22hid.*%22%7D":       http.StatusNotFound,
		"once=1&service=web&logql=%7Bservice%3D%22%22%7D": http.StatusBadRequest,
	} {
		if a := s.get("tail?" + query); a.status != status || a.header.Get("Content-Type") != form.Trouble {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}
