package tailindex_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"blobtail/record"
	"blobtail/storage"
	"blobtail/tailindex"
)

// BenchmarkAccepted measures what being told costs ingestion, for each record,
// while the writer writes to a store that takes everything. The lines are hot in
// the cache, as they are when a request has just been parsed.
func BenchmarkAccepted(b *testing.B) {
	for _, lines := range []int{1, 10, 100, 1000} {
		for _, services := range []int{1, 100, 10000} {
			b.Run(fmt.Sprintf("lines=%d/services=%d", lines, services), func(b *testing.B) {
				w := tailindex.NewWriter(nowhere{}, tailindex.Options{})
				ctx, cancel := context.WithCancel(b.Context())
				done := make(chan struct{})
				go func() { defer close(done); w.Run(ctx) }()
				names := make([]string, services)
				for i := range names {
					names[i] = fmt.Sprintf("service-%d", i)
				}
				r := benchRun("service", lines)
				b.ReportAllocs()
				b.ResetTimer()
				n := 0
				for b.Loop() {
					r.Service = names[n%services]
					n++
					r.First += uint32(lines)
					for i := range r.Request.Lines {
						r.Request.Lines[i].Time += int64(lines) * 1000
					}
					w.Accepted(uint64(n), r)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*lines), "ns/record")
				cancel()
				<-done
			})
		}
	}
}

// nowhere is a table store that keeps nothing.
type nowhere struct{ storage.TableStore }

func (nowhere) Upsert(context.Context, string, string, []storage.Row) error { return nil }

// benchRun is a run of lines of 323 bytes, one in twenty of them an error.
func benchRun(service string, lines int) *record.Run {
	var all []string
	at := time.Now()
	for i := range lines {
		level := "info"
		if i%20 == 19 {
			level = "error"
		}
		l := line(at.Add(time.Duration(i)*time.Microsecond), level, service, "")
		msg := fmt.Sprintf("%0*d", 323-len(l), i)
		all = append(all, line(at.Add(time.Duration(i)*time.Microsecond), level, service, msg))
	}
	return newRun(service, 1, all...)
}
