package door_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/count"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/door"
)

// bubble is a server with doors in virtual time.
type bubble struct {
	t   *testing.T
	l   *testkit.Pipes
	log *journal
	reg *count.Registry
}

// inBubble serves in virtual time, to the holders of some tokens.
func inBubble(t *testing.T, reads door.ReadsOptions, tokens []string, h http.HandlerFunc, test func(b *bubble)) {
	for i, id := range tokens {
		tokens[i] = id + ` , read: ["*"]`
	}
	known, _ := tokensOf(t, tokens...)
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{t: t, l: testkit.NewPipes(nil), log: new(journal), reg: new(count.Registry)}
		log := zerolog.New(b.log)
		reads.Guard = door.New(door.Options{Tokens: known, AnyName: true, Log: log, Refused: door.NewRefused(b.reg, "blobtail_serve_refused_total", "Refusals.", "crowded")})
		reads.Route, reads.Metrics, reads.Log = routes, b.reg, log
		all := door.NewReads(reads)
		srv := all.NewServer(all.Wrap(h), log)
		var serving sync.WaitGroup
		serving.Go(func() { _ = srv.Serve(b.l) })
		test(b)
		srv.Close()
		serving.Wait()
	})
}

// send sends a request of the holder of a token, and reads nothing.
func (b *bubble) send(id, path string) net.Conn {
	ours, _ := b.l.Dial(context.Background(), "", "") // it listens
	fmt.Fprintf(ours, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", path, bearer(id))
	return ours
}

// ask returns the status and the body of an answer, which its client reads at once. The error says
// that it is not whole.
func (b *bubble) ask(id, path string) (status int, body string, err error) {
	return answerOf(b.send(id, path))
}

func answerOf(conn net.Conn) (status int, body string, err error) {
	defer conn.Close()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// lines are those of the log of queries that have all the parts.
func (b *bubble) lines(parts ...string) (n int) {
	synctest.Wait()
	for line := range strings.Lines(b.log.String()) {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			n++
		}
	}
	return n
}

// works is a handler: it works for the time in the query, and answers with so many bytes.
func works(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	d, _ := time.ParseDuration(q.Get("for"))
	select {
	case <-time.After(d):
	case <-r.Context().Done():
		http.Error(w, "interrupted", http.StatusInternalServerError)
		return
	}
	var n int
	_, _ = fmt.Sscan(q.Get("bytes"), &n)
	for n > 0 {
		m := min(n, 32<<10)
		if _, err := io.WriteString(w, strings.Repeat("x", m)); err != nil || r.Context().Err() != nil {
			panic(http.ErrAbortHandler)
		}
		n -= m
	}
}

// However many queries one client sends, another one has a place at once, and a third one too. Each
// has as many as are free, at most.
func TestPlacesGoByClient(t *testing.T) {
	inBubble(t, door.ReadsOptions{Queries: 8, Waiting: 8, Patience: time.Minute}, []string{"one", "two", "three"}, works, func(b *bubble) {
		var asking sync.WaitGroup
		refused := map[string]*atomic.Int64{"one": {}, "two": {}}
		for i, id := range []string{"one", "two"} {
			for range 20 {
				asking.Go(func() {
					if status, _, _ := b.ask(id, "/q?for=9s"); status == 429 {
						refused[id].Add(1)
					}
				})
			}
			time.Sleep(time.Second)
			if want := []string{"queries 4", "queries 6"}[i]; !strings.Contains(string(b.reg.Page()), want) {
				t.Errorf("with %d clients: no %s", i+1, want)
			}
		}
		begun := time.Now()
		if status, _, err := b.ask("three", "/q?for=1s"); status != 200 || time.Since(begun) != time.Second {
			t.Errorf("a third client: %d after %s, %v", status, time.Since(begun), err)
		}
		asking.Wait()
		// Of 20 each, 4 and 2 have places, 4 and 2 wait.
		if one, two := refused["one"].Load(), refused["two"].Load(); one != 12 || two != 16 {
			t.Errorf("%d and %d of 20 were refused", one, two)
		}
	})
}

// A free place goes to each client that waits in turn, and not to the one with the longest line.
func TestPlacesGoRound(t *testing.T) {
	inBubble(t, door.ReadsOptions{Queries: 1, Waiting: 64, Patience: time.Hour}, []string{"many", "few"}, works, func(b *bubble) {
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() { b.ask("many", "/q?for=1s") })
		}
		synctest.Wait()
		begun := time.Now()
		for range 3 {
			asking.Go(func() { b.ask("few", "/q?for=1s") })
		}
		for at := time.Second; at < 8*time.Second; at += time.Second {
			time.Sleep(time.Until(begun.Add(at + time.Millisecond)))
			if few, want := b.lines(`"token":"few"`), int((at-time.Second)/(2*time.Second)); few != want {
				t.Errorf("after %s: %d of the second client, want %d", at, few, want)
			}
		}
		asking.Wait()
	})
}

