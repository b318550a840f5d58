package wal_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer/wal"
	"blobtail/storage/fsys/simdisk"
)

// loop appends and syncs records one after another, as a sender does that waits for each
// answer.
func loop(t *testing.T, l *wal.Log, records int, pause func() time.Duration) {
	for range records {
		pos, err := l.Append(1, make([]byte, 100))
		if err == nil {
			err = l.Sync(pos)
		}
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(pause())
	}
}

// Callers that come back soon share an fsync, though none of them waits for another when
// it comes. Once they have gone, a lone caller waits for its fsync alone.
func TestGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes, callers, each = 300 * time.Microsecond, 8, 200
		syncs := new(atomic.Int64)
		l := open(t, "/wal", wal.Options{FS: slow{simdisk.New(1), syncs, takes}})
		defer l.Close()
		count := func(do func()) (fsyncs int64, took time.Duration) {
			before, begun := syncs.Load(), time.Now()
			do()
			return syncs.Load() - before, time.Since(begun)
		}
		alone := func() { loop(t, l, each, func() time.Duration { return 0 }) }

		if n, took := count(alone); n != each || took != each*takes {
			t.Errorf("a caller alone: %d fsyncs and %v for %d records", n, took, each)
		}
		n, _ := count(func() {
			var done sync.WaitGroup
			for c := range callers {
				rng := newRand(uint64(c))
				done.Go(func() {
					loop(t, l, each, func() time.Duration { return time.Duration(rng.IntN(600_000)) })
				})
			}
			done.Wait()
		})
		if n > callers*each/6 {
			t.Errorf("%d callers: %d fsyncs for %d records", callers, n, callers*each)
		}
		if n, took := count(alone); n != each || took > each*takes+callers*time.Millisecond {
			t.Errorf("a caller after the others: %d fsyncs and %v for %d records", n, took, each)
		}
	})
}
