package blobs_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/storage/mem"
)

// waiting returns unflushed records in their order: n of each of some services, within
// ten minutes, from several origins.
func waiting(services, n int) []record.Entry {
	start := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC).UnixNano()
	all := make([]record.Entry, 0, services*n)
	var arena []byte
	for i := range services * n {
		at := start + int64(i)*600e9/int64(services*n)
		if cap(arena)-len(arena) < 1<<10 {
			arena = make([]byte, 0, 1<<20)
		}
		from := len(arena)
		arena = record.AppendTime(append(arena, `{"ts":"`...), at)
		arena = fmt.Appendf(arena, `","level":"info","service":"service-%d","msg":"GET /api/v1/items/%d took some time","trace":"%016x%016x","more":"words that are in every line, as in real logs"}`+"\n",
			i%services, i%977, uint64(i)*0x9e3779b97f4a7c15, uint64(i)*0xbf58476d1ce4e5b9)
		e := record.Entry{Time: at, Line: arena[from:len(arena):len(arena)]}
		round := i / services
		binary.BigEndian.PutUint64(e.ID.Origin[8:], uint64(i%services)<<16|uint64(round/5000)<<2|uint64(round%4))
		e.ID.Index = uint32(round % 5000 / 4)
		all = append(all, e)
	}
	return all
}

// Unflushed records of many small services, and of a few large ones. The latter are more
// than memory holds.
func BenchmarkUnflushed(b *testing.B) {
	for _, shape := range []struct{ services, records int }{{10_000, 10}, {4, 200_000}} {
		all := waiting(shape.services, shape.records)
		name := fmt.Sprintf("%dx%d", shape.services, shape.records)
		add := func() *blobs.Unflushed {
			l := blobs.NewUnflushed("the log")
			for i := range all {
				if err := l.Add(&all[i]); err != nil {
					b.Fatal(err)
				}
			}
			return l
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		l := add()
		runtime.GC()
		runtime.ReadMemStats(&after)
		held := float64(after.HeapAlloc-before.HeapAlloc) / 1e6
		r := blobs.New(mem.New(mem.Options{}), blobs.Options{})
		q := blobs.Query{Services: []string{"*"}, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{l}}
		run := func(verb string, f func() (blobs.Summary, error)) {
			b.Run(name+"/"+verb, func(b *testing.B) {
				b.ReportAllocs()
				cpu := cpuSeconds(b)
				for b.Loop() {
					if sum, err := f(); err != nil || sum.Records == 0 {
						b.Fatal(sum, err)
					}
				}
				b.ReportMetric((cpuSeconds(b)-cpu)/float64(b.N)*1e3, "cpu-ms/op")
				b.ReportMetric(held, "MB-held")
			})
		}
		plan, err := r.Plan(context.Background(), q)
		if err != nil {
			b.Fatal(err)
		}
		none := func([]byte) error { return nil }
		run("add", func() (blobs.Summary, error) { add().Close(); return blobs.Summary{Records: 1}, nil })
		run("read", func() (blobs.Summary, error) { return plan.Read(context.Background(), none) })
		run("entries", func() (blobs.Summary, error) {
			return plan.Entries(context.Background(), func(*record.Entry) error { return nil })
		})
		run("hist", func() (blobs.Summary, error) {
			_, sum, err := plan.Histogram(context.Background(), blobs.Buckets{Length: time.Minute})
			return sum, err
		})
		limited := q
		limited.Limit = 100
		run("newest100", func() (blobs.Summary, error) { return r.Newest(context.Background(), limited, none) })
		limited.Filter.Texts = []string{"items/777"}
		run("newest100text", func() (blobs.Summary, error) { return r.Newest(context.Background(), limited, none) })
		l.Close()
	}
}
