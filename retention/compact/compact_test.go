package compact_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/storagetest"
)

// An hour of small blobs becomes one blob, and readers get the same. A grace later
// the small ones are deleted, and after that there is no work left.
func TestHour(t *testing.T) {
	w := newWorld(t)
	w.minutes(60)
	before := w.answer()

	got := w.run(compact.Options{})
	if got.In != 60 || got.Out != 1 || got.Records != 600 || got.Deleted != 0 || got.Waiting != 60 || got.BytesOut >= got.BytesIn {
		t.Errorf("first run: %+v", got)
	}
	if w.answer() != before {
		t.Error("the answer is another one once the compacted blob is there")
	}
	w.now = w.now.Add(59 * time.Minute)
	if got := w.run(compact.Options{}); got.Deleted != 0 || got.Waiting != 60 || got.Out != 0 {
		t.Errorf("run within the grace: %+v", got)
	}
	w.now = w.now.Add(time.Minute)
	if got := w.run(compact.Options{}); got.Deleted != 60 || got.Waiting != 0 || got.Out != 0 || got.Freed == 0 {
		t.Errorf("run a grace later: %+v", got)
	}
	if keys := w.keys(); !slices.Equal(keys, []string{"web/2026/11/20/1500/990001.log"}) {
		t.Errorf("the store has %v", keys)
	}
	if w.answer() != before {
		t.Error("the answer is another one once the replaced blobs are gone")
	}
	var c calls
	got, err := w.compact(t.Context(), c.of(w.store), compact.Options{})
	w.must(err)
	if got.Hours != 0 || c.n[storagetest.Dirs] > 1 || c.n[storagetest.List] > 5 || len(c.n) > 2 {
		t.Errorf("a run with nothing to do: %+v, %v", got, c.n)
	}
	w.verify()
}

// verify ensures that logquery verify has no findings.
func (w *world) verify() {
	w.t.Helper()
	v, err := blobs.New(w.store, blobs.Options{}).Verify(context.Background(), blobs.Query{Range: blobs.Always()}, blobs.VerifyOptions{},
		func(f blobs.Finding) {
			w.t.Errorf("verify: %s: %v", f.Key, f.Err)
		})
	if err != nil || v.Blobs == 0 {
		w.t.Errorf("verify: %+v, %v", v, err)
	}
}

