package buffer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"blobtail/buffer"
	"blobtail/record"
)

// outage is a buffer with a backlog: 1,000 lines a request, in batches of 32 MiB that
// cannot be stored. Times rise from request to request, as in practice.
func outage(b *testing.B, requests int) *buffer.Buffer {
	b.Helper()
	dir := b.TempDir()
	log := openLog(b, dir)
	sink := &memSink{}
	sink.setRefuse(refuseAll)
	buf := buffer.New(log, sink, buffer.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- buf.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-done
		log.Close()
	})
	r := mixed(rand.New(rand.NewPCG(1, 1)), 0, 1000)
	for range requests {
		if _, err := buf.Accept(ctx, r); err != nil {
			b.Fatal(err)
		}
		for i := range r.Lines {
			r.Lines[i].Time += 500_000_000
		}
	}
	return buf
}

func read(b *testing.B, buf *buffer.Buffer, q buffer.LiveQuery) (records int, bytes int64) {
	l, err := buf.Live(context.Background(), q)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	err = l.Each(context.Background(), func(e *record.Entry) error {
		records++
		bytes += int64(len(e.Line))
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return records, bytes
}

// BenchmarkLiveNewest reads the newest 100 of a service, and of all, from a backlog of 1
// GB.
func BenchmarkLiveNewest(b *testing.B) {
	buf := outage(b, 3200)
	for _, service := range []string{"service-1", ""} {
		b.Run(fmt.Sprintf("of=%q", service), func(b *testing.B) {
			q := everything()
			q.Newest = 100
			q.Match = func(s string) bool { return service == "" || s == service }
			for b.Loop() {
				read(b, buf, q)
			}
		})
	}
}

// BenchmarkLiveAll reads all of a backlog of 320 MB, in order.
func BenchmarkLiveAll(b *testing.B) {
	buf := outage(b, 1000)
	records, bytes, used := 0, int64(0), cpu()
	for b.Loop() {
		n, size := read(b, buf, everything())
		records, bytes = records+n, bytes+size
	}
	b.ReportMetric(float64(bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
	b.ReportMetric((cpu()-used).Seconds()/float64(records)*1e6, "cpu-s/Mrecord")
}

// BenchmarkLiveFollow measures a follower's poll that finds one request.
func BenchmarkLiveFollow(b *testing.B) {
	buf := outage(b, 1000)
	q := everything()
	q.Follow = true
	_, _ = read(b, buf, q)
	r := mixed(rand.New(rand.NewPCG(1, 1)), 0, 100)
	for b.Loop() {
		l, err := buf.Live(context.Background(), buffer.LiveQuery{Match: q.Match, Newest: 1, From: q.From, To: q.To})
		if err != nil {
			b.Fatal(err)
		}
		q.After = l.Position()
		l.Close()
		if _, err := buf.Accept(context.Background(), r); err != nil {
			b.Fatal(err)
		}
		if n, _ := read(b, buf, q); n != 100 {
			b.Fatalf("%d records", n)
		}
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
