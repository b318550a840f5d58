package httpsource_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/count"
	"blobtail/source/httpsource"
)

// A stalled is a request with a body that the test sends when it chooses.
type stalled struct {
	body  *io.PipeWriter
	reply chan reply
}

// stall begins a request that declares n bytes, sends blank lines and a record,
// and returns when they were read.
func stall(t *testing.T, h http.Handler, n int64, blank int) *stalled {
	t.Helper()
	pr, pw := io.Pipe()
	r := httptest.NewRequest(http.MethodPost, "/ingest/web", pr)
	r.ContentLength = n
	s := &stalled{body: pw, reply: make(chan reply, 1)}
	go func() { s.reply <- serve(t, h, r) }()
	if _, err := io.WriteString(pw, strings.Repeat("\n", blank)+"{}\n"); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFullMemory(t *testing.T) {
	s := newSource(&memory{}, func(o *httpsource.Options) { o.MaxInFlight = 1 << 20 })
	first := stall(t, s, 1<<20, 900<<10) // alone it may have more than its share
	large := strings.Repeat("\n", 65<<10) + "{}"
	a := send(t, s, "/ingest/web", large)
	wantStatus(t, a, 429, "in flight")
	if a.RetryAfter != "1" && a.RetryAfter != "2" {
		t.Errorf("Retry-After %q", a.RetryAfter)
	}
	first.body.Close()
	if a := <-first.reply; a.Accepted != 1 {
		t.Errorf("%+v", a)
	}
	if a := send(t, s, "/ingest/web", large); a.Status != 200 {
		t.Errorf("after it is free again: %+v", a)
	}
}

// Small bodies are taken from a part of their own, whatever large ones hold: with and without a
// length, compressed, and with many records.
func TestSmallBesideLarge(t *testing.T) {
	reg := new(count.Registry)
	s := newSource(&memory{}, func(o *httpsource.Options) { o.MaxInFlight, o.Patience, o.Metrics = 32<<20, time.Hour, reg })
	first := stall(t, s, 60<<20, 33<<20)
	for _, body := range []string{"{}", strings.Repeat(`{"msg":"a record of some words"}`+"\n", 1900), strings.Repeat("a\n", 16<<10)} {
		for _, form := range []string{"", "gzip"} {
			for _, chunked := range []bool{false, true} {
				sent, header := body, []string{"Content-Type", text}
				if form != "" {
					sent, header = compress(t, form, body), append(header, "Content-Encoding", form)
				}
				r := httptest.NewRequest(http.MethodPost, "/ingest/web", strings.NewReader(sent))
				if chunked {
					r.ContentLength = -1
				}
				if a := serve(t, s, r, header...); a.Status != 200 {
					t.Errorf("%d bytes, %q, chunked %v: %+v", len(body), form, chunked, a)
				}
			}
		}
	}
	first.body.Close()
	<-first.reply
	if n := inFlight(t, reg); n != 0 {
		t.Errorf("%v bytes stay in flight", n)
	}
}

// Bodies that outgrow the part for small ones wait for room among the large ones, but do not fill that
// part: small ones go on.
func TestOutgrown(t *testing.T) { synctest.Test(t, testOutgrown) }

func testOutgrown(t *testing.T) {
	reg := new(count.Registry)
	s := newSource(&memory{}, func(o *httpsource.Options) { o.MaxInFlight, o.Patience, o.Metrics = 8<<20, time.Minute, reg })
	first := stall(t, s, 60<<20, 9<<20)
	large := strings.Repeat("\n", 100<<10) + "{}"
	const n = 100
	replies := make(chan reply, n)
	for i := range n {
		sent, header := large, []string{}
		if i%2 == 0 {
			sent, header = compress(t, "gzip", large), []string{"Content-Encoding", "gzip"}
		}
		r := httptest.NewRequest(http.MethodPost, "/ingest/web", strings.NewReader(sent))
		r.ContentLength = -1
		go func() { replies <- serve(t, s, r, header...) }()
	}
	synctest.Wait()
	refused := len(replies)
	for range refused {
		wantStatus(t, <-replies, 429, "in flight")
	}
	if refused == n || refused == 0 {
		t.Errorf("%d of %d do not wait", refused, n)
	}
	if a := send(t, s, "/ingest/web", "{}"); a.Status != 200 {
		t.Errorf("a small one beside those that wait: %+v", a)
	}
	first.body.Close()
	<-first.reply
	for range n - refused {
		if a := <-replies; a.Accepted != 1 {
			t.Errorf("%+v", a)
		}
	}
	if n := inFlight(t, reg); n != 0 {
		t.Errorf("%v bytes stay in flight", n)
	}
}

// Waiting requests are admitted when there is room.
func TestWaitForMemory(t *testing.T) { synctest.Test(t, testWaitForMemory) }

func testWaitForMemory(t *testing.T) {
	s := newSource(&memory{}, func(o *httpsource.Options) { o.MaxInFlight, o.Patience = 1<<20, time.Minute })
	first := stall(t, s, 1<<20, 900<<10)
	replies := make(chan reply, 5)
	for range 5 {
		go func() { replies <- send(t, s, "/ingest/web", strings.Repeat("\n", 65<<10)+"{}") }()
	}
	synctest.Wait() // all of them wait
	if len(replies) > 0 {
		t.Errorf("%+v", <-replies)
	}
	first.body.Close()
	for range 5 {
		if a := <-replies; a.Accepted != 1 {
			t.Errorf("%+v", a)
		}
	}
}

// A request that grows beyond the rest of the budget is refused at once; the others
// go on.
func TestGrowingMemory(t *testing.T) {
	m := &memory{}
	s := newSource(m, func(o *httpsource.Options) { o.MaxInFlight, o.Patience = 1<<20, time.Minute })
	small := stall(t, s, -1, 0)
	large := strings.Repeat("\n", 2<<20) + "{}"
	r := httptest.NewRequest(http.MethodPost, "/ingest/web", strings.NewReader(large))
	r.ContentLength = -1
	wantStatus(t, serve(t, s, r), 429, "in flight")
	if m.calls != 0 {
		t.Error("something of it was appended")
	}
	small.body.Close()
	if a := <-small.reply; a.Accepted != 1 {
		t.Errorf("%+v", a)
	}
	// Alone, a request may grow to its own limits.
	if a := send(t, s, "/ingest/web", large); a.Accepted != 1 {
		t.Errorf("alone: %d, %s", a.Status, a.Error)
	}
}

// A long body is counted as it arrives, not as it is announced.
func TestAnnouncedIsNotHeld(t *testing.T) {
	s := newSource(&memory{}, func(o *httpsource.Options) { o.MaxInFlight = 8 << 20 })
	var open []*stalled
	for range 5 {
		open = append(open, stall(t, s, 64<<20, 10<<10))
	}
	if a := send(t, s, "/ingest/web", "{}"); a.Accepted != 1 {
		t.Errorf("%+v", a)
	}
	for _, o := range open {
		o.body.Close()
		<-o.reply
	}
}

// Retry-After grows while nothing can be accepted, up to half a minute.
func TestRetryAfter(t *testing.T) {
	s := newSource(&memory{}, func(o *httpsource.Options) { o.Ready = func() error { return io.EOF } })
	for range 50 {
		if a := send(t, s, "/ingest/web", "{}"); a.RetryAfter != "1" && a.RetryAfter != "2" {
			t.Fatalf("Retry-After %q", a.RetryAfter)
		}
	}
}
