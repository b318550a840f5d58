package integration_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
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

// has reports whether all given records with a time of from or later were printed.
func (p *printed) has(all []told, from int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range all {
		if !p.seen[r.id] && r.at >= from {
			return false
		}
	}
	return true
}

// oldest returns the time of the first line. Records with older times came late.
func (p *printed) oldest() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, _ := record.LineTime(p.lines[0])
	return at
}

func (p *printed) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines)
}

// excusing returns a ledger that does not require unprinted records older than from.
// It also returns their number.
func (p *printed) excusing(all []told, from int64) (ledger *check.Ledger, excused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ledger = &check.Ledger{}
	for _, r := range all {
		ledger.Sent(r.id, r.service, r.at)
		if p.seen[r.id] || r.at >= from {
			ledger.Acked(r.id)
		} else {
			excused++
		}
	}
	return ledger, excused
}

var missingNote = regexp.MustCompile(`what came (?:since )?with times before (\S+) (?:may be missing|is not shown)`)

// mayMiss returns the time up to which records may be missing, by the notes.
func (f *following) mayMiss() (to int64) {
	for _, m := range missingNote.FindAllStringSubmatch(f.Log(), -1) {
		at, err := time.Parse(time.RFC3339Nano, m[1])
		if err != nil {
			f.t.Errorf("%q: %v", m[0], err)
		}
		to = max(to, at.UnixNano())
	}
	return to
}

// verify compares the printed records with the ledger. It does not check the order,
// because records that a killed ingester held appear after its restart. Of the
// records in again only the first copy counts.
func (p *printed) verify(t *testing.T, what string, ledger *check.Ledger, again map[string]bool) {
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
}

// Followers miss nothing and print nothing twice while ingesters are killed or
// stopped and come back, and while the store is away. Followers are also ended and go
// on from their last position. Senders send unacknowledged records again, many of
// them to another ingester.
func TestFollowRestarts(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		if strings.HasPrefix(at.store, "dir:") {
			followRestarts(t, at, func(bool) {})
			return
		}
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

	// An ingester with an empty log writes its row before it is ready, so it needs the store.
	h.unready = func() { away(false) }
	stop := make(chan struct{})
	var sending sync.WaitGroup
	var tellers []*teller
	for i := range 6 {
		c := &teller{name: fmt.Sprintf("c%d", i), services: services, ledger: ledger, house: h, only: i%4 - 1,
			size: 20, pause: 15 * time.Millisecond, keys: i%2 == 0, rand: rand.New(rand.NewPCG(rng.Uint64(), 1))}
		tellers = append(tellers, c)
		sending.Go(func() { c.run(stop) })
	}
	begun, excuse := time.Now(), int64(0)
	lasts := briefly(t, 8*time.Second, 2*time.Minute)
	ledgered := func() (n int) {
		for _, c := range tellers {
			n += len(c.known())
		}
		return n
	}
	for round := 0; time.Since(begun) < lasts || ledgered() < 2000; round++ {
		time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
		h.restart(1+rng.IntN(2), rng.IntN(4) == 0, time.Duration(rng.IntN(300))*time.Millisecond)
		switch round % 4 {
		case 1:
			away(true)
		case 2: // a follower goes on while the store is away, and does not begin then
		case 3:
			away(false)
		default:
			cursor := part.interrupt()
			excuse = max(excuse, part.mayMiss())
			before := parts.count()
			part = follow(t, h.read, parts.line, "tail", "web", "api", "-f", "--after", cursor)
			testkit.Until(t, "a follower goes on", func() bool { return parts.count() > before })
		}
	}
	away(false)
	h.restart(0, false, 0) // the ingester that readers ask on Azure
	time.Sleep(200 * time.Millisecond)
	close(stop)
	sending.Wait()

	strayed := map[string]bool{}
	var all []told
	for _, c := range tellers {
		all = append(all, c.known()...)
		for id := range c.strayed {
			strayed[id] = true
		}
	}
	testkit.Until(t, "all that was acknowledged is printed", func() bool {
		return whole.has(all, 0) && parts.has(all, max(excuse, part.mayMiss()))
	})
	time.Sleep(time.Second) // for duplicates
	part.interrupt()
	whole.verify(t, "one follower", ledger, nil)
	// A resumed follower does not know its predecessor's output. Records that were
	// sent to another ingester meanwhile may appear again. If it has to read blobs,
	// it does not show new records with times that the predecessor had passed. It
	// reports that.
	lenient, excused := parts.excusing(all, max(excuse, part.mayMiss()))
	parts.verify(t, "one after the other", lenient, strayed)
	// Each of them is older than a time that a note names. One gap may be a large part of a
	// short run.
	t.Logf("%d records are missing where that was said", excused)
	if excused*2 > len(all) {
		t.Errorf("%d of %d records are missing, though that was said", excused, len(all))
	}
}

