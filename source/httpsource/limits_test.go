package httpsource_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	a := send(t, s, "/ingest/web", "{}")
	wantStatus(t, a, 429, "in flight")
	if a.RetryAfter != "1" && a.RetryAfter != "2" {
		t.Errorf("Retry-After %q", a.RetryAfter)
	}
	first.body.Close()
	if a := <-first.reply; a.Accepted != 1 {
		t.Errorf("%+v", a)
	}
	if a := send(t, s, "/ingest/web", "{}"); a.Status != 200 {
		t.Errorf("after it is free again: %+v", a)
	}
}

// Waiting requests are admitted when there is room.
func TestWaitForMemory(t *testing.T) { synctest.Test(t, testWaitForMemory) }

func testWaitForMemory(t *testing.T) {
	s := newSource(&memory{}, func(o *httpsource.Options) { o.MaxInFlight, o.Patience = 1<<20, time.Minute })
	first := stall(t, s, 1<<20, 900<<10)
	replies := make(chan reply, 5)
	for range 5 {
		go func() { replies <- send(t, s, "/ingest/web", "{}") }()
	}
	synctest.Wait() // all of them wait
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
