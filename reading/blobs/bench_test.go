package blobs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"blobtail/reading/blobs"
)

// benchStore holds an hour of each of some services, in two blobs each.
func benchStore(b *testing.B, services, records int) (*builder, int64) {
	w := newBuilder(b, 0)
	rnd := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC).UnixNano()
	size := int64(0)
	levels := []string{"debug", "debug", "debug", "info", "info", "warn", "error"}
	for s := range services {
		service := fmt.Sprintf("service-%d", s)
		for half := range 2 {
			var recs []rec
			for i := range records / 2 {
				t := start + int64(half)*1800e9 + int64(i)*1800e9/int64(records/2) + rnd.Int64N(1e6)
				msg := fmt.Sprintf("GET /api/v1/items/%d took %d us trace=%016x%016x", rnd.IntN(10000), rnd.IntN(100000), rnd.Uint64(), rnd.Uint64())
				r := rec{service: service, time: t, origin: origin(uint64(s*2 + half)), index: uint32(i)}
				r.line = line(t, levels[rnd.IntN(len(levels))], service, msg+" and some words that are in every line, as in real logs")
				size += int64(len(r.line))
				recs = append(recs, r)
			}
			w.add(time.Hour, recs)
		}
	}
	return w, size
}

func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func BenchmarkRead(b *testing.B) {
	two := blobs.Range{From: time.Date(2026, 11, 20, 13, 20, 0, 0, time.UTC).UnixNano(), To: time.Date(2026, 11, 20, 13, 22, 0, 0, time.UTC).UnixNano()}
	filter := func(f blobs.Filter) blobs.Query { return blobs.Query{Range: blobs.Always(), Filter: f} }
	levels, _ := blobs.ParseLevels("error")
	for _, services := range []int{1, 8} {
		w, size := benchStore(b, services, 400_000/services)
		for _, c := range []struct {
			name string
			q    blobs.Query
			all  bool
		}{
			{"all", blobs.Query{Range: blobs.Always()}, true},
			{"reverse", blobs.Query{Range: blobs.Always(), Reverse: true}, true},
			{"window", blobs.Query{Range: two}, false},
			{"newest100", blobs.Query{Range: blobs.Always(), Limit: 100}, false},
			{"error", filter(blobs.Filter{Levels: levels}), true},
			{"text", filter(blobs.Filter{Texts: []string{"3f9c2a7e"}}), true},
			{"regexp", filter(blobs.Filter{Exprs: []string{"items/77[0-9] took"}}), true},
		} {
			b.Run(fmt.Sprintf("services=%d/%s", services, c.name), func(b *testing.B) {
				c.q.Services = []string{"*"}
				r := blobs.New(w.store, blobs.Options{})
				if c.all {
					b.SetBytes(size)
				}
				b.ReportAllocs()
				var sum blobs.Summary
				cpu := cpuSeconds(b)
				for b.Loop() {
					plan, err := r.Plan(context.Background(), c.q)
					if err != nil {
						b.Fatal(err)
					}
					if sum, err = plan.Read(context.Background(), func([]byte) error { return nil }); err != nil {
						b.Fatal(err)
					}
				}
				// On a busy machine CPU time varies less than elapsed time.
				b.ReportMetric((cpuSeconds(b)-cpu)/float64(b.N)*1e3, "cpu-ms/op")
				if c.all {
					b.ReportMetric(float64(size)*float64(b.N)/1e6/(cpuSeconds(b)-cpu), "MB/cpu-s")
				}
				b.ReportMetric(float64(sum.BlocksRead), "blocks/op")
			})
		}
	}
}
