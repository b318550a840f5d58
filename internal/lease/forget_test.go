package lease_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/lease"
	"blobtail/storage/mem"
)

// away is the question to an ingester that does not answer.
func away(context.Context, lease.Ingester) error { return nil }

// Only a silent ingester can be given up, and one that comes back after all counts
// again.
func TestForget(t *testing.T) {
	ctx, s := t.Context(), mem.New(mem.Options{})
	since := time.Now().Add(-time.Minute)
	announcer := func() (a *lease.Announcer, end func()) {
		a = announcerOf(t, s, lease.Options{
			ID: "0badcafe", Store: "logs", Host: "logs-b",
			Oldest: func() (time.Time, bool) { return since, true },
		})
		return a, beat(t, a)
	}
	a, end := announcer()
	if a.ID() != "0badcafe" {
		t.Errorf("its id is %s", a.ID())
	}
	end()
	refused := func(store, id string, at time.Time, want string) {
		t.Helper()
		if _, err := lease.Forget(ctx, s, store, id, at, away); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	now := one(t, s, "logs").At
	refused("logs", "0badcafe", now, "it announced itself 0s ago; if it runs, stop it")
	refused("logs", "0badcafe", now.Add(-time.Minute), "it announced itself 0s ago")
	refused("logs", "deadbeef", now, "there is no such ingester; there is: 0badcafe")
	refused("others", "0badcafe", now, "there is no such ingester; there is: none")

	later := time.Now().Add(lease.Silence + time.Second)
	was, err := lease.Forget(ctx, s, "logs", "0badcafe", later, away)
	if err != nil || was.State != lease.Holding || was.Oldest.IsZero() {
		t.Fatalf("%+v, %v", was, err)
	}
	got := one(t, s, "logs")
	if got.State != lease.Stopped || !got.GivenUp.Equal(later) || !got.Oldest.Equal(was.Oldest) || got.Host != "logs-b" || !got.Forgotten(later.Add(lease.Memory)) {
		t.Errorf("%+v", got)
	}
	refused("logs", "0badcafe", later, "it was forgotten at")

	_, end = announcer()
	end()
	if got := one(t, s, "logs"); got.State != lease.Holding || !got.GivenUp.IsZero() || got.Oldest.IsZero() {
		t.Errorf("back again: %+v", got)
	}
	if err := a.Stop(ctx, true); err != nil {
		t.Fatal(err)
	}
}

// Each way to forget asks silent ingesters whether they run, and no others. One with a reason
// keeps its row.
func TestForgetAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		for _, id := range []string{"00000001", "00000002"} {
			w.storeRow(id, 2*time.Hour, "holding")
		}
		w.storeRow("00000003", time.Second, "holding")
		w.storeRow("00000004", 2*time.Hour, "idle")
		runs := errors.New("it runs")
		var mu sync.Mutex
		asked := map[string]int{}
		ask := func(_ context.Context, i lease.Ingester) error {
			mu.Lock()
			defer mu.Unlock()
			asked[i.ID]++
			if i.ID == "00000001" {
				return runs
			}
			return nil
		}
		if _, err := lease.Forget(t.Context(), w.store, "", "00000001", time.Now(), ask); !errors.Is(err, runs) || !strings.Contains(err.Error(), "ingester 00000001: ") {
			t.Errorf("one that runs: %v", err)
		}
		gone, err := lease.ForgetSilent(t.Context(), w.store, "", time.Hour, time.Now(), ask)
		if len(gone) != 1 || gone[0].ID != "00000002" || !errors.Is(err, runs) {
			t.Errorf("forgotten are %+v, %v", gone, err)
		}
		if want := map[string]int{"00000001": 2, "00000002": 1}; !maps.Equal(asked, want) {
			t.Errorf("asked %v, want %v", asked, want)
		}
		rows, err := lease.List(t.Context(), w.store, "")
		if err != nil || rows[0].State != lease.Holding || rows[1].State != lease.Stopped {
			t.Errorf("%+v, %v", rows, err)
		}
	})
}

// An ingester that has to write its row knows that it would refuse a record as soon as the
// store is gone, and not at its next announcement. One that holds records would not.
func TestDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the store is gone")
		for _, o := range []lease.Options{{}, {BestEffort: true}} {
			var away atomic.Bool
			o.ID, o.StoreID = "0badcafe", func() (string, error) {
				if away.Load() {
					return "", gone
				}
				return "", nil
			}
			a := announcerOf(t, mem.New(mem.Options{}), o)
			end := beat(t, a)
			if err := errors.Join(a.Denied(), a.Err()); err != nil {
				t.Error(err)
			}
			away.Store(true)
			if denied, err := a.Denied(), a.Err(); !o.BestEffort != errors.Is(denied, gone) || !o.BestEffort != errors.Is(err, gone) {
				t.Errorf("idle, best effort %v: %v, %v", o.BestEffort, denied, err)
			}
			away.Store(false)
			leave, err := a.Enter(t.Context(), math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			leave()
			synctest.Wait()
			away.Store(true)
			if err := errors.Join(a.Denied(), a.Err()); err != nil {
				t.Errorf("holding: %v", err)
			}
			end()
		}
	})
}

// An ingester that ended in order has no records to give up.
func TestForgetStopped(t *testing.T) {
	s := mem.New(mem.Options{})
	a := announcerOf(t, s, lease.Options{ID: "0badcafe"})
	beat(t, a)()
	if err := a.Stop(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	_, err := lease.Forget(t.Context(), s, "", "0badcafe", time.Now().Add(time.Hour), away)
	if err == nil || !strings.Contains(err.Error(), "it is stopped: all that it took is in blobs") {
		t.Error(err)
	}
}

// beat runs a until it has announced itself; the caller ends it.
func beat(t *testing.T, a *lease.Announcer) (end func()) {
	t.Helper()
	done := make(chan struct{})
	running, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		a.Run(running)
	}()
	<-a.First()
	return func() {
		cancel()
		<-done
	}
}
