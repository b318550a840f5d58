package blobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// asking counts the requests to a store, but for those of its blobs.
type asking struct {
	mu    sync.Mutex
	calls map[storagetest.Op]int
	fault storagetest.Script
}

func (a *asking) script(op storagetest.Op, key string) storagetest.Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !isAccount(key) {
		a.calls[op]++
	}
	if a.fault != nil {
		return a.fault(op, key)
	}
	return storagetest.Fault{}
}

// took returns the calls since the last time.
func (a *asking) took() (stats, lists int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	stats, lists = a.calls[storagetest.Stat], a.calls[storagetest.List]
	clear(a.calls)
	return stats, lists
}

func at(service string, ns int64) rec {
	return rec{service: service, time: ns, line: line(ns, "info", service, "one")}
}

// named is the word of an ingester about a blob.
func named(number uint64, key string, id blobfmt.BatchID) blobs.Stored {
	return blobs.Stored{Ingester: "0badcafe", Process: "01234567", Number: number, Key: key, Batch: id}
}

// absent is a name of a blob that nobody has put.
func absent(service string, ns int64) string {
	return blobfmt.Name{Service: service, Period: time.Unix(0, ns).UTC().Truncate(time.Hour), Number: 77}.String()
}

const anHour = int64(time.Hour)

// A read whose listings have the named blob sends no request more. Otherwise it looks for the newest
// one of each process, once.
func TestNamedBlobsCostLittle(t *testing.T) {
	b := newBuilder(t, 300)
	old, oldID := b.add(time.Hour, []rec{at("web", noon-30*anHour)})
	key, id := b.add(time.Hour, []rec{at("web", noon)})
	other, otherID := b.add(time.Hour, []rec{at("app", noon-5*anHour)})
	seen := &asking{calls: map[storagetest.Op]int{}}
	now := blobs.Range{From: noon, To: noon + anHour}
	count := func(r *blobs.Reader, rng blobs.Range, stored ...blobs.Stored) (stats, lists int) {
		t.Helper()
		seen.took()
		got, sum := read(t, r, blobs.Query{Services: []string{"web"}, Range: rng, Stored: stored})
		if len(got) == 0 || !sum.Complete() {
			t.Errorf("%d records, %v", len(got), sum.Problems)
		}
		return seen.took()
	}
	fresh := func() *blobs.Reader { return blobs.New(storagetest.Faulty(b.store, seen.script), blobs.Options{}) }
	_, plain := count(fresh(), now)
	for _, c := range []struct {
		name   string
		rng    blobs.Range
		stored []blobs.Stored
		stats  int
	}{
		{"in the range", now, []blobs.Stored{named(9, key, id)}, 0},
		{"in the range of all", blobs.Always(), []blobs.Stored{named(9, key, id)}, 0},
		{"of another service", now, []blobs.Stored{named(9, other, otherID)}, 0},
		{"outside of it", now, []blobs.Stored{named(9, old, oldID)}, 1},
		{"an older one outside of it", now, []blobs.Stored{named(9, key, id), named(8, old, oldID)}, 0},
	} {
		r := fresh()
		if stats, lists := count(r, c.rng, c.stored...); stats != c.stats || lists != plain {
			t.Errorf("%s: %d Stats and %d Lists more", c.name, stats, lists-plain)
		}
		if stats, _ := count(r, c.rng, c.stored...); stats != 0 {
			t.Errorf("%s: %d Stats at the second read", c.name, stats)
		}
	}
}

