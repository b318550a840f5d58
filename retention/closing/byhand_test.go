package closing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/catalog/closed"
	"blobtail/reading/blobs"
	"blobtail/retention"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// verify returns the findings of verify that are no notes.
func (w *world) verify() (found []string) {
	w.t.Helper()
	r := blobs.New(w.store, blobs.Options{Now: func() time.Time { return w.now }})
	_, err := r.Verify(context.Background(), blobs.Query{Range: blobs.Always()}, blobs.VerifyOptions{}, func(f blobs.Finding) {
		if !f.Note {
			found = append(found, f.Key+": "+f.Err.Error())
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// move puts the object of a key under another one.
func (w *world) move(from, to string, change func(o *storage.Blob, body []byte) []byte) {
	w.t.Helper()
	o, err := w.store.Stat(context.Background(), from)
	if err != nil {
		w.t.Fatal(err)
	}
	body := storagetest.Body(w.t, w.store, from)
	w.remove(from, to)
	if change != nil {
		body = change(&o, body)
	}
	storagetest.Put(w.t, w.store, to, body, o.Attrs)
}

// Whatever is done to a store by hand, verify names it, and reads that touch it are incomplete.
func TestByHand(t *testing.T) {
	const target = "s07/2026/11/17/1500/000002.log"
	newest := func(w *world) string {
		keys := storagetest.KeysOf(w.t, w.store, "s07/2026/11/17/_closed.")
		return keys[len(keys)-1]
	}
	for name, c := range map[string]struct {
		do    func(w *world)
		named string
		reads bool
	}{
		"a blob removed":  {func(w *world) { w.remove(target) }, target, true},
		"an hour removed": {func(w *world) { w.remove(storagetest.KeysOf(w.t, w.store, "s07/2026/11/17/1500/")...) }, target, true},
		"a day of a service removed": {func(w *world) { w.remove(storagetest.KeysOf(w.t, w.store, "s07/2026/11/17/")...) },
			"s07/2026/11/17/_closed.*: the part", true},
		"a day's blobs removed": {func(w *world) {
			for _, h := range []string{"03", "15", "16", "23"} {
				w.remove(storagetest.KeysOf(w.t, w.store, "s07/2026/11/17/"+h)...)
			}
		}, target, true},
		"put under another service": {func(w *world) { w.move(target, "s08/2026/11/17/1500/000004.log", nil) }, target, true},
		"the newest part with its blobs": {func(w *world) { w.remove("s07/2026/11/17/1500/000009.log", newest(w)) },
			"s07/2026/11/17/_closed.*: the part", false},
		"a service removed": {func(w *world) { w.remove(storagetest.KeysOf(w.t, w.store, "s07/")...) },
			"the SHA-256 of its name begins with " + closed.Alias("s07"), true},
		"two blobs swapped": {func(w *world) {
			w.move(target, "s07/x", nil)
			w.move("s07/2026/11/17/1600/000002.log", target, nil)
			w.move("s07/x", "s07/2026/11/17/1600/000002.log", nil)
		}, target, true},
		"an older part in place of the newest": {func(w *world) {
			to := newest(w)
			old := strings.Replace(to, "000002", "000001", 1)
			w.move(old, to, nil)
			w.move(to, old, nil)
			body := storagetest.Body(t, w.store, old)
			o, _ := w.store.Stat(context.Background(), old)
			storagetest.Put(t, w.store, to, body, o.Attrs)
		}, "s07/2026/11/17/_closed.0", true},
		"the first part removed": {func(w *world) {
			w.remove(strings.Replace(newest(w), "000002", "000001", 1))
		}, "s07/2026/11/17/_closed.000001", false},
		"the first part and a blob removed": {func(w *world) {
			w.remove(strings.Replace(newest(w), "000002", "000001", 1), target)
		}, target, true},
		"a blob written anew with right checksums": {func(w *world) {
			id := w.made
			w.made = 7*120 + 3*12 + 1*3 + 1 // so it has the batch of the first one
			w.remove(target)
			w.blob("s07", time.Date(2026, 11, 17, 15, 0, 0, 0, time.UTC), 2, 9)
			w.made = id
		}, target, false},
		"a root removed": {func(w *world) { w.remove(storagetest.KeysOf(w.t, w.store, closed.RootPrefix)[0]) },
			"does not follow from the root before", false},
		"a root changed": {func(w *world) {
			key := storagetest.KeysOf(w.t, w.store, closed.RootPrefix)[0]
			w.move(key, key, func(_ *storage.Blob, body []byte) []byte {
				return bytes.Replace(body, []byte(`"through"`), []byte(`"throuch"`), 1)
			})
		}, "does not follow from the root before", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for s := range 12 {
				for d := range 10 {
					for _, h := range []int{3, 15, 16, 23} {
						for n := range 3 {
							w.blob(fmt.Sprintf("s%02d", s), day.Add(-time.Duration(d*24-h)*time.Hour), n+1, 10)
						}
					}
				}
			}
			w.close()
			w.blob("s07", time.Date(2026, 11, 17, 15, 0, 0, 0, time.UTC), 9, 1)
			w.now = w.now.Add(24 * time.Hour)
			w.close()
			w.now = w.now.Add(24 * time.Hour)
			if _, err := closing.Run(context.Background(), w.store, closing.Options{Daily: true, Log: zerolog.Nop()}); err != nil {
				t.Fatal(err)
			}
			whole := slices.DeleteFunc(w.verify(), func(s string) bool { return strings.Contains(s, "lacks numbers") })
			if len(whole) > 0 {
				t.Fatalf("the store is whole, and verify says %q", whole)
			}
			c.do(w)
			found := w.verify()
			if !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, c.named) }) {
				t.Errorf("verify finds %q", found)
			}
			for service, lacks := range map[string]bool{"s07": c.reads, "s08": strings.HasPrefix(name, "put ")} {
				_, problems, _ := w.read(service, -3*24*time.Hour+15*time.Hour, -3*24*time.Hour+16*time.Hour)
				if (len(problems) > 0) != lacks {
					t.Errorf("a read of %s finds %q", service, problems)
				}
			}
		})
	}
}

