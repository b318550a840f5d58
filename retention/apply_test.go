package retention_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/retention"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/storagetest"
)

// A day is hidden first. The first run that finds its horizon a grace old deletes it.
// Blobs within their age stay, and so do services with similar names.
func TestApplyHidesThenDeletes(t *testing.T) {
	w := newWorld(t)
	old := w.blob("app", days(31), 100)
	edge := w.blob("app", days(30)+12*time.Hour, 100) // the first hour of the first day kept
	young := w.blob("app", days(29), 100)
	sibling := w.blob("app2", days(31), 100)
	minus := w.blob("app-2", days(31), 100)
	legal := w.blob("legal", days(3000), 100)
	policy := retention.Policy{Default: days(400), Tail: days(3), Rules: []retention.Rule{{Service: "app", Age: days(30)}, {Service: "legal", Age: retention.Keep}}}

	r := w.apply(policy)
	if got := planned(w, r.Plan); !slices.Equal(got, []string{"app -31 hide"}) || len(r.Deleted) != 0 || !w.has(old) {
		t.Errorf("first run: %v, deleted %v", got, r.Deleted)
	}
	h, err := horizon.Read(t.Context(), w.store)
	if err != nil || !h.Hides("app", horizon.DayOf(w.now.Add(-days(31)))) || h.Hides("app", horizon.DayOf(w.now.Add(-days(30)))) || h.Hides("legal", 0) {
		t.Errorf("%+v, %v", h, err)
	}
	w.now = w.now.Add(grace - time.Second)
	if r = w.apply(policy); r.Total().Blobs != 0 || !w.has(old) {
		t.Errorf("before the grace is over: %+v", r.Deleted)
	}
	w.now = w.now.Add(time.Second)
	var log audit
	o := w.options(policy)
	o.Log = log.log()
	r, err = retention.New(w.store, w.store, o).Apply(t.Context(), "")
	if err != nil || len(r.Deleted) != 1 || r.Total().Blobs != 1 || r.Total().Records != 10 || r.Total().Bytes != 100 || w.has(old) {
		t.Errorf("%+v, %v", r.Deleted, err)
	}
	for _, key := range []string{edge, young, sibling, minus, legal} {
		if !w.has(key) {
			t.Errorf("%s is gone", key)
		}
	}
	if want := `"plan":"` + r.Plan.Hash + `","service":"app","day":"2026-10-20","blobs":1,"records":10,"bytes":100,"failed":0,"message":"deleted"`; !strings.Contains(log.String(), want) {
		t.Errorf("audit:\n%s", log.String())
	}
	if at := r.Oldest["app"]; !at.Equal(w.now.Add(-days(30)).Truncate(day)) || len(r.Oldest) != 3 || r.Overdue != 13*time.Hour {
		t.Errorf("oldest %v, overdue %v", r.Oldest, r.Overdue)
	}
}

