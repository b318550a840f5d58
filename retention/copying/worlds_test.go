package copying_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit/box"
	"blobtail/internal/where"
	"blobtail/reading"
	"blobtail/retention"
	"blobtail/retention/closing"
	"blobtail/retention/copying"
	"blobtail/retention/erase"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
	"blobtail/tailindex"
)

// world is a store with an ingester, and a copy of it. Something happens to the store between any two
// requests of the copier.
type world struct {
	t    *testing.T
	h    *box.House
	to   *mem.Store
	rnd  *rand.Rand
	turn chan struct{}        // in place of a mutex, for which virtual time does not wait
	sent map[string]time.Time // the acknowledged records
	gone map[string]bool      // the days that were dropped, or are below a horizon
	n    int

	erasing chan struct{}   // of the one erasure at a time
	erased  map[string]bool // its texts so far
}

func services() []string { return []string{"web", "orders"} }

func (w *world) step() {
	now := w.h.Now()
	service := services()[w.rnd.IntN(2)]
	switch w.rnd.IntN(13) {
	case 0, 1, 2, 3, 4:
		w.n++
		at := now
		if w.rnd.IntN(3) == 0 {
			at = now.Add(-time.Duration(w.rnd.IntN(96)) * time.Hour)
		}
		text := fmt.Sprintf("record %d.", w.n)
		if w.gone[service+horizon.DayOf(at).String()] {
			return
		}
		if err := w.h.Ingester(0).Accept(w.h.Request(box.Line{Time: at, Service: service, Msg: text}), true); err != nil {
			w.t.Fatal(err)
		}
		w.sent[text] = at
	case 5, 6, 7:
		w.h.Flush()
	case 8:
		compacts(w.t, w.h.Store, now, 10*time.Minute)
	case 9:
		closes(w.t, w.h.Store, now)
	case 10:
		time.Sleep(time.Duration(w.rnd.IntN(10)) * time.Second)
	case 11:
		if w.rnd.IntN(4) == 0 {
			w.drop(service, horizon.DayOf(now)-2-horizon.Day(w.rnd.IntN(3)))
		}
	case 12:
		if all := slices.Sorted(maps.Keys(w.sent)); len(all) > 0 {
			w.erase(all[w.rnd.IntN(len(all))])
		}
	}
}

// erase begins to erase a record, if no other one is being erased. It takes longer than a run of copy.
func (w *world) erase(text string) {
	select {
	case w.erasing <- struct{}{}:
		delete(w.sent, text)
		w.erased[text] = true
		w.h.Flush() // or there is nothing to be found yet
		go func() {
			defer func() { <-w.erasing }()
			erases(w.t, w.h, text, 0)
		}()
	default:
	}
}

// erases erases the record with a text.
func erases(t *testing.T, h *box.House, text string, patience time.Duration) {
	expr, err := where.Parse(nil, fmt.Sprintf("msg == %q", text), false)
	if err != nil {
		t.Error(err)
	}
	o := erase.Options{Where: expr, Patience: patience, Log: zerolog.Nop()}
	for { // another plan needs another confirmation
		r, err := erase.Run(context.Background(), h.Store, h.Store, o)
		if confirm, ok := errors.AsType[*retention.ConfirmError](err); ok {
			o.Confirm = confirm.Hash
			continue
		}
		if err != nil || len(r.Problems) > 0 && len(r.Days) > 0 { // its day may have been dropped
			t.Errorf("erase %s: %+v, %v", text, r, err)
		}
		return
	}
}

// without checks that no object of a store has one of some texts.
func without(t *testing.T, s storage.BlobStore, texts map[string]bool) {
	t.Helper()
	r, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, key := range storagetest.KeysOf(t, s, "") {
		body := storagetest.Body(t, s, key)
		if plain, err := r.DecodeAll(body, nil); err == nil {
			body = plain
		}
		for text := range texts {
			if bytes.Contains(body, []byte(text)) {
				t.Errorf("%s has %s", key, text)
			}
		}
	}
}

// drop drops a day and deletes its blobs.
func (w *world) drop(service string, day horizon.Day) {
	w.h.Flush()
	o := retention.Options{Closing: &closing.Options{}, Clock: w.h.Now, Log: zerolog.Nop()}
	req := retention.DropRequest{Service: service, Day: day, KeepTail: true}
	for range 2 {
		_, err := retention.New(w.h.Store, w.h.Store, o).Drop(w.t.Context(), req)
		if confirm, ok := errors.AsType[*retention.ConfirmError](err); ok {
			req.Confirm = confirm.Hash
		} else if err != nil {
			w.t.Fatal(err)
		}
	}
	w.gone[service+day.String()] = true
	for text, at := range w.sent {
		if horizon.DayOf(at) == day {
			delete(w.sent, text) // of either service: one is enough to find losses
		}
	}
}

// script has something happen before some of the requests.
func (w *world) script(op storagetest.Op, key string) storagetest.Fault {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	if w.rnd.IntN(4) == 0 {
		w.step()
	}
	return storagetest.Fault{}
}

// paged lists one object with a request, and something may happen between two.
type paged struct {
	storage.BlobStore
	script storagetest.Script
}

// List implements [storage.BlobStore].
func (p paged) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		for {
			p.script(storagetest.List, prefix)
			was := after
			for b, err := range p.BlobStore.List(ctx, prefix, after) {
				if after = b.Key; !yield(b, err) || err != nil {
					return
				}
				break
			}
			if after == was {
				return
			}
		}
	}
}

