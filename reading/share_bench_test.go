package reading_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
	"blobtail/reading/readingtest"
	"blobtail/reading/unflushed"
	"blobtail/storage/storagetest"
)

// BenchmarkShare refreshes a dashboard of 12 panels over 8 services, which have records in blobs and in
// none, in a near and in a distant store.
func BenchmarkShare(b *testing.B) {
	for _, delay := range []time.Duration{0, 30 * time.Millisecond} {
		h := readingtest.New(b, 2)
		pad := strings.Repeat("x", 200)
		rng := rand.New(rand.NewPCG(1, 2))
		begun := time.Now()
		send := func(n int, from, to time.Time) {
			for s := range 8 {
				var some []readingtest.Line
				for range n {
					at := from.Add(time.Duration(rng.Int64N(int64(to.Sub(from)))))
					some = append(some, readingtest.Line{Service: fmt.Sprint("svc-", s), Msg: fmt.Sprint(rng.Int64(), pad), Level: []string{"info", "info", "warn", "error"}[rng.IntN(4)], Time: at})
				}
				h.Send(s%2, some...)
			}
		}
		for hour := range 6 {
			for range 10 {
				send(500, begun.Add(-time.Duration(hour+1)*time.Hour), begun.Add(-time.Duration(hour)*time.Hour))
				h.Flush()
			}
		}
		send(1500, begun.Add(-10*time.Minute), begun) // held
		time.Sleep(11 * time.Second)
		var mu sync.Mutex
		lists, gets := 0, 0
		h.Faults(func(op storagetest.Op, key string) storagetest.Fault {
			mu.Lock()
			defer mu.Unlock()
			switch op {
			case storagetest.List:
				if !strings.HasPrefix(key, "_") && key != "" {
					lists++
				}
			case storagetest.Get:
				gets++
			}
			return storagetest.Fault{Delay: delay}
		})
		r := h.ReaderOf(reading.Options{}, blobs.Options{Workers: 2, Indexes: indexcache.New(64 << 20)}, func(o *unflushed.Options) {})
		b.Run(fmt.Sprint(delay), func(b *testing.B) {
			refresh := func() {
				var all sync.WaitGroup
				to := time.Now()
				for n := range 12 {
					all.Go(func() {
						a := reading.Ask{Services: []string{fmt.Sprint("svc-", n%8)}, Range: reading.Range{From: to.Add(-6 * time.Hour).UnixNano(), To: to.UnixNano()}, Here: reading.Here{Sure: true}}
						if n%3 == 0 {
							a.Services = []string{"*"}
						}
						var out *reading.Outcome
						var err error
						if n < 8 {
							_, out, err = r.For(nil).Histogram(context.Background(), a, reading.Slices{By: time.Minute, Apart: func([]string) bool { return n%3 == 0 }})
						} else {
							a.Limit, a.Reverse, a.Here.Whole = 1000, true, true
							out, err = r.For(nil).Records(context.Background(), a, func([]byte) error { return nil })
						}
						if err != nil || !out.Complete() {
							b.Error(err, out.Problems())
						}
					})
				}
				all.Wait()
			}
			refresh()
			mu.Lock()
			lists, gets = 0, 0
			mu.Unlock()
			used, took := cpu(), time.Duration(0)
			for range b.N {
				at := time.Now()
				refresh()
				took += time.Since(at)
				time.Sleep(100 * time.Millisecond)
			}
			b.ReportMetric((cpu()-used).Seconds()*1000/float64(b.N), "cpu-ms")
			b.ReportMetric(took.Seconds()*1000/float64(b.N), "wall-ms")
			b.ReportMetric(float64(lists)/float64(b.N), "lists")
			b.ReportMetric(float64(gets)/float64(b.N), "gets")
		})
	}
}
