package integration_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/check"
	"blobtail/record"
)

// printed keeps the lines of followers.
type printed struct {
	mu     sync.Mutex
	lines  [][]byte
	seen   map[string]bool
	probed atomic.Bool
}

func (p *printed) line(line []byte, _ time.Time) {
	id := check.ID(line)
	if strings.HasPrefix(id, "probe-") {
		p.probed.Store(true)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[id] = true
	p.lines = append(p.lines, bytes.Clone(line))
}

// has tells whether all of some records were printed.
func (p *printed) has(all []told) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range all {
		if !p.seen[r.id] {
			return false
		}
	}
	return true
}

// verify holds what was printed against the ledger. The order is not its matter:
// what an ingester had when it was killed comes when it is back. Of the records in
// again only the first copy counts.
func (p *printed) verify(t *testing.T, what string, ledger *check.Ledger, again map[string]bool) check.Report {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	first := map[string]bool{}
	lines := slices.DeleteFunc(slices.Clone(p.lines), func(line []byte) bool {
		id := check.ID(line)
		copied := first[id] && again[id]
		first[id] = true
		return copied
	})
	copies := len(p.lines) - len(lines)
	slices.SortStableFunc(lines, func(a, b []byte) int {
		x, _ := record.LineTime(a)
		y, _ := record.LineTime(b)
		return int(max(-1, min(1, x-y)))
	})
	r, err := ledger.Verify(bytes.NewReader(bytes.Join(lines, nil)))
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	t.Logf("%s: %v, and %d copies", what, r, copies)
	return r
}

// Followers miss nothing and print nothing twice while ingesters are killed and
// come back, while the store is away, and while they themselves are ended and go on
// from where they were. Senders send again what was not acknowledged, many of them
// to another ingester.
func TestFollowRestarts(t *testing.T) {
	t.Parallel()
	t.Run("dir", func(t *testing.T) {
		t.Parallel()
		at, _ := dirStore(t)
		followRestarts(t, at, func(bool) {})
	})
	t.Run("azure", func(t *testing.T) {
		t.Parallel()
		at, _ := azureStore(t)
		through, cut := cabled(t, at)
		followRestarts(t, through, cut)
	})
}

func followRestarts(t *testing.T, at place, away func(bool)) {
	rng := rand.New(rand.NewPCG(newSeed(t), 3))
	h := newHouse(t, at, 3, config(t, small))
	ledger := &check.Ledger{}
	whole, parts := &printed{}, &printed{}
	services := []string{"web", "api"}
	follow(t, h.read, whole.line, "tail", "web", "api", "-f", "-n", "0")
	part := follow(t, h.read, parts.line, "tail", "web", "api", "-f", "-n", "0")
	probe(t, h.p(0), "web", func() bool { return whole.probed.Load() && parts.probed.Load() })

	stop := make(chan struct{})
	var sending sync.WaitGroup
	var tellers []*teller
	for i := range 6 {
		c := &teller{name: fmt.Sprintf("c%d", i), services: services, ledger: ledger, house: h, only: i%4 - 1,
			size: 20, pause: 15 * time.Millisecond, keys: i%2 == 0, rand: rand.New(rand.NewPCG(rng.Uint64(), 1))}
		tellers = append(tellers, c)
		sending.Go(func() { c.run(stop) })
	}
	begun := time.Now()
	lasts := lasting(t, 8*time.Second)
	for round := 0; time.Since(begun) < lasts; round++ {
		time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
		h.restart(1+rng.IntN(2), time.Duration(rng.IntN(300))*time.Millisecond)
		switch round % 4 {
		case 1:
			away(true)
		case 3:
			away(false)
		default:
			cursor := part.interrupt()
			part = follow(t, h.read, parts.line, "tail", "web", "api", "-f", "--after", cursor)
		}
	}
	away(false)
	h.restart(0, 0) // whom readers ask on Azure
	time.Sleep(200 * time.Millisecond)
	close(stop)
	sending.Wait()

	strayed := map[string]bool{}
	for _, c := range tellers {
		until(t, "all that was acknowledged is printed", func() bool { return whole.has(c.known()) && parts.has(c.known()) })
		for id := range c.strayed {
			strayed[id] = true
		}
	}
	time.Sleep(time.Second) // for what comes twice
	part.interrupt()
	rep := whole.verify(t, "one follower", ledger, nil)
	// Who goes on does not know anew what its predecessor printed: what was sent to
	// another ingester meanwhile may come again.
	parts.verify(t, "one after the other", ledger, strayed)
	if rep.Acked < 2000 {
		t.Errorf("%d records were acknowledged, too few for this to mean anything", rep.Acked)
	}
}
