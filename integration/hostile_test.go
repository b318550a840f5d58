package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// hostileMemory is the limit of an ingester: the one that it gives to the collector of garbage,
// twice the bound of requests and 512 MiB for batches and blobs.
const hostileMemory = 1 << 30

// honestEvery is the interval of the honest client's requests. A 99th percentile within it harms no
// client: one that waits for each answer before it sends again keeps its pace. A quiet ingester
// answers in a millisecond, and so short a time doubles on two cores by chance.
const honestEvery = 20 * time.Millisecond

// Hostile clients may not make an ingester use more memory than its limit, nor slow an honest
// client down much, nor end it. With BLOBTAIL_TORTURE it compares the 99th percentile of the
// honest client's requests with that beside no attack: the median of five runs each. Beside an attack
// by large bodies it compares with another honest client that sends as many bytes and lines as often:
// cores and disks are shared, and whoever sends so much takes as much of them. The percentile may be
// twice as long, or honestEvery.
func TestHostile(t *testing.T) {
	runs, span, share := 1, 400*time.Millisecond, 16
	if os.Getenv("BLOBTAIL_TORTURE") != "" {
		runs, span, share = 5, 4*time.Second, 1
	} else {
		t.Parallel()
	}
	for _, attack := range attacks(t, share) {
		t.Run(attack.name, func(t *testing.T) {
			at, _ := dirStore(t)
			p := start(t, at, t.TempDir())
			var quiet, under []time.Duration
			for range runs {
				if runs > 1 {
					quiet = append(quiet, p.beside(attack.like, span))
				}
				under = append(under, p.beside(attack.run, span))
			}
			memory := p.peak()
			slices.Sort(quiet)
			slices.Sort(under)
			if runs > 1 {
				t.Logf("%s: p99 %v, without %v, ratio %.2f, memory %d MiB", attack.name, under[runs/2], quiet[runs/2],
					float64(under[runs/2])/float64(quiet[runs/2]), memory>>20)
				if under[runs/2] > max(honestEvery, 2*quiet[runs/2]) {
					t.Errorf("the 99th percentile of an honest client is %v, and %v without the attack", under[runs/2], quiet[runs/2])
				}
			}
			if memory > hostileMemory {
				t.Errorf("%d MiB of memory", memory>>20)
			}
			if p.Gone() {
				t.Error("the ingester has ended")
			}
		})
	}
}

// beside is honest while another client runs; nil: there is none.
func (p *ingester) beside(run func(context.Context, *ingester, func()), span time.Duration) time.Duration {
	if run == nil {
		return p.honest(span)
	}
	ctx, stop := context.WithCancel(p.t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	begun := make(chan struct{})
	group.Go(func() { run(ctx, p, func() { close(begun) }) })
	<-begun
	return p.honest(span)
}

// honest sends small bodies for a while, one in honestEvery, and returns the 99th percentile of
// their times. Each has to be accepted. It has an address of its own: one address has half of all
// connections.
func (p *ingester) honest(span time.Duration) time.Duration {
	dial := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext
	c := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: dial}}
	defer c.CloseIdleConnections()
	body := []byte(strings.Repeat(two, 10))
	var took []time.Duration
	tick := time.NewTicker(honestEvery)
	defer tick.Stop()
	for end := time.Now().Add(span); time.Now().Before(end); <-tick.C {
		begun := time.Now()
		if code, a, _, err := post(c, p.listen+"/ingest/honest", body); err != nil || code != http.StatusOK || a.Accepted != 20 {
			p.t.Errorf("an honest request: %d %+v, %v", code, a, err)
			break
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	if len(took) == 0 {
		return 0
	}
	return took[len(took)*99/100]
}

// peak returns the most memory that the process had.
func (p *ingester) peak() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if err != nil || m == nil {
		p.t.Fatalf("no memory in the status: %v", err)
	}
	kb, _ := strconv.Atoi(string(m[1])) // it matched digits
	return kb << 10
}

// An attack runs until ctx ends. It calls begun when it is under way.
type attack struct {
	name string
	run  func(ctx context.Context, p *ingester, begun func())
	like func(ctx context.Context, p *ingester, begun func()) // an honest client with as many bytes; nil: none
}

// large is an attack by a body, once in an interval. like has as many bytes, and lines if the attack
// has many.
func large(name string, interval time.Duration, hostile, like []byte) attack {
	return attack{
		name, requests("/ingest", interval, hostile, "Content-Type", "application/x-ndjson"),
		requests("/ingest/large", interval, like, "Content-Type", "application/x-ndjson"),
	}
}

