package copying_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testenv/stores"
	"blobtail/internal/dev/testkit/box"
	"blobtail/internal/storeid"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/retention/copying"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// newHouse is a house whose store has its id.
func newHouse(t *testing.T) *box.House {
	h := box.New(t, 1)
	storagetest.Put(t, h.Store, storeid.Key, fmt.Appendf(nil, "{\"format\":1,\"id\":%q}\n", box.StoreID))
	h.Ingester(0).Start()
	return h
}

// settled is newHouse in a bubble, with an ingester whose row has a floor.
func settled(t *testing.T) *box.House {
	h := newHouse(t)
	time.Sleep(time.Minute)
	return h
}

func send(t *testing.T, h *box.House, at time.Time, services ...string) {
	t.Helper()
	for n, service := range services {
		lines := []box.Line{{Time: at.Add(time.Duration(n)), Service: service, Msg: fmt.Sprintf("line of %s at %s", service, at)}}
		if err := h.Ingester(0).Accept(h.Request(lines...), true); err != nil {
			t.Fatal(err)
		}
	}
}

func options(h *box.House) copying.Options {
	return copying.Options{Tables: h.Store, Now: h.Now}
}

// copied runs a copy that has no problem.
func copied(t *testing.T, from, to storage.BlobStore, o copying.Options) copying.Result {
	t.Helper()
	r, err := copying.Run(t.Context(), from, to, o)
	if err != nil || len(r.Problems) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	return r
}

// own reports whether an object belongs to one store and not to its content.
func own(key string) bool {
	return key == storeid.Key || key == "_promoted" || strings.HasPrefix(key, "_copy/")
}

// content is what a store has: names, bytes and attributes.
func content(t *testing.T, s storage.BlobStore) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, b := range storagetest.Objects(t, s, "") {
		if !own(b.Key) {
			all[b.Key] = fmt.Sprintf("%q %s %v", storagetest.Body(t, s, b.Key), b.ContentEncoding, b.Metadata)
		}
	}
	return all
}

func equal(t *testing.T, a, b storage.BlobStore) {
	t.Helper()
	is, want := content(t, b), content(t, a)
	for key := range want {
		if is[key] != want[key] {
			t.Errorf("%s: %.200s, want %.200s", key, is[key], want[key])
		}
	}
	for key := range is {
		if _, ok := want[key]; !ok {
			t.Errorf("%s is in the copy alone", key)
		}
	}
	if len(want) < 3 {
		t.Errorf("the original has %d objects", len(want))
	}
}

// counter counts the requests to a store.
type counter struct {
	mu sync.Mutex
	n  map[storagetest.Op]int
}

func (c *counter) script(op storagetest.Op, _ string) storagetest.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[storagetest.Op]int{}
	}
	c.n[op]++
	return storagetest.Fault{}
}

func (c *counter) besideLists() string {
	delete(c.n, storagetest.List)
	delete(c.n, storagetest.Dirs)
	return fmt.Sprint(c.n)
}

func closes(t *testing.T, s storage.BlobStore, now time.Time) {
	t.Helper()
	o := closing.Options{After: closed.Soonest, Now: now, Log: zerolog.Nop()}
	if _, err := closing.Run(t.Context(), s, o); err != nil {
		t.Fatal(err)
	}
}

// upkeep closes days, and compacts and deletes what it may.
func upkeep(t *testing.T, s storage.BlobStore, now time.Time) {
	t.Helper()
	compacts(t, s, now, -1)
}

