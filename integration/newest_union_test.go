package integration_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// At every instant a read has each record once that was acknowledged before it began.
// The record may be in a log, in a blob, or on its way between them. Flushes go on
// all the time, by size, by age and by hand, at three ingesters.
func TestUnion(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		rng := rand.New(rand.NewPCG(newSeed(t), 9))
		h := newHouse(t, at, 3, config(t, "flush: {size: 64KiB, age: 200ms, min: 1KiB, max-age: 500ms}\nlog: {segment: 1MiB, soft: 4MiB}\n"))
		ledger := &check.Ledger{}
		stop := make(chan struct{})
		var working, flushing sync.WaitGroup
		u := &union{t: t, at: h.read}
		for i := range 3 {
			c := &teller{name: fmt.Sprintf("c%d", i), services: []string{"web", "api"}, ledger: ledger, house: h, only: i,
				size: 20, pause: 20 * time.Millisecond, rand: rand.New(rand.NewPCG(rng.Uint64(), 1)), rests: u.slow}
			u.tellers = append(u.tellers, c)
			working.Go(func() { c.run(stop) })
			flushing.Go(func() { flushUntil(h.p(i), 150*time.Millisecond, stop) })
		}
		u.awaitServices()
		begun := time.Now()
		for lasts := briefly(t, 5*time.Second, 2*time.Minute); (time.Since(begun) < lasts || u.reads < 5) && !t.Failed(); {
			switch rng.IntN(4) {
			case 0:
				u.count()
			case 1:
				u.read(time.Time{})
			default: // older records are in blobs that need not be read
				u.read(time.Now().Add(-time.Duration(rng.IntN(3000)) * time.Millisecond))
			}
		}
		close(stop)
		working.Wait()
		flushing.Wait()
		u.read(time.Time{})
		t.Logf("%d reads and %d counts; %d records and %d blobs in the end; reads took up to %v",
			u.reads, u.counts, len(u.known()), countBlobs(t, at), u.longest.Round(time.Millisecond))
	})
}

// flushUntil makes an ingester flush again and again.
func flushUntil(p *ingester, pause time.Duration, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(pause):
			_, _, _ = p.flush("?timeout=10s") // the reads check the result
		}
	}
}

// union reads while others send.
type union struct {
	t             *testing.T
	at            place
	tellers       []*teller
	reads, counts int
	longest       time.Duration
	asked         atomic.Int64 // when the current read or count began; 0: there is none
}

// slow reports that the current read began long ago. Senders rest then: otherwise the next
// read has more blobs, and takes longer still.
func (u *union) slow() bool {
	asked := u.asked.Load()
	return asked != 0 && time.Since(time.Unix(0, asked)) > 5*time.Second
}

// answer asks for records or their number.
func (u *union) answer(ask func()) {
	begun := time.Now()
	u.asked.Store(begun.UnixNano())
	ask()
	u.asked.Store(0)
	u.longest = max(u.longest, time.Since(begun))
}

// awaitServices waits for records of both services: a read of an unknown service is
// an error.
func (u *union) awaitServices() {
	u.t.Helper()
	testkit.Until(u.t, "both services have records", func() bool {
		services := map[string]bool{}
		for _, r := range u.known() {
			services[r.service] = true
		}
		return len(services) == 2
	})
}

// known returns the acknowledged records.
func (u *union) known() (all []told) {
	for _, c := range u.tellers {
		all = append(all, c.known()...)
	}
	return all
}

// sent returns the number of records sent, at most.
func (u *union) sent() (n int) {
	for _, c := range u.tellers {
		n += c.begun()
	}
	return n
}

// count counts all.
func (u *union) count() {
	u.counts++
	least := len(u.known())
	var n int
	u.answer(func() { n = count(u.t, u.at, "web", "api") })
	if most := u.sent(); n < least || n > most {
		u.t.Errorf("--count says %d; %d were acknowledged before, and %d sent until it ended", n, least, most)
	}
}

// read reads the records with a time of from or later; all, for the zero time.
func (u *union) read(from time.Time) {
	u.reads++
	args := []string{"web", "api", "--if-any"} // both are new
	if !from.IsZero() {
		args = append(args, "--from", from.UTC().Format(time.RFC3339Nano))
	}
	must := u.known()
	begun := time.Now()
	var out []byte
	var errs string
	var code int
	u.answer(func() { out, errs, code = answered(u.t, u.at, args...) })
	if code < 0 || code > 1 {
		u.t.Errorf("read %d exits %d after %v: %s", u.reads, code, time.Since(begun), errs)
		return
	}
	seen := map[string]bool{}
	last := int64(0)
	for line := range bytes.Lines(out) {
		id := check.ID(line)
		at, ok := record.LineTime(line)
		if seen[id] || !ok || at < last || !from.IsZero() && at < from.UnixNano() {
			u.t.Errorf("read %d, begun %v: twice, out of order or out of range: %.200s", u.reads, begun, line)
			return
		}
		seen[id], last = true, at
	}
	lost := 0
	for _, r := range must {
		if seen[r.id] || !from.IsZero() && r.at < from.UnixNano() {
			continue
		}
		if lost++; lost <= 3 {
			u.t.Errorf("read %d, begun %v: %s was acknowledged before and is not there; %s", u.reads, begun, r.id, errs)
		}
	}
	if lost > 0 {
		u.t.Errorf("read %d: %d of %d are missing", u.reads, lost, len(must))
	}
}
