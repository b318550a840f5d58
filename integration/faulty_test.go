package integration_test

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
)

// usual returns how many in a thousand requests meet each fault.
func usual() map[fault]int {
	return map[fault]int{refuse: 50, fail: 20, lose: 20, hang: 10, cutBody: 5, cutAnswer: 5, drip: 20}
}

// The store fails now and then in every known way. Clients send unanswered requests
// again to other ingesters, and a stream redelivers messages. Three ingesters, two of
// them on one lane by mistake, must lose nothing, show nothing twice, and not grow.
func TestFaultyStore(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	through, direct, px := proxied(t)
	pause, flush := 20*time.Millisecond, "min: 16KiB, max-age: 2s"
	if _, long := torture(t); long {
		pause *= 4 // the sent records are held in memory
		// Azurite looks at every blob that it holds at each request: a read of 6,000 blobs
		// takes minutes on a busy machine.
		flush = "min: 64KiB, max-age: 8s"
	} else {
		// Otherwise a hang lasts until the request times out, half a minute.
		px.hangs.Store(int64(2 * time.Second))
	}
	px.set(bad(seed, usual()))

	from := shortStream(t)
	conf := config(t, "flush: {size: 256KiB, age: 500ms, "+flush+"}\nlog: {segment: 1MiB, soft: 16MiB}\n"+from.config())
	var ps []*ingester
	for _, lane := range []string{"5", "5", "6"} {
		ps = append(ps, start(t, through, t.TempDir(), conf, "--lane", lane))
	}
	ledger := &check.Ledger{}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, c := range newClients(4, ledger, nil, seed) {
		c.roam(ps)
		c.pause = pause
		wg.Go(func() { c.run(stop) })
	}
	m := newClients(1, ledger, nil, seed+1)[0]
	m.name, m.single = "m0", true
	wg.Go(func() { from.publish(m, stop) })
	var grown []*growth
	for _, p := range ps {
		grown = append(grown, watch(p))
	}
	time.Sleep(lasting(t, 10*time.Second))
	testkit.Until(t, "enough has happened", func() bool {
		taken := 0.0
		for _, p := range ps {
			taken += p.metric("blobtail_buffer_records_total")
		}
		return taken >= 1000 && px.done() >= 20
	})
	for _, g := range grown {
		g.end()
	}
	close(stop)
	wg.Wait()
	px.set(healthy)
	for _, p := range ps {
		// An ingester that shares a lane sends more requests, hangs more often, and
		// falls behind.
		p.mustFlush()
	}
	empty(t, from.js, ps...)

	rep := verifyLedger(t, direct, ledger)
	px.set(bad(seed, map[fault]int{refuse: 10, lose: 10, cutAnswer: 100, drip: 20}))
	readBadly(t, through, direct)
	for _, g := range grown {
		g.check(t, 64<<20)
	}
	countCreates(t, direct, px, ps, ps[2], 6)
	t.Log(px.report())
	if rep.Acked < 500 || px.done() < 20 {
		t.Error("too little happened for this to mean anything")
	}
}

// countCreates compares the ingesters' own counts of blobs with the blobs in the
// store. For the ingester with a lane of its own, it also compares the creates that
// it sent.
func countCreates(t *testing.T, direct place, px *proxy, ps []*ingester, one *ingester, lane int) {
	t.Helper()
	written, foreign := 0.0, 0.0
	for _, p := range ps {
		written += p.metric("blobtail_blob_written_total")
		foreign += p.metric("blobtail_blob_foreign_total")
	}
	if blobs := countBlobs(t, direct); blobs != int(written) {
		t.Errorf("%v blobs written, %d are there", written, blobs)
	}
	alone := one.metric("blobtail_blob_written_total")
	each := float64(px.creates[lane].Load()) / alone
	t.Logf("%v blobs; %.2f creates for each of the %v of the lane that one has alone; %v names were taken by another", written, each, alone, foreign)
	if each > 1.3 { // failed requests are repeated; others should not be
		t.Errorf("%.2f creates for each blob", each)
	}
}

// readBadly reads an hour from a failing store. The read returns all of it, or prints
// a note about the missing records.
func readBadly(t *testing.T, through, direct place) {
	t.Helper()
	part := []string{"web", "--from", "2026-11-10T12:00:00Z", "--to", "2026-11-10T13:00:00Z", "-o", "json"}
	want := query(t, direct, part...)
	whole := 0
	for range 3 {
		out, errs, code := logquery(t, through, part...)
		switch {
		case code == 0 && bytes.Equal(out, want):
			whole++
		case code != 3 && code != 5:
			t.Errorf("a read of a store that fails exits %d with %d of %d bytes: %s", code, len(out), len(want), errs)
		}
	}
	t.Logf("%d of 3 reads of a store that fails were whole, the others said that they were not", whole)
}

// growth watches the size of a process.
type growth struct {
	p          *ingester
	stop, gone chan struct{}
	rss, gos   []float64
}

// watch starts watching. The memory that a process needs at its start does not count.
func watch(p *ingester) *growth {
	g := &growth{p: p, stop: make(chan struct{}), gone: make(chan struct{})}
	go func() {
		defer close(g.gone)
		for {
			select {
			case <-g.stop:
				return
			case <-time.After(500 * time.Millisecond):
				if m, err := p.metrics(); err == nil {
					g.rss = append(g.rss, m["process_resident_memory_bytes"])
					g.gos = append(g.gos, m["go_goroutines"])
				}
			}
		}
	}()
	return g
}

func (g *growth) end() {
	close(g.stop)
	<-g.gone
}

// check compares the second quarter of the samples with the last: unbounded growth
// makes the last larger. The slack in bytes covers the memory that the garbage collector
// may leave.
func (g *growth) check(t *testing.T, slack float64) {
	t.Helper()
	n := len(g.rss)
	if n < 8 {
		t.Errorf("only %d looks at the process", n)
		return
	}
	before, after := median(g.rss[n/4:n/2]), median(g.rss[n*3/4:])
	gosBefore, gosAfter := median(g.gos[n/4:n/2]), median(g.gos[n*3/4:])
	t.Logf("memory %.0f MiB and then %.0f MiB, at most %.0f; goroutines %.0f and then %.0f, at most %.0f",
		before/(1<<20), after/(1<<20), slices.Max(g.rss)/(1<<20), gosBefore, gosAfter, slices.Max(g.gos))
	if after > before*1.1+slack || gosAfter > gosBefore+50 {
		t.Error("the process grows")
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
