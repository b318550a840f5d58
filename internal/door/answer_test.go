package door_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"blobtail/internal/door"
)

// decoded is the text of a body.
func decoded(t *testing.T, encoding string, body io.Reader) io.Reader {
	t.Helper()
	switch encoding {
	case "":
		return body
	case "gzip":
		z, err := gzip.NewReader(body)
		if err != nil {
			t.Fatal(err)
		}
		return z
	case "zstd":
		z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(z.Close)
		return z
	}
	t.Fatalf("encoding %q", encoding)
	return nil
}

// An answer is compressed as its client accepts, and only if that is worth it.
func TestEncodings(t *testing.T) {
	long := strings.Repeat(`{"level":"info","msg":"GET /basket"}`+"\n", 5000)
	s := serve(t, door.Options{}, func(w http.ResponseWriter, r *http.Request) {
		h, q := w.Header(), r.URL.Query()
		h.Set("Content-Type", q.Get("type"))
		if q.Has("encoding") {
			h.Set("Content-Encoding", q.Get("encoding"))
		}
		text := long
		if q.Has("small") {
			text = "{}"
		}
		h.Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = io.WriteString(w, text)
	})
	for _, c := range []struct{ query, accept, want string }{
		{"type=application/json", "", ""},
		{"type=application/json", "gzip", "gzip"},
		{"type=application/json", "deflate, GZIP;q=0.5", "gzip"},
		{"type=application/json", "gzip, deflate, br, zstd", "zstd"},
		{"type=application/json", "gzip;q=1, zstd;q=0.2", "gzip"},
		{"type=application/json", "zstd;q=0", ""},
		{"type=application/json", "*", ""},
		{"type=application/json", "gzip;q=x", ""},
		{"type=application/json", "identity", ""},
		{"type=application/x-ndjson%3Bcharset=utf-8", "zstd", "zstd"},
		{"type=application/problem%2bjson", "gzip", "gzip"},
		{"type=text/event-stream", "gzip, zstd", "gzip"},
		{"type=application/octet-stream", "gzip", ""},
		{"type=application/json&small", "gzip", ""},
		{"type=application/json&encoding=zstd", "gzip, zstd", "zstd"},
	} {
		resp, err := plain().Do(s.request(t.Context(), "/q?"+c.query, "Accept-Encoding: "+c.accept))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got := resp.Header.Get("Content-Encoding")
		if got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.query, c.accept, got, c.want)
			continue
		}
		if strings.Contains(c.query, "encoding=") {
			continue // the handler's own
		}
		want := long
		if strings.Contains(c.query, "small") {
			want = "{}"
		}
		if text, err := io.ReadAll(decoded(t, got, resp.Body)); err != nil || string(text) != want {
			t.Errorf("%s, %s: %d bytes, %v", c.query, c.accept, len(text), err)
		}
	}
	resp, _ := s.ask("/q?type=application/json", "Method: HEAD", "Accept-Encoding: gzip")
	if resp.Header.Get("Content-Encoding") != "" || resp.ContentLength != int64(len(long)) {
		t.Errorf("HEAD: %q, %d bytes", resp.Header.Get("Content-Encoding"), resp.ContentLength)
	}
}

// Each flush of a stream is with the client before the stream goes on.
func TestStreams(t *testing.T) {
	more := make(chan struct{})
	s := serve(t, door.Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n", i)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			<-more
		}
	})
	for encoding, kind := range map[string]string{"": "text/event-stream", "gzip": "text/event-stream", "zstd": "application/x-ndjson"} {
		resp, err := plain().Do(s.request(t.Context(), "/tail?type="+kind, "Accept-Encoding: "+encoding))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got := resp.Header.Get("Content-Encoding"); got != encoding {
			t.Errorf("encoding %q, want %q", got, encoding)
		}
		lines := bufio.NewReader(decoded(t, encoding, resp.Body))
		for i := range 3 {
			if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
				t.Fatalf("%q, line %d: %q, %v", encoding, i, line, err)
			}
			more <- struct{}{}
		}
		if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
			t.Errorf("%q: it ends with %q, %v", encoding, rest, err)
		}
	}
}

// An answer that its handler cuts off, or that ends by a panic, does not look whole. The client has
// the bytes that were flushed before.
func TestCutOff(t *testing.T) {
	s := serve(t, door.Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		fmt.Fprintln(w, "a record")
		_ = http.NewResponseController(w).Flush()
		fmt.Fprintln(w, strings.Repeat("more ", 10_000))
		if r.URL.Path == "/q/panic" {
			panic("a mistake")
		}
		panic(http.ErrAbortHandler)
	})
	for _, encoding := range []string{"", "gzip", "zstd"} {
		for _, path := range []string{"/q/panic", "/q/abort"} {
			resp, err := plain().Do(s.request(t.Context(), path, "Accept-Encoding: "+encoding))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(decoded(t, encoding, resp.Body))
			if err == nil {
				t.Errorf("%s, %q: it looks whole: %d bytes", path, encoding, len(text))
			}
			if !strings.HasPrefix(string(text), "a record\n") {
				t.Errorf("%s, %q: it begins with %.20q", path, encoding, text)
			}
		}
	}
	if log := s.log.String(); strings.Count(log, `"panic":"a mistake"`) != 3 || strings.Contains(log, `"complete":true`) {
		t.Errorf("the log:\n%s", log)
	}
}