func compacts(t *testing.T, s storage.BlobStore, now time.Time, grace time.Duration) {
	t.Helper()
	closes(t, s, now)
	clock := func() time.Time { return now }
	if _, err := compact.Run(t.Context(), s, compact.Options{Grace: grace, Now: clock, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
}

// A copy has all objects of its original through a life of it: late records, closed days, compaction,
// horizons, holds that are released, drops. A run without news makes no request for an object.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := settled(t)
		defer h.Stop()
		to := mem.New(mem.Options{})
		o := options(h)
		day := time.Now().UTC().Add(-50 * time.Hour).Truncate(24 * time.Hour)
		for i := range 6 {
			send(t, h, day.Add(time.Duration(i)*time.Minute), "web", "orders", "_rejected")
			h.Flush()
		}
		if r := copied(t, h.Store, to, o); r.Copied < 15 || r.Services != 3 {
			t.Errorf("%+v", r)
		}
		equal(t, h.Store, to)
		for step, change := range []func(){
			func() { upkeep(t, h.Store, h.Now()) },
			func() { upkeep(t, h.Store, h.Now().Add(time.Second)) }, // deletes what the step before has replaced
			func() { send(t, h, day.Add(time.Hour), "web"); h.Flush(); upkeep(t, h.Store, h.Now()) },
			func() { storagetest.Put(t, h.Store, "_hold/case", []byte("x")) },
			func() {
				if err := h.Store.Delete(t.Context(), storage.Blob{Key: "_hold/case"}); err != nil {
					t.Fatal(err)
				}
			},
			func() {
				if err := horizon.Publish(t.Context(), h.Store, "web", horizon.DayOf(day)+1); err != nil {
					t.Fatal(err)
				}
			},
			func() {
				for _, b := range storagetest.Objects(t, h.Store, "web/") {
					if err := h.Store.Delete(t.Context(), b); err != nil {
						t.Fatal(err)
					}
				}
			},
		} {
			change()
			r := copied(t, h.Store, to, o)
			if r.Copied+r.Deleted == 0 {
				t.Errorf("step %d: %+v", step, r)
			}
			equal(t, h.Store, to)

			var here, there counter
			r = copied(t, storagetest.Faulty(h.Store, here.script), storagetest.Faulty(to, there.script), o)
			if r.Copied+r.Deleted != 0 {
				t.Errorf("step %d, again: %+v", step, r)
			}
			// Its own objects: who it is, twice, and the end of the run.
			if got := here.besideLists(); got != "map[get:2]" {
				t.Errorf("step %d: requests to the original beside listings: %v", step, got)
			}
			if got := there.besideLists(); got != "map[create:1 delete:1 get:4 stat:2]" {
				t.Errorf("step %d: requests to the copy beside listings: %v", step, got)
			}
		}
		if keys := storagetest.KeysOf(t, to, "web/"); len(keys) > 0 {
			t.Errorf("%v", keys)
		}
	})
}

// A blob that somebody removes in the original stays in the copy, and is named. So is one that
// was put in its place.
func TestLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := settled(t)
		defer h.Stop()
		to := mem.New(mem.Options{})
		day := time.Now().UTC().Add(-50 * time.Hour).Truncate(24 * time.Hour)
		for i := range 3 {
			send(t, h, day.Add(time.Duration(i)*time.Hour), "web", "orders")
			h.Flush()
		}
		closes(t, h.Store, h.Now())
		copied(t, h.Store, to, options(h))
		before := content(t, to)
		keys := storagetest.KeysOf(t, h.Store, "web/")
		for _, b := range storagetest.Objects(t, h.Store, "web/")[:2] {
			if err := h.Store.Delete(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		storagetest.Put(t, h.Store, keys[1], []byte("another"))
		r, err := copying.Run(t.Context(), h.Store, to, options(h))
		said := fmt.Sprint(r.Problems)
		if err != nil || len(r.Problems) != 2 || !strings.Contains(said, keys[0]) || !strings.Contains(said, keys[1]) {
			t.Errorf("%+v, %v", r, err)
		}
		if !maps.Equal(content(t, to), before) {
			t.Error("the copy has changed")
		}
		// With the blobs of the copy the original is whole again.
		if err := h.Store.Delete(t.Context(), storage.Blob{Key: keys[1]}); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys[:2] {
			b, err := to.Stat(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			storagetest.Put(t, h.Store, key, storagetest.Body(t, to, key), b.Attrs)
		}
		copied(t, h.Store, to, options(h))
		equal(t, h.Store, to)
	})
}

