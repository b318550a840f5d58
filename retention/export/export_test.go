package export_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/catalog/closed"
	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit/box"
	"blobtail/internal/where"
	"blobtail/retention"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/retention/erase"
	"blobtail/retention/export"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

func house(t *testing.T) (h *box.House, day time.Time) {
	h = box.New(t, 1)
	h.Ingester(0).Start()
	time.Sleep(time.Minute)
	return h, time.Now().UTC().Add(-50 * time.Hour).Truncate(24 * time.Hour)
}

func send(t *testing.T, h *box.House, lines ...box.Line) {
	t.Helper()
	if err := h.Ingester(0).Accept(h.Request(lines...), true); err != nil {
		t.Fatal(err)
	}
	h.Flush()
}

func closes(t *testing.T, h *box.House) {
	t.Helper()
	if _, err := closing.Run(t.Context(), h.Store, closing.Options{After: closed.Soonest, Now: h.Now(), Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
}

func compacts(t *testing.T, h *box.House) {
	t.Helper()
	closes(t, h)
	if _, err := compact.Run(t.Context(), h.Store, compact.Options{Grace: -1, Now: h.Now, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
}

func options() export.Options {
	return export.Options{Services: []string{"*"}, Store: box.StoreID}
}

// exports runs an export that has no problem.
func exports(t *testing.T, h *box.House, to storage.BlobStore) export.Result {
	t.Helper()
	r, err := export.Run(t.Context(), h.Store, to, options())
	if err != nil || len(r.Problems) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	return r
}

// content is what an export has: names and bytes.
func content(t *testing.T, s storage.BlobStore) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range storagetest.KeysOf(t, s, "") {
		all[key] = string(storagetest.Body(t, s, key))
	}
	return all
}

// files are the names of the files of Parquet.
func files(t *testing.T, s storage.BlobStore) (names []string) {
	return slices.DeleteFunc(storagetest.KeysOf(t, s, ""), func(key string) bool { return !strings.HasSuffix(key, ".parquet") })
}

func equal(t *testing.T, got, want storage.BlobStore) {
	t.Helper()
	if g, w := content(t, got), content(t, want); !maps.Equal(g, w) {
		t.Errorf("%v\nwant %v", slices.Sorted(maps.Keys(g)), slices.Sorted(maps.Keys(w)))
	}
}

// counter counts the requests to two stores.
type counter struct {
	mu   sync.Mutex
	n    map[storagetest.Op]int
	blob int // GETs of blobs
}

func (c *counter) script(op storagetest.Op, key string) storagetest.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[storagetest.Op]int{}
	}
	if c.n[op]++; op == storagetest.Get && strings.HasSuffix(key, ".log") {
		c.blob++
	}
	return storagetest.Fault{}
}

// quiet runs an export that has nothing to make. It reads no blob.
func quiet(t *testing.T, h *box.House, to storage.BlobStore) *counter {
	t.Helper()
	var c counter
	before := files(t, to)
	r, err := export.Run(t.Context(), storagetest.Faulty(h.Store, c.script), storagetest.Faulty(to, c.script), options())
	if err != nil || len(r.Problems) > 0 || r.Made+r.Removed > 0 || !slices.Equal(files(t, to), before) {
		t.Errorf("%+v, %v", r, err)
	}
	return &c
}

func erases(t *testing.T, h *box.House, text string) {
	t.Helper()
	expr, err := where.Parse(nil, fmt.Sprintf("msg == %q", text), false)
	if err != nil {
		t.Fatal(err)
	}
	o := erase.Options{Where: expr, Patience: -1, Log: zerolog.Nop()}
	_, err = erase.Run(t.Context(), h.Store, h.Store, o)
	if confirm, ok := errors.AsType[*retention.ConfirmError](err); ok {
		o.Confirm = confirm.Hash
		_, err = erase.Run(t.Context(), h.Store, h.Store, o)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An export follows its store: records, late ones, compaction, an erasure, a hold, a horizon. Equal records
// are equal bytes, also of compacted blobs, and of a day that did not change nothing is read.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, day := house(t)
		defer h.Stop()
		to := mem.New(mem.Options{})
		if r := exports(t, h, to); r.Services != 0 || len(content(t, to)) > 0 {
			t.Errorf("of nothing: %+v", r)
		}
		for n := range 4 {
			at := day.Add(time.Duration(n) * time.Minute)
			send(t, h, box.Line{Time: at, Service: "web", Msg: "late " + fmt.Sprint(n)}, box.Line{Time: at, Service: "app-25.13", Msg: "x"})
			send(t, h, box.Line{Time: at.Add(48 * time.Hour), Service: "web"}, box.Line{Time: h.Now(), Service: "web"})
		}
		if r := exports(t, h, to); r.Made != 0 || r.Services != 2 {
			t.Errorf("before days are closed: %+v", r)
		}
		closes(t, h)
		r := exports(t, h, to)
		want := []string{"service=app-25.13/date=" + day.Format(time.DateOnly), "service=web/date=" + day.Format(time.DateOnly)}
		var dirs []string
		for _, name := range files(t, to) {
			dirs = append(dirs, name[:strings.LastIndexByte(name, '/')])
		}
		if r.Made != 2 || r.Records != 8 || r.Services != 2 || !slices.Equal(dirs, want) {
			t.Errorf("%+v: %v", r, dirs)
		}
		if c := quiet(t, h, to); c.n[storagetest.Get] > 0 || c.n[storagetest.Create] > 0 {
			t.Errorf("nothing is new: %v", c.n)
		}
		compacts(t, h)
		if c := quiet(t, h, to); c.blob > 0 || c.n[storagetest.Create] != 2 {
			t.Errorf("after compaction: %v", c)
		}
		time.Sleep(time.Hour)
		compacts(t, h) // deletes what is replaced
		if c := quiet(t, h, to); c.blob > 0 {
			t.Errorf("after deletions: %v", c)
		}
		if c := quiet(t, h, to); c.n[storagetest.Get] > 0 {
			t.Errorf("nothing is new: %v", c.n)
		}
		anew := mem.New(mem.Options{})
		exports(t, h, anew)
		equal(t, anew, to)

		send(t, h, box.Line{Time: day.Add(90 * time.Minute), Service: "web", Msg: "very late"})
		late := ""
		for _, what := range []string{"not in the account", "in the account"} {
			if r := exports(t, h, to); r.Made != 1 || r.Records != 5 || len(files(t, to)) != 2 || late != "" && files(t, to)[1] != late {
				t.Errorf("a late record, %s: %+v", what, r)
			}
			late = files(t, to)[1]
			closes(t, h)
		}
		erases(t, h, "late 2")
		if r := exports(t, h, to); r.Made != 1 || r.Records != 4 || len(files(t, to)) != 2 {
			t.Errorf("an erased record: %+v", r)
		}
		compare(t, h, to, "web", day)
		for n := range 4 {
			erases(t, h, fmt.Sprintf("late %d", n))
		}
		erases(t, h, "very late")
		if r := exports(t, h, to); r.Made != 1 || r.Records != 0 || len(files(t, to)) != 1 {
			t.Errorf("a day without a record: %+v", r)
		}
		quiet(t, h, to)

		held := &hold.Hold{Name: "case", Services: []string{"a*"}, From: hold.Oldest, To: hold.Newest}
		if err := hold.Create(t.Context(), h.Store, held); err != nil {
			t.Fatal(err)
		}
		for _, service := range []string{"web", "app-25.13"} {
			if err := horizon.Publish(t.Context(), h.Store, service, horizon.DayOf(day)+1); err != nil {
				t.Fatal(err)
			}
		}
		if r := exports(t, h, to); r.Removed != 1 || len(content(t, to)) != 2 {
			t.Errorf("hidden days, one held: %+v, %v", r, slices.Sorted(maps.Keys(content(t, to))))
		}
		remove(t, h.Store, "_hold/case")
		if r := exports(t, h, to); r.Removed != 1 || len(content(t, to)) != 0 {
			t.Errorf("a hidden day: %+v", r)
		}
	})
}