// read returns all lines of the copy before a time, and fails if they are not whole.
func (w *world) read(until time.Time) string {
	w.t.Helper()
	r, err := reading.Open(reading.OpenOptions{Blobs: w.to, Tables: w.to, Now: w.h.Now, Tail: tailindex.Options{Prefix: "tail"}})
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []byte
	rng := reading.Range{From: reading.Always().From, To: until.UnixNano()}
	ask := reading.Ask{Services: services(), Range: rng, Here: reading.Here{Sure: true}}
	out, err := r.For(nil).Records(w.t.Context(), ask, func(b []byte) error { lines = append(lines, b...); return nil })
	if err != nil || !out.Complete() {
		w.t.Errorf("a read of the copy before %v: %v, %v", until, err, out.Problems())
	}
	return string(lines)
}

// In any order of records, late ones, flushes, closed days, compactions, drops and steps of an erasure
// before each request of a copier, a copy has what it promises, and no part of it names a blob that it has not. Two
// copiers at once do no harm.
func TestWorlds(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, h: settled(t), to: mem.New(mem.Options{}), rnd: rand.New(rand.NewPCG(seed, 59))}
				w.turn, w.sent, w.gone = make(chan struct{}, 1), map[string]time.Time{}, map[string]bool{}
				w.erasing, w.erased = make(chan struct{}, 1), map[string]bool{}
				defer w.h.Stop()
				from, whole := storagetest.Faulty(paged{w.h.Store, w.script}, w.script), 0
				for range 6 {
					for range 10 {
						w.step()
					}
					time.Sleep(time.Duration(1+w.rnd.IntN(20)) * time.Minute)
					acked := map[string]time.Time{}
					for text, at := range w.sent {
						acked[text] = at
					}
					r := w.copies(from, 1+w.rnd.IntN(2))
					sound(t, w.to)
					if r.Whole.Through.IsZero() {
						continue
					}
					through := noted(t, w.to).Through
					whole++
					lines := w.read(through)
					for text, at := range acked {
						if _, kept := w.sent[text]; kept && at.Before(through) && !bytes.Contains([]byte(lines), []byte(text)) {
							t.Errorf("whole before %v, and lacks %s of %v", through, text, at)
						}
					}
				}
				if whole < 3 {
					t.Errorf("only %d runs came to their end", whole)
				}
				w.h.Flush()
				w.erasing <- struct{}{}
				w.copies(w.h.Store, 1)
				equal(t, w.h.Store, w.to)
				without(t, w.to, w.erased)
				<-w.erasing
				w.loses()
			})
		})
	}
}

// loses goes on with the world, takes blobs of days with erasures from the store, and checks that no
// record goes in the copy.
func (w *world) loses() {
	for range 15 {
		w.step()
	}
	w.h.Flush()
	w.erasing <- struct{}{}
	marks, both, lost := storagetest.KeysOf(w.t, w.h.Store, "_erase/"), content(w.t, w.to), 0
	for key, body := range content(w.t, w.h.Store) {
		name, err := blobfmt.ParseName(key)
		marked := slices.ContainsFunc(marks, func(m string) bool {
			return strings.HasPrefix(m, "_erase/"+name.Service+"/"+name.Period.Format("20060102."))
		})
		if err != nil || !marked || both[key] != body || w.rnd.IntN(2) == 0 {
			continue
		}
		if err := w.h.Store.Delete(w.t.Context(), storage.Blob{Key: key}); err != nil {
			w.t.Fatal(err)
		}
		lost++
	}
	for range 2 {
		if r, err := copying.Run(w.t.Context(), w.h.Store, w.to, options(w.h)); err != nil || len(r.Problems) == 0 && lost > 3 {
			w.t.Errorf("%d blobs are lost: %+v, %v", lost, r, err)
		}
		lines := w.read(noted(w.t, w.to).Through)
		for text, at := range w.sent {
			if at.Before(noted(w.t, w.to).Through) && !strings.Contains(lines, text) {
				w.t.Errorf("the copy has lost %s of %v", text, at)
			}
		}
	}
	w.t.Logf("%d blobs are lost", lost)
}

// copies runs copiers at once and returns the result of the last one.
func (w *world) copies(from storage.BlobStore, n int) (r copying.Result) {
	w.t.Helper()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			one, err := copying.Run(w.t.Context(), from, w.to, options(w.h))
			if err != nil {
				w.t.Error(err)
			}
			if len(one.Problems) > 0 && !one.Whole.Through.IsZero() {
				w.t.Error(one.Problems)
			}
			w.turn <- struct{}{}
			defer func() { <-w.turn }()
			r = one
		})
	}
	all.Wait()
	return r
}

// A copy of a day may take longer than a grace. If its blobs are compacted and deleted meanwhile, the day
// is copied again.
func TestSlowDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := settled(t)
		defer h.Stop()
		day, to := time.Now().UTC().Add(-50*time.Hour).Truncate(24*time.Hour), mem.New(mem.Options{})
		for i := range 12 {
			send(t, h, day.Add(time.Duration(i)*time.Minute), "web")
			h.Flush()
		}
		var once sync.Once
		from := storagetest.Faulty(h.Store, func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.Get && strings.HasSuffix(key, ".log") {
				once.Do(func() {
					upkeep(t, h.Store, h.Now())
					upkeep(t, h.Store, h.Now().Add(time.Second))
				})
			}
			return storagetest.Fault{}
		})
		if r := copied(t, from, to, options(h)); r.Whole.Through.IsZero() {
			t.Errorf("%+v", r)
		}
		for key, want := range content(t, h.Store) {
			if !strings.HasPrefix(key, "_closed/") && content(t, to)[key] != want { // the root came later than the run
				t.Errorf("%s is not in the copy", key)
			}
		}
		copied(t, h.Store, to, options(h))
		equal(t, h.Store, to)
	})
}