// noted is what a copy says that it has.
func noted(t *testing.T, s storage.BlobStore) storeid.Extent {
	t.Helper()
	_, err := storeid.Read(t.Context(), s)
	is, ok := errors.AsType[*storeid.CopyError](err)
	if !ok {
		t.Fatal(err)
	}
	return is.Extent
}

// A copy is whole before the floor of an ingester that holds records, and not before an earlier one.
func TestWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := settled(t)
		defer h.Stop()
		to := mem.New(mem.Options{})
		extent := func() storeid.Extent { t.Helper(); return noted(t, to) }
		late := h.Now().Add(-3 * time.Hour)
		send(t, h, late, "web")
		r := copied(t, h.Store, to, options(h))
		if r.Whole.Through.After(late) || extent() != r.Whole {
			t.Errorf("%v with an unflushed record of %v; noted %v", r.Whole, late, extent())
		}
		h.Flush()
		time.Sleep(time.Minute)
		if r = copied(t, h.Store, to, options(h)); !r.Whole.Through.After(late) || r.Whole.Through.After(h.Now()) {
			t.Errorf("%v, and all is flushed", r.Whole)
		}
		h.Ingester(0).Drain()
		if r = copied(t, h.Store, to, options(h)); !r.Whole.Through.Equal(h.Now()) {
			t.Errorf("%v at %v, and no ingester runs", r.Whole, h.Now())
		}
		// A clock of this host that is ahead does not make the copy whole before its time; here the
		// stores have clocks of their own.
		wrong := options(h)
		wrong.Now = func() time.Time { return h.Now().Add(time.Hour) }
		if r = copied(t, h.Store, to, wrong); r.Whole.Through.After(h.Now()) {
			t.Errorf("%v with a wrong clock at %v", r.Whole, h.Now())
		}
		// Days before that of --since are not in it, until a run without.
		other := mem.New(mem.Options{})
		o := options(h)
		o.Since = horizon.DayOf(h.Now())
		to = other
		if r = copied(t, h.Store, to, o); !r.Whole.From.Equal(o.Since.Start()) || extent() != r.Whole {
			t.Errorf("%v", r.Whole)
		}
		if r = copied(t, h.Store, to, options(h)); !r.Whole.From.IsZero() {
			t.Errorf("%v", r.Whole)
		}
		if r = copied(t, h.Store, to, o); !r.Whole.From.IsZero() {
			t.Errorf("%v", r.Whole)
		}
		// A copy of the copy has what that has.
		third := mem.New(mem.Options{})
		if r2 := copied(t, to, third, options(h)); !r2.Whole.Through.Equal(r.Whole.Through) {
			t.Errorf("%v, and the copy is %v", r2.Whole, r.Whole)
		}
		// Without the rows nobody knows.
		o = options(h)
		o.Tables = mem.New(mem.Options{})
		if r, err := copying.Run(t.Context(), h.Store, to, o); err != nil || len(r.Problems) != 1 || !r.Whole.Through.IsZero() {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// Only an empty store or a copy of the same original is taken.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := settled(t)
		defer h.Stop()
		send(t, h, h.Now(), "web")
		h.Flush()
		ordinary, foreign := mem.New(mem.Options{}), mem.New(mem.Options{})
		promoted, part := mem.New(mem.Options{}), mem.New(mem.Options{})
		if _, err := storeid.Ensure(t.Context(), ordinary); err != nil {
			t.Fatal(err)
		}
		storagetest.Put(t, foreign, "notes.txt", nil)
		copied(t, h.Store, promoted, options(h))
		if err := storeid.Promote(t.Context(), promoted); err != nil {
			t.Fatal(err)
		}
		o := options(h)
		o.Services = []string{"web"}
		copied(t, h.Store, part, o)
		for name, to := range map[string]*mem.Store{
			"itself": h.Store, "ordinary": ordinary, "foreign": foreign, "promoted": promoted, "part": part,
		} {
			before := content(t, to)
			if r, err := copying.Run(t.Context(), h.Store, to, options(h)); !errors.Is(err, storeid.ErrNoCopy) {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
			if !maps.Equal(before, content(t, to)) {
				t.Errorf("%s has changed", name)
			}
		}
		if _, err := copying.Run(t.Context(), part, part, o); !errors.Is(err, storeid.ErrNoCopy) {
			t.Errorf("a copy of itself: %v", err)
		}
		empty := mem.New(mem.Options{})
		if _, err := copying.Run(t.Context(), empty, mem.New(mem.Options{}), options(h)); !errors.Is(err, storeid.ErrNoCopy) {
			t.Errorf("an original that is away: %v", err)
		}
	})
}

