package lease_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/lease"
	"blobtail/storage"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// identity is an id and the lane to try first.
type identity struct {
	ID   string
	Lane int
}

// peer is an announcer under test, with its log output.
type peer struct {
	*lease.Announcer
	kill context.CancelFunc

	mu    sync.Mutex
	moved []int
	log   bytes.Buffer

	killed bool
}

func (p *peer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *peer) told() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *peer) identity() identity { return identity{p.ID(), p.Lane()} }

// launch runs an announcer that searches for a lane, from an earlier id and lane.
func launch(t *testing.T, s storage.TableStore, id identity, change ...func(*lease.Options)) *peer {
	p := &peer{}
	o := lease.Options{
		ID: id.ID, Lane: id.Lane, Auto: true, Log: zerolog.New(p),
		Moved: func(lane int) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.moved = append(p.moved, lane)
		},
	}
	for _, f := range change {
		f(&o)
	}
	p.Announcer = announcerOf(t, s, o)
	ctx, cancel := context.WithCancel(t.Context())
	p.kill = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.killed = true
		cancel()
	}
	go p.Run(ctx)
	return p
}

// logDir is where the log of an ingester under test is.
const logDir = "/log"

// logDisk is a disk with the directory of a log.
func logDisk(t *testing.T) *simdisk.Disk {
	t.Helper()
	disk := simdisk.New(1)
	if err := errors.Join(disk.Mkdir(logDir, 0o700), disk.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	return disk
}

func lanes(peers ...*peer) []int {
	var all []int
	for _, p := range peers {
		all = append(all, p.Lane())
	}
	return all
}

// Each ingester gets the lowest free lane. One that is killed keeps its lane for a
// minute, one that stops returns it at once. An ingester that comes back has its own
// lane again if it can.
func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		next := func(id identity) *peer {
			p := launch(t, s, id)
			<-p.First()
			return p
		}
		a, b, c := next(identity{}), next(identity{}), next(identity{})
		if got := lanes(a, b, c); !slices.Equal(got, []int{0, 1, 2}) {
			t.Fatalf("lanes %v", got)
		}
		b.kill()
		time.Sleep(40 * time.Second)
		d := next(identity{})
		if d.Lane() != 3 {
			t.Errorf("lane %d after 40 s, and b may be there yet", d.Lane())
		}
		back := next(b.identity())
		if back.Lane() != 1 {
			t.Errorf("lane %d after a restart, not its own", back.Lane())
		}
		back.kill()
		time.Sleep(61 * time.Second)
		e := next(identity{})
		if e.Lane() != 1 {
			t.Errorf("lane %d after a minute without b", e.Lane())
		}
		if back = next(b.identity()); back.Lane() != 4 {
			t.Errorf("lane %d of one whose lane another has", back.Lane())
		}
		c.kill()
		if err := c.Stop(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if f := next(identity{}); f.Lane() != 2 {
			t.Errorf("lane %d, and c has stopped", f.Lane())
		}
		// Six ingesters and two that came again: six rows.
		if rows, err := lease.List(t.Context(), s, ""); len(rows) != 6 || err != nil {
			t.Errorf("%d rows, %v", len(rows), err)
		}
	})
}

// Many ingesters that start at the same time get lanes of their own. All have them
// before First or, when answers come slowly and at odd times, soon after.
func TestLanesAtOnce(t *testing.T) {
	for seed := range 20 {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			n := seed
			s := storagetest.FaultyTables(mem.New(mem.Options{}), func(storagetest.Op, string) storagetest.Fault {
				mu.Lock()
				defer mu.Unlock()
				n = n*7919 + 17
				return storagetest.Fault{Delay: time.Duration(n%97) * time.Millisecond}
			})
			var peers []*peer
			for range 2 + seed%8 {
				peers = append(peers, launch(t, s, identity{}))
			}
			for _, p := range peers {
				<-p.First()
			}
			time.Sleep(time.Minute)
			got := lanes(peers...)
			slices.Sort(got)
			if len(slices.Compact(got)) != len(peers) || got[len(got)-1] >= 2*len(peers) {
				t.Errorf("seed %d: lanes %v", seed, lanes(peers...))
			}
		})
	}
}