// A number that lacks among late blobs is a known loss too, and a blob that is gone is none.
func TestGapOfLateBlobs(t *testing.T) {
	w := newWorld(t)
	w.hours("web")
	w.close()
	var late []string
	for n := range 3 {
		late = append(late, w.blob("web", day.Add(15*time.Hour), 4+n, 10))
	}
	w.remove(late[1])
	got := w.close()
	if len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Error(), "1 in all, the first "+late[1]) {
		t.Errorf("%q", got.Problems)
	}
	if _, problems, warnings := w.read("web", 15*time.Hour, 16*time.Hour); len(problems) > 0 || len(warnings) != 1 {
		t.Errorf("a read: %q, %q", problems, warnings)
	}
	w.remove(late[0])
	if got := w.close(); len(got.Problems) != 1 || got.Parts != 0 {
		t.Errorf("%+v", got)
	}
}

// A run that meets two swapped blobs takes neither for a late one: once they are in their places
// again, nothing is missing.
func TestSwappedAndBack(t *testing.T) {
	for _, other := range []int{1, 4} { // of the same hour, and of another one
		w := newWorld(t)
		keys := w.hours("web")
		w.close()
		swap := func() {
			w.move(keys[0], "web/x", nil)
			w.move(keys[other], keys[0], nil)
			w.move("web/x", keys[other], nil)
		}
		swap()
		if got := w.close(); len(got.Problems) != 2 || got.Parts != 0 {
			t.Errorf("%+v", got)
		}
		late := w.blob("web", day.Add(15*time.Hour), 4, 1)
		if got := w.close(); len(got.Problems) != 2 || got.Parts != 1 {
			t.Errorf("with a late blob: %+v", got)
		}
		swap()
		w.remove(late)
		if n, problems, _ := w.read("web", 0, 24*time.Hour); n != 120 || len(problems) != 1 || !strings.Contains(problems[0], late) {
			t.Errorf("%d records, %q", n, problems)
		}
		if found := w.verify(); len(found) != 1 || !strings.Contains(found[0], late) {
			t.Errorf("%q", found)
		}
	}
}