// A handler that panics before its answer begins has a proper one.
func TestPanic(t *testing.T) {
	s := serve(t, door.Options{}, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "half of an answer")
		panic("a mistake with the query {app=\"x\"}")
	})
	for _, path := range []string{"/loki/api/v1/query", "/api/v1/count", "/tail"} {
		resp, body := s.ask(path)
		if resp.StatusCode != 500 || strings.Contains(body, "mistake") || strings.Contains(body, "half") || !strings.Contains(body, "internal error") {
			t.Errorf("%s: %d: %s", path, resp.StatusCode, body)
		}
	}
	s.counted("blobtail_serve_in_flight 0")
	s.counted("blobtail_serve_queries 0")
	s.counted("blobtail_serve_tails 0")
}

// A reader that takes nothing holds its own query up, and no other. Nothing is gathered for
// it: its handler waits.
func TestSlowReader(t *testing.T) {
	written := make(chan int64, 1)
	s := within(t, door.ReadsOptions{Deadline: time.Second}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/q/long" {
			echo(w, r)
			return
		}
		var n int64
		piece := []byte(strings.Repeat("x", 32<<10))
		for r.Context().Err() == nil && n < 1<<30 {
			m, err := w.Write(piece)
			n += int64(m)
			if err != nil {
				break
			}
			if n > 64<<20 {
				break
			}
		}
		written <- n
	})
	conn, err := net.Dial("tcp", s.host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	fmt.Fprintf(conn, "GET /q/long HTTP/1.1\r\nHost: %s\r\n\r\n", s.host)
	time.Sleep(100 * time.Millisecond)
	for range 20 {
		if resp, _ := s.ask("/q"); resp.StatusCode != 200 {
			t.Errorf("beside a slow reader: %d", resp.StatusCode)
		}
	}
	select {
	case n := <-written:
		t.Errorf("%d bytes were written to a reader that takes none", n)
	default:
	}
	conn.Close()
	if n := <-written; n > 32<<20 {
		t.Errorf("%d bytes were written to a reader that takes none", n)
	}
}

// upgrade makes a WebSocket of a connection, as far as the guard is concerned.
func upgrade(t *testing.T, w http.ResponseWriter) net.Conn {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return nil
	}
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	_ = rw.Flush()
	return conn
}

// later sends a GET, and returns its outcome when it is there.
func (s *site) later(path string) <-chan error {
	outcome := make(chan error, 1)
	go func() {
		resp, err := plain().Do(s.request(context.Background(), path))
		if err == nil {
			resp.Body.Close()
		}
		outcome <- err
	}()
	return outcome
}

// When the server ends, queries are answered, streams of events end, and WebSockets are
// dropped before their handler can say good-bye.
func TestShutdown(t *testing.T) {
	inside := make(chan struct{}, 3)
	leave := make(chan struct{})
	s := serve(t, door.Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/q":
			inside <- struct{}{}
			<-leave
			echo(w, r)
		case "/tail/events":
			_ = http.NewResponseController(w).Flush()
			inside <- struct{}{}
			<-r.Context().Done()
		default:
			conn := upgrade(t, w)
			inside <- struct{}{}
			<-r.Context().Done()
			if _, err := conn.Write([]byte("good-bye")); err == nil {
				t.Error("a close frame could be written")
			}
		}
	})
	answers := s.later("/q")
	events, err := plain().Do(s.request(t.Context(), "/tail/events"))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	conn, err := net.Dial("tcp", s.host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /tail HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", s.host)
	for range 3 {
		<-inside
	}
	s.counted("blobtail_serve_tails 2")
	down := make(chan error, 1)
	go func() { down <- s.srv.Shutdown(context.Background()) }()
	if rest, err := io.ReadAll(conn); err != nil && !errors.Is(err, net.ErrClosed) || strings.Contains(string(rest), "good-bye") {
		t.Errorf("the WebSocket: %q, %v", rest, err)
	}
	if rest, _ := io.ReadAll(events.Body); len(rest) > 0 {
		t.Errorf("the events: %q", rest)
	}
	if _, err := net.DialTimeout("tcp", s.host, time.Second); err == nil {
		t.Error("it still listens")
	}
	close(leave)
	if err := <-answers; err != nil {
		t.Errorf("the query under way: %v", err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
	s.counted("blobtail_serve_in_flight 0")
	s.reads.DropTails() // again
}

// A tail ends when its token is taken away.
func TestTailOfTakenToken(t *testing.T) {
	tokens, path := tokensOf(t, `reader , read: ["web"]`, `other , read: ["web"]`)
	ended := make(chan struct{}, 2)
	s := open(t, door.Options{Tokens: tokens}, door.ReadsOptions{Recheck: 10 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		ended <- struct{}{}
	})
	for _, id := range []string{"reader", "other"} {
		resp, err := plain().Do(s.request(t.Context(), "/tail", bearer(id)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
	}
	time.Sleep(50 * time.Millisecond)
	if len(ended) > 0 {
		t.Fatal("a tail has ended before")
	}
	writeTokens(t, path, `other , read: ["web"]`)
	if err := tokens.Reload(); err != nil {
		t.Fatal(err)
	}
	<-ended
	s.counted("blobtail_serve_tails 1")
}

// elsewhere is a panic of another goroutine.
type elsewhere struct{}

func (elsewhere) Origin() (value any, stack []byte) { return "a mistake there", []byte("its stack") }

// A panic of a goroutine that a handler waited for is answered alike. The log has its own stack.
func TestPanicElsewhere(t *testing.T) {
	s := serve(t, door.Options{}, func(http.ResponseWriter, *http.Request) { panic(elsewhere{}) })
	if resp, body := s.ask("/q"); resp.StatusCode != 500 || !strings.Contains(body, "internal error") {
		t.Errorf("%d: %s", resp.StatusCode, body)
	}
	if log := s.log.String(); !strings.Contains(log, `"panic":"a mistake there","stack":"its stack"`) {
		t.Errorf("the log:\n%s", log)
	}
}
