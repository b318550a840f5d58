package unflushed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/record"
)

// screen holds the output of a follower.
type screen struct {
	c *company

	mu       sync.Mutex
	lines    []shown
	problems []string
	notes    []string
	gaps     []unflushed.Gap
}

type shown struct {
	name string
	at   time.Time
}

// options are those of a follower that writes to the screen.
func (s *screen) options(q blobs.Query) unflushed.FollowOptions {
	return unflushed.FollowOptions{
		Query: q,
		Emit: func(lines []byte) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			for line := range bytes.Lines(lines) {
				s.lines = append(s.lines, shown{nameOf(line), time.Now()})
			}
			return nil
		},
		Report: func(r *unflushed.Report) {
			for _, err := range r.Problems {
				s.add(&s.problems, err.Error())
			}
			for _, text := range r.Notes {
				s.add(&s.notes, text)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.gaps = append(s.gaps, r.Gaps...)
		},
	}
}

func (s *screen) add(to *[]string, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*to = append(*to, time.Now().Format("04:05.000 ")+text)
}

func (s *screen) get(from *[]string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(*from)
}

func (s *screen) names() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		names = append(names, l.name)
	}
	return names
}

// following is a running follower.
type following struct {
	stop   context.CancelFunc
	ended  chan struct{}
	cursor unflushed.Cursor
	err    error
}

func follow(r *unflushed.Reader, o unflushed.FollowOptions) *following {
	ctx, cancel := context.WithCancel(context.Background())
	f := &following{stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		f.cursor, f.err = r.Follow(ctx, o)
	}()
	return f
}

// end interrupts it and returns the cursor, by way of its text.
func (f *following) end(t *testing.T) *unflushed.Cursor {
	t.Helper()
	f.stop()
	<-f.ended
	if !errors.Is(f.err, context.Canceled) {
		t.Errorf("the follower ends with %v", f.err)
	}
	c, err := unflushed.ParseCursor(f.cursor.String())
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// story is a random follow.
type story struct {
	*company
	rng      *rand.Rand
	screen   *screen
	kinds    kinds
	resumed  []int64 // where followers went on
	ends     []time.Time
	began    time.Time
	troubles []span // spans in which only completeness is promised
}

type span struct{ from, to time.Time }

// kinds are the events of a story.
type kinds int

const (
	remembering kinds = iota // kills and cursors
	draining                 // kills, and ingesters that end with all records in blobs
	forgetting               // all of these, and logs that release stored records
)

// calm reports whether nothing happened around a time.
func (s *story) calm(at time.Time) bool {
	return !slices.ContainsFunc(s.troubles, func(t span) bool { return at.After(t.from.Add(-4*time.Second)) && at.Before(t.to.Add(15*time.Second)) })
}

func (s *story) pick(rng *rand.Rand) *ingester {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[rng.IntN(len(s.all))]
}

func (s *story) replace(old, fresh *ingester) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[slices.Index(s.all, old)] = fresh
}

// client sends requests to a running ingester, and tries others until one acknowledges.
func (s *story) client(rng *rand.Rand, late time.Duration, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rng.IntN(120)) * time.Millisecond):
		}
		var lines []line
		for range 1 + rng.IntN(3) {
			l := line{service: []string{"web", "db"}[rng.IntN(2)], at: -time.Duration(rng.IntN(200)) * time.Millisecond, pad: rng.IntN(100)}
			switch odd := rng.IntN(15); {
			case late == 0:
			case odd == 0:
				l.at = -time.Duration(rng.Int64N(int64(late)))
			case odd == 1:
				l.at = time.Duration(rng.IntN(3600)) * time.Second
			}
			lines = append(lines, l)
		}
		r, all := s.request(lines...)
		if rng.IntN(8) == 0 {
			_ = s.pick(rng).accept(r, all, false)
			for _, r := range all {
				r.copied = true
			}
		}
		for s.pick(rng).accept(r, all, true) != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// straddles reports whether a record came to two ingesters about when a follower ended: one copy
// may be in its last answer, and the other one in the first answer of the next follower.
func (s *story) straddles(r *sentRecord) bool {
	return r != nil && r.copied && slices.ContainsFunc(s.ends, func(end time.Time) bool { return end.Sub(r.acked).Abs() < time.Second })
}

// check compares the records shown with those acknowledged.
func (s *story) check() {
	t := s.t
	names := s.screen.names()
	all := s.ackedNow(func(*sentRecord) bool { return true })
	s.once(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return s.straddles(all[name]) }))
	got := map[string]time.Time{}
	for _, l := range s.screen.lines {
		if _, ok := got[l.name]; !ok {
			got[l.name] = l.at
		}
	}
	lost, slow, calm := 0, 0, 0
	for name, r := range s.ackedNow(func(r *sentRecord) bool { return r.acked.After(s.began) }) {
		at, ok := got[name]
		switch {
		case !ok && s.excused(r):
		case !ok:
			if lost++; lost < 10 {
				t.Errorf("%s of %s, time %s, acknowledged at %s, was not shown", name, r.service, clock(r.time), r.acked.Format("04:05.000"))
			}
		case s.calm(r.acked):
			calm++
			if d := at.Sub(r.acked); d > 2*time.Second && slow < 10 {
				slow++
				t.Errorf("%s, acknowledged at %s, was shown %s later", name, r.acked.Format("04:05.000"), d)
			}
		}
	}
	if lost > 0 {
		t.Errorf("%d were not shown", lost)
	}
	s.inOrder()
	if t.Failed() {
		t.Logf("began at %s; troubles:", s.began.Format("04:05.000"))
		for _, x := range s.troubles {
			t.Logf("%s to %s", x.from.Format("04:05.000"), x.to.Format("04:05.000"))
		}
		t.Logf("%d shown, %d of them in calm\n%s\n%s", len(names), calm, strings.Join(s.screen.problems, "\n"), strings.Join(s.screen.notes, "\n"))
	}
	if calm == 0 {
		t.Error("no calm moment: the test shows nothing of how fresh records are")
	}
}

