package httpsource_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/dev/testkit"
	"blobtail/source/httpsource"
)

// listen serves h on a port of its own until the test ends.
func listen(t testing.TB, h http.Handler) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, h)
	return l.Addr().String()
}

func serveOn(t testing.TB, l net.Listener, h http.Handler) {
	t.Helper()
	srv := httpsource.NewServer(h, zerolog.Nop())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// dial opens a raw connection: the test writes its bytes itself.
func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(testkit.Patience))
	return c
}

// inside is a listener within the process, so that time may be virtual.
type inside struct{ *testkit.Pipes }

// listenInside serves h to connections from within the process until the test ends.
func listenInside(t testing.TB, h http.Handler) inside {
	t.Helper()
	l := inside{testkit.NewPipes(nil)}
	t.Cleanup(func() { time.Sleep(time.Minute) }) // connections end some time after the server
	serveOn(t, l, h)
	return l
}

// dial opens a raw connection: the test writes its bytes itself.
func (l inside) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := l.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func readResponse(t testing.TB, c io.Reader) reply {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return readReply(t, res)
}

func TestChunkedWithoutLength(t *testing.T) {
	m := &memory{}
	addr := listen(t, newSource(m))
	n := 60_000
	body := strings.Repeat("{\"msg\":\"0123456789\"}\n", n)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Post("http://"+addr+"/ingest/web", "", io.MultiReader(strings.NewReader(body))) // hides the length
	if err != nil {
		t.Fatal(err)
	}
	if a := readReply(t, res); a.Accepted != n {
		t.Errorf("%+v", a)
	}
}

// Many concurrent requests on kept-alive connections, each with its own records.
func TestConcurrentClients(t *testing.T) {
	m := &memory{}
	addr := listen(t, newSource(m))
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := range 25 {
				body := strings.Repeat(fmt.Sprintf(`{"msg":"%d/%d"}`+"\n", c, i), 100)
				var a reply
				for a.Status = http.StatusTooManyRequests; a.Status == http.StatusTooManyRequests; { // sent again, as it says
					res, err := client.Post("http://"+addr+"/ingest", "application/x-ndjson", strings.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					a = readReply(t, res)
				}
				if a.Accepted != 100 {
					t.Errorf("%+v", a)
				}
			}
		})
	}
	wg.Wait()
	seen := map[any]int{}
	for _, l := range m.lines(t) {
		seen[l["msg"]]++
	}
	for c := range 8 {
		for i := range 25 {
			if n := seen[fmt.Sprintf("%d/%d", c, i)]; n != 100 {
				t.Errorf("%d/%d is there %d times", c, i, n)
			}
		}
	}
}