// Hours that are not closed, blobs that are not old enough, hidden days, foreign
// objects, and services that the options do not name stay as they are.
func TestLeftAlone(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(w *world, o *compact.Options)
	}{
		{"an hour that ended less than a day ago", func(w *world, _ *compact.Options) { w.now = hour.Add(25*time.Hour - time.Second) }},
		{"a day below the horizon", func(w *world, _ *compact.Options) {
			w.must(horizon.Publish(context.Background(), w.store, "web", horizon.DayOf(hour)+1))
		}},
		{"a day that was dropped", func(w *world, _ *compact.Options) {
			w.must(horizon.Drop(context.Background(), w.store, "web", horizon.DayOf(hour)))
		}},
		{"another service", func(_ *world, o *compact.Options) { o.Services = []string{"web2", "we"} }},
		{"a glob that matches it not", func(_ *world, o *compact.Options) { o.Services = []string{"*b2"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.minutes(3)
			var o compact.Options
			c.make(w, &o)
			before := w.dump()
			if got := w.run(o); got.Out != 0 || got.Deleted != 0 {
				t.Errorf("run: %+v", got)
			}
			if w.dump() != before {
				t.Error("the store is not as it was")
			}
		})
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// Blobs of several periods of an hour are joined in one under the hour's first
// period.
func TestPeriods(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		p := time.Duration(15*i) * time.Minute
		w.put(1, hour.Add(p), request(uint64(i), 20, p, 15*time.Minute))
		w.put(2, hour.Add(p), request(uint64(10+i), 20, p, 15*time.Minute))
	}
	w.put(1, hour.Add(time.Hour+30*time.Minute), shifted(request(50, 20, 0, time.Minute), 90*time.Minute))
	w.put(2, hour.Add(time.Hour+30*time.Minute), shifted(request(51, 20, 0, time.Minute), 90*time.Minute))
	before := w.answer()
	w.run(compact.Options{})
	if w.answer() != before {
		t.Error("another answer")
	}
	w.now = w.now.Add(time.Hour)
	w.run(compact.Options{})
	if keys, want := w.keys(), []string{"web/2026/11/20/1500/990001.log", "web/2026/11/20/1630/990001.log"}; !slices.Equal(keys, want) {
		t.Errorf("the store has %v, want %v", keys, want)
	}
	if w.answer() != before {
		t.Error("another answer")
	}
	// A late one in one of the periods leaves no gap that would be reported.
	w.put(4, hour.Add(15*time.Minute), request(90, 5, 15*time.Minute, time.Minute))
	w.verify()
	w.run(compact.Options{})
	w.verify()
}

func shifted(recs []rec, by time.Duration) []rec {
	for i := range recs {
		r := &recs[i]
		r.time += int64(by)
		r.line = line("web", r.time, "info", "shifted")
	}
	return recs
}

// A directory has its own versions and ages of files.
func TestDirectory(t *testing.T) {
	w := newWorld(t)
	w.minutes(5)
	d, err := dir.Open(t.TempDir(), dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	storagetest.Copy(t, w.store, d)
	at := time.Now().Add(30 * time.Hour) // on any day
	if at.Before(now) {
		at = now
	}
	run := func() compact.Result {
		if _, err := closing.Run(t.Context(), d, closing.Options{After: -time.Hour, Now: at}); err != nil {
			t.Fatal(err)
		}
		got, err := compact.Run(t.Context(), d, compact.Options{Now: func() time.Time { return at }})
		if err != nil || len(got.Problems) > 0 {
			t.Fatalf("run: %+v, %v", got, err)
		}
		return got
	}
	if got := run(); got.Out != 1 || got.Deleted != 0 {
		t.Errorf("first run: %+v", got)
	}
	if got := run(); got.Deleted != 5 || got.Out != 0 {
		t.Errorf("second run: %+v", got)
	}
}

// No blob is made larger than the target, and full ones are not rewritten when a late
// one arrives.
func TestTarget(t *testing.T) {
	w := newWorld(t)
	w.minutes(60)
	o := compact.Options{Target: 8 << 10}
	first := w.run(o)
	if first.Out < 5 || first.In != 60 {
		t.Errorf("run: %+v", first)
	}
	w.now = w.now.Add(time.Hour)
	w.run(o)
	before := len(w.keys())
	w.put(1, hour, request(5000, 5, 30*time.Minute, time.Minute))
	answer := w.answer()
	got := w.run(o)
	if got.In > 2 {
		t.Errorf("a late blob had %d blobs rewritten", got.In)
	}
	w.now = w.now.Add(time.Hour)
	w.run(o)
	if n := len(w.keys()); n > before+1 || w.answer() != answer {
		t.Errorf("%d blobs, before the late one %d", n, before)
	}
	for _, b := range w.blobs() {
		if m, err := blobfmt.ParseMeta(b.Metadata); err != nil || m.RawBytes > o.Target {
			t.Errorf("%s has %d bytes of lines, %v", b.Key, m.RawBytes, err)
		}
	}
}

// A large blob is rewritten by itself for a better level; then it is left alone.
func TestAlone(t *testing.T) {
	w := newWorld(t)
	var recs []rec
	for i := range uint64(200) {
		recs = append(recs, request(i, 100, 0, time.Hour)...)
	}
	w.put(1, hour, recs)
	before := w.answer()
	for range 3 {
		w.run(compact.Options{})
		w.now = w.now.Add(time.Hour)
		if w.answer() != before {
			t.Fatal("another answer")
		}
	}
	if keys := w.keys(); !slices.Equal(keys, []string{"web/2026/11/20/1500/990001.log"}) {
		t.Errorf("the store has %v", keys)
	}
}

// A PUT of a replaced batch that arrives after its blob was deleted is ignored, and
// deleted by the next run. Its name may be another blob's by then.
func TestLatePut(t *testing.T) {
	w := newWorld(t)
	ids := w.minutes(5)
	w.run(compact.Options{})
	w.now = w.now.Add(time.Hour)
	w.run(compact.Options{})
	before := w.answer()
	w.putAs(ids[2], 7, hour, request(1002, 10, 2*time.Minute, time.Minute))
	if w.answer() != before {
		t.Error("the late copy shows")
	}
	if got := w.run(compact.Options{}); got.Deleted != 1 || got.Out != 0 {
		t.Errorf("run: %+v", got)
	}
	// A new batch under an old name is compacted.
	w.put(1, hour, request(2000, 10, 0, time.Hour))
	after := w.answer()
	w.run(compact.Options{})
	w.now = w.now.Add(time.Hour)
	if got := w.run(compact.Options{}); got.Deleted != 2 {
		t.Errorf("run: %+v", got)
	}
	// Batches that the first compacted blob replaced stay replaced.
	w.putAs(ids[3], 9, hour, request(1003, 10, 3*time.Minute, time.Minute))
	if w.answer() != after {
		t.Error("a late copy of what was replaced twice shows")
	}
	w.run(compact.Options{})
	if keys := w.keys(); !slices.Equal(keys, []string{"web/2026/11/20/1500/990002.log"}) || w.answer() != after {
		t.Errorf("the store has %v", keys)
	}
}

// A name that is used again during a run belongs to the new blob, which is neither
// deleted nor reported as damage.
func TestNameUsedAgain(t *testing.T) {
	for _, c := range []struct {
		when   storagetest.Op
		number int
	}{
		{storagetest.Get, 2}, {storagetest.Delete, 2},
	} {
		w := newWorld(t)
		w.minutes(5)
		w.run(compact.Options{})
		w.now = w.now.Add(time.Hour)
		used := false
		var answer string
		store := storagetest.Faulty(w.store, func(op storagetest.Op, key string) storagetest.Fault {
			if op == c.when && strings.HasSuffix(key, fmt.Sprintf("/%06d.log", c.number)) && !used {
				used = true
				w.must(w.store.Delete(context.Background(), storage.Blob{Key: key}))
				w.put(c.number, hour, request(3000, 5000, 0, time.Hour))
				answer = w.answer()
			}
			return storagetest.Fault{}
		})
		got, err := w.compact(t.Context(), store, compact.Options{})
		if err != nil || len(got.Problems) > 0 || !used {
			t.Errorf("number %d used again at %s: %+v, %v", c.number, c.when, got, err)
		}
		if w.answer() != answer {
			t.Errorf("number %d used again at %s: the new blob is gone", c.number, c.when)
		}
	}
}

// errKilled ends a run as a kill would: after it no request reaches the store.
var errKilled = errors.New("killed")

// kill is a script that kills at the n-th call, before or after the store has done
// it.
func kill(n int, after bool) (script storagetest.Script, killed *bool) {
	killed = new(bool)
	var mu sync.Mutex
	return func(storagetest.Op, string) storagetest.Fault {
		mu.Lock()
		defer mu.Unlock()
		n--
		switch {
		case n > 0:
			return storagetest.Fault{}
		case n == 0 && after:
			*killed = true
			return storagetest.Fault{After: errKilled}
		}
		*killed = true
		return storagetest.Fault{Before: errKilled}
	}, killed
}

// A run may be killed at any call, with or without its effect. The store still
// answers as before, and the following runs have the same final result.
func TestKilled(t *testing.T) {
	testkit.FullOnly(t, "one goroutine")
	build := func() *world {
		w := newWorld(t)
		ids := w.minutes(6)
		w.put(1, hour.Add(30*time.Minute), request(70, 30, 30*time.Minute, 20*time.Minute))
		w.putAs(ids[0], 9, hour, request(1000, 10, 0, time.Minute)) // a copy with the same id
		w.put(10, hour, append(request(80, 5, 0, time.Minute), request(1001, 10, time.Minute, time.Minute)...))
		return w
	}
	settle := func(w *world) string {
		for range 3 {
			w.run(compact.Options{})
			w.now = w.now.Add(time.Hour)
		}
		return w.dump()
	}
	whole := build()
	before, end := whole.answer(), settle(whole)
	if whole.answer() != before {
		t.Fatal("another answer, undisturbed")
	}
	for _, later := range []bool{false, true} { // the writing run, and the deleting one
		for _, after := range []bool{false, true} {
			for n := 1; ; n++ {
				w := build()
				if later {
					w.run(compact.Options{})
					w.now = w.now.Add(time.Hour)
				}
				script, killed := kill(n, after)
				_, _ = w.compact(t.Context(), storagetest.Faulty(w.store, script), compact.Options{})
				if w.answer() != before {
					t.Fatalf("killed at call %d (after %v, later %v): another answer", n, after, later)
				}
				if got := settle(w); got != end || w.answer() != before {
					t.Fatalf("killed at call %d (after %v, later %v): another end", n, after, later)
				}
				if !*killed {
					t.Logf("later %v, after %v: %d calls", later, after, n-1)
					break
				}
			}
		}
	}
}

// For any set of blobs of an hour, readers get the same at every moment.
func TestAnyHour(t *testing.T) {
	testkit.FullOnly(t, "thousands of blobs in one goroutine")
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		o := compact.Options{Target: rapid.SampledFrom([]int64{0, 2 << 10, 6 << 10}).Draw(rt, "target")}
		var sent [][]rec
		numbers := map[time.Time]int{}
		store := func() {
			for range rapid.IntRange(0, 8).Draw(rt, "blobs") {
				period := hour.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 15, 45}).Draw(rt, "period")) * time.Minute)
				var recs []rec
				for range rapid.IntRange(1, 3).Draw(rt, "requests") {
					n := rapid.IntRange(0, 20).Draw(rt, "request") // the same number again is a retry
					lines := 1 + n%7
					from := period.Sub(hour)
					recs = append(recs, request(uint64(n)+uint64(from), lines, from, 15*time.Minute)...)
				}
				numbers[period]++
				sent = append(sent, recs)
				w.put(numbers[period], period, recs)
				if rapid.IntRange(0, 5).Draw(rt, "again") == 0 {
					numbers[period]++
					w.putAs(w.ids, numbers[period], period, recs)
				}
			}
		}
		store()
		for range rapid.IntRange(2, 5).Draw(rt, "runs") {
			before := w.answer0()
			w.run(o)
			if w.answer0() != before {
				rt.Fatal("another answer after a run")
			}
			w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{30, 60}).Draw(rt, "later")) * time.Minute)
			if rapid.Bool().Draw(rt, "late") {
				store()
			}
		}
		for range 4 { // late blobs may need one more
			w.now = w.now.Add(time.Hour)
			w.run(o)
		}
		w.now = w.now.Add(time.Hour)
		end := w.dump()
		if got := w.run(o); got.Out+got.Deleted+got.Waiting > 0 || w.dump() != end {
			rt.Fatalf("no end to it: %+v", got)
		}
	})
}

// answer0 is answer, or "" for an empty store.
func (w *world) answer0() string {
	if len(w.keys()) == 0 {
		return ""
	}
	return w.answer()
}
