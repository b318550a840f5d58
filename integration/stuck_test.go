package integration_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
)

// The store refuses one service, and uploads of another hang. Neither delays other
// services: they are stored as fast as ever, and the log deletes its segments. Once
// the store has recovered, the records of the failing services are stored too.
func TestOneServiceFails(t *testing.T) {
	t.Parallel()
	through, direct, px := proxied(t)
	p := start(t, through, t.TempDir(), config(t, "flush: {size: 1MiB, age: 300ms, max-age: 1s}\nlog: {segment: 1MiB, soft: 6MiB, max: 256MiB}\n"))
	ledger := &check.Ledger{}
	var ps []*producer
	for _, name := range []string{"web", "refused", "hung"} {
		ps = append(ps, &producer{p: p, ledger: ledger, name: name})
	}
	good, usual := ps[0], latency(t, ps[0], 3)

	px.set(some(map[string]fault{"/refused/": forbid, "/hung/": hang}))
	stop, enough := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	spare := sync.OnceFunc(func() { close(enough) })
	end := sync.OnceFunc(func() { close(stop); spare(); wg.Wait() })
	defer end()
	// Less of the failing services, or they would be most of the log.
	lasts := lasting(t, 15*time.Second)
	few := min(100<<10, int64(4<<20/lasts.Seconds()))
	for i, s := range ps {
		wg.Go(func() { s.run([]int64{2 << 20, few, few}[i], []chan struct{}{stop, enough, enough}[i]) })
	}
	begun, pace := time.Now(), measurePace()
	probe := &producer{p: p, ledger: ledger, name: "probe"}
	var while time.Duration
	letGo := p.letsGo(stop)
	for took := time.Duration(0); took < lasts || !letGo.Load() && took < lasts+testkit.Patience; took = time.Since(begun) {
		while = max(while, latency(t, probe, 3))
		if took >= lasts {
			spare() // a busy machine is late, and these would go on filling the log
		}
	}
	if !letGo.Load() {
		t.Error("the log is not let go of")
	}
	end()
	t.Logf("a request waits %v for its blob, %v with the store refusing others; %.0f MB were sent, the log has %.1f MB; %v batches parked",
		usual, while, float64(good.bytes)/1e6, p.metric("blobtail_log_bytes")/1e6, p.metric("blobtail_buffer_batches_parked_total"))
	// A request held up by the failing services would wait for a hanging attempt, 10
	// s.
	if limit := pace.end(3*usual + 3*time.Second); while > limit {
		t.Errorf("others are held up for more than %v", limit)
	}
	for _, s := range ps {
		if s.refused > 0 {
			t.Errorf("%d requests of %s were refused", s.refused, s.name)
		}
	}
	for _, service := range []string{"web", "probe"} {
		if n := count(t, direct, service); n == 0 {
			t.Errorf("nothing of %s is stored", service)
		}
	}
	px.server.CloseClientConnections() // else requests would hang for another half a minute
	px.set(healthy)
	if code, f, err := p.flush("?timeout=90s"); err != nil || code != http.StatusOK {
		t.Errorf("flush: %d %+v %v", code, f, err)
	}
	if rep := verifyLedger(t, direct, ledger); rep.Unknown > 0 || rep.Found != rep.Acked {
		t.Error(rep)
	}
}

// letsGo looks whether the ingester deletes segments of its log although some batches cannot
// be stored: an attempt that hangs is broken off after 10 s when it holds up the log. The log
// must be small once much more was taken.
func (p *ingester) letsGo(stop <-chan struct{}) *atomic.Bool {
	yes := &atomic.Bool{}
	go func() {
		for !yes.Load() {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			m, err := p.metrics()
			yes.Store(err == nil && m["blobtail_buffer_batches_parked_total"] > 1 && m["blobtail_log_bytes"] < 24<<20 &&
				m["blobtail_buffer_records_total"]*8000 > 32<<20)
		}
	}()
	return yes
}

// latency returns the median time that a request waits for its blob.
func latency(t *testing.T, s *producer, n int) time.Duration {
	t.Helper()
	var took []time.Duration
	for range n {
		data, ids := s.body()
		begun := time.Now()
		s.p.mustPost("/ingest/"+s.name, data, "Ack", "stored", "Idempotency-Key", fmt.Sprintf("%s-%d", s.name, s.sent))
		took = append(took, time.Since(begun))
		s.ledger.Acked(ids...)
	}
	slices.Sort(took)
	return took[n/2]
}