// Every kind of read says that a named blob is not in the store. So does one of a service that the
// store has never heard of.
func TestNamedBlobIsMissing(t *testing.T) {
	b := newBuilder(t, 300)
	b.add(time.Hour, []rec{at("web", noon)})
	r := blobs.New(b.store, blobs.Options{})
	take := func([]byte) error { return nil }
	kinds := map[string]func(q blobs.Query) (blobs.Summary, error){
		"read": func(q blobs.Query) (blobs.Summary, error) {
			p, err := r.Plan(t.Context(), q)
			if err != nil {
				return blobs.Summary{}, err
			}
			return p.Read(t.Context(), take)
		},
		"count": func(q blobs.Query) (blobs.Summary, error) {
			p, err := r.Plan(t.Context(), q)
			if err != nil {
				return blobs.Summary{}, err
			}
			_, sum, err := p.Count(t.Context())
			return sum, err
		},
		"histogram": func(q blobs.Query) (blobs.Summary, error) {
			p, err := r.Plan(t.Context(), q)
			if err != nil {
				return blobs.Summary{}, err
			}
			_, sum, err := p.Histogram(t.Context(), blobs.Buckets{Length: time.Minute})
			return sum, err
		},
		"newest": func(q blobs.Query) (blobs.Summary, error) { q.Limit = 1; return r.Newest(t.Context(), q, take) },
		"oldest": func(q blobs.Query) (blobs.Summary, error) { q.First = 1; return r.Oldest(t.Context(), q, take) },
		"around": func(q blobs.Query) (blobs.Summary, error) {
			_, sum, err := r.Around(t.Context(), q, noon, record.ID{}, 1, 1)
			return sum, err
		},
		"list": func(q blobs.Query) (blobs.Summary, error) {
			_, sum, err := r.List(t.Context(), q, time.Time{})
			return sum, err
		},
		"volume": func(q blobs.Query) (blobs.Summary, error) { _, sum, err := r.Volume(t.Context(), q); return sum, err },
	}
	for name, run := range kinds {
		for _, c := range []struct {
			services string
			key      string
			rng      blobs.Range
		}{
			{"web", absent("web", noon), blobs.Always()},
			{"web", absent("web", noon-100*anHour), blobs.Range{From: noon, To: noon + anHour}},
			{"app", absent("app", noon), blobs.Always()},
			{"app", absent("app", noon-100*anHour), blobs.Range{From: noon, To: noon + anHour}},
			{"a*", absent("app", noon), blobs.Always()},
			{"*", absent("app", noon), blobs.Always()},
		} {
			sum, err := run(blobs.Query{Services: []string{c.services}, Range: c.rng, Stored: []blobs.Stored{named(7, c.key, blobfmt.BatchID{1})}})
			if err != nil || len(sum.Problems) != 1 || !strings.Contains(sum.Problems[0].Error(), "blob "+c.key+", which ingester 0badcafe stored, is not in this store: is this a copy") {
				t.Errorf("%s of %s, %s: %v, %v", name, c.services, c.key, err, sum.Problems)
			}
		}
	}
}

// A blob that is not there for a good reason is no sign of a copy.
func TestNamedBlobIsGoneForAReason(t *testing.T) {
	day := horizon.DayOfNs(noon)
	denied := func(prefix string) storagetest.Script {
		return func(op storagetest.Op, key string) storagetest.Fault {
			if (op == storagetest.List || op == storagetest.Stat) && strings.HasPrefix(key, prefix) {
				return storagetest.Fault{Before: fmt.Errorf("%s: %w", key, storage.ErrUnauthorized)}
			}
			return storagetest.Fault{}
		}
	}
	statDenied := func(op storagetest.Op, key string) storagetest.Fault {
		if op == storagetest.Stat {
			return storagetest.Fault{Before: storage.ErrUnauthorized}
		}
		return storagetest.Fault{}
	}
	for _, c := range []struct {
		name  string
		do    func(ctx context.Context, b *builder) error
		fault storagetest.Script
	}{
		{"the day was dropped at once", func(ctx context.Context, b *builder) error { return horizon.Drop(ctx, b.store, "web", day) }, nil},
		{"the horizon rose", func(ctx context.Context, b *builder) error { return horizon.Publish(ctx, b.store, "web", day+3) }, nil},
		{"all was dropped, and no blob is left", func(ctx context.Context, b *builder) error {
			all := storagetest.Objects(t, b.store, "web/")
			return errors.Join(horizon.Publish(ctx, b.store, "web", day+30), b.store.Delete(ctx, all...))
		}, nil},
		{"the reader may not see dropped days", nil, denied("_")},
		{"the reader may not look at blobs", nil, statDenied},
	} {
		for _, rng := range []blobs.Range{blobs.Always(), {From: noon + 24*anHour, To: noon + 25*anHour}} {
			for _, services := range []string{"web", "*"} {
				b := newBuilder(t, 300)
				b.add(time.Hour, []rec{at("web", noon+24*anHour)})
				b.add(time.Hour, []rec{at("other", noon+24*anHour)})
				known, err := blobs.New(b.store, blobs.Options{}).Horizons(t.Context(), []string{"*"})
				mark(t, err)
				if c.do != nil {
					mark(t, c.do(t.Context(), b))
				}
				store := b.store
				if c.fault != nil {
					store = storagetest.Faulty(store, c.fault)
				}
				for _, days := range []horizon.Checked{{}, known} { // read by the read, or before the day was dropped
					r := blobs.New(store, blobs.Options{})
					q := blobs.Query{Services: []string{services}, Range: rng, Expired: days, Stored: []blobs.Stored{named(7, absent("web", noon), blobfmt.BatchID{1})}}
					for range 2 {
						if _, sum := read(t, r, q); !sum.Complete() {
							t.Errorf("%s, %v of %s: %v", c.name, rng, services, sum.Problems)
						}
					}
				}
			}
		}
	}
}