// A horizon that rises every day leaves one mark behind. Marks of single dropped days
// below it are deleted too.
func TestApplyTidies(t *testing.T) {
	w := newWorld(t)
	policy := retention.Policy{Default: days(30)}
	for range 5 {
		w.blob("app", 0, 1)
		if err := horizon.Drop(t.Context(), w.store, "app", horizon.DayOf(w.now.Add(-days(29)))); err != nil {
			t.Fatal(err)
		}
		w.apply(policy)
		w.now = w.now.Add(day)
	}
	w.apply(policy)
	marks, err := horizon.Marks(t.Context(), w.store)
	var got []string
	for _, m := range marks {
		got = append(got, m.Blob.Key)
	}
	// The last run found yesterday's horizon old enough, and published today's.
	if want := []string{"_horizon/app/20261025", "_horizon/app/20261026", "_dropped/app/20261025", "_dropped/app/20261026"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

// A blob that cannot be deleted is reported by its key, and all others are deleted.
func TestApplyGoesOnAtALegalHold(t *testing.T) {
	w := newWorld(t)
	held := w.blob("app", days(40), 1)
	free := w.blob("app", days(40), 1)
	other := w.blob("web", days(40), 1)
	w.table("tail20261001")
	policy := retention.Policy{Default: days(30), Tail: days(3)}
	w.apply(policy)
	w.now = w.now.Add(grace)
	hold := errors.New("409 BlobImmutableDueToLegalHold")
	store := storagetest.Faulty(w.store, storagetest.Times(-1, storagetest.Delete, held, storagetest.Fault{Before: hold}))
	r, err := confirmedRun(retention.New(store, w.store, w.options(policy)))
	if err != nil || len(r.Problems) != 1 || !errors.Is(r.Problems[0], hold) || r.Total().Failed != 1 || r.Total().Blobs != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	var key *storage.KeyError
	if !errors.As(r.Problems[0], &key) || key.Key != held {
		t.Errorf("%v", r.Problems)
	}
	if !w.has(held) || w.has(free) || w.has(other) || slices.Contains(slices.Collect(keysOf(w.state())), "table tail20261001") {
		t.Errorf("%v", w.state())
	}
	if at := r.Oldest["app"]; !at.Equal(w.now.Add(-days(40)).Truncate(day)) || r.Overdue <= days(10) {
		t.Errorf("oldest %v, overdue %v", r.Oldest, r.Overdue)
	}
	w.apply(policy)
	if w.has(held) {
		t.Error("it stays without a hold")
	}
}

// A whole day that cannot be deleted is one problem, not one for each blob.
func TestApplyCountsWhatStays(t *testing.T) {
	w := newWorld(t)
	for range 300 {
		w.blob("app", days(40), 1)
	}
	policy := retention.Policy{Default: days(30)}
	w.apply(policy)
	w.now = w.now.Add(grace)
	store := storagetest.Faulty(w.store, storagetest.Times(-1, storagetest.Delete, "app/", storagetest.Fault{Before: storage.ErrUnauthorized}))
	r, err := confirmedRun(retention.New(store, w.store, w.options(policy)))
	if err != nil || r.Total().Failed != 300 || len(r.Problems) != 11 || !strings.Contains(r.Problems[10].Error(), "290 more blobs") || !errors.Is(r.Problems[10], storage.ErrUnauthorized) {
		t.Errorf("%v, %v", r.Problems, err)
	}
}

// A lost answer does not count as a blob that could not be deleted.
func TestApplyLooksAgainAfterAFailure(t *testing.T) {
	w := newWorld(t)
	w.blob("app", days(40), 7)
	policy := retention.Policy{Default: days(30)}
	w.apply(policy)
	w.now = w.now.Add(grace)
	store := storagetest.Faulty(w.store, storagetest.Times(1, storagetest.Delete, "app/", storagetest.Fault{After: storagetest.ErrFault}))
	r, err := confirmedRun(retention.New(store, w.store, w.options(policy)))
	if err != nil || len(r.Problems) != 0 || r.Total().Failed != 0 || r.Total().Bytes != 7 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Foreign objects stay and are reported. Our blobs are deleted even if their metadata
// are damaged.
func TestApplyLeavesForeignObjects(t *testing.T) {
	w := newWorld(t)
	name := func(n int) string {
		return blobfmt.Name{Service: "app", Period: w.now.Add(-days(40)).Truncate(time.Hour), Number: n}.String()
	}
	ours := map[string]string{name(1): "", name(2): "", name(3): ""}
	w.put(name(1), 1, metadata(1, w.now, 1))
	broken := metadata(2, w.now, 1)
	broken["records"] = "many"
	w.put(name(2), 1, broken)
	newer := metadata(3, w.now, 1)
	newer["format"] = "99"
	w.put(name(3), 1, newer)
	foreign := []string{name(4), "app/2026/10/11/notes.txt", "app/2026/10/11/1200/000001.log.bak", "app/2026/10/11/12:00/000001.log", "app/2026/10/11/1260/000001.log"}
	for _, key := range foreign {
		w.put(key, 1, nil)
	}
	policy := retention.Policy{Default: days(30)}
	w.apply(policy)
	w.now = w.now.Add(grace)
	r := w.apply(policy)
	for key := range ours {
		if w.has(key) {
			t.Errorf("%s stays", key)
		}
	}
	for _, key := range foreign {
		if !w.has(key) || !slices.Contains(r.Plan.Foreign.First, key) {
			t.Errorf("%s: there %v, told %v", key, w.has(key), r.Plan.Foreign)
		}
	}
	if r.Plan.Foreign.Count != len(foreign) {
		t.Errorf("%+v", r.Plan.Foreign)
	}
}

// A horizon that cannot be published, or a blob that cannot be examined, does not
// hold up other services.
func TestApplyGoesOnBesideOneService(t *testing.T) {
	w := newWorld(t)
	for _, service := range []string{"app", "web", "zoo"} {
		w.blob(service, days(40), 1)
	}
	key := blobfmt.Name{Service: "app", Period: w.now.Add(-days(41)).Truncate(day), Number: 1}.String()
	w.put(key, 1, nil)
	policy := retention.Policy{Default: days(30)}
	broken := storagetest.Faulty(w.store, storagetest.InTurn(
		storagetest.Times(-1, storagetest.Create, "_horizon/web/", storagetest.Fault{Before: storagetest.ErrFault}),
		storagetest.Times(-1, storagetest.Stat, key, storagetest.Fault{Before: storagetest.ErrFault})))
	r, err := confirmedRun(retention.New(broken, w.store, w.options(policy)))
	if err != nil || len(r.Raised) != 2 || len(r.Problems) != 2 || !errors.Is(r.Problems[0], storagetest.ErrFault) || !strings.Contains(r.Problems[1].Error(), "the horizon of web") {
		t.Fatalf("%+v, %v", r, err)
	}
	w.now = w.now.Add(grace)
	if r, err = confirmedRun(retention.New(broken, w.store, w.options(policy))); err == nil {
		t.Errorf("none could be raised: %+v", r)
	}
	if r.Total().Blobs != 2 || len(r.Problems) != 1 || !w.has(key) {
		t.Errorf("%+v", r)
	}
}

// A full disk cannot record the policy until something is deleted; then the run
// records it.
func TestApplyMakesRoom(t *testing.T) {
	w := newWorld(t)
	key := w.blob("app", days(40), 1)
	w.blob("app", days(20), 1)
	w.apply(retention.Policy{Default: days(30)})
	w.now = w.now.Add(grace)
	full := storagetest.Faulty(w.store, func(op storagetest.Op, _ string) storagetest.Fault {
		if op == storagetest.Create && w.has(key) {
			return storagetest.Fault{Before: storagetest.ErrFault}
		}
		return storagetest.Fault{}
	})
	r, err := confirmedRun(retention.New(full, w.store, w.options(retention.Policy{Default: days(10)})))
	if err != nil || w.has(key) || len(r.Raised) != 1 || len(r.Problems) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Days that a concurrent run has deleted are not reported as oldest.
func TestApplyOldestOfTwoRuns(t *testing.T) {
	w := newWorld(t)
	key := w.blob("app", days(40), 1)
	w.blob("app", days(1), 1)
	policy := retention.Policy{Default: days(30)}
	w.apply(policy)
	w.now = w.now.Add(grace)
	store := storagetest.Faulty(w.store, func(op storagetest.Op, prefix string) storagetest.Fault {
		if op == storagetest.List && prefix == "_policy/" {
			w.store.Delete(context.Background(), storage.Blob{Key: key})
		}
		return storagetest.Fault{}
	})
	r, err := retention.New(store, w.store, w.options(policy)).Apply(t.Context(), "")
	if err != nil || len(r.Deleted) != 0 || !r.Oldest["app"].Equal(w.now.Add(-days(1)).Truncate(day)) {
		t.Errorf("%+v, %v", r, err)
	}
}

// Directories that cannot hold blobs are skipped at any place in the listing.
func TestApplyPassesOverForeignDirectories(t *testing.T) {
	w := newWorld(t)
	old, young := w.blob("app", days(40), 1), w.blob("app", days(1), 1)
	foreign := []string{
		"app/!/x", "app/+026/10/11/x", "app/0000/01/01/x", "app/0000/x", "app/1/x", "app/10/11/1200/x", "app/2025/x", "app/2025/13/01/x", "app/2025/02/30/x", "app/2025/2/03/x",
		"app/2026/10/1/x", "app/2026/10/11x/x", "app/2026/10/ 1/x", "app/20261011/x", "app/12026/10/11/x", "app/2026-10-11/x", "app/x", "app/\u00e9\u00e9/x", "app/~/x",
	}
	for _, key := range foreign {
		w.put(key, 1, nil)
	}
	policy := retention.Policy{Default: days(30)}
	w.apply(policy)
	w.now = w.now.Add(grace)
	r := w.apply(policy)
	if w.has(old) || !w.has(young) || len(r.Problems) != 0 || !r.Oldest["app"].Equal(w.now.Add(-days(1)).Truncate(day)) {
		t.Errorf("%v, %v, oldest %v", w.has(old), r.Problems, r.Oldest)
	}
	for _, key := range foreign {
		if !w.has(key) {
			t.Errorf("%s is gone", key)
		}
	}
}

// No policy publishes a horizon in the last day: a clock was wrong, or an operator
// made a mistake.
func TestApplyRefusesAHorizonThatIsTooLate(t *testing.T) {
	w := newWorld(t)
	key, past, old := w.blob("app", days(2), 1), w.blob("app", days(40), 1), w.blob("web", days(40), 1)
	w.publish("app", -days(300))
	policy := retention.Policy{Default: days(30)}
	w.apply(policy)
	w.now = w.now.Add(grace)
	r := w.apply(policy)
	if !w.has(key) || !w.has(past) || w.has(old) || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Error(), "app: its horizon 2027-09-16 is later") {
		t.Errorf("%v", r.Problems)
	}
}

// If an operator removes a horizon during a run, the days that it hid are kept.
func TestApplyReadsHorizonsAgain(t *testing.T) {
	w := newWorld(t)
	key := w.blob("app", days(40), 1)
	policy := retention.Policy{Default: days(30)}
	w.apply(policy)
	w.now = w.now.Add(grace)
	// The policy is listed last before anything is deleted.
	store := storagetest.Faulty(w.store, func(op storagetest.Op, prefix string) storagetest.Fault {
		if op == storagetest.List && prefix == "_policy/" {
			w.store.Delete(context.Background(), storage.Blob{Key: "_horizon/app/20261021"})
		}
		return storagetest.Fault{}
	})
	r, err := retention.New(store, w.store, w.options(policy)).Apply(t.Context(), "")
	if err != nil || !w.has(key) || r.Total().Blobs != 0 || len(r.Problems) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A horizon is never old enough if the store cannot tell its age.
func TestApplyWithoutTheAgeOfAHorizon(t *testing.T) {
	w := newWorld(t)
	key := w.blob("app", days(40), 1)
	policy := retention.Policy{Default: days(30)}
	for range 3 {
		if _, err := confirmedRun(retention.New(altered{w.store, func(b *storage.Blob) { b.Created = time.Time{} }, ""}, w.store, w.options(policy))); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(day)
	}
	if !w.has(key) {
		t.Error("the blob is gone")
	}
}

// Names are parsed: even if a store lists too much, no other service is deleted.
func TestApplyParsesNames(t *testing.T) {
	w := newWorld(t)
	key, sibling, today := w.blob("app", days(40), 1), w.blob("app2", days(40), 1), w.blob("app", 0, 1)
	policy := retention.Policy{Default: days(30), Rules: []retention.Rule{{Service: "app2", Age: retention.Keep}}}
	for range 2 {
		if _, err := confirmedRun(retention.New(altered{w.store, func(*storage.Blob) {}, "app"}, w.store, w.options(policy))); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(grace)
	}
	if w.has(key) || !w.has(sibling) || !w.has(today) {
		t.Errorf("%v", w.state())
	}
}

// altered is a store with faulty listings.
type altered struct {
	storage.BlobStore
	change func(*storage.Blob)
	short  string // the result of listings of everything that begins with it
}

func (a altered) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	if a.short != "" && strings.HasPrefix(prefix, a.short) {
		prefix = a.short
	}
	return func(yield func(storage.Blob, error) bool) {
		for b, err := range a.BlobStore.List(ctx, prefix, startAfter) {
			a.change(&b)
			if !yield(b, err) {
				return
			}
		}
	}
}

// A blob in a directory that was cut short, and so lost its metadata, still counts as
// ours. A file that an operator copied there does not.
func TestApplyDamagedFile(t *testing.T) {
	root := t.TempDir()
	store, err := dir.Open(root, dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-days(40)).UTC().Truncate(time.Hour)
	cut := blobfmt.Name{Service: "app", Period: at, Number: 1}.String()
	copied := blobfmt.Name{Service: "app", Period: at, Number: 2}.String()
	storagetest.Put(t, store, cut, []byte("body"), storage.Attrs{Metadata: metadata(1, at, 1)})
	path := filepath.Join(root, cut)
	if err := errors.Join(os.Chmod(path, 0o600), os.Truncate(path, 20), os.Chmod(path, 0o400), os.WriteFile(filepath.Join(root, copied), []byte("{}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		j := retention.New(store, nil, retention.Options{Policy: retention.Policy{Default: days(30)}})
		if _, err := confirmedRun(j); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Stat(t.Context(), cut); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("the blob: %v", err)
	}
	if _, err := store.Stat(t.Context(), copied); err != nil {
		t.Errorf("the copy: %v", err)
	}
}

// Azure goes on deleting a table for 40 s or more, and answers with a conflict until
// then.
func TestApplyWaitsForTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stay := []string{"tail20261118", "tail20261", "tailx20261101", "tail20261301", "audit20261101", "ingesters"}
		w.table(stay...)
		w.table("tail20261116", "tail20261117")
		begun := time.Now()
		policy := retention.Policy{Default: days(30), Tail: days(2)}
		r, err := confirmedRun(retention.New(w.store, storagetest.DropsTake(w.store, 40*time.Second), w.options(policy)))
		if err != nil || len(r.Problems) != 0 || !slices.Equal(r.Tables, []string{"tail20261116", "tail20261117"}) {
			t.Errorf("%+v, %v", r, err)
		}
		if took := time.Since(begun); took < 40*time.Second || took > time.Minute {
			t.Errorf("took %v", took)
		}
		// A table that never disappears is given up and reported.
		begun = time.Now()
		w.table("tail20261101", "tail20261102")
		r, err = confirmedRun(retention.New(w.store, storagetest.DropsTake(w.store, time.Hour), w.options(policy)))
		if took := time.Since(begun); err != nil || len(r.Problems) != 2 || !errors.Is(r.Problems[0], storage.ErrBeingDeleted) || took < time.Minute || took > 2*time.Minute {
			t.Errorf("%+v, %v, took %v", r.Problems, err, took)
		}
		left := w.state()
		for _, name := range stay {
			if _, there := left["table "+name]; !there {
				t.Errorf("table %s is gone", name)
			}
		}
	})
}

// Blobs are deleted at their age even when tables cannot be listed.
func TestApplyWithoutTables(t *testing.T) {
	w := newWorld(t)
	key := w.blob("app", days(40), 1)
	policy := retention.Policy{Default: days(30), Tail: days(3)}
	tables := storagetest.FaultyTables(w.store, storagetest.Times(-1, storagetest.Tables, "", storagetest.Fault{Before: storage.ErrUnauthorized}))
	for range 2 {
		r, err := confirmedRun(retention.New(w.store, tables, w.options(policy)))
		if err != nil || len(r.Problems) != 1 || !errors.Is(r.Problems[0], storage.ErrUnauthorized) {
			t.Errorf("%+v, %v", r, err)
		}
		w.now = w.now.Add(grace)
	}
	if w.has(key) {
		t.Error("the blob stays")
	}
}