// A query whose client takes nothing gives its place away after a second. It has it back when the
// client takes bytes again, and the answer is whole.
func TestStalledClientKeepsNoPlace(t *testing.T) {
	inBubble(t, door.ReadsOptions{Queries: 2, Waiting: 2}, []string{"slow", "good"}, works, func(b *bubble) {
		slow := []net.Conn{b.send("slow", "/q?bytes=300000"), b.send("slow", "/q?bytes=300000")}
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		for _, want := range []string{"queries 0", "queries_waiting 0"} {
			if !strings.Contains(string(b.reg.Page()), want) {
				t.Errorf("no %s beside clients that take nothing", want)
			}
		}
		begun := time.Now()
		if status, _, err := b.ask("good", "/q?for=1s"); status != 200 || time.Since(begun) != time.Second {
			t.Errorf("another client: %d after %s, %v", status, time.Since(begun), err)
		}
		// One goes on ahead of a new one of its client.
		var asking sync.WaitGroup
		asking.Go(func() { b.ask("slow", "/q?for=5s") })
		synctest.Wait()
		asking.Go(func() { b.ask("slow", "/q?for=5s") })
		synctest.Wait()
		for _, conn := range slow {
			asking.Go(func() {
				status, body, err := answerOf(conn)
				if status != 200 || len(body) != 300000 || err != nil || time.Since(begun) != 6*time.Second {
					t.Errorf("one that was parked: %d: %d bytes after %s, %v", status, len(body), time.Since(begun), err)
				}
			})
		}
		asking.Wait()
		if n := b.lines(`"token":"slow"`, `"status":200`, `"complete":true`); n != 4 {
			t.Errorf("%d of the slow client are whole:\n%s", n, b.log)
		}
	})
}

// Of queries whose clients take nothing, as many are kept as there are places, and at most 16. Those
// of the client that has the most are ended first.
func TestParkedAreBounded(t *testing.T) {
	inBubble(t, door.ReadsOptions{Queries: 4, Waiting: 90}, []string{"hog", "pager"}, works, func(b *bubble) {
		pager := b.send("pager", "/q?bytes=300000")
		time.Sleep(3 * time.Second)
		for range 10 {
			defer b.send("hog", "/q?bytes=300000").Close()
		}
		time.Sleep(10 * time.Second)
		if n := b.lines(`"token":"hog"`, `"status":429`, `"complete":false`); n != 7 {
			t.Errorf("%d of ten were ended:\n%s", n, b.log)
		}
		if status, body, err := answerOf(pager); status != 200 || len(body) != 300000 || err != nil {
			t.Errorf("the other client: %d: %d bytes, %v", status, len(body), err)
		}
	})
}

// The time of a query is that for which the server works. A slow client may take longer, and a query
// that took too long is in the log as that.
func TestDeadlineIsOfWork(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/q/slow" {
			_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
		works(w, r)
	}
	inBubble(t, door.ReadsOptions{Deadline: 3 * time.Second}, []string{"a"}, h, func(b *bubble) {
		conn := b.send("a", "/q?for=2s&bytes=1000000")
		buf := make([]byte, 64<<10)
		for {
			_, err := conn.Read(buf)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if time.Sleep(2 * time.Second); b.lines("query") > 0 {
				break
			}
		}
		conn.Close()
		if n := b.lines(`"status":200`, `"sent":1000000`, `"complete":true`); n != 1 {
			t.Errorf("an answer that is taken slowly:\n%s", b.log)
		}
		begun := time.Now()
		if _, _, err := b.ask("a", "/q/slow"); err == nil || time.Since(begun) != 3*time.Second {
			t.Errorf("a slow query: %v after %s", err, time.Since(begun))
		}
		if n := b.lines(`"status":504`, `"complete":false`); n != 1 {
			t.Errorf("a slow query:\n%s", b.log)
		}
		// A client that takes nothing at all is given up.
		defer b.send("a", "/q?bytes=1000000").Close()
		time.Sleep(24 * time.Second)
		if n := b.lines(`"status":499`); n != 1 {
			t.Errorf("a client that takes nothing:\n%s", b.log)
		}
	})
}

// A query that took too long ends as by a deadline, and so does all that is made of its context. One
// whose client went away does not.
func TestContextOfQuery(t *testing.T) {
	var now, below error
	h := func(_ http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		<-ctx.Done()
		<-r.Context().Done()
		now, below = r.Context().Err(), ctx.Err()
	}
	inBubble(t, door.ReadsOptions{Deadline: 3 * time.Second}, []string{"a"}, h, func(b *bubble) {
		if status, _, _ := b.ask("a", "/q"); status != 504 || now != context.DeadlineExceeded || below != context.DeadlineExceeded {
			t.Errorf("too long: %d, %v, %v", status, now, below)
		}
		conn := b.send("a", "/q")
		time.Sleep(time.Second)
		conn.Close()
		if synctest.Wait(); now != context.Canceled || below != context.Canceled {
			t.Errorf("gone: %v, %v", now, below)
		}
	})
}

// A client of a real connection that takes nothing keeps no place either.
func TestStalledSocketKeepsNoPlace(t *testing.T) {
	s := within(t, door.ReadsOptions{Queries: 1, Patience: testkit.Patience}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/q/large" {
			works(w, r)
			return
		}
		echo(w, r)
	})
	conn, err := net.Dial("tcp", s.host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const size = 64 << 20
	fmt.Fprintf(conn, "GET /q/large?bytes=%d HTTP/1.1\r\nHost: %s\r\n\r\n", size, s.host)
	s.counted("blobtail_serve_in_flight 1")
	if resp, _ := s.ask("/q"); resp.StatusCode != 200 {
		t.Errorf("another query: %d", resp.StatusCode)
	}
	if status, body, err := answerOf(conn); status != 200 || len(body) != size || err != nil {
		t.Errorf("%d: %d bytes, %v", status, len(body), err)
	}
}