// A blob that was compacted, and compacted again, is no sign of a copy.
func TestNamedBlobIsCompacted(t *testing.T) {
	b := newBuilder(t, 300)
	recs := []rec{at("web", noon)}
	key, id := b.add(time.Hour, recs)
	mark(t, b.store.Delete(t.Context(), storagetest.Objects(t, b.store, key)...))
	replaced, meta, _ := b.encode(recs, id, blobfmt.BatchID{5})
	b.put(blobfmt.Name{Service: "web", Period: time.Unix(0, noon).UTC(), Number: 990002}.String(), replaced, meta.Map())
	b.add(time.Hour, []rec{at("web", noon+24*anHour)})
	seen := &asking{calls: map[storagetest.Op]int{}}
	for _, rng := range []blobs.Range{blobs.Always(), {From: noon + 24*anHour, To: noon + 25*anHour}} {
		r := blobs.New(storagetest.Faulty(b.store, seen.script), blobs.Options{})
		for i := range 2 {
			seen.took()
			_, sum := read(t, r, blobs.Query{Services: []string{"web"}, Range: rng, Stored: []blobs.Stored{named(7, key, id)}})
			if stats, _ := seen.took(); !sum.Complete() || i > 0 && stats > 0 {
				t.Errorf("%v: %v, %d Stats", rng, sum.Problems, stats)
			}
		}
	}
	// Another batch under the name, which none replaces, is one: somebody wrote to the copy.
	b.number = 76
	b.add(time.Hour, recs)
	_, sum := read(t, blobs.New(b.store, blobs.Options{}), blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Stored: []blobs.Stored{named(8, absent("web", noon), blobfmt.BatchID{9})}})
	if len(sum.Problems) != 1 || !strings.Contains(sum.Problems[0].Error(), "is this a copy") {
		t.Errorf("%v", sum.Problems)
	}
}

// Of thousands of blobs that are missing some are looked at, and some errors are enough. If the
// store cannot say, the read is incomplete, but is no copy. A reader of unflushed records alone has
// no store.
func TestNamedBlobsAreMany(t *testing.T) {
	b := newBuilder(t, 300)
	b.add(time.Hour, []rec{at("web", noon)})
	seen := &asking{calls: map[storagetest.Op]int{}}
	r := blobs.New(storagetest.Faulty(b.store, seen.script), blobs.Options{})
	q := blobs.Query{Services: []string{"*"}, Range: blobs.Always()}
	for n := range 3000 {
		service := fmt.Sprintf("s%d", n)
		q.Stored = append(q.Stored, named(uint64(n), absent(service, noon), blobfmt.BatchID{1}))
	}
	_, sum := read(t, r, q)
	if stats, _ := seen.took(); len(sum.Problems) != 4 || stats != 4 || !strings.Contains(sum.Problems[0].Error(), "s2999/") {
		t.Errorf("%d problems after %d Stats", len(sum.Problems), stats)
	}
	// None of the services is absent.
	q.Services = []string{"web", "s5", "s17", "s2999"}
	for _, rng := range []blobs.Range{blobs.Always(), {From: noon + 24*anHour, To: noon + 25*anHour}} {
		q.Range = rng
		if _, sum = read(t, r, q); len(sum.Problems) == 0 || len(sum.Absent) > 0 {
			t.Errorf("%v, absent %v", sum.Problems, sum.Absent)
		}
	}
	q.Services, q.Range = []string{"*"}, blobs.Always()
	seen.fault = storagetest.Times(-1, storagetest.Stat, "s2999/", storagetest.Fault{Before: storagetest.ErrFault})
	q.Stored = q.Stored[2999:]
	if _, sum = read(t, r, q); len(sum.Problems) != 1 || !strings.Contains(sum.Problems[0].Error(), "cannot be checked") {
		t.Errorf("%v", sum.Problems)
	}
	q.Services = []string{"web"}
	q.Stored = []blobs.Stored{named(1, absent("web", noon), blobfmt.BatchID{1}), named(2, "web/no/blob", blobfmt.BatchID{1}), named(2, "../x", blobfmt.BatchID{1})}
	q.Unflushed = []*blobs.Unflushed{blobs.NewUnflushed("live")}
	mark(t, q.Unflushed[0].Add(&record.Entry{Time: noon, Line: []byte(line(noon, "info", "web", "one"))}))
	if got, sum := read(t, blobs.Without(blobs.Options{}), q); len(got) != 1 || !sum.Complete() {
		t.Errorf("%d records, %v", len(got), sum.Problems)
	}
}
