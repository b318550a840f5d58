package retention_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/retention"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// counting counts the requests that Azure Blob Storage would receive: a page of a
// listing has 5,000 objects, a batch 256 deletions.
type counting struct {
	storage.BlobStore
	mu                              sync.Mutex
	lists, deletes, creates, others int
}

func (c *counting) total() int { return c.lists + c.deletes + c.creates + c.others }

func (c *counting) add(what *int, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*what += n
}

func (c *counting) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		c.add(&c.lists, 1)
		n := 0
		for b, err := range c.BlobStore.List(ctx, prefix, startAfter) {
			if n++; n > 5000 {
				c.add(&c.lists, 1)
				n = 1
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

func (c *counting) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	c.add(&c.lists, 1)
	return c.BlobStore.Dirs(ctx, prefix)
}

func (c *counting) Stat(ctx context.Context, key string) (storage.Blob, error) {
	c.add(&c.others, 1)
	return c.BlobStore.Stat(ctx, key)
}

func (c *counting) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	c.add(&c.creates, 1)
	return c.BlobStore.Create(ctx, key, body, attrs)
}

func (c *counting) Delete(ctx context.Context, blobs ...storage.Blob) error {
	c.add(&c.deletes, (len(blobs)+255)/256)
	return c.BlobStore.Delete(ctx, blobs...)
}

// dayOf stores a service with a day that is hidden and due, with the given numbers of
// blobs and of records in each. It adds blobs of today and of the oldest kept day.
func dayOf(w *world, service string, blobs int, records int64) {
	at := w.now.Add(-days(31)).Truncate(day)
	for i := range blobs {
		w.made++
		key := blobfmt.Name{Service: service, Period: at.Add(time.Duration(i%24) * time.Hour), Number: i/24 + 1}.String()
		w.put(key, 1, metadata(w.made, at, records))
	}
	w.blob(service, 0, 1)
	w.blob(service, days(30), 1)
}

// The cost of dropping a day depends a little on the number of blobs, and not on that
// of records. docs/operate/retention.md has the same figures.
func TestRequestsOfADay(t *testing.T) {
	const services = 1
	policy := retention.Policy{Default: days(30)}
	run := func(services, blobs int, records int64) *counting {
		w := newWorld(t)
		for i := range services {
			dayOf(w, fmt.Sprintf("app%d", i), blobs, records)
		}
		w.apply(policy)
		w.now = w.now.Add(grace)
		c := &counting{BlobStore: w.store}
		r, err := retention.New(w.clocked(c), w.store, w.options(policy)).Apply(t.Context(), "")
		if err != nil || r.Total().Blobs != services*blobs {
			t.Fatalf("%+v, %v", r, err)
		}
		return c
	}
	base := run(services, 0, 0)
	for _, c := range []struct{ blobs, lists, deletes int }{
		{1, 6, 1}, {24, 6, 1}, {256, 6, 1}, {257, 6, 2}, {288, 6, 2}, {1440, 6, 6}, {6000, 8, 24},
	} {
		for _, records := range []int64{1, 1_000_000} {
			got := run(services, c.blobs, records)
			if got.others != 0 || got.creates != base.creates || got.lists-base.lists != services*c.lists || got.deletes-base.deletes != services*c.deletes {
				t.Errorf("%d days of %d blobs of %d records: %d listings, %d batches beyond the %d of nothing; want %d and %d a day",
					services, c.blobs, records, got.lists-base.lists, got.deletes-base.deletes, base.total(), c.lists, c.deletes)
			}
		}
	}
	if base.total() != 5+3*services {
		t.Errorf("a run that finds nothing to do, with %d services, takes %d requests; want 5 and 3 a service", services, base.total())
	}
}

// A drop costs about as much, a list for the account of the day, and three for holds.
func TestRequestsOfADrop(t *testing.T) { synctest.Test(t, testRequestsOfADrop) }

func testRequestsOfADrop(t *testing.T) {
	for _, c := range []struct{ blobs, want int }{{1, 9}, {288, 10}, {1440, 14}} {
		w := newWorld(t)
		dayOf(w, "app", c.blobs, 1000)
		store := &counting{BlobStore: w.store}
		job := retention.New(w.clocked(store), w.store, w.options(retention.Policy{}))
		req := retention.DropRequest{Service: "app", Day: horizon.DayOf(w.now) - 31}
		r, _ := job.Drop(t.Context(), req)
		store.lists, req.Confirm = 0, r.Plan.Hash
		if r, err := job.Drop(t.Context(), req); err != nil || r.Total().Blobs != c.blobs || store.total() != c.want {
			t.Errorf("%d blobs: %d requests, %v", c.blobs, store.total(), err)
		}
	}
}

// Under an unchanged policy a run lists only the days to delete, and none after them.
func TestOnlyWhatGoesIsListed(t *testing.T) {
	w := newWorld(t)
	for i := range 100 {
		w.blob("app", days(i/4), 1)
	}
	w.blob("app", days(31), 1)
	policy := retention.Policy{Default: days(30), Rules: []retention.Rule{{Service: "legal", Age: retention.Keep}}}
	w.blob("legal", days(1000), 1)
	w.apply(policy)
	var seen []string
	store := &looking{BlobStore: w.store, seen: &seen}
	if _, err := retention.New(w.clocked(store), w.store, w.options(policy)).Plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 || !strings.HasPrefix(seen[0], "app/2026/10/20/") {
		t.Errorf("%v", seen)
	}
}

// A run works on several services at once and reports its work in order: a thousand
// services do not take a thousand times as long as one.
func TestManyServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const services, delay = 400, 10 * time.Millisecond
		w := newWorld(t)
		for i := range services {
			dayOf(w, fmt.Sprintf("s%03d", i), 1, 1)
		}
		slow := storagetest.Faulty(w.store, func(storagetest.Op, string) storagetest.Fault { return storagetest.Fault{Delay: delay} })
		policy := retention.Policy{Default: days(30)}
		var log audit
		o := w.options(policy)
		o.Log = log.log()
		for range 2 {
			plan, err := w.job(policy).Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			log.Reset()
			begun := time.Now()
			r, err := retention.New(w.clocked(slow), w.store, o).Apply(t.Context(), plan.Hash)
			if err != nil || len(r.Problems) != 0 {
				t.Fatalf("%v, %v", r.Problems, err)
			}
			if took := time.Since(begun); took > services*delay*3/2 {
				t.Errorf("%d services took %v", services, took)
			}
			byService := func(a, b retention.Day) int { return strings.Compare(a.Service, b.Service) }
			if !slices.IsSortedFunc(r.Deleted, byService) || strings.Count(log.String(), "\n") != len(r.Deleted)+len(r.Raised) {
				t.Errorf("%d days, %d horizons, %d lines of log", len(r.Deleted), len(r.Raised), strings.Count(log.String(), "\n"))
			}
			for line := range strings.Lines(log.String()) {
				if !json.Valid([]byte(line)) {
					t.Errorf("%s", line)
				}
			}
			w.now = w.now.Add(grace)
		}
		if got := len(slices.Collect(keysOf(w.state()))); got != 2*services+services+1 {
			t.Errorf("%d objects are left", got)
		}
	})
}

// looking records the listed blobs.
type looking struct {
	storage.BlobStore
	seen *[]string
}

func (l *looking) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		for b, err := range l.BlobStore.List(ctx, prefix, startAfter) {
			if !strings.HasPrefix(b.Key, "_") {
				*l.seen = append(*l.seen, b.Key)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}
