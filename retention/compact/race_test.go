package compact_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// race is an hour with two compactors at work repeatedly, while late blobs and copies
// of old PUTs arrive, names are used again, and readers read slowly.
type race struct {
	*world
	mu    sync.Mutex
	rand  *rand.Rand
	begun map[string]bool // lines that may be stored
	acked map[string]bool // lines that are
	put   map[uint64][]rec
}

func (r *race) n(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rand.IntN(n)
}

func (r *race) pause(ctx context.Context, upTo time.Duration) {
	select {
	case <-time.After(time.Duration(r.n(int(upTo)))):
	case <-ctx.Done():
	}
}

// slow is the store with slow calls.
func (r *race) slow(upTo time.Duration) storage.BlobStore {
	return storagetest.Faulty(r.store, func(storagetest.Op, string) storagetest.Fault {
		return storagetest.Fault{Delay: time.Duration(r.n(int(upTo)))}
	})
}

// ingest stores batches under the first free names, some of them again.
func (r *race) ingest(ctx context.Context) {
	for i := range 40 {
		r.pause(ctx, 20*time.Minute)
		id := uint64(1 + i)
		recs := request(uint64(r.n(60)), 1+r.n(8), 0, time.Hour) // of few requests, to get retries
		if r.n(4) == 0 && i > 0 {
			id = uint64(1 + r.n(i))
		}
		r.mu.Lock()
		if old, ok := r.put[id]; ok {
			recs = old
		}
		r.put[id] = recs
		for _, rec := range recs {
			r.begun[rec.line] = true
		}
		body, meta := r.encode(id, recs)
		body = append([]byte(nil), body...)
		r.mu.Unlock()
		r.store1(ctx, body, meta)
		r.mu.Lock()
		for _, rec := range recs {
			r.acked[rec.line] = true
		}
		r.mu.Unlock()
	}
}

func (r *race) store1(ctx context.Context, body []byte, meta blobfmt.Meta) {
	store := r.slow(10 * time.Second)
	for k := 1; ; k++ {
		key := blobfmt.Name{Service: "web", Period: hour, Number: k}.String()
		err := store.Create(ctx, key, body, storage.Attrs{Metadata: meta.Map()})
		if err == nil {
			return
		}
		if !errors.Is(err, storage.ErrExist) {
			r.t.Errorf("create: %v", err)
			return
		}
	}
}

func (r *race) compact(ctx context.Context) {
	for ctx.Err() == nil {
		if _, err := closing.Run(ctx, r.slow(20*time.Second), closing.Options{After: 20 * time.Hour, Log: zerolog.Nop()}); err != nil {
			return
		}
		got, err := compact.Run(ctx, r.slow(20*time.Second), compact.Options{Target: 3 << 10, Log: zerolog.Nop()})
		if err != nil && ctx.Err() == nil || len(got.Problems) > 0 && ctx.Err() == nil {
			r.t.Errorf("compact: %v, %v", err, got.Problems)
		}
		// Often both run at the same time, and often at once again.
		switch r.n(3) {
		case 0:
			r.pause(ctx, time.Minute)
		case 1:
			r.pause(ctx, 90*time.Minute)
		default:
			now := time.Now()
			r.pause(ctx, now.Truncate(time.Hour).Add(time.Hour).Sub(now))
		}
	}
}

// read reads everything again and again. The result has each line once that was
// stored before the read began.
func (r *race) read(ctx context.Context) {
	reader := blobs.New(r.slow(time.Minute), blobs.Options{Workers: 1})
	for ctx.Err() == nil {
		r.mu.Lock()
		want := make([]string, 0, len(r.acked))
		for line := range r.acked {
			want = append(want, line)
		}
		r.mu.Unlock()
		if len(want) == 0 {
			r.pause(ctx, time.Minute)
			continue
		}
		start := time.Now()
		plan, err := reader.Plan(context.Background(), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
		if err != nil {
			r.t.Errorf("plan: %v", err)
			return
		}
		got := map[string]int{}
		sum, err := plan.Read(context.Background(), func(lines []byte) error {
			for line := range strings.Lines(string(lines)) {
				got[line]++
			}
			return nil
		})
		if err != nil || !sum.Complete() {
			r.t.Errorf("a read of %v: %v, %v", time.Since(start), err, sum.Problems)
		}
		r.check(got, want)
		r.pause(ctx, 10*time.Minute)
	}
}

func (r *race) check(got map[string]int, want []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line, n := range got {
		if n != 1 || !r.begun[line] {
			r.t.Errorf("%d times: %s", n, line)
		}
	}
	for _, line := range want {
		if got[line] == 0 {
			r.t.Errorf("not there: %s", line)
		}
	}
}

// Two concurrent compactors lose nothing and show nothing twice, however other events
// interleave. No reader misses a blob that it has listed.
func TestTwoAtOnce(t *testing.T) {
	worlds := testkit.Share(10, 3)
	if n, err := strconv.Atoi(os.Getenv("BLOBTAIL_RACES")); err == nil {
		worlds = n
	}
	for seed := range worlds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(now))
				r := &race{world: newWorld(t), rand: rand.New(rand.NewPCG(uint64(seed), 5)),
					begun: map[string]bool{}, acked: map[string]bool{}, put: map[uint64][]rec{}}
				r.store = mem.New(mem.Options{})
				ctx, stop := context.WithTimeout(t.Context(), 12*time.Hour)
				defer stop()
				var all sync.WaitGroup
				for _, f := range []func(context.Context){r.ingest, r.compact, r.compact, r.read, r.read} {
					all.Go(func() { f(ctx) })
				}
				all.Wait()
				r.settled()
			})
		})
	}
}

// settled ensures that the remaining blobs are compacted, and that none is replaced.
func (r *race) settled() {
	for range 4 {
		time.Sleep(time.Hour)
		r.now = time.Now()
		r.run(compact.Options{Target: 3 << 10})
	}
	got := map[string]int{}
	plan, err := blobs.New(r.store, blobs.Options{}).Plan(context.Background(), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
	r.must(err)
	_, err = plan.Read(context.Background(), func(lines []byte) error {
		for line := range strings.Lines(string(lines)) {
			got[line]++
		}
		return nil
	})
	r.must(err)
	var want []string
	for line := range r.acked {
		want = append(want, line)
	}
	r.check(got, want)
	if most := r.most(); most > 6<<10 {
		r.t.Errorf("a blob has %d bytes of lines", most)
	}
	if last := r.run(compact.Options{Target: 3 << 10}); last.Out+last.Deleted+last.Waiting > 0 {
		r.t.Errorf("no end to it: %+v", last)
	}
}
