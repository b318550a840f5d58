package testenv

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"blobtail/internal/dev/testkit"
)

// The emulator has a few requests at a time, and never gets one of a sender that left during the
// wait. A place is free again only when the emulator has answered.
func TestQueue(t *testing.T) {
	var got atomic.Int32
	answer := make(chan struct{})
	emulator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Add(1)
		<-answer
	}))
	defer emulator.Close()
	u, err := url.Parse(emulator.URL)
	if err != nil {
		t.Fatal(err)
	}
	q, inside := &queue{places: make(chan struct{}, atOnce)}, atomic.Int32{}
	forward := q.before(u.Port())
	before := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inside.Add(1)
		defer inside.Add(-1)
		forward.ServeHTTP(w, r)
	}))
	defer before.Close()
	release := sync.OnceFunc(func() { close(answer) })
	defer release() // before the servers close: they wait for their handlers
	var sending sync.WaitGroup
	put := func(ctx context.Context) {
		sending.Go(func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodPut, before.URL+"/blob", strings.NewReader("body"))
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := http.DefaultClient.Do(r)
			if err == nil {
				resp.Body.Close()
			}
			if (err != nil) != (ctx.Err() != nil) {
				t.Errorf("%v, and the sender: %v", err, ctx.Err())
			}
		})
	}
	left, leave := context.WithCancel(t.Context())
	for range atOnce / 2 {
		put(t.Context())
		put(left)
	}
	testkit.Until(t, "the emulator has all that it may have", func() bool { return got.Load() == atOnce })
	for range 5 * atOnce {
		put(left)
	}
	put(t.Context())
	testkit.Until(t, "the others wait", func() bool { return inside.Load() == 6*atOnce+1 })
	leave()
	testkit.Until(t, "only those are left that the emulator has, and one", func() bool { return inside.Load() == atOnce+1 })
	if n := got.Load(); n != atOnce {
		t.Errorf("%d requests at once", n)
	}
	release()
	sending.Wait()
	testkit.Until(t, "all places are free", func() bool { return len(q.places) == 0 })
	if n := got.Load(); n != atOnce+1 {
		t.Errorf("the emulator got %d requests, %d of them from senders that had left", n, n-atOnce-1)
	}
}

// Readers that stop in the middle of their answers, and senders that stop in the middle of
// their bodies, do not keep others from the emulator.
func TestQueuePassesStopped(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 16<<20) // more than the sockets take
	emulator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, _ = w.Write(large) // its reader may leave
		}
	}))
	defer emulator.Close()
	u, err := url.Parse(emulator.URL)
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{places: make(chan struct{}, atOnce)}
	before := httptest.NewServer(q.before(u.Port()))
	defer before.Close()
	client := &http.Client{Transport: &http.Transport{}}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for range atOnce {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, before.URL+"/large", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
	}
	body, sender := io.Pipe()
	defer sender.Close()
	for range atOnce {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, before.URL+"/blob", body)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if resp, err := client.Do(r); err == nil {
				resp.Body.Close()
			}
		}()
	}
	if _, err := sender.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, testkit.Patience)
	defer cancel()
	r, err := http.NewRequestWithContext(soon, http.MethodGet, before.URL+"/small", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatalf("another one gets no answer: %v", err)
	}
	resp.Body.Close()
}
