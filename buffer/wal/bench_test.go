package wal_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"blobtail/buffer/wal"
	"blobtail/storage/fsys"
)

// keep bounds the disk use of a benchmark.
func keep(b *testing.B, l *wal.Log) {
	for l.Size() > 512<<20 && l.Front() != l.Active() {
		if err := l.RemoveFront(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{3000, 320_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := open(b, b.TempDir(), wal.Options{})
			payload := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Append(1, payload); err != nil {
					b.Fatal(err)
				}
				keep(b, l)
			}
		})
	}
}

func BenchmarkAppendSync(b *testing.B) {
	for _, size := range []int{3000, 320_000} {
		for _, writers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%d/writers=%d", size, writers), func(b *testing.B) {
				syncs := new(atomic.Int64)
				l := open(b, b.TempDir(), wal.Options{FS: slow{fsys.OS(), syncs, 0}})
				payload := make([]byte, size)
				b.SetBytes(int64(size))
				var done sync.WaitGroup
				before := syncs.Load()
				for w := range writers {
					done.Go(func() {
						for i := w; i < b.N; i += writers {
							pos, err := l.Append(1, payload)
							if err == nil {
								err = l.Sync(pos)
							}
							if err != nil {
								b.Error(err)
								return
							}
							if w == 0 {
								keep(b, l)
							}
						}
					})
				}
				done.Wait()
				b.ReportMetric(float64(syncs.Load()-before)/float64(b.N), "fsyncs/op")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
			})
		}
	}
}

func BenchmarkReplay(b *testing.B) {
	dir := b.TempDir()
	l := open(b, dir, wal.Options{})
	payload := make([]byte, 30_000)
	const n = 2000
	for range n {
		if _, err := l.Append(1, payload); err != nil {
			b.Fatal(err)
		}
	}
	_ = l.Close()
	l = open(b, dir, wal.Options{})
	b.SetBytes(n * 30_000)
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range l.Replay(context.Background()) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkReadAt(b *testing.B) {
	l := open(b, b.TempDir(), wal.Options{})
	pos, err := l.Append(1, make([]byte, 4000))
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 4000)
	b.SetBytes(4000)
	b.ReportAllocs()
	for b.Loop() {
		if err := l.ReadAt(buf, pos); err != nil {
			b.Fatal(err)
		}
	}
}