// attacks returns all attacks, with one in so many of their connections.
func attacks(t *testing.T, share int) []attack {
	deep := []byte(`{"a":` + strings.Repeat("[", 1<<20) + "}")
	repeated := []byte("{" + strings.Repeat(`"k":1,`, 150_000) + `"k":1}`)
	const line = `{"level":"info","msg":"a request was answered","path":"/index","status":200,"ms":12.5}` + "\n"
	ordinary := []byte(strings.Repeat(line, len(repeated)/len(line)))
	var services, service, hours, hour bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&service, `{"service":"large","msg":"x"}`+"\n")
		fmt.Fprintf(&hour, `{"ts":%d,"msg":"x"}`+"\n", 1_400_000_000+i/30)
		fmt.Fprintf(&services, `{"service":"s%d","msg":"x"}`+"\n", i)
		fmt.Fprintf(&hours, `{"ts":%d,"msg":"x"}`+"\n", 1_400_000_000+3600*i)
	}
	window := []byte("\x28\xb5\x2f\xfd\x00\xf8" + strings.Repeat("\x01\x00\x00", 1000)) // 2 GiB
	return []attack{
		{name: "slow headers", run: connections(2000/share, "POST /ingest/x HTTP/1.1\r\n", time.Second, "A: b\r\n")},
		{name: "slow bodies", run: connections(2000/share, "POST /ingest/x HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n", time.Second, "x")},
		{name: "announced bodies", run: connections(2000/share, "POST /ingest/x HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n"+strings.Repeat("x", 3000), time.Second, "x")},
		{name: "idle connections", run: connections(10_000/share, "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", time.Hour, "")},
		{name: "gzip bombs", run: requests("/ingest", 100*time.Millisecond, gzipped(t, make([]byte, 15<<20)), "Content-Encoding", "gzip")},
		{name: "zstd bombs", run: requests("/ingest", 100*time.Millisecond, zstded(t, make([]byte, 60<<20)), "Content-Encoding", "zstd")},
		{name: "a huge window", run: requests("/ingest", 100*time.Millisecond, window, "Content-Encoding", "zstd")},
		large("deep objects", 100*time.Millisecond, deep, ordinary),
		large("a key many times", 100*time.Millisecond, repeated, ordinary),
		large("services", 4*time.Second, services.Bytes(), service.Bytes()),
		large("hours", 4*time.Second, hours.Bytes(), hour.Bytes()),
		{name: "noise", run: noise},
	}
}

// requests sends a body again and again, once in an interval.
func requests(path string, interval time.Duration, body []byte, headers ...string) func(context.Context, *ingester, func()) {
	return func(ctx context.Context, p *ingester, begun func()) {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for first := true; ctx.Err() == nil; first = false {
			_, _, _, _ = p.post(path, body, headers...) // with any answer
			if first {
				begun()
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}
}

// connections opens so many connections, sends a beginning on each, and then a piece at each
// interval. One that the ingester closes is opened again a second later: thousands that connect
// without a pause fill the queue of the system.
func connections(n int, beginning string, interval time.Duration, piece string) func(context.Context, *ingester, func()) {
	return func(ctx context.Context, p *ingester, begun func()) {
		var open, group sync.WaitGroup
		for i := range n {
			open.Add(1)
			group.Go(func() {
				opened := open.Done
				time.Sleep(time.Duration(i) * time.Millisecond / 4)
				for ctx.Err() == nil {
					trickle(ctx, strings.TrimPrefix(p.listen, "http://"), beginning, interval, piece, opened)
					opened = func() {}
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
					}
				}
			})
		}
		open.Wait()
		begun()
		group.Wait()
	}
}

// trickle sends slowly on one connection until that is closed.
func trickle(ctx context.Context, address, beginning string, interval time.Duration, piece string, opened func()) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		opened()
		time.Sleep(100 * time.Millisecond)
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, err = io.WriteString(conn, beginning)
	opened()
	if piece == "" {
		_, _ = io.Copy(io.Discard, conn) // until it is closed
		return
	}
	for tick := time.Tick(interval); err == nil; <-tick {
		_, err = io.WriteString(conn, piece)
	}
}

// noise sends bytes that are no requests.
func noise(ctx context.Context, p *ingester, begun func()) {
	begun()
	r := rand.New(rand.NewPCG(1, 2))
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.listen, "http://"))
		if err != nil {
			continue
		}
		b := make([]byte, r.IntN(40_000))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if r.IntN(2) == 0 {
			b = append([]byte("POST /ingest/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"), b...)
		}
		_, _ = conn.Write(b)
		conn.Close()
		time.Sleep(5 * time.Millisecond)
	}
}
