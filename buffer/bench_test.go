package buffer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/record"
)

// mixed is a request as shippers send them: n lines of about 320 bytes, nearly in order,
// over eight services.
func mixed(r *rand.Rand, origin byte, n int) *record.Request {
	lines := make([]line, n)
	for i := range lines {
		service := fmt.Sprintf("service-%d", r.IntN(8))
		t := at(0) + int64(i)*10_000_000 + r.Int64N(250_000_000)
		lines[i] = line{service, t, fmt.Sprintf("handled request GET /api/%d from 10.0.%d.%d %0180x", r.IntN(1e6), r.IntN(256), r.IntN(256), r.Uint64())}
	}
	return request(origin, lines...)
}

// BenchmarkAccept measures a request of 1,000 records between the source and the log,
// without the wait for the disk.
func BenchmarkAccept(b *testing.B) { benchmarkAccept(b, buffer.Options{}) }

// BenchmarkAcceptTail is the same with a Tail.
func BenchmarkAcceptTail(b *testing.B) { benchmarkAccept(b, buffer.Options{Tail: countTail{new(int)}}) }

// countTail reads every record.
type countTail struct{ bytes *int }

func (c countTail) Accepted(_ uint64, run *record.Run) {
	for i := range run.Len() {
		e := run.Entry(i)
		*c.bytes += len(e.Line)
	}
}

func benchmarkAccept(b *testing.B, o buffer.Options) {
	log := openLog(b, b.TempDir())
	o.Size = 1 << 40
	buf := buffer.New(log, &memSink{}, o)
	r := mixed(rand.New(rand.NewPCG(1, 1)), 0, 1000)
	b.SetBytes(int64(len(r.Data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := buf.Accept(context.Background(), r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/record")
}

// countSink reads batches in order and discards them.
type countSink struct {
	memSink
	records, bytes int
}

func (s *countSink) Write(ctx context.Context, b *buffer.Batch) error {
	return b.Each(ctx, func(l []byte, _ int64, _ record.Origin, _ uint32) error {
		s.records++
		s.bytes += len(l)
		return nil
	})
}

// BenchmarkEach measures batches of 32 MiB: reading them back from the log, checking them
// and sorting their lines.
func BenchmarkEach(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var requests []*record.Request
	for i := range 16 {
		requests = append(requests, mixed(rnd, byte(i+1), 1000))
	}
	records, bytes := 0, 0
	for b.Loop() {
		b.StopTimer()
		log := openLog(b, b.TempDir())
		sink := &countSink{}
		buf := buffer.New(log, sink, buffer.Options{Workers: 1, Size: 1 << 30})
		for i := range 800 {
			r := *requests[i%len(requests)]
			r.Origin = record.Origin{1: byte(i), 2: byte(i >> 8), 3: 1}
			if _, err := buf.Accept(context.Background(), &r); err != nil {
				b.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- buf.Run(ctx) }()
		b.StartTimer()
		if _, err := buf.Flush(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		log.Close()
		records += sink.records
		bytes += sink.bytes
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
	b.ReportMetric(float64(bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
}

func openLog(b *testing.B, dir string) *wal.Log {
	b.Helper()
	log, err := wal.Open(dir, wal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return log
}
