package integration_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
)

// fleetOfTellers sends about 5,000 records a second to the first ingester of a house.
func fleetOfTellers(t testing.TB, h *house, ledger *check.Ledger) (tellers []*teller, stop func()) {
	rng := rand.New(rand.NewPCG(newSeed(t), 17))
	done := make(chan struct{})
	var sending sync.WaitGroup
	for i := range 2 {
		c := &teller{name: fmt.Sprintf("c%d", i), services: []string{"web", "api"}, ledger: ledger, house: h,
			size: 60, pause: 10 * time.Millisecond, keys: true, rand: rand.New(rand.NewPCG(rng.Uint64(), 1))}
		tellers = append(tellers, c)
		sending.Go(func() { c.run(done) })
	}
	return tellers, sync.OnceFunc(func() {
		close(done)
		sending.Wait()
	})
}

func knownOf(tellers []*teller) (all []told) {
	for _, c := range tellers {
		all = append(all, c.known()...)
	}
	return all
}

// A client of server-sent events gets each record once, though the server and an ingester are
// restarted meanwhile, gently and not. A client of a WebSocket does so while the server runs.
func TestServeTailRestarts(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	h := newHouse(t, at, 1, config(t, small))
	ledger := &check.Ledger{}
	steady, s := serve(t, h.read), serve(t, h.read)
	events, frames := &printed{}, &printed{}
	sse := s.events(t, "service=web&service=api&n=0", events.line)
	ws := steady.frames(t, `query={service_name=~"web|api"}`, frames.line)
	probe(t, h.p(0), "web", func() bool { return events.probed.Load() && frames.probed.Load() })

	tellers, stop := fleetOfTellers(t, h, ledger)
	defer stop()
	begun := time.Now()
	for round := 0; time.Since(begun) < briefly(t, 5*time.Second, 2*time.Minute) || round < 4; round++ {
		time.Sleep(700 * time.Millisecond)
		switch round % 4 {
		case 0:
			s.restart(true)
		case 1:
			h.restart(0, false, 100*time.Millisecond)
		case 2:
			s.restart(false)
		case 3:
			h.restart(0, true, 100*time.Millisecond)
		}
	}
	stop()
	all := knownOf(tellers)
	testkit.Until(t, "all that was acknowledged has come", func() bool { return events.has(all, 0) && frames.has(all, 0) })
	time.Sleep(time.Second) // for duplicates
	t.Logf("%d records, %.0f a second; %d and %d streams", len(all), float64(len(all))/time.Since(begun).Seconds(), sse.streams(), ws.streams())
	sse.stop()
	ws.stop()
	events.verify(t, "server-sent events", ledger, nil)
	frames.verify(t, "WebSocket", ledger, nil)
}

// A server that ends drops its tails without a close frame, after which Grafana comes again.
func TestServeTailEnds(t *testing.T) {
	longOnly(t, "cmd/query TestServeEnds has it in its own process")
	t.Parallel()
	at, _ := dirStore(t)
	h := newHouse(t, at, 1, config(t, small))
	for _, with := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		s := serve(t, h.read)
		out := &printed{}
		l := s.frames(t, `query={service_name="web"}`, out.line)
		probe(t, h.p(0), "web", out.probed.Load)
		s.end(with)
		testkit.Until(t, "the stream ends", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.ended) > 0
		})
		l.stop()
		if first := l.ended[0]; strings.Contains(first, "StatusCode(1") || strings.Contains(first, "StatusNormalClosure") || strings.Contains(first, "StatusGoingAway") {
			t.Errorf("%v: the stream ended with %q, want no close frame", with, first)
		}
	}
}

// A slow client of a tail slows down only itself. It loses nothing.
func TestServeTailSlow(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	h := newHouse(t, at, 1, config(t, small))
	s := serve(t, h.read)
	ledger := &check.Ledger{}
	fast, slow := &printed{}, &printed{}
	var delay atomic.Int64 // the longest, of the fast client
	var hold atomic.Bool
	s.events(t, "service=web&service=api&n=0", func(line []byte, at time.Time) {
		fast.line(line, at)
		delay.Store(max(delay.Load(), int64(at.Sub(timeOf(line)))))
	})
	crawl := func(line []byte, at time.Time) {
		if hold.Load() {
			time.Sleep(time.Second)
		}
		slow.line(line, at)
	}
	s.events(t, "service=web&service=api&n=0", crawl)
	probe(t, h.p(0), "web", func() bool { return fast.probed.Load() && slow.probed.Load() })
	hold.Store(true)
	delay.Store(0)
	tellers, stop := fleetOfTellers(t, h, ledger)
	defer stop()
	time.Sleep(briefly(t, 3*time.Second, time.Minute))
	stop()
	all := knownOf(tellers)
	testkit.Until(t, "the fast client has all", func() bool { return fast.has(all, 0) })
	late := time.Duration(delay.Load())
	if had := slow.count(); had > len(all)/2 {
		t.Errorf("the slow client has %d of %d records already", had, len(all))
	}
	hold.Store(false)
	testkit.Until(t, "the slow client has all", func() bool { return slow.has(all, 0) })
	t.Logf("%d records; the fast client got each within %v; the server used %d MiB", len(all), late, s.memory())
	if h.p(0).late(late, 5*time.Second) {
		t.Errorf("a record took %v to the fast client", late)
	}
	if most := 300; s.memory() > most {
		t.Errorf("the server used %d MiB, more than %d", s.memory(), most)
	}
	fast.verify(t, "fast", ledger, nil)
	slow.verify(t, "slow", ledger, nil)
}

// A hundred tails at once get each record once.
func TestServeTailMany(t *testing.T) {
	longOnly(t, "TestManyTails of lokiapi and of readapi have it in their own process")
	t.Parallel()
	at, _ := dirStore(t)
	h := newHouse(t, at, 1, config(t, small))
	s := serve(t, h.read)
	const tails = 100
	var outs [tails]printed
	for i := range tails {
		if i%2 == 0 {
			s.events(t, "service=web&n=0", outs[i].line)
		} else {
			s.frames(t, `query={service_name="web"}`, outs[i].line)
		}
	}
	probe(t, h.p(0), "web", func() bool {
		for i := range outs {
			if !outs[i].probed.Load() {
				return false
			}
		}
		return true
	})
	var all []told
	for round := range 20 {
		var body []byte
		for i := range 10 {
			r := told{fmt.Sprintf("r%d-%d", round, i), "web", time.Now().UnixNano()}
			body = appendRecord(body, r.at, r.id, "for a hundred")
			all = append(all, r)
		}
		h.p(0).mustPost("/ingest/web", body)
		time.Sleep(100 * time.Millisecond)
	}
	for i := range outs {
		testkit.Until(t, "each tail has all", func() bool { return outs[i].has(all, 0) })
	}
	time.Sleep(time.Second) // for duplicates
	for i := range outs {
		if outs[i].count() != len(all) {
			t.Errorf("tail %d got %d records, want %d", i, outs[i].count(), len(all))
		}
	}
}
