package compact_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// unseen is a store with a listing from before one of its blobs arrived.
type unseen struct {
	storage.BlobStore
	key string
}

func (u unseen) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		for b, err := range u.BlobStore.List(ctx, prefix, after) {
			if err == nil && b.Key == u.key {
				continue
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// most is the bytes of lines of the largest blob.
func (w *world) most() (most int64) {
	w.t.Helper()
	for _, b := range w.blobs() {
		meta, err := blobfmt.ParseMeta(b.Metadata)
		w.must(err)
		most = max(most, meta.RawBytes)
	}
	return most
}

func (w *world) stored() (n int64) {
	w.t.Helper()
	for _, b := range w.blobs() {
		n += b.Size
	}
	return n
}

// Only one of two compactors lists a late blob that sorts first, so that all their
// blobs overlap, each with the next. No later run makes a blob of more than twice the
// target, readers get the same all the time, and the runs come to an end.
func TestOverlapHangsTogether(t *testing.T) {
	for _, late := range []int{5, 10, 25, 40} { // lines; the groups are shifted by as many
		const target = 4 << 10
		o := compact.Options{Target: target}
		w := newWorld(t)
		w.minutes(60)
		w.close(t.Context())
		w.put(61, hour, request(5000, late, 0, time.Millisecond))
		before := w.answer()
		raced := false
		first := storagetest.Faulty(w.store, func(op storagetest.Op, _ string) storagetest.Fault {
			if op == storagetest.Create && !raced {
				raced = true
				got, err := w.compactClosed(context.Background(), unseen{w.store, "web/2026/11/20/1500/000061.log"}, o)
				if err != nil || got.Out < 5 {
					t.Errorf("the second compactor: %+v, %v", got, err)
				}
			}
			return storagetest.Fault{}
		})
		if got, err := w.compactClosed(t.Context(), first, o); err != nil || got.Out < 5 || len(got.Problems) > 0 {
			t.Fatalf("the first compactor: %+v, %v", got, err)
		}
		if w.answer() != before {
			t.Fatal("another answer with both")
		}
		both, runs := len(w.keys())-61, 0
		for ; ; runs++ {
			w.now = w.now.Add(time.Hour)
			got := w.run(o)
			if w.answer() != before {
				t.Fatalf("another answer after run %d", runs)
			}
			if most := w.most(); most > 2*target {
				t.Fatalf("after run %d a blob has %d bytes of lines, the target is %d", runs, most, target)
			}
			if got.Out+got.Deleted+got.Waiting == 0 {
				break
			}
			if runs == 10 {
				t.Fatalf("no end to it: %+v", got)
			}
		}
		end := w.dump()
		w.now = w.now.Add(24 * time.Hour)
		if w.run(o); w.dump() != end {
			t.Error("one more run does something")
		}
		t.Logf("late by %d lines: %d blobs of two compactors, %d after %d runs, the largest has %d bytes of lines", late, both, len(w.keys()), runs, w.most())
		if len(w.keys()) >= both*3/4 {
			t.Errorf("%d blobs of %d are left", len(w.keys()), both)
		}
		w.verify()
	}
}

// One of two overlapping blobs is old enough for its replaced blobs to be deleted,
// the other is too young to be rewritten. The rewriting is not forgotten, even if a
// run is killed.
func TestOverlapYoung(t *testing.T) {
	for kills := range 12 {
		w := newWorld(t)
		w.minutes(3)
		all := slices.Concat(request(1000, 10, 0, time.Minute), request(1001, 10, time.Minute, time.Minute), request(1002, 10, 2*time.Minute, time.Minute))
		w.putAs(80, 990001, hour, all, batch(1), batch(2), batch(3))
		w.now = w.now.Add(30 * time.Minute)
		late := request(90, 30, 0, time.Hour)
		w.putAs(81, 990002, hour, append(late, all[10:]...), batch(2), batch(3), batch(70))
		before := w.answer()
		o := compact.Options{Target: 4 << 10}
		w.now = w.now.Add(40 * time.Minute)
		w.run(o)
		w.now = w.now.Add(time.Hour)
		script, _ := kill(kills*2+1, true)
		_, _ = w.compact(t.Context(), storagetest.Faulty(w.store, script), o)
		for range 3 {
			w.run(o)
			w.now = w.now.Add(time.Hour)
		}
		if keys := w.keys(); len(keys) != 1 || w.answer() != before {
			t.Errorf("killed at call %d: the store has %v", kills*2+1, keys)
		}
	}
}

// Runs come twice in a grace, and a late blob before each of them: the replaced blobs
// are deleted all the same.
func TestLateBeforeEachRun(t *testing.T) {
	w := newWorld(t)
	w.minutes(60)
	small := w.stored()
	deleted, most, out := 0, 0, 0
	for i := range 48 {
		w.put(100+i, hour, request(uint64(7000+i), 1, time.Duration(i)*time.Minute, time.Second))
		before := w.answer()
		got := w.run(compact.Options{})
		if w.answer() != before {
			t.Fatalf("another answer after run %d", i)
		}
		deleted, out = deleted+got.Deleted, out+got.Out
		if n := len(w.keys()); i > 1 {
			most = max(most, n)
		}
		if n := w.stored(); n > 2*small {
			t.Fatalf("after run %d: %d bytes of %d", i, n, small)
		}
		w.now = w.now.Add(30 * time.Minute)
	}
	t.Logf("%d deleted, at most %d blobs, rewritten %d times, %d bytes of %d", deleted, most, out, w.stored(), small)
	if deleted < 100 || most > 10 || out > 25 {
		t.Errorf("%d deleted, at most %d blobs, rewritten %d times", deleted, most, out)
	}
}

// An object without metadata is foreign, unless the store knows of metadata that it
// cannot read.
func TestMetadataLost(t *testing.T) {
	w := newWorld(t)
	w.minutes(3)
	const key = "web/2026/11/20/1500/000900.log"
	w.must(w.store.Create(t.Context(), key, []byte("x"), storage.Attrs{}))
	store := storagetest.Faulty(w.store, storagetest.Times(-1, storagetest.Stat, "000900", storagetest.Fault{Before: storage.ErrDamaged}))
	got, err := w.compact(t.Context(), store, compact.Options{})
	if err != nil || got.Out != 1 || got.Foreign != 0 || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Error(), key) {
		t.Errorf("run: %+v, %v", got, err)
	}
}

// Memory is bounded too: overlapping blobs with too many stored bytes are not joined,
// and are left alone.
func TestOverlapTooLarge(t *testing.T) {
	w := newWorld(t)
	noise := rand.New(rand.NewPCG(1, 1))
	var recs []rec
	for i := range 200 {
		at := hour.Add(time.Duration(i) * time.Second).UnixNano()
		msg := make([]byte, 300)
		for k := range msg {
			msg[k] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[noise.IntN(64)]
		}
		recs = append(recs, rec{at, origin(1), uint32(i), line("web", at, "info", string(msg))})
	}
	w.putAs(80, 990001, hour, recs[:190], batch(1), batch(2))
	w.putAs(81, 990002, hour, recs[10:], batch(2), batch(3))
	w.put(1, hour, request(1, 5, 0, time.Minute))
	before := w.answer()
	o := compact.Options{Target: w.most() + 100}
	if w.stored() <= o.Target {
		t.Fatalf("%d bytes stored, the target is %d", w.stored(), o.Target)
	}
	end := w.dump()
	for range 3 {
		w.now = w.now.Add(time.Hour)
		if w.run(o); w.dump() != end || w.answer() != before {
			t.Fatal("something was made of them")
		}
	}
}
