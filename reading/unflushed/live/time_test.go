package live_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
)

// network joins hosts by pipes, which take part in virtual time.
type network map[string]*testkit.Pipes

func (n network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	if n[host] == nil {
		return nil, syscall.ECONNREFUSED
	}
	return n[host].Dial(ctx, "", "")
}

func (n network) http(t *testing.T) *http.Client {
	c := &http.Client{Transport: &http.Transport{DialContext: n.dial}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// serve runs a handler at http://host/.
func (n network) serve(t *testing.T, host string, h http.Handler) {
	mux := http.NewServeMux()
	mux.Handle(live.Pattern, h)
	accept := testkit.NewPipes(nil)
	n[host] = accept
	s := &http.Server{Handler: mux}
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(accept) }()
	t.Cleanup(func() { s.Close(); <-done })
}

func (n network) ingester(t *testing.T, id string, peers ...lease.Ingester) *ingester {
	i := &ingester{id: id, log: &journal{}}
	i.h = live.NewHandler(live.Options{
		Self: selfOf(id), Journal: i.log, HTTP: n.http(t), Peers: roll(peers, nil),
	})
	n.serve(t, id, i.h)
	return i
}

func (n network) ask(t *testing.T, host string) (*live.Answer, error) {
	return n.askFor(t, host, all("web"))
}

func (n network) askFor(t *testing.T, host string, q live.Query) (*live.Answer, error) {
	c, err := live.NewClient("http://"+host, live.ClientOptions{HTTP: n.http(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c.Ask(t.Context(), q)
}

// hangs sends a text and then nothing until its reader goes. It answers pings if it is alive, and no
// other request may come on the connection of one.
func hangs(header bool, text string, alive bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && alive && r.Close {
			return
		}
		if header && r.Method == http.MethodGet {
			script("bbbbbbbb", text).ServeHTTP(w, r)
			http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	})
}

// An ingester that hangs costs its own records and a bounded time.
func TestHangs(t *testing.T) {
	one := entry(1, 2, 0, "web")
	for _, c := range []struct {
		name    string
		peer    lease.Ingester
		h       http.Handler
		header  time.Duration // until the header of the merged answer
		end     time.Duration // from there to its end
		records int
		reason  string
	}{
		{"before the header", lease.Ingester{}, hangs(false, "", false), 2 * time.Second, 0, 1, "no answer in time, nor another sign of life"},
		{"before the header, silent", lease.Ingester{At: silent, Oldest: time.Unix(0, start)}, hangs(false, "", false), time.Second, 0, 1, "no answer in time"},
		{"behind the header", lease.Ingester{}, hangs(true, "", false), 0, 2 * time.Second, 1, "it sends nothing any more, and gives no other sign of life"},
		{"in the middle", lease.Ingester{}, hangs(true, wire(one), false), 0, 2 * time.Second, 2, "it sends nothing any more, and gives no other sign of life"},
		{"in a line", lease.Ingester{}, hangs(true, wire(one)+"0000", false), 0, 2 * time.Second, 2, "it sends nothing any more, and gives no other sign of life"},
		{"slow before the header", lease.Ingester{}, hangs(false, "", true), 10 * time.Second, 0, 1, "no answer in time"},
		{"slow, silent", lease.Ingester{At: silent, Oldest: time.Unix(0, start)}, hangs(false, "", true), time.Second, 0, 1, "no answer in time"},
		{"slow behind the header", lease.Ingester{}, hangs(true, "", true), 0, 30 * time.Second, 1, "it sends nothing any more for 30s"},
		{"slow in the middle", lease.Ingester{}, hangs(true, wire(one), true), 0, 30 * time.Second, 2, "it sends nothing any more for 30s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := network{}
				n.serve(t, "bbbbbbbb", c.h)
				c.peer.ID, c.peer.Address = "bbbbbbbb", "http://bbbbbbbb"
				c.peer = peer(c.peer)
				a := n.ingester(t, "aaaaaaaa", c.peer)
				a.log.add(entry(2, 1, 0, "web"))
				begun := time.Now()
				answer, err := n.ask(t, "aaaaaaaa")
				if err != nil || time.Since(begun) != c.header {
					t.Fatalf("the header took %v: %v", time.Since(begun), err)
				}
				defer answer.Close()
				begun = time.Now()
				got, err := rest(answer)
				if m := incomplete(t, err, 1, 0); len(got) != c.records || time.Since(begun) != c.end || !strings.Contains(m.Reason, c.reason) {
					t.Errorf("after %v: %d records, %+v", time.Since(begun), len(got), m)
				}
			})
		})
	}
}

