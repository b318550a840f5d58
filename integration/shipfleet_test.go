package integration_test

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/source/carry"
)

// Three ingesters ship their logs, and senders of five protocols try the next one if one does not answer.
// One is killed and its disk removed, or it hangs, is adopted and wakes; then the store is away. What was
// answered with 2xx is read once, and no read that exits with 0 lacks a record.
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
	for n, door := range []string{"loki", "otlp-attributes", "bulk", "json", "hec"} {
		working.Go(func() { f.send(n, door, stop) })
	}
	working.Go(func() { f.read(stop) })
	end := sync.OnceFunc(func() { close(stop); working.Wait() })
	defer end()
	if span, long := torture(f.t); long {
		f.long(span)
	} else {
		f.short()
	}
	end()
	read := newAudit(f.t, f.direct, f.promises).only(asRead, asCount, asHist)
	read.whole("at the end")
	for _, s := range f.all {
		testkit.Until(f.t, s.name+" flushes", s.flushes)
	}
	read.whole("all is in blobs")
	if due := len(f.promises.due()); due < 100 {
		f.t.Errorf("only %d records were acknowledged", due)
	}
}

// short has each fault once.
func (f *shippedFleet) short() {
	time.Sleep(time.Second)
	lost := f.all[0]
	id := loses(f.t, lost)
	fallsSilent(f.t, f.direct, id)
	adopts(f.t, f.all[1+f.rng.IntN(2)], id)
	lost.start()

	time.Sleep(time.Second)
	hung := f.all[1]
	id = hung.id()
	hung.freeze()
	fallsSilent(f.t, f.direct, id)
	adopts(f.t, f.all[2*f.rng.IntN(2)], id)
	time.Sleep(time.Duration(f.rng.Int64N(int64(2 * time.Second))))
	f.wakes(hung)

	time.Sleep(time.Second)
	mend := f.fail()
	time.Sleep(4 * time.Second)
	mend()
}

// wakes wakes an ingester that was adopted, and starts it again: it ends at the next request of a sender.
func (f *shippedFleet) wakes(hung *station) {
	hung.Signal(syscall.SIGCONT)
	testkit.Until(f.t, "the adopted one ends", hung.Gone)
	hung.start()
}

// long kills an ingester each minute, and removes its disk. A third of the time another hangs, and a
// sixth the store is away: 20 minutes of an hour, and 10.
func (f *shippedFleet) long(span time.Duration) {
	var adopting sync.WaitGroup
	defer adopting.Wait()
	hung, mend := f.all[0], func() {}
	minutes := max(6, int(span/time.Minute))
	for n := range minutes {
		time.Sleep(time.Minute)
		switch n {
		case minutes / 12:
			id := hung.id()
			hung.freeze()
			adopting.Go(func() { f.adopted(id, span) })
		case minutes/12 + minutes/3:
			f.wakes(hung)
		case minutes * 3 / 5:
			mend = f.fail()
		case minutes*3/5 + minutes/6:
			mend()
		}
		one := f.all[1+n%2] // not the one that hangs
		if _, err := os.Stat(filepath.Join(one.wal, "lease")); err != nil {
			continue // it was started without a store: it has no id, and no records
		}
		id := loses(f.t, one)
		adopting.Go(func() { f.adopted(id, span) })
		one.begin()
	}
}

// adopted has an ingester adopted when it is silent, unless it had no records. While the store is away,
// and if the adopter ends, that fails, and is tried again.
func (f *shippedFleet) adopted(id string, within time.Duration) {
	fallsSilent(f.t, f.direct, id)
	adopted := regexp.MustCompile("has adopted it|it is idle|no such ingester")
	for n, begun := 0, time.Now(); ; n++ {
		out, code := tryAdopt(f.all[1+n%2], id) // not the one that hangs
		if code == 0 || adopted.MatchString(out) {
			return
		}
		if time.Since(begun) > within {
			f.t.Errorf("ingester %s is not adopted: %s", id, out)
			return
		}
		time.Sleep(time.Second)
	}
}

// send sends one record after the other by the protocol of a door, each to one ingester after the other
// until it is acknowledged.
func (f *shippedFleet) send(n int, by string, stop <-chan struct{}) {
	door, _ := carry.Named(by)
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for at := n; ; {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		id := f.promises.next("x")
		one := carry.Record{Text: []byte(id + " is what happened"), Time: time.Now()}
		if door.Objects {
			one.Text, one.Object = bytes.TrimSpace(appendRecord(nil, one.Time.UnixNano(), id, "is what happened")), true
		}
		p, err := door.Pack(carry.Cargo{Service: "web", Records: []carry.Record{one}})
		if err != nil {
			f.t.Error(err)
			return
		}
		for {
			code, _, header, err := post(client, f.all[at%3].base+p.Path, p.Body, "Content-Type", p.ContentType)
			if code/100 == 2 {
				f.promises.ack(id)
				if says := header.Get("Ack"); says != "shipped" {
					f.t.Errorf("%s: %d with Ack %q", by, code, says)
				}
				break
			}
			if code != 0 && code != http.StatusServiceUnavailable && code != http.StatusTooManyRequests {
				f.t.Errorf("%s: %d, %v", by, code, err)
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
