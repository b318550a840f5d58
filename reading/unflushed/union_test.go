package unflushed_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/record"
	"blobtail/storage/storagetest"
)

// slow delays each call to the blob store, so that a flush has many moments for a test to
// read at.
func slow(rng *rand.Rand) storagetest.Script {
	return func(op storagetest.Op, _ string) storagetest.Fault {
		switch op {
		case storagetest.Create, storagetest.Stat:
			return storagetest.Fault{Delay: time.Duration(200+len(op)*50) * time.Millisecond}
		case storagetest.List, storagetest.Get, storagetest.Dirs, storagetest.Scan:
			return storagetest.Fault{Delay: 3 * time.Millisecond}
		}
		return storagetest.Fault{}
	}
}

// traffic sends requests to all ingesters, some of them twice, until stop.
func (c *company) traffic(rng *rand.Rand, services []string, pause time.Duration, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rng.Int64N(int64(pause)))):
		}
		var lines []line
		for range 1 + rng.IntN(4) {
			l := line{service: services[rng.IntN(len(services))], level: []string{"info", "warn", "error", "critical"}[rng.IntN(4)], pad: rng.IntN(300)}
			switch rng.IntN(12) {
			case 0:
				l.at = -time.Duration(rng.IntN(25)) * time.Second
			case 1:
				l.at = time.Duration(rng.IntN(90)) * time.Second
			default:
				l.at = -time.Duration(rng.IntN(300)) * time.Millisecond
			}
			if rng.IntN(30) == 0 {
				l.pad = 40 << 10 // too long for a row of the tail
			}
			lines = append(lines, l)
		}
		r, all := c.request(lines...)
		first := c.all[rng.IntN(len(c.all))]
		if rng.IntN(6) == 0 && len(c.all) > 1 { // the response is lost, and the sender tries another
			_ = first.accept(r, all, false)
			first = c.all[rng.IntN(len(c.all))]
		}
		if err := first.accept(r, all, true); err != nil {
			c.t.Errorf("send: %v", err)
		}
	}
}

// read returns the names that a read of a query emits, in order.
func (c *company) read(r *unflushed.Reader, q blobs.Query) (names []string, g *unflushed.Gathered) {
	c.t.Helper()
	g, err := r.Gather(c.t.Context(), q, unflushed.Auto)
	if err != nil {
		c.t.Fatal(err)
	}
	defer g.Close()
	plan, err := r.Blobs().Plan(c.t.Context(), g.Query)
	if err != nil {
		c.t.Fatal(err)
	}
	last := int64(blobs.Oldest)
	sum, err := plan.Entries(c.t.Context(), func(e *record.Entry) error {
		if e.Time < last {
			c.t.Errorf("%.60s comes after a later one", e.Line)
		}
		last = e.Time
		names = append(names, nameOf(e.Line))
		return nil
	})
	if err != nil || !sum.Complete() {
		c.t.Fatalf("read: %v %v", err, sum.Problems)
	}
	return names, g
}

// once reports names that come twice.
func (c *company) once(names []string) {
	c.t.Helper()
	got := map[string]bool{}
	twice := 0
	for _, name := range names {
		if got[name] {
			if twice++; twice <= 10 {
				c.t.Errorf("%s comes twice", name)
			}
		}
		got[name] = true
	}
}

// newestOf are the last n of the acknowledged records, in the order of time. Times in
// these tests differ.
func newestOf(all map[string]*sentRecord, n int) []string {
	var list []*sentRecord
	for _, s := range all {
		list = append(list, s)
	}
	slices.SortFunc(list, func(x, y *sentRecord) int { return cmp.Compare(x.time, y.time) })
	var names []string
	for _, s := range list[max(0, len(list)-n):] {
		names = append(names, s.name)
	}
	return names
}

// An acknowledged record is read once, at every instant of a flush: the lines, their
// number, and exactly the newest n.
func TestUnion(t *testing.T) {
	for seed := range uint64(testkit.Share(4, 1)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { union(t, seed) })
		})
	}
}

