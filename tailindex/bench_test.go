package tailindex_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/dir/tables"
	"blobtail/tailindex"
)

// BenchmarkAccepted measures the cost of Accepted for ingestion, for each record, while
// the writer writes to a store that accepts everything. The lines are hot in the cache,
// as they are when a request has just been parsed.
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
					binary.BigEndian.PutUint64(r.Origin[8:], uint64(n))
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

// BenchmarkNewest measures reading the newest 100 records of a service from a
// directory, of rows with few records and with many.
func BenchmarkNewest(b *testing.B) {
	for _, lines := range []int{1, 18, 100} {
		b.Run(fmt.Sprintf("lines=%d", lines), func(b *testing.B) {
			s, err := tables.Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			now := time.Now()
			fill(b, s, now.Add(-24*time.Hour), lines)
			fill(b, s, now, lines)
			r := tailindex.NewReader(s, tailindex.Options{})
			for b.Loop() {
				rows, err := r.Newest(b.Context(), "web", false, 100)
				if err != nil || len(rows) == 0 {
					b.Fatal(len(rows), err)
				}
			}
		})
	}
}

// fill writes 300 rows into each shard of a day's table.
func fill(b *testing.B, s storage.TableStore, day time.Time, lines int) {
	for lane := range tailindex.DefaultShards {
		for i := range 300 {
			w := tailindex.NewWriter(s, tailindex.Options{Lane: func() int { return lane }, Now: func() time.Time { return day }})
			ctx, cancel := context.WithCancel(b.Context())
			r := benchRun("web", lines)
			for j := range r.Request.Lines {
				l := &r.Request.Lines[j]
				l.Time = day.Add(-time.Duration(i)*time.Second).UnixNano() + int64(j)
				record.AppendTime(r.Request.Data[l.Off+7:l.Off+7], l.Time)
			}
			w.Accepted(1, r)
			cancel()
			w.Run(ctx) // writes the waiting records
		}
	}
}