// killed lets a run make a number of requests to both stores, and ends it.
func killed(h *box.House, to storage.BlobStore, at int, after bool) bool {
	ctx, die := context.WithCancel(context.Background())
	defer die()
	var mu sync.Mutex
	n := 0
	script := func(storagetest.Op, string) storagetest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if n++; n < at {
			return storagetest.Fault{}
		}
		die()
		if n == at && after {
			return storagetest.Fault{After: storagetest.ErrFault}
		}
		return storagetest.Fault{Before: storagetest.ErrFault}
	}
	_, _ = export.Run(ctx, storagetest.Faulty(h.Store, script), storagetest.Faulty(to, script), options())
	return n >= at
}

// A run that is killed at any request leaves an export that the next run makes equal to that of a run that
// was not killed. Until then each mark has all its files.
func TestKilledAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, day := house(t)
		defer h.Stop()
		for n := range 3 {
			send(t, h, box.Line{Time: day.Add(time.Duration(n) * time.Hour), Service: "web", Msg: fmt.Sprint("late ", n)},
				box.Line{Time: day, Service: "app"}, box.Line{Time: day, Service: "old"})
		}
		compacts(t, h)
		old := mem.New(mem.Options{})
		exports(t, h, old)
		send(t, h, box.Line{Time: day, Service: "web", Msg: "later"}, box.Line{Time: day, Service: "new"})
		closes(t, h)
		erases(t, h, "late 1")
		if err := horizon.Publish(t.Context(), h.Store, "old", horizon.DayOf(day)+1); err != nil {
			t.Fatal(err)
		}
		want := mem.New(mem.Options{})
		exports(t, h, want)
		for _, base := range []*mem.Store{mem.New(mem.Options{}), old} {
			kills := 0
			for _, after := range []bool{false, true} {
				for at := 1; ; at++ {
					to := mem.New(mem.Options{})
					storagetest.Copy(t, base, to)
					if !killed(h, to, at, after) {
						equal(t, to, want)
						break
					}
					kills++
					sound(t, to)
					exports(t, h, to)
					equal(t, to, want)
				}
			}
			if kills < 60 {
				t.Errorf("%d kills", kills)
			}
		}
	})
}