// Two that start together, the common case: both have their lane when they begin.
func TestTwoAtOnce(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			s := mem.New(mem.Options{})
			a, b := launch(t, s, identity{}), launch(t, s, identity{})
			<-a.First()
			<-b.First()
			if a.Lane() == b.Lane() || a.Lane()+b.Lane() != 1 {
				t.Errorf("lanes %d and %d", a.Lane(), b.Lane())
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if len(a.moved) == 0 || a.moved[len(a.moved)-1] != a.Lane() {
				t.Errorf("told of lanes %v, lane %d", a.moved, a.Lane())
			}
		})
	}
}

// A table store that fails, hangs or comes back delays nothing. The lane is that of the
// last time, a failure is logged once, and later all is well again.
func TestFailingTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var fault storagetest.Fault
		set := func(f storagetest.Fault) {
			mu.Lock()
			defer mu.Unlock()
			fault = f
		}
		real := mem.New(mem.Options{})
		s := storagetest.FaultyTables(real, func(storagetest.Op, string) storagetest.Fault {
			mu.Lock()
			defer mu.Unlock()
			return fault
		})
		n := 0
		unstable := func() error { n++; return fmt.Errorf("503 ServerBusy (request %x)", n*12345) }
		set(storagetest.Fault{Before: unstable()})
		begun := time.Now()
		a := launch(t, s, identity{ID: "0badcafe", Lane: 5})
		b := launch(t, s, identity{ID: "1badcafe", Lane: 5})
		<-a.First()
		if took := time.Since(begun); took > time.Second || a.Lane() != 5 {
			t.Errorf("lane %d after %v", a.Lane(), took)
		}
		for range 10 {
			time.Sleep(10 * time.Second)
			set(storagetest.Fault{Before: unstable()})
		}
		if n := strings.Count(a.told(), "this ingester cannot be announced"); n != 1 {
			t.Errorf("told %d times of one failure:\n%s", n, a.told())
		}
		set(storagetest.Fault{Delay: time.Hour})
		time.Sleep(time.Minute)
		if n := strings.Count(a.told(), "this ingester cannot be announced"); n != 2 {
			t.Errorf("told %d times of two failures:\n%s", n, a.told())
		}
		set(storagetest.Fault{})
		time.Sleep(30 * time.Second)
		if !strings.Contains(a.told(), "works again") {
			t.Errorf("not told of the end:\n%s", a.told())
		}
		if got := lanes(a, b); !slices.Contains(got, 5) || got[0] == got[1] {
			t.Errorf("lanes %v once they can see each other", got)
		}
		// A stop in an outage ends when its context does.
		set(storagetest.Fault{Delay: time.Hour})
		a.kill()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Stop(ctx, true); err == nil {
			t.Error("Stop without a table store says nothing")
		}
	})
}

// Reads that fail while writes succeed, and the other way round, cost the lane at
// worst.
func TestHalfFailing(t *testing.T) {
	for _, op := range []storagetest.Op{storagetest.Scan, storagetest.Swap} {
		synctest.Test(t, func(t *testing.T) {
			s := mem.New(mem.Options{})
			first := launch(t, s, identity{})
			<-first.First()
			p := launch(t, storagetest.FaultyTables(s, storagetest.Times(3, op, "", storagetest.Fault{Before: storagetest.ErrFault})), identity{})
			<-p.First()
			time.Sleep(time.Minute)
			if got := lanes(first, p); got[0]+got[1] != 1 {
				t.Errorf("%s fails at first: lanes %v", op, got)
			}
		})
	}
}

