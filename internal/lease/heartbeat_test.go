package lease_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testenv/stores"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
	"blobtail/storage"
	"blobtail/storage/fsys"
	"blobtail/storage/mem"
)

var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// The listed row is the announced one, in every kind of store. A stop with no unflushed
// records left says so.
func TestRoundTrip(t *testing.T) {
	stores.Each(t, &env, func(t *testing.T, open stores.Open) {
		t.Parallel()
		_, s := open()
		roundTrip(t, s)
	})
}

func roundTrip(t *testing.T, s storage.TableStore) {
	ctx := t.Context()
	store := testenv.Name("store")
	if got, err := lease.List(ctx, s, store); len(got) != 0 || !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("an empty store has %v, %v", got, err)
	}
	since := time.Now().Add(-3 * time.Minute)
	full := true
	a := announcerOf(t, s, lease.Options{
		ID: "0badcafe", Lane: 7, Store: store,
		Address: "http://10.0.0.5:8514", Host: "web\xff-3", Version: "v1.2.3",
		StoreID: func() (string, error) { return "0123456789abcdef0123456789abcdef", nil },
		Oldest:  func() (time.Time, bool) { return since, full },
	})
	running, end := context.WithCancel(ctx)
	go a.Run(running)
	<-a.First()
	got := one(t, s, store)
	want := got // with the version of the row, which is the store's
	want.ID, want.Store, want.StoreID, want.State = "0badcafe", store, "0123456789abcdef0123456789abcdef", lease.Holding
	want.Lane, want.Address, want.Host, want.Version = 7, "http://10.0.0.5:8514", "web?-3", "v1.2.3"
	want.BestEffort, want.GivenUp, want.Lost = false, time.Time{}, lease.Loss{}
	if got != want || len(got.Process) != 8 {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for what, d := range map[string]time.Duration{"at": time.Since(got.At), "started": time.Since(got.Started), "oldest": since.Sub(got.Oldest)} {
		if d.Abs() > testkit.Patience {
			t.Errorf("%s is %v off", what, d)
		}
	}
	if !got.Live(got.At) {
		t.Error("it is not live")
	}
	end()
	if err := a.Stop(ctx, true); err != nil {
		t.Fatal(err)
	}
	if got := one(t, s, store); got.State != lease.Holding {
		t.Error("stopped, with records that are in no blob")
	}
	full = false
	if err := a.Stop(ctx, true); err != nil {
		t.Fatal(err)
	}
	if got := one(t, s, store); got.State != lease.Stopped || got.Live(time.Now()) || !got.Oldest.IsZero() {
		t.Errorf("after the stop: %+v", got)
	}
	// Another store with the same tables.
	if got, err := lease.List(ctx, s, store+"x"); len(got) != 0 || err != nil {
		t.Errorf("another store has %v, %v", got, err)
	}
}

// announcerOf is an announcer with good notes or none.
func announcerOf(t *testing.T, s storage.TableStore, o lease.Options) *lease.Announcer {
	t.Helper()
	a, err := lease.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func one(t *testing.T, s storage.TableStore, store string) lease.Ingester {
	t.Helper()
	rows, err := lease.List(t.Context(), s, store)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows[0]
}

// Rows that cannot be read are named, and do not hide the others.
func TestUnreadable(t *testing.T) {
	s := mem.New(mem.Options{})
	a := announcerOf(t, s, lease.Options{Auto: true})
	const at = "2026-11-20T15:04:05.000000000Z"
	good := map[string]any{"format": int64(1), "state": "idle", "started": at, "at": at}
	bad := map[string]map[string]any{
		"format 2": {"format": int64(2)}, "not an ingester": {"x": true}, "no time": {"format": int64(1), "at": "soon"},
	}
	names := []string{"format 2", "not an ingester", "no time"}
	for i, name := range names {
		upsert(t, s, "0000000"+string(rune('1'+i)), bad[name])
	}
	upsert(t, s, "00000009", good)
	got, err := lease.List(t.Context(), s, "")
	if len(got) != 1 || got[0].ID != "00000009" {
		t.Errorf("%+v", got)
	}
	var row *lease.RowError
	if !errors.As(err, &row) || !strings.Contains(err.Error(), "it is in format 2, and this version reads format 1: use a newer one") ||
		!strings.Contains(err.Error(), `"soon" is no time`) || !strings.Contains(err.Error(), "not an ingester's") {
		t.Errorf("%v", err)
	}
	// They do not keep one from finding a lane either.
	go a.Run(t.Context())
	<-a.First()
	if got, _ := lease.List(t.Context(), s, ""); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

func upsert(t *testing.T, s storage.TableStore, key string, props map[string]any) {
	t.Helper()
	if err := s.Upsert(t.Context(), lease.Table, lease.Partition, []storage.Row{{Key: key, Props: props}}); err != nil {
		t.Fatal(err)
	}
}

func TestStates(t *testing.T) {
	now := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name            string
		age             time.Duration
		state           lease.State
		lost            bool
		live, forgotten bool
	}{
		{"fresh", 5 * time.Second, lease.Holding, false, true, false},
		{"idle", 5 * time.Second, lease.Idle, false, true, false},
		{"silent", time.Minute, lease.Holding, false, false, false},
		{"stopped", time.Second, lease.Stopped, false, false, false},
		{"long gone and idle", 25 * time.Hour, lease.Idle, false, false, true},
		{"long gone with records", 25 * time.Hour, lease.Holding, false, false, false},
		{"long stopped", 25 * time.Hour, lease.Stopped, false, false, true},
		{"long stopped with a loss", 25 * time.Hour, lease.Stopped, true, false, false},
		{"a little ahead", -time.Minute, lease.Holding, false, true, false},
		{"of a wrong clock", -time.Hour, lease.Holding, false, false, false},
	} {
		i := lease.Ingester{At: now.Add(-c.age), State: c.state}
		if c.lost {
			i.Lost.Until = i.At
		}
		if i.Live(now) != c.live || i.Forgotten(now) != c.forgotten {
			t.Errorf("%s: live %v, forgotten %v", c.name, i.Live(now), i.Forgotten(now))
		}
	}
}

// The id and the lane outlive a start, until the log goes over to another store.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	run := func() identity {
		p := launch(t, mem.New(mem.Options{}), identity{}, func(o *lease.Options) { o.Dir = dir })
		<-p.First()
		p.kill()
		return p.identity()
	}
	first := run()
	if got := run(); got != first || len(got.ID) != 8 || got.Lane != 0 {
		t.Errorf("it goes by %v, and then by %v", first, got)
	}
	if id, err := lease.Discard(fsys.OS(), dir); err != nil || id != first.ID {
		t.Errorf("%q, %v", id, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	if got := run(); got.ID == first.ID {
		t.Errorf("it still goes by %v", got)
	}
}