// The way from one kind of store to another and to a third keeps names, bytes and metadata.
func TestDrivers(t *testing.T) {
	h := newHouse(t)
	day := time.Now().UTC().Add(-50 * time.Hour).Truncate(24 * time.Hour)
	for i := range 3 {
		send(t, h, day.Add(time.Duration(i)*time.Minute), "web", "orders")
		h.Flush()
	}
	h.Ingester(0).Drain()
	upkeep(t, h.Store, h.Now())
	if err := horizon.Drop(t.Context(), h.Store, "orders", horizon.DayOf(day)+1); err != nil {
		t.Fatal(err)
	}
	stores.Each(t, &env, func(t *testing.T, open stores.Open) {
		first, _ := open()
		second, _ := open()
		third := mem.New(mem.Options{})
		for range 2 {
			copied(t, h.Store, first, options(h))
			copied(t, first, second, options(h))
			copied(t, second, third, options(h))
			equal(t, h.Store, third)
		}
		if r := copied(t, second, third, options(h)); r.Copied+r.Deleted != 0 {
			t.Errorf("%+v", r)
		}
		if keys := storagetest.KeysOf(t, second, "_copy/"); len(keys) != 1 {
			t.Errorf("%v", keys)
		}
	})
}

// The bandwidth bounds the bytes of a second.
func TestBandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := settled(t)
		defer h.Stop()
		for i := range 10 {
			send(t, h, h.Now().Add(time.Duration(i)*time.Second), "web", "orders")
			h.Flush()
		}
		o := options(h)
		o.Bandwidth = 100
		began := time.Now()
		r := copied(t, h.Store, mem.New(mem.Options{}), o)
		took, want := time.Since(began), time.Duration(r.Bytes/100)*time.Second
		if took < want-10*time.Second || took > want+time.Second { // the last object is there when it may begin
			t.Errorf("%d bytes took %v", r.Bytes, took)
		}
	})
}

// docs/operate/backup.md says how many listings a run without news makes.
func TestListings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := settled(t)
		defer h.Stop()
		to := mem.New(mem.Options{})
		now := h.Now()
		services := []string{"a", "b", "c", "d"}
		for i := range 20 {
			send(t, h, now.Add(-time.Duration(i)*24*time.Hour), services...)
		}
		h.Flush()
		copied(t, h.Store, to, options(h))
		two := options(h)
		two.Since = horizon.DayOf(now) - 2
		for _, c := range []struct {
			o                copying.Options
			each, everything int
		}{{options(h), 2, 21}, {two, 8, 22}} {
			var all counter
			copied(t, storagetest.Faulty(h.Store, all.script), storagetest.Faulty(to, all.script), c.o)
			if n := all.n[storagetest.List] + all.n[storagetest.Dirs]; n != c.everything+c.each*len(services) {
				t.Errorf("%d listings, want %d and %d for each service", n, c.everything, c.each)
			}
		}
	})
}