// Several ingesters that hang cost no more than one.
func TestHangTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{}
		n.serve(t, "bbbbbbbb", hangs(true, "", false))
		n.serve(t, "cccccccc", hangs(false, "", false))
		n.serve(t, "dddddddd", hangs(false, "", false))
		n.ingester(t, "aaaaaaaa", peer(lease.Ingester{ID: "bbbbbbbb", Address: "http://bbbbbbbb"}),
			peer(lease.Ingester{ID: "cccccccc", Address: "http://cccccccc"}), peer(lease.Ingester{ID: "dddddddd", Address: "http://dddddddd"}))
		begun := time.Now()
		answer, err := n.ask(t, "aaaaaaaa")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Close()
		if _, err = rest(answer); time.Since(begun) != 4*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// A reader does not wait forever for its ingester, nor does the ingester for its log.
func TestReaderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{}
		n.serve(t, "bbbbbbbb", hangs(false, "", false))
		begun := time.Now()
		_, err := n.ask(t, "bbbbbbbb")
		var gone *live.NoAnswerError
		if !errors.As(err, &gone) || gone.Status != 0 || time.Since(begun) != 15*time.Second || !strings.Contains(err.Error(), "no answer in time") {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		n.serve(t, "cccccccc", hangs(true, "", false))
		answer, err := n.ask(t, "cccccccc")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Close()
		begun = time.Now()
		_, err = answer.Next()
		var cut *live.CutError
		if !errors.As(err, &cut) || time.Since(begun) != 45*time.Second || !strings.Contains(err.Error(), "sends nothing any more for 45s") {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		// The log of a start is being read.
		h := live.NewHandler(live.Options{Self: selfOf("aaaaaaaa"), Journal: starting{}})
		n.serve(t, "aaaaaaaa", h)
		begun = time.Now()
		_, err = n.ask(t, "aaaaaaaa")
		var refused *live.NoAnswerError
		if !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable || time.Since(begun) != 10*time.Second ||
			!strings.Contains(err.Error(), "the log cannot be read yet") {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

type starting struct{}

func (starting) Open(ctx context.Context, _ live.LogQuery) (live.Held, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// raw sends a question by hand and returns the connection behind the header of
// the answer.
func (n network) raw(t *testing.T, host, target string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := n.dial(t.Context(), "tcp", host+":80")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	r := bufio.NewReader(c)
	n.again(t, c, r, target)
	return c, r
}

func (n network) again(t *testing.T, c net.Conn, r *bufio.Reader, target string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", target); err != nil {
		t.Fatal(err)
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "\r\n" {
			return
		}
	}
}

// A reader that reads nothing for 20 s releases the log. Another ingester is given
// longer, because its reader may be slow. A reader that reads a little now and then is
// cut off too. A slow and steady one is not.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{}
		a := n.ingester(t, "aaaaaaaa")
		for i := range 20_000 {
			a.log.add(entry(i, 1, 0, "web"))
		}
		for _, c := range []struct {
			target string
			after  time.Duration
		}{{"/live/web", 20 * time.Second}, {"/live/web?peers=no", 10 * time.Minute}} {
			_, r := n.raw(t, "aaaaaaaa", c.target)
			time.Sleep(c.after - time.Second)
			if synctest.Wait(); a.log.held.Load() != 1 {
				t.Error("cut off too early")
			}
			if _, err := r.Discard(1000); err != nil { // the bytes in the buffers
				t.Error(err)
			}
			time.Sleep(2 * time.Second)
			if synctest.Wait(); a.log.held.Load() != 0 {
				t.Error("the log is held for a reader that takes nothing")
			}
			if all, _ := io.ReadAll(r); strings.Contains(string(all), "end ") {
				t.Error("it has the end")
			}
		}
		for _, c := range []struct {
			pause time.Duration // after each 64 KiB
			whole bool
		}{{200 * time.Millisecond, true}, {10 * time.Second, false}} {
			_, r := n.raw(t, "aaaaaaaa", "/live/web")
			end, err := "", error(nil)
			for part, got := make([]byte, 4<<10), 0; err == nil && !strings.HasSuffix(end, "end 20000 0 0\n\r\n0\r\n\r\n"); {
				var m int
				m, err = r.Read(part)
				end = (end + string(part[:m]))[max(0, len(end)+m-100):]
				if got += m; got > 64<<10 {
					got = 0
					time.Sleep(c.pause)
				}
			}
			if (err == nil) != c.whole {
				t.Errorf("with pauses of %v: %v", c.pause, err)
			}
		}
	})
}