// A damaged root and a foreign object beside the roots end no run.
func TestDamagedRoot(t *testing.T) {
	w := newWorld(t)
	w.hours("web")
	w.close()
	root := storagetest.KeysOf(t, w.store, closed.RootPrefix)[0]
	body := storagetest.Body(t, w.store, root)
	w.remove(root)
	storagetest.Put(t, w.store, root, body[:20])
	storagetest.Put(t, w.store, closed.RootPrefix+"README", nil)
	w.blob("web", day.Add(15*time.Hour), 4, 1)
	if got := w.close(); got.Parts != 1 || len(got.Problems) > 0 || !closed.IsRoot(got.Root.Name) {
		t.Errorf("%+v", got)
	}
	if found := w.verify(); len(found) == 0 || !strings.HasPrefix(found[0], root+": ") {
		t.Errorf("%q", found)
	}
}

// Compaction leaves a day alone in which a blob is not the one of the account, though its checksums
// are right: it would make the account agree.
func TestRewrittenIsNotCompacted(t *testing.T) {
	w := newWorld(t)
	keys := w.hours("web")
	w.close()
	w.remove(keys[1])
	made := w.made
	w.made = 1 // so it has the batch of the second one again
	w.blob("web", day.Add(3*time.Hour), 2, 9)
	w.made = made
	got, err := compact.Run(context.Background(), w.store, compact.Options{Log: zerolog.Nop()})
	if err != nil || got.Out != 0 || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Error(), keys[1]) {
		t.Errorf("%+v, %v", got, err)
	}
}

// The gap of a service is named also where another one was compacted in the same hour.
func TestGapBesideCompaction(t *testing.T) {
	w := newWorld(t)
	w.hours("api")
	w.close()
	if got, err := compact.Run(context.Background(), w.store, compact.Options{Log: zerolog.Nop()}); err != nil || got.Out == 0 {
		t.Fatal(got, err)
	}
	w.blob("web", day.Add(15*time.Hour), 1, 1)
	w.blob("web", day.Add(15*time.Hour), 3, 1)
	if found := w.verify(); len(found) != 1 || !strings.HasPrefix(found[0], "web/2026/11/20/1500/: lane 0 lacks number 000002") {
		t.Errorf("%q", found)
	}
}

// A run that ends between its parts and its root leaves parts that the next daily run names.
func TestPartsWithoutRoot(t *testing.T) {
	w := newWorld(t)
	w.hours("web")
	w.daily()
	w.now = w.now.Add(24 * time.Hour)
	full := storagetest.Fault{Before: errors.New("it is full")}
	fails := storagetest.Faulty(w.store, storagetest.Times(1, storagetest.Create, closed.RootPrefix, full))
	if _, err := compact.Run(context.Background(), fails, compact.Options{Log: zerolog.Nop()}); err == nil {
		t.Fatal("the root was written")
	}
	w.daily()
	w.remove("web/2026/11/20/_closed.000002")
	w.remove(storagetest.KeysOf(t, w.store, "web/2026/11/20/1500/99")...)
	found := w.verify()
	if !slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, "web/2026/11/20/_closed.*: the part") }) {
		t.Errorf("%q", found)
	}
}

// daily runs the retention job.
func (w *world) daily() {
	w.t.Helper()
	o := retention.Options{Policy: retention.Policy{Default: 90 * 24 * time.Hour}, Grace: time.Hour,
		Clock: func() time.Time { return w.now }, Closing: &closing.Options{Log: zerolog.Nop()}}
	if _, err := retention.New(w.store, w.store, o).Apply(context.Background(), ""); err != nil {
		w.t.Fatal(err)
	}
}

// A reader that may list roots, and cannot read one, does not know whether a day is gone.
func TestRootRefused(t *testing.T) {
	w := newWorld(t)
	w.hours("web")
	w.close()
	w.remove(storagetest.KeysOf(t, w.store, "web/2026/11/20/")...)
	w.blob("web", day.Add(-24*time.Hour), 1, 1)
	refused := storagetest.Fault{Before: storage.ErrUnauthorized}
	r := blobs.New(storagetest.Faulty(w.store, storagetest.Times(9, storagetest.Get, closed.RootPrefix, refused)), blobs.Options{})
	from, to := day.Add(-24*time.Hour).UnixNano(), day.Add(24*time.Hour).UnixNano()
	q := blobs.Query{Services: []string{"web"}, Range: blobs.Range{From: from, To: to}}
	p, err := r.Plan(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := p.Read(context.Background(), func([]byte) error { return nil }); err != nil || len(sum.Problems) != 1 {
		t.Errorf("%v, %v", sum.Problems, err)
	}
}
