package main

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/config"
	"blobtail/internal/openstore"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// lists is a store that counts its listings of services. It hangs, or takes a time for each service,
// if it is told to.
type lists struct {
	storage.BlobStore
	n    atomic.Int64
	hang atomic.Bool
	each time.Duration
}

func (s *lists) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	s.n.Add(1)
	if s.hang.Load() {
		<-ctx.Done()
		return func(yield func(string, error) bool) { yield("", ctx.Err()) }
	}
	return func(yield func(string, error) bool) {
		for name, err := range s.BlobStore.Dirs(ctx, prefix) {
			if time.Sleep(s.each); !yield(name, err) {
				return
			}
		}
	}
}

// hungSink stores nothing.
type hungSink struct{}

func (hungSink) Plan(string, time.Time) []byte { return nil }

func (hungSink) Write(ctx context.Context, _ *buffer.Batch) error {
	<-ctx.Done()
	return ctx.Err()
}

// put stores a blob of a service.
func (s *lists) put(t *testing.T, service string) {
	t.Helper()
	storagetest.Put(t, s, service+"/2026/11/20/1500/000001.log", []byte("x"))
}

// limited starts a limit of ten services an hour, with an empty log. stop ends it as a clean end does.
func limited(t *testing.T, dir string, store *lists) (allow func(string) string, stop func()) {
	t.Helper()
	c := config.Default()
	c.Ingest.WAL = dir
	c.Store, _ = openstore.Parse("dir:" + dir)
	c.Limits.NewServices = 10
	n := newNewcomers(c, store, zerolog.Nop())
	journal, err := wal.Open(filepath.Join(dir, "log"), wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n.buf = buffer.New(journal, hungSink{}, buffer.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = n.buf.Run(ctx) }()
	go n.limit.Run(ctx)
	return n.allow(), func() {
		cancel()
		<-done
		synctest.Wait()
		journal.Close()
	}
}

// allowed counts the services of a kind that are allowed.
func allowed(allow func(string) string, kind string, n int) (all int) {
	for i := range n {
		if allow(fmt.Sprint(kind, "-", i)) == "" {
			all++
		}
	}
	return all
}

// Services with blobs are not new, whoever stored them. The store is asked for all at once, at most
// every ten seconds, and only when a service would be refused.
func TestNewServicesInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lists{BlobStore: mem.New(mem.Options{})}
		for i := range 100 {
			store.put(t, fmt.Sprint("stored-", i))
		}
		allow, stop := limited(t, t.TempDir(), store)
		defer stop()
		if n := allowed(allow, "new", 10); n != 10 || store.n.Load() > 0 {
			t.Errorf("%d, %d listings", n, store.n.Load())
		}
		if n := allowed(allow, "stored", 100); n != 100 || store.n.Load() != 1 {
			t.Errorf("%d with blobs, %d listings", n, store.n.Load())
		}
		begun := time.Now()
		if n := allowed(allow, "more", 10_000); n != 0 || store.n.Load() != 1 || time.Since(begun) > 0 {
			t.Errorf("%d more, %d listings, after %v", n, store.n.Load(), time.Since(begun))
		}
		store.put(t, "more-1")
		time.Sleep(listEvery)
		if n := allowed(allow, "more", 3); n != 1 {
			t.Errorf("%d of others", n)
		}
		if reason := allow("more-2"); !strings.Contains(reason, "more-2 is a new service") || !strings.Contains(reason, "limits.new-services") {
			t.Error(reason)
		}
	})
}

// A listing of many services takes its time. A record waits as long as that finds some.
func TestNewServicesOfALongListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lists{BlobStore: mem.New(mem.Options{}), each: listPatience / 4}
		for i := range 50 {
			store.put(t, fmt.Sprint("stored-", i))
		}
		allow, stop := limited(t, t.TempDir(), store)
		defer stop()
		if n := allowed(allow, "stored", 50); n != 50 || store.n.Load() != 1 {
			t.Errorf("%d with blobs, %d listings", n, store.n.Load())
		}
		if n := allowed(allow, "new", 50); n != 0 {
			t.Errorf("%d new ones", n)
		}
	})
}

// A start knows the services from before it, by a file.
func TestNewServicesOverAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, store := t.TempDir(), &lists{BlobStore: mem.New(mem.Options{})}
		allow, stop := limited(t, dir, store)
		allowed(allow, "first", 10)
		stop()
		allow, stop = limited(t, dir, store)
		defer stop()
		if n, m := allowed(allow, "second", 20), allowed(allow, "first", 10); n != 10 || m != 10 {
			t.Errorf("%d new ones, %d known ones", n, m)
		}
	})
}

// While the store does not answer, as many services again are allowed, and one record waits a second.
func TestNewServicesWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lists{BlobStore: mem.New(mem.Options{})}
		store.put(t, "stored-0")
		store.hang.Store(true)
		allow, stop := limited(t, t.TempDir(), store)
		defer stop()
		begun := time.Now()
		if n := allowed(allow, "new", 1000); n != 20 || time.Since(begun) != listPatience {
			t.Errorf("%d, after %v", n, time.Since(begun))
		}
		time.Sleep(time.Minute)
		if n := allowed(allow, "stored", 1); n != 0 {
			t.Error("more are allowed")
		}
		store.hang.Store(false)
		time.Sleep(time.Minute)
		if n := allowed(allow, "stored", 1); n != 1 {
			t.Error("the store answers, and its service is new")
		}
	})
}

// Services with records in the log of the start are not new.
func TestNewServicesInTheLog(t *testing.T) {
	dir := t.TempDir()
	journal, err := wal.Open(filepath.Join(dir, "log"), wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	buf := buffer.New(journal, hungSink{}, buffer.Options{})
	done := make(chan struct{})
	go func() { defer close(done); _ = buf.Run(ctx) }()
	line := `{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"held-0","msg":"a"}` + "\n"
	receipt, err := buf.Accept(ctx, &record.Request{Services: []string{"held-0"}, Data: []byte(line), Lines: []record.Line{{Time: time.Date(2026, 11, 20, 15, 4, 5, 0, time.UTC).UnixNano(), Len: uint32(len(line))}}})
	if err == nil {
		err = receipt.Wait(ctx, false)
	}
	cancel()
	<-done
	journal.Close()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		allow, stop := limited(t, dir, &lists{BlobStore: mem.New(mem.Options{})})
		defer stop()
		if n, m := allowed(allow, "new", 20), allowed(allow, "held", 1); n != 10 || m != 1 {
			t.Errorf("%d new ones, %d in the log", n, m)
		}
	})
}