// excused reports whether a record may be missing: it was in transit when a follower was
// interrupted, no log remembers that follower's position, and a note says so.
func (s *story) excused(r *sentRecord) bool {
	return s.kinds == forgetting && slices.ContainsFunc(s.resumed, func(last int64) bool {
		return r.time <= last && r.time > last-int64(time.Second) &&
			slices.ContainsFunc(s.screen.notes, func(note string) bool {
				return strings.HasSuffix(note, "before "+string(record.AppendTime(nil, last))+" may be missing")
			})
	})
}

func clock(ns int64) string { return time.Unix(0, ns).UTC().Format("04:05.000") }

// inOrder checks that records acknowledged within a moment come out in order: a record
// acknowledged half a second before a later one was shown must come first.
func (s *story) inOrder() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last *sentRecord // the greatest one shown, without those from the future
	var at time.Time
	for _, l := range s.screen.lines {
		r := s.ledger[l.name]
		if r == nil || !s.calm(r.acked) || r.time > r.acked.UnixNano() {
			continue
		}
		if last != nil && r.time < last.time && r.acked.Before(at.Add(-500*time.Millisecond)) {
			s.t.Errorf("%s of %s, acknowledged at %s, is shown behind %s of %s, which was shown at %s", r.name, clock(r.time), r.acked.Format("04:05.000"),
				last.name, clock(last.time), at.Format("04:05.000"))
		}
		if last == nil || r.time > last.time {
			last, at = r, l.at
		}
	}
}

// A record acknowledged after a follower began is shown once, even if ingesters fail
// or end. The same holds across an interruption, if the follower gets its cursor.
func TestFollow(t *testing.T) {
	for seed := range uint64(testkit.Share(12, 1)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tell(t, seed) })
		})
	}
}

func tell(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	s := &story{company: newCompany(t, 3), rng: rng}
	s.screen = &screen{c: s.company}
	defer s.Stop()
	s.Faults(slow(rng))
	// Records with odd times are promised only if the ingesters or the follower remember
	// all of them.
	late := 25 * time.Second
	switch s.kinds = kinds(seed % 3); s.kinds {
	case remembering:
		for _, in := range s.all {
			in.holds(64<<20, 64<<10, time.Hour)
		}
	case forgetting:
		late = 0
	}
	for _, in := range s.all {
		in.start()
	}
	time.Sleep(time.Second)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range uint64(2) {
		clients.Go(func() { s.client(rand.New(rand.NewPCG(seed, 10+i)), late, stop) })
	}
	time.Sleep(4 * time.Second)
	q := always("*")
	q.Limit = rng.IntN(2) * 10
	s.began = time.Now().Add(time.Second)
	f := follow(s.reader(), s.screen.options(q))
	time.Sleep(time.Second)
	for range 8 {
		time.Sleep(time.Duration(rng.IntN(25)) * time.Second)
		s.act(&f)
	}
	time.Sleep(25 * time.Second)
	close(stop)
	clients.Wait()
	time.Sleep(20 * time.Second)
	f.end(t)
	s.check()
}

// act makes something happen.
func (s *story) act(f **following) {
	in := s.pick(s.rng)
	begun := time.Now()
	away := time.Duration(s.rng.IntN(4)*s.rng.IntN(30)) * time.Second
	switch s.rng.IntN(4) {
	case 0:
		if s.kinds == remembering {
			return // a log releases stored records when it is opened again
		}
		in.Flush()
		return
	case 1:
		in.Kill()
		time.Sleep(away)
		in.start()
	case 2:
		if s.kinds == draining {
			return
		}
		cursor := (*f).end(s.t)
		s.resumed = append(s.resumed, cursor.Last.Time)
		s.ends = append(s.ends, time.Now())
		if s.rng.IntN(2) == 0 {
			in.Kill()
			in.start()
		}
		time.Sleep(away)
		o := s.screen.options(always("*"))
		o.After = cursor
		*f = follow(s.reader(), o)
	case 3:
		if s.kinds == remembering {
			return
		}
		in.Drain()
		time.Sleep(away)
		if s.rng.IntN(3) == 0 { // start another in its place
			fresh := s.add()
			fresh.start()
			s.replace(in, fresh)
		} else {
			in.start()
		}
	}
	s.troubles = append(s.troubles, span{begun, time.Now()})
}