// The connection stays good for a question minutes later.
func TestConnectionStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{}
		n.ingester(t, "aaaaaaaa")
		c, r := n.raw(t, "aaaaaaaa", "/live/web")
		for range 3 {
			body := make([]byte, len("a\r\nend 0 0 0\n\r\n0\r\n\r\n"))
			if _, err := io.ReadFull(r, body); err != nil || !strings.Contains(string(body), "end 0 0 0") {
				t.Fatalf("%q, %v", body, err)
			}
			time.Sleep(5 * time.Minute)
			n.again(t, c, r, "/live/web")
		}
	})
}

// A reader that goes releases the log, and the answers of the peers.
func TestReaderGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{}
		b := n.ingester(t, "bbbbbbbb")
		a := n.ingester(t, "aaaaaaaa", peer(lease.Ingester{ID: "bbbbbbbb", Address: "http://bbbbbbbb"}))
		for i := range 20_000 {
			a.log.add(entry(i, 1, 0, "web"))
			b.log.add(entry(i, 2, 0, "web"))
		}
		answer, err := n.ask(t, "aaaaaaaa")
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := answer.Next(); err != nil {
				t.Fatal(err)
			}
		}
		if a.log.held.Load() != 1 || b.log.held.Load() != 1 {
			t.Error("the logs are not held")
		}
		answer.Close()
		if _, err := answer.Next(); err == nil {
			t.Error("there is more behind Close")
		}
		if synctest.Wait(); a.log.held.Load() != 0 || b.log.held.Load() != 0 {
			t.Error("the logs are held for nobody")
		}
	})
}

// The number of answers at once is bounded, and readers do not keep other ingesters
// away. Stop ends all answers.
func TestBoundAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{}
		log := &journal{pause: make(chan struct{})}
		log.add(entry(1, 1, 0, "web"), entry(2, 1, 1, "web"))
		h := live.NewHandler(live.Options{Self: selfOf("aaaaaaaa"), Journal: log})
		n.serve(t, "aaaaaaaa", h)
		var answers []*live.Answer
		for range 64 {
			a, err := n.ask(t, "aaaaaaaa")
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			answers = append(answers, a)
		}
		resp, err := n.http(t).Get("http://aaaaaaaa/live/web")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || !strings.Contains(string(text), "64 answers are under way") {
			t.Errorf("%s %s", resp.Status, text)
		}
		n.raw(t, "aaaaaaaa", "/live/web?peers=no")
		stuck := n.ingester(t, "bbbbbbbb")
		for i := range 20_000 {
			stuck.log.add(entry(i, 1, 0, "web"))
		}
		n.raw(t, "bbbbbbbb", "/live/web")
		time.Sleep(time.Second)
		stuck.h.Stop()
		if synctest.Wait(); stuck.log.held.Load() != 0 {
			t.Error("a reader that takes nothing holds up the end")
		}
		h.Stop()
		for _, a := range answers {
			got, err := rest(a)
			var cut *live.CutError
			if !errors.As(err, &cut) || len(got) > 1 {
				t.Errorf("%d records, %v", len(got), err)
			}
		}
		if synctest.Wait(); log.held.Load() != 0 {
			t.Error("the log is held after Stop")
		}
		var refused *live.NoAnswerError
		if _, err := n.ask(t, "aaaaaaaa"); !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable || !strings.Contains(err.Error(), "this ingester stops") {
			t.Errorf("after Stop: %v", err)
		}
	})
}
