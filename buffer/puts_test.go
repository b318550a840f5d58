package buffer_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/internal/count"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/fsys/simdisk"
)

// putSink counts the batches of each service.
type putSink struct {
	memSink
	mu   sync.Mutex
	puts map[string]int
}

func (s *putSink) Write(_ context.Context, b *buffer.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts[b.Service()]++
	return nil
}

// A service that writes 9 records of 323 bytes a second at an ingester has 1.74 MB of them after
// ten minutes. With the defaults MaxAge decides then, and not Min: a blob is made of the records of
// each ten minutes of an hour, 144 a day. A batch is cut up to a second late, but the first one of
// an hour begins with the hour, so these seconds do not add up.
func TestPuts(t *testing.T) {
	testkit.FullOnly(t, "hours of requests, in virtual time")
	const half = 30 * time.Minute
	for name, tc := range map[string]struct {
		o        buffer.Options
		services int
		every    time.Duration // between requests
		records  int           // of a service in a request
		during   time.Duration
		puts     int    // of each service
		reason   string // of all of them
	}{
		"ten minutes":                    {buffer.Options{MaxAge: 10 * time.Minute}, 5, time.Second, 9, half, 3, "max_age"},
		"ten minutes, a day":             {buffer.Options{MaxAge: 10 * time.Minute}, 1, 20 * time.Second, 180, 24 * time.Hour, 144, "max_age"},
		"five minutes":                   {buffer.Options{}, 5, time.Second, 9, half, 6, "max_age"},
		"1 MiB decides, not MaxAge":      {buffer.Options{MaxAge: 10 * time.Minute, Min: 1 << 20}, 5, time.Second, 9, 6 * 362 * time.Second, 6, "age"},
		"2 MiB decides from 11 a second": {buffer.Options{MaxAge: 10 * time.Minute}, 2, time.Second, 11, 3 * 592 * time.Second, 3, "age"},
		"a quiet service":                {buffer.Options{MaxAge: 10 * time.Minute}, 1, 9 * time.Minute, 1, 3 * time.Hour, 11, "max_age"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg, sink := new(count.Registry), &putSink{puts: map[string]int{}}
				tc.o.Metrics = reg
				p := startOn(t, simdisk.New(1), "/wal", sink, tc.o, true)
				defer p.stop()
				for begun := time.Now(); time.Since(begun) < tc.during; time.Sleep(tc.every) {
					var lines []line
					for s := range tc.services {
						for range tc.records {
							lines = append(lines, line{"svc-" + string(rune('a'+s)), time.Now().Truncate(time.Second).UnixNano(), strings.Repeat("x", 241)})
						}
					}
					r := request(0, lines...)
					if size := len(r.Data) / len(lines); size != 323 {
						t.Fatalf("a line has %d bytes", size)
					}
					p.accept(r)
				}
				time.Sleep(2 * time.Minute) // for the last one
				synctest.Wait()
				for service, n := range sink.puts {
					if n != tc.puts {
						t.Errorf("%s: %d blobs, want %d", service, n, tc.puts)
					}
				}
				if got := cuts(t, reg); len(sink.puts) != tc.services || !maps.Equal(got, map[string]float64{tc.reason: float64(tc.puts * tc.services)}) {
					t.Errorf("of %d services, cut for %v", len(sink.puts), got)
				}
			})
		})
	}
}
