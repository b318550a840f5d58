package horizon_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/catalog/horizon"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// cable is a store that counts its calls. They fail or wait as asked.
type cable struct {
	storage.BlobStore
	lists, creates atomic.Int64
	mu             sync.Mutex
	fault          storagetest.Fault // of every list
}

func newCable() *cable {
	c := &cable{}
	c.BlobStore = storagetest.Faulty(mem.New(mem.Options{}), func(op storagetest.Op, _ string) storagetest.Fault {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch op {
		case storagetest.List:
			c.lists.Add(1)
			return c.fault
		case storagetest.Create:
			c.creates.Add(1)
		}
		return storagetest.Fault{}
	})
	return c
}

func (c *cable) set(f storagetest.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
}

func publish(t *testing.T, s storage.BlobStore, service, first string) {
	t.Helper()
	if err := horizon.Publish(t.Context(), s, service, day(t, first)); err != nil {
		t.Fatal(err)
	}
}

// A published horizon is known a minute later at most, and stays known while the store
// is away.
func TestWatchHides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCable()
		publish(t, s, "web", "1999-10-21")
		w := horizon.NewWatch(s, horizon.WatchOptions{})
		if w.Hides("web", day(t, "1999-10-20")) {
			t.Error("hidden before anything was read")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		<-w.First()
		if !w.Hides("web", day(t, "1999-10-20")) || w.Hides("web", day(t, "1999-10-21")) || w.Hides("app", day(t, "1999-10-20")) {
			t.Error("not as published")
		}
		publish(t, s, "web", "1999-10-22")
		time.Sleep(time.Minute + time.Second)
		if !w.Hides("web", day(t, "1999-10-21")) {
			t.Error("a horizon is not known a minute after it rose")
		}
		s.set(storagetest.Fault{Before: storagetest.ErrFault})
		time.Sleep(time.Hour)
		if !w.Hides("web", day(t, "1999-10-21")) {
			t.Error("forgotten because the store is away")
		}
		if worked, failed := w.Readings(); worked != 2 || failed != 60 {
			t.Errorf("%d readings worked, %d failed; want 2 and 60", worked, failed)
		}
		cancel()
		<-done
	})
}

// Many callers at once make one reading, and share its failure too. A copy serves for
// two minutes from the begin of its reading.
func TestFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCable()
		w := horizon.NewWatch(s, horizon.WatchOptions{})
		all := func(want error) {
			t.Helper()
			var asking sync.WaitGroup
			for range 50 {
				asking.Go(func() {
					if _, err := w.Fresh(t.Context()); !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					}
				})
			}
			asking.Wait()
		}
		counts := func(want int64) {
			t.Helper()
			if got := s.lists.Swap(0); got != want {
				t.Errorf("%d lists, want %d", got, want)
			}
		}
		s.set(storagetest.Fault{Delay: 10 * time.Second})
		all(nil)
		counts(2)
		time.Sleep(110 * time.Second)
		all(nil)
		counts(0)
		s.set(storagetest.Fault{Delay: time.Second, Before: storagetest.ErrFault})
		time.Sleep(time.Nanosecond)
		all(storagetest.ErrFault)
		counts(2)
		s.set(storagetest.Fault{})
		all(nil)
		counts(2)
		// A store that hangs delays no caller for longer than the timeout.
		time.Sleep(time.Hour)
		s.set(storagetest.Fault{Delay: time.Hour})
		begun := time.Now()
		all(context.DeadlineExceeded)
		if took := time.Since(begun); took != 2*time.Minute {
			t.Errorf("waited %s", took)
		}
	})
}

// A caller that gives up while it reads for others does not fail them.
func TestFreshWhoReadsGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCable()
		s.set(storagetest.Fault{Delay: 10 * time.Second})
		w := horizon.NewWatch(s, horizon.WatchOptions{})
		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := w.Fresh(hasty); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		synctest.Wait()
		for range 3 {
			asking.Go(func() {
				if _, err := w.Fresh(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		if _, failed := w.Readings(); failed != 0 {
			t.Error("giving up counts as a failure of the store")
		}
	})
}

// After a sleep of the machine a copy is old, though one clock did not count. A clock
// that is set back makes no copy younger.
func TestFreshClocks(t *testing.T) {
	wall := time.Date(1999, 11, 22, 12, 0, 0, 0, time.UTC)
	s := newCable()
	w := horizon.NewWatch(s, horizon.WatchOptions{Now: func() time.Time { return wall }})
	for _, c := range []struct {
		step time.Duration
		want int64
	}{{0, 2}, {2 * time.Minute, 0}, {time.Nanosecond, 2}, {-time.Nanosecond, 2}, {time.Minute, 0}} {
		wall = wall.Add(c.step)
		if _, err := w.Fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.lists.Swap(0); got != c.want {
			t.Errorf("after %s: %d lists, want %d", c.step, got, c.want)
		}
	}
}

func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCable()
		publish(t, s, "web", "1999-10-21")
		if err := horizon.Drop(t.Context(), s, "web", day(t, "1999-11-03")); err != nil {
			t.Fatal(err)
		}
		g := horizon.NewWatch(s, horizon.WatchOptions{}).Guard(s)
		for _, c := range []struct {
			key  string
			want error
		}{
			{"web/1999/10/20/2355/000001.log", horizon.ErrExpired},
			{"web/1999/10/21/0000/000001.log", nil},
			{"web/1999/11/03/1200/000001.log", horizon.ErrExpired},
			{"web/1999/11/04/1200/000001.log", nil},
			{"web2/1999/10/20/2355/000001.log", nil},
			{"_rejected/1999/10/20/2355/000001.log", nil},
			{"_horizon/web/19991001", nil}, // no blob
			{"web/1999/10/20/2355/000001.txt", nil},
		} {
			if err := g.Create(t.Context(), c.key, nil, storage.Attrs{}); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.key, err, c.want)
			}
			if _, err := s.Stat(t.Context(), c.key); (err == nil) != (c.want == nil) {
				t.Errorf("%s: %v", c.key, err)
			}
		}
		if n := s.lists.Load(); n != 2 {
			t.Errorf("%d lists", n)
		}
	})
}