func union(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	c := newCompany(t, 3)
	defer c.Stop()
	c.Faults(slow(rng))
	for _, in := range c.all {
		in.start()
	}
	time.Sleep(time.Second)
	services := []string{"web", "web-2", "db"}
	r := c.reader()
	for round := range 4 {
		sending := make(chan struct{})
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			c.traffic(rand.New(rand.NewPCG(seed, uint64(round))), services, 40*time.Millisecond, sending)
		}()
		time.Sleep(3 * time.Second)
		flushed := c.flush(rng)
		for range 5 { // with traffic
			before := c.ackedNow(func(*sentRecord) bool { return true })
			names, g := c.read(r, always("*"))
			if len(g.Report.Problems)+len(g.Report.Gaps) > 0 || !g.Live {
				t.Errorf("the read reports %+v", g.Report)
			}
			c.once(names)
			for name, s := range before {
				if !slices.Contains(names, name) {
					t.Errorf("%s of %s, acknowledged at %s, is not read at %s", name, s.service, s.acked, time.Now())
				}
			}
			time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
		}
		close(sending)
		<-sent
		for quiet := false; !quiet; { // and without, to the end of the flush
			select {
			case <-flushed:
				quiet = true
			default:
			}
			c.exact(r, rng)
			time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
		}
	}
}

// flush makes all ingesters flush all records, at different moments.
func (c *company) flush(rng *rand.Rand) (done chan struct{}) {
	done = make(chan struct{})
	var waits []time.Duration
	for range c.all {
		waits = append(waits, time.Duration(rng.IntN(400))*time.Millisecond)
	}
	go func() {
		defer close(done)
		for i, in := range c.all {
			time.Sleep(waits[i])
			in.Flush()
		}
	}()
	return done
}

// exact checks all forms of a read against the acknowledged records. No record may be
// sent meanwhile.
func (c *company) exact(r *unflushed.Reader, rng *rand.Rand) {
	t := c.t
	t.Helper()
	q := blobs.Query{Services: [][]string{{"web"}, {"web*"}, {"*"}, {"web", "db"}}[rng.IntN(4)], Range: blobs.Always()}
	match := func(s *sentRecord) bool {
		for _, name := range q.Services {
			if name == "*" || name == s.service || name == "web*" && s.service != "db" {
				return q.Filter.Levels == 0 || q.Filter.Levels.Has(record.LevelOf([]byte(s.level)))
			}
		}
		return false
	}
	q.Filter.Levels = []blobs.LevelSet{0, 1 << record.Error, 1<<record.Error | 1<<record.Critical, 1<<record.Warn | 1<<record.Error | 1<<record.Critical}[rng.IntN(4)]
	want := c.ackedNow(match)
	names, g := c.read(r, q)
	c.once(names)
	if len(names) != len(want) || !slices.Equal(names, newestOf(want, len(want))) {
		t.Errorf("%v: %d are read of %d", q.Services, len(names), len(want))
	}
	again, err := r.Gather(t.Context(), q, unflushed.Auto)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	plan, err := r.Blobs().Plan(t.Context(), again.Query)
	if err != nil {
		t.Fatal(err)
	}
	if n, _, err := plan.Count(t.Context()); err != nil || int(n) != len(want) {
		t.Errorf("%v: %d are counted of %d (%v)", q.Services, n, len(want), err)
	}
	_ = g
	q.Limit = 1 + rng.IntN([]int{3, 20, 100, 300}[rng.IntN(4)])
	var got []string
	_, report, err := r.Tail(t.Context(), q, func(e *record.Entry) error {
		got = append(got, nameOf(e.Line))
		if s := want[got[len(got)-1]]; s != nil && len(e.Line) != s.length {
			t.Errorf("%.80s... is cut", e.Line)
		}
		return nil
	})
	if err != nil || len(report.Problems)+len(report.Gaps) > 0 {
		t.Errorf("tail: %v %+v", err, report)
	}
	if w := newestOf(want, q.Limit); !slices.Equal(got, w) {
		t.Errorf("tail -n %d of %v gives\n%v, want\n%v", q.Limit, q.Services, got, w)
	}
}