func TestBodyCutOff(t *testing.T) {
	m := &memory{}
	addr := listen(t, newSource(m))
	for name, request := range map[string]string{
		"length":  "POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"msg\":\"a\"}\n{\"msg\":",
		"chunked": "POST /ingest/web HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{\"msg\":\"a\"}\n",
		"gzip":    "POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n\x1f\x8b",
	} {
		c := dial(t, addr)
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).CloseWrite()
		a := readResponse(t, c)
		if a.Status != 400 || !strings.Contains(a.Error, "broke off") {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if m.calls != 0 {
		t.Errorf("%d requests appended", m.calls)
	}
}

// A client that sends a byte now and then, or nothing at all, is cut off.
func TestSlowClients(t *testing.T) { synctest.Test(t, testSlowClients) }

func testSlowClients(t *testing.T) {
	m := &memory{}
	l := listenInside(t, newSource(m, func(o *httpsource.Options) { o.ReadGrace = 200 * time.Millisecond }))
	const head = "POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
	for _, drip := range []bool{false, true} {
		c := l.dial(t)
		if _, err := io.WriteString(c, head); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for drip && ctx.Err() == nil {
				if _, err := io.WriteString(c, "{"); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		begun := time.Now()
		a := readResponse(t, c)
		if a.Status != http.StatusRequestTimeout {
			t.Errorf("drip %v: %+v", drip, a)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("drip %v: after %v", drip, took)
		}
		cancel()
		c.Close()
		<-done
	}
	if m.calls != 0 {
		t.Errorf("%d requests appended", m.calls)
	}
}

// A body that takes longer than the grace, but comes fast enough, is accepted.
func TestSteadyClient(t *testing.T) { synctest.Test(t, testSteadyClient) }

func testSteadyClient(t *testing.T) {
	m := &memory{}
	l := listenInside(t, newSource(m, func(o *httpsource.Options) { o.ReadGrace = 300 * time.Millisecond }))
	const n, line = 10, "{\"msg\":\"a\"}\n"
	block := line + strings.Repeat(" ", 1000)
	c := l.dial(t)
	fmt.Fprintf(c, "POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", n*len(block))
	for range n {
		if _, err := io.WriteString(c, block); err != nil {
			t.Fatal(err)
		}
		time.Sleep(60 * time.Millisecond)
	}
	if a := readResponse(t, c); a.Accepted != n {
		t.Errorf("%+v", a)
	}
}

// The time a request waits to become durable is not counted as slowness, and the
// connection can be used again after it.
func TestWaitingIsNotSlow(t *testing.T) { synctest.Test(t, testWaitingIsNotSlow) }

func testWaitingIsNotSlow(t *testing.T) {
	m := &memory{wait: func(ctx context.Context, _ bool) error {
		select {
		case <-time.After(300 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	c := listenInside(t, newSource(m, func(o *httpsource.Options) { o.ReadGrace = 100 * time.Millisecond })).dial(t)
	for range 2 {
		fmt.Fprintf(c, "POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		if a := readResponse(t, c); a.Accepted != 1 {
			t.Errorf("%+v", a)
		}
		time.Sleep(150 * time.Millisecond)
	}
}

// The server does not wait for the body of a request that it refuses before reading
// it.
func TestRefusedWithoutBody(t *testing.T) {
	addr := listen(t, newSource(&memory{}, func(o *httpsource.Options) { o.ReadGrace = 200 * time.Millisecond }))
	for request, status := range map[string]int{
		"POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\nContent-Length: 10\r\n\r\n":            415,
		"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n":                                    404,
		"POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Length: 67108865\r\n\r\n":                           413,
		"POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 16777217\r\n\r\n": 413,
		"POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Length: 67108865\r\nExpect: 100-continue\r\n\r\n":   413,
		"POST /ingest/web HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 30<<10) + "\r\n\r\n":             431,
	} {
		c := dial(t, addr)
		go func() { _, _ = io.WriteString(c, request) }()
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%.100s: %v", request, err)
		}
		res.Body.Close()
		if res.StatusCode != status {
			t.Errorf("%.100s: %d, want %d", request, res.StatusCode, status)
		}
	}
}

func TestExpectContinue(t *testing.T) {
	m := &memory{}
	addr := listen(t, newSource(m))
	c := dial(t, addr)
	fmt.Fprintf(c, "POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
	in := bufio.NewReader(c)
	line, err := in.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "{}")
	if a := readResponse(t, in); a.Accepted != 1 {
		t.Errorf("%+v", a)
	}
}

// The server notices a client that closes while the log syncs.
func TestClientClosesWhileWaiting(t *testing.T) {
	waiting, noticed := make(chan struct{}), make(chan struct{})
	m := &memory{wait: func(ctx context.Context, _ bool) error {
		close(waiting)
		<-ctx.Done()
		close(noticed)
		return ctx.Err()
	}}
	c := dial(t, listen(t, newSource(m)))
	fmt.Fprintf(c, "POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	<-waiting
	c.Close()
	testkit.Await(t, "the source notices", noticed)
}

// Bodies over the limit without a length.
func TestTooLarge(t *testing.T) {
	testkit.FullOnly(t, "many MiB in one goroutine")
	endless := func(n int64) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/ingest/web", io.LimitReader(newlines{}, n))
		r.ContentLength = -1
		return r
	}
	s := newSource(&memory{})
	wantStatus(t, serve(t, s, endless(64<<20+1)), 413, "64 MiB")
	wantStatus(t, serve(t, s, endless(16<<20+1), "Content-Encoding", "gzip"), 413, "16 MiB")
	if a := serve(t, s, endless(64<<20)); a.Status != 200 {
		t.Errorf("64 MiB: %+v", a)
	}
}

type newlines struct{}

func (newlines) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}
