package reading_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
	"blobtail/reading/unflushed"
	"blobtail/storage"
	"blobtail/storage/dir"
)

// listed counts the listings of blobs of a store.
type listed struct {
	storage.BlobStore
	storage.Opener
	lists, gets atomic.Int64
}

func (l *listed) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	if prefix != "" && prefix[0] != '_' {
		l.lists.Add(1)
	}
	return l.BlobStore.List(ctx, prefix, after)
}

func (l *listed) Open(ctx context.Context, key string) (storage.Object, error) {
	l.gets.Add(1)
	return l.Opener.Open(ctx, key)
}

// stored opens the store of BLOBTAIL_BENCH_STORE, a directory that an ingester has written.
func benched(b *testing.B) (*listed, func(indexes blobs.Indexes) *reading.Reader) {
	path := os.Getenv("BLOBTAIL_BENCH_STORE")
	if path == "" {
		b.Skip("BLOBTAIL_BENCH_STORE names no directory with a store")
	}
	store, err := dir.Open(path, dir.Options{})
	if err != nil {
		b.Fatal(err)
	}
	counted := &listed{BlobStore: store, Opener: store}
	return counted, func(indexes blobs.Indexes) *reading.Reader {
		blobs := blobs.New(counted, blobs.Options{Indexes: indexes})
		return reading.New(reading.Options{Blobs: blobs, Logs: unflushed.New(unflushed.Options{
			Blobs: blobs,
			Store: func(context.Context) (string, error) { return "", nil },
			Ingesters: func(ctx context.Context) ([]lease.Ingester, time.Time, error) {
				return nil, time.Now(), storage.ErrNotExist
			},
		})})
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measured runs f many times and reports the median, and the CPU time of each run.
func measured(b *testing.B, f func()) {
	var all []time.Duration
	used := cpu()
	for b.Loop() {
		begun := time.Now()
		f()
		all = append(all, time.Since(begun))
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric((cpu()-used).Seconds()*1000/float64(b.N), "cpu-ms/op")
}

func histogram(b *testing.B, r *reading.Reader, services ...string) (records int64) {
	_, result, err := r.For(nil).Histogram(context.Background(), reading.Ask{Services: services, Range: reading.Always()}, reading.Slices{By: time.Minute})
	if err != nil || !result.Complete() {
		b.Error(err, result.Problems())
	}
	return result.Records
}

// BenchmarkStore measures reads of a real store, as a server makes them.
func BenchmarkStore(b *testing.B) {
	store, reader := benched(b)
	kept := reader(indexcache.New(0))
	b.Run("warm", func(b *testing.B) { measured(b, func() { histogram(b, kept, "*") }) })
	b.Run("cold", func(b *testing.B) { measured(b, func() { histogram(b, reader(indexcache.New(0)), "*") }) })
	for _, service := range []string{"*", "api-gateway"} {
		b.Run("newest5000 of "+service, func(b *testing.B) {
			measured(b, func() {
				q := reading.Ask{Services: []string{service}, Range: reading.Always(), Limit: 5000}
				lines, _, err := lines(context.Background(), kept.For(nil), q)
				if len(lines) != 5000 || err != nil {
					b.Error(len(lines), err)
				}
			})
		})
	}
	b.Run("dashboard", func(b *testing.B) {
		lists := store.lists.Load()
		refreshes := 0
		measured(b, func() {
			refreshes++
			var panels sync.WaitGroup
			for n := range 12 {
				panels.Go(func() {
					if n < 9 {
						histogram(b, kept, []string{"*", "api-gateway", "auth"}[n%3])
						return
					}
					q := reading.Ask{Services: []string{"api-gateway"}, Range: reading.Always(), Limit: 1000}
					_, _, _ = lines(context.Background(), kept.For(nil), q)
				})
			}
			panels.Wait()
			time.Sleep(60 * time.Millisecond)
		})
		b.ReportMetric(float64(store.lists.Load()-lists)/float64(refreshes), "lists/op")
	})
}

// BenchmarkEverything has eight clients read everything at once.
func BenchmarkEverything(b *testing.B) {
	_, reader := benched(b)
	r := reader(indexcache.New(0))
	peak := make(chan int64)
	stop := make(chan struct{})
	go func() {
		most := int64(0)
		for {
			select {
			case <-time.After(5 * time.Millisecond):
				most = max(most, resident())
			case <-stop:
				peak <- most
				return
			}
		}
	}()
	for b.Loop() {
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				n := 0
				result, err := r.For(nil).Records(context.Background(), reading.Ask{Services: []string{"*"}, Range: reading.Always()}, func(lines []byte) error { n += bytes.Count(lines, []byte{'\n'}); return nil })
				if err != nil || !result.Complete() {
					b.Error(err)
				}
			})
		}
		clients.Wait()
	}
	close(stop)
	b.ReportMetric(float64(<-peak)/(1<<20), "peak-MiB")
}

// resident is the memory of the process.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	var size, pages int64
	if _, serr := fmt.Sscan(string(text), &size, &pages); err != nil || serr != nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.Sys)
	}
	return pages * int64(os.Getpagesize())
}