// A horizon that has risen is respected two minutes later at most. If nothing is known
// nothing is sent.
func TestGuardKnowsOrRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCable()
		g := horizon.NewWatch(s, horizon.WatchOptions{}).Guard(s)
		create := func(number string, want error) {
			t.Helper()
			if err := g.Create(t.Context(), "web/1999/10/20/2355/"+number+".log", nil, storage.Attrs{}); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", number, err, want)
			}
		}
		create("000001", nil)
		publish(t, s, "web", "1999-10-21")
		time.Sleep(2 * time.Minute)
		create("000002", nil) // it may not know yet
		time.Sleep(time.Nanosecond)
		create("000003", horizon.ErrExpired)
		time.Sleep(time.Hour)
		s.set(storagetest.Fault{Before: storagetest.ErrFault})
		before := s.creates.Load()
		create("000004", storagetest.ErrFault)
		if s.creates.Load() != before {
			t.Error("sent without knowing")
		}
	})
}

// A missing store, as when its disk is not mounted, does not mean that nothing has been
// dropped.
func TestGuardOfAnAbsentStore(t *testing.T) {
	s := newCable()
	g := horizon.NewWatch(s, horizon.WatchOptions{}).Guard(s)
	s.set(storagetest.Fault{Before: storage.ErrNotExist})
	if err := g.Create(t.Context(), "web/1999/10/20/2355/000001.log", nil, storage.Attrs{}); err == nil || errors.Is(err, storage.ErrNotExist) {
		t.Error(err)
	}
}

// A horizon that hides today is of no policy: a writer that respected it would lose the
// records that are logged now. A day that was dropped by itself may be today.
func TestImpossibleHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		today := horizon.DayOf(time.Now())
		publish(t, s, "app", today.String())
		publish(t, s, "web", (today + 1).String())
		publish(t, s, "wild", "9999-12-31")
		publish(t, s, "zeal", (today - 30).String())
		publish(t, s, "zeal", (today + 2).String())
		if err := horizon.Drop(t.Context(), s, "web", today); err != nil {
			t.Fatal(err)
		}
		var told bytes.Buffer
		w := horizon.NewWatch(s, horizon.WatchOptions{Log: zerolog.New(&told)})
		for range 2 {
			h, err := w.Fresh(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				service string
				day     horizon.Day
				want    bool
			}{
				{"app", today - 1, true}, {"app", today, false},
				{"web", today - 1, false}, {"web", today, true}, {"web", today + 1, false},
				{"wild", today - 1, false}, {"wild", today, false},
				{"zeal", today - 31, true}, {"zeal", today - 30, false}, {"zeal", today, false},
			} {
				if got := h.Hides(c.service, c.day); got != c.want {
					t.Errorf("Hides(%s, %s) = %v", c.service, c.day, got)
				}
			}
			time.Sleep(3 * time.Minute)
			today = horizon.DayOf(time.Now())
		}
		if n := strings.Count(told.String(), "hides today"); n != 1 || !strings.Contains(told.String(), `"service":"web"`) {
			t.Errorf("told %d times: %s", n, told.String())
		}
	})
}

// An impossible horizon takes the right one away from no writer, and stays impossible when its day has
// come. Readers show nothing below it.
func TestRightHorizonStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		today := horizon.DayOf(time.Now())
		for _, first := range []horizon.Day{today - 30, today + 2, today + 3650} {
			publish(t, s, "web", first.String())
		}
		w := horizon.NewWatch(s, horizon.WatchOptions{})
		for range 2 {
			writer, err := w.Fresh(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			reader, err := horizon.Check(t.Context(), s, "web")
			if err != nil {
				t.Fatal(err)
			}
			for name, h := range map[string]horizon.Horizons{"writer": writer, "reader": reader.Days} {
				if h.Hides("web", today) != (name == "reader") || !h.Hides("web", today-40) {
					t.Errorf("%s, %s: today or a day below the right horizon", name, time.Now())
				}
			}
			time.Sleep(5 * 24 * time.Hour)
		}
	})
}
