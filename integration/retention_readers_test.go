package integration_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// One job hides and deletes, another compacts, and an ingester stores new records.
// Readers have every record of the kept days, once and in order. Of the other days
// they have whole days, or they report that those expired.
func TestReadersBesideRetention(t *testing.T) {
	t.Parallel()
	_, long := torture(t)
	if long {
		shared.Alone(t) // its readers make many requests
	}
	stores(t, func(t *testing.T, at place) {
		const step, least = 3, 6
		days, readers, compactions, enough := 30, 2, 8, 20
		pauses := 4                                                 // in a grace, one after each raise
		rest, flushes := 100*time.Millisecond, 300*time.Millisecond // after a read, between two flushes
		switch {
		case long:
			readers, compactions, rest = 3, 20, 0
		case strings.HasPrefix(at.store, "azure:"): // the emulator is slow, and others need it
			days, readers, compactions, enough, pauses = 15, 1, 6, 8, 2
			rest, flushes = 500*time.Millisecond, time.Second
		}
		e := newEstate(t, at, "default: keep, grace: 1m")
		e.gap = 3 * time.Hour
		h := newHouse(t, at, 1, e.flag)
		ago := make([]int, days)
		for i := range ago {
			ago[i] = i + 1
		}
		for range 4 { // small blobs, several an hour
			e.fill(h.p(0), "web", 2, ago...)
		}
		e.fill(h.p(0), "app", 8, ago...)
		r := &races{estate: e, read: h.read, ledger: &check.Ledger{}, grace: graceOf(t, h, e)}
		e.policy(fmt.Sprintf("default: keep, grace: %s", r.grace))
		r.from.Store(int32(e.day(days + 1)))
		r.to.Store(int32(e.day(days + 1)))
		r.flag = e.flag

		stop := make(chan struct{})
		var work, jobs sync.WaitGroup
		seed := newSeed(t)
		sender := &teller{name: "s", services: []string{"web"}, ledger: r.ledger, house: h, size: 5, pause: 30 * time.Millisecond, rand: rand.New(rand.NewPCG(seed, 1))}
		work.Go(func() { sender.run(stop) })
		work.Go(func() { flushUntil(h.p(0), flushes, stop) })
		for range readers {
			work.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						r.once(t)
						time.Sleep(rest)
					}
				}
			})
		}
		jobs.Go(func() {
			for age := days; age >= least; age -= step {
				r.raise(age, func() { // reads that begin now may end after days are hidden
					for i := range 3 {
						work.Go(func() {
							time.Sleep(time.Duration(i) * 20 * time.Millisecond)
							r.once(t)
						})
					}
				})
				time.Sleep(r.grace / time.Duration(pauses))
			}
		})
		jobs.Go(func() { r.compact(compactions) })
		jobs.Wait()
		testkit.Until(t, "enough reads came to their end", func() bool { return r.reads.Load()-r.stopped.Load() >= int32(enough) })
		close(stop)
		work.Wait()
		t.Logf("%d reads, %d of them told of days that expired meanwhile, %d were too old; %d records of now",
			r.reads.Load(), r.partial.Load(), r.stopped.Load(), len(sender.known()))
		r.once(t)
		if left := of(logs(t, at), "web", func(d horizon.Day) bool { return d < e.day(days-step) }); len(left) > 0 {
			t.Errorf("hidden a grace ago, and not deleted: %v", left)
		}
		query(t, at, "verify")
		e.counts("app", e.day(least))
	})
}

// graceOf returns a grace long enough for reads on this machine. A read stops when
// half of the grace is over.
func graceOf(t *testing.T, h *house, e *estate) time.Duration {
	begun := time.Now()
	query(t, h.read, "web", e.flag, "-o", "json")
	return max(4*time.Second, (10 * time.Since(begun)).Truncate(2*time.Second))
}

// races is an estate that is read while it shrinks.
type races struct {
	*estate
	read   place
	flag   string // for readers
	ledger *check.Ledger
	grace  time.Duration
	// Days below from are certainly hidden, and those below to perhaps.
	from, to                atomic.Int32
	reads, partial, stopped atomic.Int32
}

// raise hides days, and deletes blobs that were hidden a while before. It calls soon right
// before.
func (r *races) raise(age int, soon func()) {
	r.to.Store(int32(r.day(age)))
	flag := config(r.t, fmt.Sprintf("tail: {prefix: %s}\nretention: {default: %dd, grace: %s}\n", r.prefix, age, r.grace))
	now := r.now.Format(time.RFC3339)
	r.job(func() (out, errs string, code int) {
		if out, errs, code = retain(r.t, r.at, "plan", "--now", now, flag); code == 0 {
			soon()
			out, errs, code = retain(r.t, r.at, "apply", "--now", now, flag, "--confirm", planHash(r.t, out))
		}
		return out, errs, code
	})
	r.from.Store(int32(r.day(age)))
}

// job runs a job again while the store is too slow for it.
func (r *races) job(run func() (out, errs string, code int)) {
	testkit.Until(r.t, "the store answers the job in time", func() bool {
		out, errs, code := run()
		slow := tooSlow(errs, code)
		if code != 0 && !slow {
			r.t.Errorf("the job exits %d: %s%s", code, out, errs)
		}
		return !slow
	})
}

// compact runs the compactor again and again.
func (r *races) compact(times int) {
	for range times {
		for _, verb := range []string{"close", "compact"} {
			r.job(func() (out, errs string, code int) { return retain(r.t, r.at, verb, r.flag) })
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// once reads all of the old days and compares them with the expected records.
func (r *races) once(t *testing.T) {
	from := horizon.Day(r.from.Load())
	out, note, code := logquery(t, r.read, "web", r.flag, "-o", "json", "--to", r.day(0).Start().Format(time.RFC3339))
	to := horizon.Day(r.to.Load())
	if tooSlow(note, code) {
		return
	}
	r.reads.Add(1)
	stopped := code == 3 && strings.Contains(note, "stopped after "+(r.grace/2).String())
	if code != 0 && !stopped {
		t.Errorf("exit code %d: %s", code, note)
		return
	}
	if stopped { // a slow machine: the read reports that it is incomplete
		r.stopped.Add(1)
	}
	got := map[horizon.Day]int{}
	seen := map[string]bool{}
	last := int64(0)
	for line := range bytes.Lines(out) {
		at, ok := record.LineTime(line)
		id := check.ID(line)
		if !ok || at < last || seen[id] {
			t.Errorf("twice, or out of order: %s", line)
		}
		last, seen[id] = at, true
		got[horizon.DayOfNs(at)]++
	}
	said := strings.Contains(note, "expired while it was read")
	if said {
		r.partial.Add(1)
	}
	for d, n := range r.want["web"] {
		switch {
		case d < from && got[d] > 0:
			t.Errorf("%d records of %s, which was hidden before", got[d], d)
		case stopped:
		case d >= to && got[d] != n:
			t.Errorf("%d records of %s, want %d; first kept is %s: %s", got[d], d, n, to, note)
		case got[d] != 0 && got[d] != n && !said:
			t.Errorf("%d of %d records of %s, in silence", got[d], n, d)
		}
	}
}
