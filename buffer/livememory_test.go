package buffer_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// Memory is bounded for any backlog and any number of readers.
func TestLiveMemory(t *testing.T) {
	testkit.FullOnly(t, "writes 120 MB")
	log, err := wal.Open(t.TempDir(), wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	sink := &memSink{}
	sink.setRefuse(refuseAll)
	buf := buffer.New(log, sink, buffer.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- buf.Run(ctx) }()
	defer func() { cancel(); <-done }()
	records := overlapping(t, buf)
	before := heap()
	readWhole(t, buf, records, before, 80<<20)

	const readers = 24
	reading, stop := context.WithCancel(t.Context())
	var stuck, under sync.WaitGroup
	stuck.Add(readers)
	defer stuck.Wait()
	defer stop()
	for range readers {
		under.Add(1)
		go func() {
			defer stuck.Done()
			l, err := buf.Live(reading, everything())
			if err != nil {
				t.Error(err)
				under.Done()
				return
			}
			defer l.Close()
			n := 0
			_ = l.Each(reading, func(*record.Entry) error {
				if n++; n == 30_000 {
					under.Done()
					<-reading.Done()
				}
				return reading.Err()
			})
		}()
	}
	under.Wait()
	readWhole(t, buf, records, before, 320<<20)
}

// A reader with the least memory reads lines that are longer than that.
func TestLiveLongLines(t *testing.T) {
	// No batch may be stored by its age meanwhile, on a machine however busy.
	p := start(t, t.TempDir(), &memSink{}, buffer.Options{Age: time.Hour, MaxAge: time.Hour}, true)
	long := strings.Repeat("x", 5<<19)
	for i := range 8 {
		p.accept(request(0, line{"web", at(i), long}, line{"db", at(i), long}, line{"api", at(50), "short"}))
	}
	reading, stop := context.WithCancel(t.Context())
	var stuck, under sync.WaitGroup
	defer stuck.Wait()
	defer stop()
	for range 10 {
		under.Add(1)
		stuck.Go(func() {
			l, err := p.buf.Live(reading, everything())
			if err != nil {
				t.Error(err)
				under.Done()
				return
			}
			defer l.Close()
			once := sync.OnceFunc(under.Done)
			_ = l.Each(reading, func(*record.Entry) error {
				once()
				<-reading.Done()
				return reading.Err()
			})
		})
	}
	under.Wait()
	got, _ := snapshot(t, p.buf, everything())
	inOrder(t, got)
	if len(got) != 24 {
		t.Errorf("%d lines", len(got))
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// overlapping sends small and large requests that all overlap, and returns the number of
// their records.
func overlapping(t *testing.T, buf *buffer.Buffer) (records int) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	large := mixed(r, 0, 1000)
	take := func(r *record.Request) {
		if _, err := buf.Accept(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		records += len(r.Lines)
	}
	for i := range 280 {
		take(large)
		for range 350 { // more runs than a merge keeps cursors for
			small := at(0) + int64(i)*100_000_000 + r.Int64N(20e9)
			take(request(0, line{"web", small, "small"}, line{"db", small + r.Int64N(1e9), "small"}))
		}
	}
	huge := request(0)
	for i := range 20_000 {
		one := request(0, line{"web", at(0) + int64(i)*1_000_000, strings.Repeat("x", 300)})
		l := one.Lines[0]
		l.Off = uint32(len(huge.Data))
		huge.Lines, huge.Data, huge.Services = append(huge.Lines, l), append(huge.Data, one.Data...), one.Services
	}
	take(huge)
	return records
}

// readWhole reads a snapshot of the given number of records, within the given memory.
func readWhole(t *testing.T, buf *buffer.Buffer, records int, before, bound uint64) {
	t.Helper()
	l, err := buf.Live(t.Context(), everything())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n, most := 0, uint64(0)
	var last record.Entry
	err = l.Each(t.Context(), func(e *record.Entry) error {
		if e.Compare(&last) < 0 {
			t.Fatal("out of order")
		}
		last = *e
		if n++; n%100_000 == 0 {
			now := heap()
			most = max(most, now-min(before, now))
		}
		return nil
	})
	if err != nil || n != records {
		t.Fatalf("%d records of %d: %v", n, records, err)
	}
	t.Logf("%d records, %d MB of memory", n, most>>20)
	if most > bound {
		t.Errorf("%d MB of memory", most>>20)
	}
}