// What cannot be read leaves the export as it was, and is a problem: a missing blob, a damaged one. So
// are a day that the store has lost, and an export of another store, of which no day is removed.
func TestTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, day := house(t)
		defer h.Stop()
		to := mem.New(mem.Options{})
		for _, service := range []string{"web", "app"} {
			for n := range 2 {
				send(t, h, box.Line{Time: day.Add(time.Duration(n) * time.Hour), Service: service})
			}
		}
		closes(t, h)
		blobs := storagetest.KeysOf(t, h.Store, "web/")
		kept := storagetest.Body(t, h.Store, blobs[0])
		trouble := func(what, want string, to storage.BlobStore, o export.Options) {
			t.Helper()
			r, err := export.Run(t.Context(), h.Store, to, o)
			if text := fmt.Sprint(r.Problems); err != nil || len(r.Problems) == 0 || !strings.Contains(text, want) {
				t.Errorf("%s: %+v, %v", what, r, err)
			}
		}
		storagetest.Edit(t, h.Store, blobs[0], func(_ *storage.Blob, body []byte) []byte { return body[:len(body)/2] })
		trouble("a damaged blob", blobs[0], to, options())
		if names := files(t, to); len(names) != 1 || !strings.HasPrefix(names[0], "service=app/") {
			t.Errorf("%v", names)
		}
		storagetest.Edit(t, h.Store, blobs[0], func(_ *storage.Blob, _ []byte) []byte { return kept })
		exports(t, h, to)
		was := content(t, to)
		other := options()
		other.Store = "another"
		send(t, h, box.Line{Time: day, Service: "app"})
		closes(t, h)
		trouble("another store", "is of the store", to, other)
		remove(t, h.Store, blobs[1])
		trouble("a missing blob", blobs[1]+": it is missing", to, options())
		for _, key := range storagetest.KeysOf(t, h.Store, "web/") {
			remove(t, h.Store, key)
		}
		trouble("a lost day", "does not say why", to, options())
		if err := horizon.Publish(t.Context(), h.Store, "web", horizon.DayOf(day)+1); err != nil {
			t.Fatal(err)
		}
		trouble("a day of another store, which this one hides", "is of the store", to, other)
		for key, body := range content(t, to) {
			if strings.HasPrefix(key, "service=web/") && body != was[key] {
				t.Errorf("%s has changed", key)
			}
		}
		none := options()
		none.Services = []string{"_*"}
		if r, err := export.Run(t.Context(), h.Store, to, none); r.Services != 0 || r.Unknown != "_*" || err != nil {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func remove(t *testing.T, s storage.BlobStore, key string) {
	t.Helper()
	if err := s.Delete(t.Context(), storage.Blob{Key: key}); err != nil {
		t.Fatal(err)
	}
}
