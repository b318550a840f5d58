package httpsource_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/count"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/source/httpsource"
	"blobtail/source/sourcetest"
)

// inFlight reads the gauge of the bytes that bodies hold.
func inFlight(t testing.TB, reg *count.Registry) float64 {
	t.Helper()
	n, ok := count.Read(reg.Page())["blobtail_http_in_flight_bytes"]
	if !ok {
		t.Fatal("no gauge")
	}
	return n
}

// Connections that announce a long body and send next to nothing block no other, and
// are cut off soon.
func TestIdleBodies(t *testing.T) { synctest.Test(t, testIdleBodies) }

func testIdleBodies(t *testing.T) {
	const idle = 1000
	reg := new(count.Registry)
	l := listenInside(t, httpsource.New(httpsource.Options{Accept: &memory{}, Metrics: reg}))
	begun := time.Now()
	var open []net.Conn
	for i := range idle {
		c := l.dial(t)
		// Some have sent nothing at all.
		fmt.Fprintf(c, "POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n%s", "{"[:min(i%10, 1)])
		open = append(open, c)
	}
	synctest.Wait()
	if n := inFlight(t, reg); n < idle<<10 || n > 32<<20 {
		t.Errorf("%v bytes in flight for %d connections, after %v", n, idle, time.Since(begun))
	}
	client := &http.Client{Transport: &http.Transport{DialContext: l.Dial}}
	defer client.CloseIdleConnections()
	for i := range 50 {
		sent := time.Now()
		res, err := client.Post("http://ingester/ingest/web", "", strings.NewReader(fmt.Sprintf(`{"msg":"honest %d"}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		if a := readReply(t, res); a.Accepted != 1 {
			t.Fatalf("%+v", a)
		}
		if took := time.Since(sent); took > 2*time.Second {
			t.Errorf("an honest request took %v", took)
		}
	}
	for _, c := range []net.Conn{open[0], open[1], open[idle-1]} {
		if a := readResponse(t, c); a.Status != http.StatusRequestTimeout {
			t.Errorf("%+v", a)
		}
	}
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("cut off after %v", took)
	}
}

// A request that waited for admission still has all the time to send its body.
func TestWaitingToEnterIsNotSlow(t *testing.T) { synctest.Test(t, testWaitingToEnter) }

func testWaitingToEnter(t *testing.T) {
	h := newSource(&memory{}, func(o *httpsource.Options) {
		o.MaxInFlight, o.Patience, o.ReadGrace = 1<<20, 20*time.Second, 200*time.Millisecond
	})
	first := stall(t, h, 1<<20, 900<<10)
	c := listenInside(t, h).dial(t)
	go fmt.Fprintf(c, "POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Length: 70002\r\n\r\n%70000s{}", "")
	time.Sleep(400 * time.Millisecond)
	first.body.Close()
	<-first.reply
	if a := readResponse(t, c); a.Accepted != 1 {
		t.Errorf("%+v", a)
	}
}

// A client that has sent something may pause for longer.
func TestPauseAfterTheBeginning(t *testing.T) { synctest.Test(t, testPauseAfterTheBeginning) }

func testPauseAfterTheBeginning(t *testing.T) {
	c := listenInside(t, newSource(&memory{})).dial(t)
	body := strings.Repeat(" ", 8<<10) + "{}"
	fmt.Fprintf(c, "POST /ingest/web HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:5<<10])
	time.Sleep(6 * time.Second)
	fmt.Fprint(c, body[5<<10:])
	if a := readResponse(t, c); a.Accepted != 1 {
		t.Errorf("%+v", a)
	}
}

// A meeting is a log that accepts nothing before all requests have come.
type meeting struct{ all *sync.WaitGroup }

func (m meeting) Accept(ctx context.Context, r *record.Request) (record.Receipt, error) {
	m.all.Done()
	m.all.Wait()
	return sourcetest.Discard{}.Accept(ctx, r)
}

// Many long bodies at once leave little memory in use.
func TestMemoryIsGivenBack(t *testing.T) {
	const senders, most = 12, 40 << 20 // buffers up to 32 MiB are kept, of all sizes
	body := strings.Repeat(`{"msg":"`+strings.Repeat("x", 990)+"\"}\n", 4<<20/1000)
	var all sync.WaitGroup
	all.Add(senders)
	s := newSource(meeting{&all}, func(o *httpsource.Options) { o.Patience = time.Minute })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var done sync.WaitGroup
	for range senders {
		done.Go(func() {
			if a := send(t, s, "/ingest/web", body, "Content-Type", ndjson); a.Status != 200 {
				t.Errorf("%+v", a)
			}
		})
	}
	done.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > most {
		t.Errorf("%d MiB stay", kept>>20)
	}
	runtime.KeepAlive(s)
}

// The usual request allocates nothing for its records or its body.
func TestUsualRequestAllocatesLittle(t *testing.T) {
	testkit.FullOnly(t, "under the race detector a sync.Pool drops things at random")
	s := newSource(sourcetest.Discard{})
	body := sourcetest.NDJSON()
	r := httptest.NewRequest(http.MethodPost, "/ingest/web", nil)
	r.Header.Set("Content-Type", ndjson)
	r.ContentLength = int64(len(body))
	w := httptest.NewRecorder()
	once := func() {
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.Body.Reset()
		s.ServeHTTP(w, r)
	}
	once()
	if n := testing.AllocsPerRun(20, once); n > 40 {
		t.Errorf("%v allocations for a request of %d records", n, sourcetest.PerBody)
	}
}
