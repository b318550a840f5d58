package meter_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit/meter"
)

func TestChain(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	for _, c := range []struct {
		spans [][2]int
		want  int
	}{
		{nil, 0},
		{[][2]int{{0, 30}}, 1},
		{[][2]int{{0, 30}, {31, 60}, {61, 90}}, 3},
		{[][2]int{{61, 90}, {0, 30}, {31, 60}}, 3},           // in any order
		{[][2]int{{0, 30}, {1, 31}, {2, 32}}, 1},             // all at once
		{[][2]int{{0, 100}, {0, 30}, {31, 60}, {61, 99}}, 3}, // a long one beside three
		{[][2]int{{0, 30}, {0, 40}, {35, 70}, {41, 60}, {61, 80}}, 3},
		{[][2]int{{0, 30}, {30, 60}}, 1}, // it had not ended before
	} {
		var requests []meter.Request
		for _, s := range c.spans {
			requests = append(requests, meter.Request{Begun: at(s[0]), Ended: at(s[1])})
		}
		if got := meter.Chain(requests); got != c.want {
			t.Errorf("%v: %d, not %d", c.spans, got, c.want)
		}
	}
}

// A client's requests, one after another and some at once, come through with their bodies,
// and are recorded.
func TestProxy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL, r.Host, body)
	}))
	defer server.Close()
	p, err := meter.New(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	post := func(path string) {
		resp, err := http.Post("http://"+p.Address()+path, "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if want := fmt.Sprintf("POST %s %s hello", path, p.Address()); err != nil || string(got) != want {
			t.Errorf("%q, %v, not %q", got, err, want)
		}
	}
	const delay = 20 * time.Millisecond
	p.Delay(delay)
	for range 4 {
		post("/a?b=%20c")
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { post("/at/once") })
	}
	all.Wait()
	seen := p.Take()
	if len(seen) != 7 || seen[0].String() != "POST /a?b= c" {
		t.Errorf("recorded %v", seen)
	}
	// On a busy machine those at once may be so late that some are one after another.
	if n := meter.Chain(seen); n < 5 || n > 7 {
		t.Errorf("a chain of %d", n)
	}
	for _, r := range seen {
		if r.Ended.Sub(r.Begun) < delay || r.Bytes < int64(len("POST /a hello")) {
			t.Errorf("%v took %v for %d bytes", r, r.Ended.Sub(r.Begun), r.Bytes)
		}
	}
	if again := p.Take(); len(again) != 0 {
		t.Errorf("recorded twice: %v", again)
	}
}
