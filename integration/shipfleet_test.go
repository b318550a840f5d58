package integration_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// Three ingesters ship their logs, and senders try the next one if one does not answer. Again and again
// one is killed and its disk removed, or it hangs, is adopted and wakes; then the store is away. What was
// answered with 200 is read once, and no read that exits with 0 lacks a record.
func TestShippedFleet(t *testing.T) {
	t.Parallel()
	beside(t, map[string]func(t *testing.T){
		"dir": func(t *testing.T) {
			at, root := dirStore(t)
			newShippedFleet(t, at, at, func() func() { return breakDir(t, root, "_wal") }).run()
		},
		"azure": func(t *testing.T) {
			shared.emulated <- struct{}{}
			t.Cleanup(func() { <-shared.emulated })
			through, direct, px := proxied(t)
			newShippedFleet(t, through, direct, func() func() {
				px.set(all(refuse))
				return func() { px.set(healthy) }
			}).run()
		},
	})
}

// shippedFleet is three ingesters, their senders and their readers.
type shippedFleet struct {
	t        *testing.T
	direct   place
	fail     func() (mend func())
	promises *promises

	all []*station
	rng *rand.Rand
}

func newShippedFleet(t *testing.T, through, direct place, fail func() func()) *shippedFleet {
	f := &shippedFleet{t: t, direct: direct, fail: fail, promises: &promises{}, rng: rand.New(rand.NewPCG(newSeed(t), 60))}
	file := config(t, "flush: {age: 2s, max-age: 4s}\nship: {wait: 2s}\n")
	for _, name := range []string{"a", "b", "c"} {
		f.all = append(f.all, newShipping(t, through, f.promises, name, file, "--lane", "auto").start())
	}
	return f
}

func (f *shippedFleet) run() {
	stop := make(chan struct{})
	var working sync.WaitGroup
	for n := range 4 {
		working.Go(func() { f.send(n, stop) })
	}
	working.Go(func() { f.read(stop) })
	end := sync.OnceFunc(func() { close(stop); working.Wait() })
	defer end()
	until := time.Now().Add(lasting(f.t, 0))
	for n := 0; n < 3 || time.Now().Before(until); n++ {
		time.Sleep(time.Second)
		one, other := f.all[n%3], f.all[(n+1+f.rng.IntN(2))%3]
		switch n % 3 {
		case 0:
			id := loses(f.t, one)
			fallsSilent(f.t, f.direct, id)
			adopts(f.t, other, id)
			one.start()
		case 1:
			id := one.id()
			one.freeze()
			fallsSilent(f.t, f.direct, id)
			adopts(f.t, other, id)
			time.Sleep(time.Duration(f.rng.Int64N(int64(2 * time.Second))))
			one.Signal(syscall.SIGCONT)
			testkit.Until(f.t, "the adopted one ends", one.Gone) // at the next request of a sender
			one.start()
		default:
			mend := f.fail()
			time.Sleep(4 * time.Second)
			mend()
		}
	}
	end()
	read := newAudit(f.t, f.direct, f.promises)
	read.whole("at the end")
	for _, s := range f.all {
		testkit.Until(f.t, s.name+" flushes", s.flushes)
	}
	read.whole("all is in blobs")
	if due := len(f.promises.due()); due < 100 {
		f.t.Errorf("only %d records were acknowledged", due)
	}
}

// send sends one record after the other, each to one ingester after the other until it is acknowledged.
func (f *shippedFleet) send(n int, stop <-chan struct{}) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for at := n; ; {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		id := f.promises.next("x")
		body := appendRecord(nil, time.Now().UnixNano(), id, "is what happened")
		for try := 0; ; try++ {
			code, a, header, err := post(client, f.all[at%3].base+"/ingest/web", body)
			if code == http.StatusOK && err == nil && a.Accepted == 1 {
				f.promises.ack(id)
				if says := header.Get("Ack"); says != "shipped" {
					f.t.Errorf("200 with Ack %q", says)
				}
				break
			}
			if code != 0 && code != http.StatusServiceUnavailable && code != http.StatusTooManyRequests {
				f.t.Errorf("%d %+v, %v", code, a, err)
			}
			at++
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// read reads all the time. A read that may lack records says so.
func (f *shippedFleet) read(stop <-chan struct{}) {
	read := newAudit(f.t, f.direct, f.promises).only(asRead, asCount)
	for {
		read.complete("while all goes on")
		select {
		case <-stop:
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}