// A copied log directory makes two ingesters with one id. One gets a new id, and both
// have their own lane.
func TestCopiedLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		a := launch(t, s, identity{ID: "0badcafe", Lane: 3})
		time.Sleep(3 * time.Second)
		b := launch(t, s, identity{ID: "0badcafe", Lane: 3})
		time.Sleep(time.Minute)
		if a.identity().ID == b.identity().ID || a.Lane() == b.Lane() {
			t.Errorf("%v and %v", a.identity(), b.identity())
		}
		if n := strings.Count(a.told()+b.told(), "was the log directory copied?"); n != 1 {
			t.Errorf("told of %d times", n)
		}
		if rows, err := lease.List(t.Context(), s, ""); len(rows) != 2 || err != nil {
			t.Errorf("%d rows, %v", len(rows), err)
		}
	})
}

// A lane that was set is kept, and the log says once that another has it.
func TestFixedLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		fixed := func(o *lease.Options) { o.Auto, o.Lane = false, 4 }
		a := launch(t, s, identity{}, fixed)
		time.Sleep(time.Second)
		b := launch(t, s, identity{}, fixed)
		time.Sleep(5 * time.Minute)
		if got := lanes(a, b); !slices.Equal(got, []int{4, 4}) || len(a.moved)+len(b.moved) != 0 {
			t.Errorf("lanes %v", got)
		}
		if n := strings.Count(a.told()+b.told(), "another ingester has this lane too"); n != 1 {
			t.Errorf("told of %d times:\n%s%s", n, a.told(), b.told())
		}
	})
}

// When every lane is taken there are conflicts, and nothing worse.
func TestNoLaneLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		for n := range lease.Lanes {
			upsert(t, s, fmt.Sprintf("%08x", n), map[string]any{"format": int64(1), "lane": int64(n),
				"started": stamp(time.Now()), "at": stamp(time.Now())})
		}
		p := launch(t, s, identity{})
		<-p.First()
		if p.Lane() != 0 {
			t.Errorf("lane %d", p.Lane())
		}
	})
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }

// The records that a start finds in the log keep their age. Until they are stored, the
// row keeps its former Oldest, even if the buffer knows a later time by then.
func TestOldestOverRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, disk := mem.New(mem.Options{}), logDisk(t)
		came := time.Now()
		time.Sleep(time.Minute)
		a := launch(t, s, identity{ID: "0badcafe"}, func(o *lease.Options) {
			o.FS, o.Dir = disk, logDir
			o.Oldest = func() (time.Time, bool) { return came, true }
		})
		<-a.First()
		a.kill()
		time.Sleep(time.Hour)

		var mu sync.Mutex
		var since time.Time
		replayed := false
		set := func(at time.Time, all bool) {
			mu.Lock()
			since, replayed = at, all
			mu.Unlock()
			time.Sleep(11 * time.Second)
		}
		b := launch(t, s, identity{ID: "0badcafe"}, func(o *lease.Options) {
			o.FS, o.Dir = disk.Kill(), logDir
			o.Oldest = func() (time.Time, bool) {
				mu.Lock()
				defer mu.Unlock()
				return since, !since.IsZero()
			}
			o.Replayed = func() bool {
				mu.Lock()
				defer mu.Unlock()
				return replayed
			}
		})
		<-b.First()
		found := time.Now()
		for i, c := range []struct {
			since    time.Time
			replayed bool
			old      bool // the row is as before the start
		}{
			{time.Time{}, false, true}, // nothing is read yet
			{found, false, true},       // some is
			{found, true, true},        // all is, and not stored
			{found.Add(time.Minute), true, false},
			{time.Time{}, true, false},
		} {
			set(c.since, c.replayed)
			got := one(t, s, "").Oldest
			if got.Equal(came) != c.old || got.IsZero() != (c.since.IsZero() && !c.old) {
				t.Errorf("step %d: oldest %v, came %v", i, got, came)
			}
		}
	})
}