// A follower begins with the existing records and goes on without a gap and without
// duplicates, even for records then on their way from a log to a blob. On a machine so
// busy that the store times out it may report a gap.
func TestFollowBegins(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		rng := rand.New(rand.NewPCG(newSeed(t), 11))
		h := newHouse(t, at, 3, config(t, small))
		ledger := &check.Ledger{}
		stop := make(chan struct{})
		var working sync.WaitGroup
		u := &union{t: t, at: h.read}
		for i := range 3 {
			c := &teller{name: fmt.Sprintf("c%d", i), services: []string{"web", "api"}, ledger: ledger, house: h, only: i,
				size: 20, pause: 15 * time.Millisecond, rand: rand.New(rand.NewPCG(rng.Uint64(), 1))}
			u.tellers = append(u.tellers, c)
			working.Go(func() { c.run(stop) })
			working.Go(func() { flushUntil(h.p(i), 200*time.Millisecond, stop) })
		}
		u.awaitServices()
		time.Sleep(time.Second)
		var running, begun sync.WaitGroup
		for _, flags := range [][]string{{"-n", "1"}, {"-n", "100"}, {"-n", "3000"}, {"--since", "1s"}, {"--since", "1m"}} {
			begun.Add(1)
			running.Go(func() {
				over := sync.OnceFunc(begun.Done)
				defer over()
				out := &printed{}
				f := follow(t, h.read, out.line, append([]string{"tail", "web", "api", "-f"}, flags...)...)
				time.Sleep(4 * time.Second)
				testkit.Until(t, "it prints something", func() bool { return out.count() > 0 })
				must := u.known()
				over()
				testkit.Until(t, "it prints what was acknowledged", func() bool { return out.has(must, max(out.oldest(), f.mayMiss())) })
				time.Sleep(500 * time.Millisecond) // for duplicates
				f.interrupt()
				out.verifyFrom(t, strings.Join(flags, " "), must, f.mayMiss())
			})
			time.Sleep(300 * time.Millisecond)
		}
		// Blobs that go on coming would slow down the emulator, and a busy machine would
		// never print all.
		begun.Wait()
		close(stop)
		working.Wait()
		running.Wait()
	})
}

// verifyFrom wants all given records that are not older than the first printed one, or
// than the end of the reported gap, and no duplicates.
func (p *printed) verifyFrom(t *testing.T, what string, must []told, gap int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lines) == 0 {
		t.Errorf("%s: nothing is printed", what)
		return
	}
	oldest, _ := record.LineTime(p.lines[0]) // older records came late
	if twice := len(p.lines) - len(p.seen); twice > 0 {
		t.Errorf("%s: %d records are printed twice", what, twice)
	}
	wanted, missing := 0, 0
	for _, r := range must {
		if r.at < max(oldest, gap) {
			continue
		}
		if wanted++; !p.seen[r.id] {
			if missing++; missing <= 3 {
				t.Errorf("%s: %s of %d is missing; the first that is printed is of %d", what, r.id, r.at, oldest)
			}
		}
	}
	t.Logf("%s: %d printed, %d had to be, %d are missing", what, len(p.lines), wanted, missing)
}
