package blobs_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
	"blobtail/storage"
)

// hanging is a store whose requests for bytes hang from a number on, until their context ends.
type hanging struct {
	storage.BlobStore
	from, gets atomic.Int64
}

func (h *hanging) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if h.gets.Add(1) > h.from.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.BlobStore.Get(ctx, key, off, n)
}

// twice stores the records of an hour in two blobs, and returns their lines.
func twice(b *builder) (lines []string) {
	var recs []rec
	for i := range 12 {
		at := firstOfRace().UnixNano() + int64(i/3)
		recs = append(recs, rec{service: "web", time: at, origin: origin(7), index: uint32(i), line: line(at, "info", "web", strings.Repeat("x", i))})
		lines = append(lines, recs[i].line)
	}
	b.add(time.Hour, recs)
	b.add(time.Hour, recs)
	return lines
}

// A read whose time is over during any of its requests is not complete. It shows nothing from
// then on: a line may be a copy whose origin it could not look up.
func TestTimeOverAtEachRequest(t *testing.T) {
	for _, desc := range []bool{false, true} {
		b := newBuilder(t, 0)
		lines := twice(b)
		synctest.Test(t, func(t *testing.T) {
			store := &hanging{BlobStore: b.store}
			store.from.Store(1 << 40)
			reader := blobs.New(store, blobs.Options{Workers: 2, Indexes: indexcache.New(0)})
			q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Reverse: desc}
			read := func() (got []string, sum blobs.Summary) {
				store.gets.Store(0)
				begun := time.Now()
				take := func(some []byte) error {
					if time.Since(begun) > 0 {
						t.Errorf("after its time it shows %q", some)
					}
					got = append(got, slices.Collect(strings.Lines(string(some)))...)
					return nil
				}
				plan, err := reader.Plan(t.Context(), q)
				if err == nil {
					sum, err = plan.Read(t.Context(), take)
				}
				if err != nil {
					t.Fatal(err)
				}
				return got, sum
			}
			read() // the indexes are kept, without the origins
			got, sum := read()
			if len(got) != len(lines) || !sum.Complete() || store.gets.Load() < 3 {
				t.Fatalf("%d of %d lines by %d requests: %v", len(got), len(lines), store.gets.Load(), sum.Problems)
			}
			for n := range store.gets.Load() {
				store.from.Store(n)
				got, sum := read()
				if sum.Complete() {
					t.Errorf("complete, though all requests but %d hung", n)
				}
				if len(got) > len(lines) {
					t.Errorf("a record is shown twice with %d requests: %q", n, got)
				}
			}
		})
	}
}

// dropping is a store whose day is dropped, and its blobs deleted, just before a request for bytes.
type dropping struct {
	storage.BlobStore
	at, gets atomic.Int64
}

func (d *dropping) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if d.gets.Add(1) == d.at.Load() {
		day := horizon.DayOf(firstOfRace())
		if err := horizon.Drop(ctx, d.BlobStore, "web", day); err != nil {
			return nil, err
		}
		for o, err := range d.BlobStore.List(ctx, "web/", "") {
			if err == nil {
				err = d.BlobStore.Delete(ctx, o)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return d.BlobStore.Get(ctx, key, off, n)
}

// A day that is dropped during any request of a read is told as expired and is no problem, also if
// the lines were fetched and the origins were not. No line is shown twice.
func TestDroppedAtEachRequest(t *testing.T) {
	for _, desc := range []bool{false, true} {
		for at := int64(1); at <= 6; at++ { // it makes four, if all works
			b := newBuilder(t, 0)
			lines := twice(b)
			synctest.Test(t, func(t *testing.T) {
				store := &dropping{BlobStore: b.store}
				reader := blobs.New(store, blobs.Options{Workers: 2, Indexes: indexcache.New(0)})
				q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Reverse: desc}
				for range 2 { // the first keeps the indexes, without the origins
					store.gets.Store(0)
					plan, err := reader.Plan(t.Context(), q)
					if err != nil {
						t.Fatal(err)
					}
					got := map[string]int{}
					sum, err := plan.Read(t.Context(), func(some []byte) error {
						for line := range strings.Lines(string(some)) {
							if got[line]++; got[line] > 1 {
								t.Errorf("dropped at request %d: twice: %s", at, line)
							}
						}
						return nil
					})
					if err != nil || !sum.Complete() || len(got) < len(lines) && len(sum.Warnings) == 0 {
						t.Errorf("dropped at request %d: %d lines, problems %v, warnings %v, %v", at, len(got), sum.Problems, sum.Warnings, err)
					}
					store.at.Store(at)
				}
			})
		}
	}
}

// A read that is too old when it ends is not complete, and one whose caller has gone is an error,
// also if the last part of it found nothing more and failed at nothing.
func TestTimeOverAtTheEnd(t *testing.T) {
	for _, gone := range []bool{false, true} {
		b := newBuilder(t, 0)
		at := firstOfRace().UnixNano()
		b.add(time.Hour, []rec{{service: "web", time: at, origin: origin(7), line: line(at, "info", "web", "x")}})
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			q := blobs.Query{Services: []string{"web"}, Range: blobs.Always()}
			q.Filter.Accept = func([]byte) bool {
				if gone {
					cancel()
				} else {
					time.Sleep(31 * time.Minute)
				}
				return false
			}
			plan, err := blobs.New(b.store, blobs.Options{Workers: 2}).Plan(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			_, sum, err := plan.Count(ctx)
			switch {
			case gone && !errors.Is(err, context.Canceled):
				t.Errorf("the caller has gone, and the error is %v", err)
			case !gone && (err != nil || sum.Complete() || !strings.HasPrefix(sum.Problems[0].Error(), "stopped after 30m0s: ")):
				t.Errorf("it is too old, and has the problems %v and the error %v", sum.Problems, err)
			}
		})
	}
}

// Services that a glob was not compared with before the context ended are not missing silently.
func TestTimeOverAtServices(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	u := blobs.NewUnflushed("x")
	defer u.Close()
	for _, service := range []string{"a", "b", "c"} {
		at := firstOfRace().UnixNano()
		if err := u.Add(entry(rec{time: at, origin: origin(7), line: line(at, "info", service, "x")})); err != nil {
			t.Fatal(err)
		}
	}
	q := blobs.Query{Services: []string{"*"}, Unflushed: []*blobs.Unflushed{u}, Choose: func(string) bool {
		cancel() // while the first is chosen
		return true
	}}
	services, _, err := blobs.Without(blobs.Options{}).Resolve(ctx, q)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("of three services it finds %v, with the error %v", services, err)
	}
}
