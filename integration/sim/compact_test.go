package sim_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"blobtail/catalog/closed"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/mem"
)

// compaction closes days and rewrites stored blobs while the ingesters live and die. It ignores
// records still to come, though no hour of these worlds is ever over. So names are used again
// while PUTs to them are on their way, and replaced blobs arrive once more, also of closed days.
type compaction struct {
	w     *world
	grace time.Duration
	alive context.Context // until the ingesters have ended
	end   context.CancelFunc
}

func newCompaction(w *world, rng *rand.Rand) *compaction {
	c := &compaction{w: w, grace: []time.Duration{-1, -1, time.Minute, 10 * time.Minute}[rng.IntN(4)]}
	c.alive, c.end = context.WithCancel(context.Background())
	return c
}

// now is a clock of the store. By it all records are long past.
func (c *compaction) now() time.Time { return epoch.AddDate(0, 0, 7).Add(time.Since(c.w.start)) }

func (c *compaction) options() compact.Options {
	return compact.Options{Grace: c.grace, Now: c.now, Level: zstd.SpeedFastest, Target: 8 << 10}
}

// run compacts again and again. Some runs are killed.
func (c *compaction) run(i int, rng *rand.Rand) {
	store := &compacted{&storeOf{c.w.store, 100 + i}}
	for c.alive.Err() == nil {
		ctx, stop := c.alive, context.CancelFunc(func() {})
		if rng.IntN(3) == 0 {
			ctx, stop = context.WithTimeout(ctx, time.Duration(rng.IntN(60))*time.Second)
		}
		c.compact(ctx, store) // its error is the store's, or the kill
		stop()
		wait(c.alive, time.Duration(rng.IntN(100))*time.Second)
	}
}

// compact closes the days and compacts them.
func (c *compaction) compact(ctx context.Context, store storage.BlobStore) (got compact.Result, err error) {
	done, err := closing.Run(ctx, store, closing.Options{After: closed.Soonest, Now: c.now(), Log: zerolog.Nop()})
	// Records are still to come, so a number may lack.
	c.noted(slices.DeleteFunc(done.Problems, func(err error) bool { return strings.Contains(err.Error(), "numbers of blobs that lack") }))
	if err == nil {
		got, err = compact.Run(ctx, store, c.options())
		c.told(got)
	}
	return got, err
}

// compacted is the store as a compactor sees it. It also reads and deletes, slowly, and
// a deletion may happen after its caller has given up.
type compacted struct{ *storeOf }

func (s *compacted) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	rng := s.w.fate("get", s.ingester, key)
	if !s.w.isQuiet() && rng.IntN(4) == 0 {
		wait(ctx, time.Duration(rng.IntN(20))*time.Second)
	}
	if !s.w.isQuiet() && rng.IntN(100) < s.w.p.Faults {
		return nil, errLost
	}
	return s.Store.Get(ctx, key, off, n)
}

func (s *compacted) Delete(ctx context.Context, blobs ...storage.Blob) error {
	if s.w.isQuiet() {
		return s.Store.Delete(ctx, blobs...)
	}
	rng := s.w.fate("delete", s.ingester)
	wait(ctx, time.Duration(rng.IntN(60))*time.Second)
	switch rng.IntN(8) {
	case 0:
		return errLost
	case 1:
		_ = s.Store.Delete(context.Background(), blobs[:len(blobs)/2]...)
		return errLost
	case 2, 3, 4:
		late := slices.Clone(blobs)
		s.later(time.Duration(rng.IntN(900))*time.Second, func() { _ = s.Store.Delete(context.Background(), late...) })
		return errLost
	}
	return s.Store.Delete(ctx, blobs...)
}

// told checks the result of a run: it must report no damage and no contradiction.
func (c *compaction) told(got compact.Result) {
	c.noted(got.Problems)
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.totals.compacted += got.In
	c.w.totals.compactedTo += got.Out
	c.w.totals.replaced += got.Deleted
}

func (c *compaction) noted(problems []error) {
	for _, p := range problems {
		if !errors.Is(p, errLost) && !errors.Is(p, context.Canceled) && !errors.Is(p, context.DeadlineExceeded) {
			c.w.violation("compaction: %v", p)
		}
	}
}

// finish compacts until there is nothing left to do.
func (c *compaction) finish() {
	for range 5 {
		if _, err := c.compact(context.Background(), &storeOf{c.w.store, 100}); err != nil {
			c.w.violation("the last compaction: %v", err)
		}
		time.Sleep(c.grace + time.Minute)
	}
	got, err := c.compact(context.Background(), &storeOf{c.w.store, 100})
	if err != nil || got.Out+got.Deleted+got.Waiting > 0 {
		c.w.violation("no end of compaction: %+v, %v", got, err)
	}
}

// memory returns a new store with the clock of the world's compaction, if there is one.
func (w *world) memory() *mem.Store {
	if w.compaction == nil {
		return mem.New(mem.Options{})
	}
	return mem.New(mem.Options{Now: w.compaction.now})
}
