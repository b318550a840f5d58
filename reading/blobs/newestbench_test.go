package blobs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/storage/dir"
)

// The newest 100 records of a directory with two weeks of a service, four blobs an
// hour: by listing all of it, by windows, and with unflushed records.
func BenchmarkNewest(b *testing.B) {
	store, err := dir.Open(b.TempDir(), dir.Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	w := newBuilder(b, 0)
	w.store = store
	start := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	for n := range 14 * 24 * 4 {
		var recs []rec
		for i := range 500 {
			at := start.Add(time.Duration(n/4)*time.Hour + time.Duration(i)*7*time.Second).UnixNano()
			recs = append(recs, rec{service: "web", time: at, origin: origin(uint64(n)), index: uint32(i),
				line: line(at, "info", "web", fmt.Sprintf("GET /api/v1/items/%d took %d us", i*n, i))})
		}
		w.add(time.Hour, recs)
	}
	var ahead []rec
	for i := range 1000 {
		at := start.Add(14*24*time.Hour + time.Duration(i)*time.Second).UnixNano()
		ahead = append(ahead, rec{service: "web", time: at, origin: origin(1e6), index: uint32(i), line: line(at, "info", "web", "new")})
	}
	l := unflushed(b, entries(ahead)...)
	r := blobs.New(store, blobs.Options{})
	q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Limit: 100}
	none := func([]byte) error { return nil }
	run := func(name string, f func() (blobs.Summary, error)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if sum, err := f(); err != nil || sum.Records != 100 {
					b.Fatal(sum, err)
				}
			}
		})
	}
	run("listing", func() (blobs.Summary, error) {
		p, err := r.Plan(context.Background(), q)
		if err != nil {
			return blobs.Summary{}, err
		}
		return p.Read(context.Background(), none)
	})
	run("windows", func() (blobs.Summary, error) { return r.Newest(context.Background(), q, none) })
	q.Unflushed = []*blobs.Unflushed{l}
	run("unflushed", func() (blobs.Summary, error) { return r.Newest(context.Background(), q, none) })
}

// The cost of adding unflushed records, and of a read of all of them.
func BenchmarkUnflushedBesideBlobs(b *testing.B) {
	w, size := benchStore(b, 1, 200_000)
	var recs []rec
	start := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC).UnixNano()
	for i := range 200_000 {
		at := start + int64(i)*18e6
		recs = append(recs, rec{service: "service-0", time: at, origin: origin(77), index: uint32(i), line: line(at, "info", "service-0",
			fmt.Sprintf("GET /api/v1/items/%d took some time, and some words that are in every line, as in real logs", i))})
		size += int64(len(recs[i].line))
	}
	all := entries(recs)
	b.Run("add", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			unflushed(b, all...).Close()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(all)), "ns/record")
	})
	l := unflushed(b, all...)
	r := blobs.New(w.store, blobs.Options{})
	for _, filter := range []blobs.Filter{{}, {Texts: []string{"items/777"}}} {
		b.Run(fmt.Sprintf("read%v", filter.Texts), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				p, err := r.Plan(context.Background(), blobs.Query{Services: []string{"*"}, Range: blobs.Always(), Filter: filter, Unflushed: []*blobs.Unflushed{l}})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := p.Read(context.Background(), func([]byte) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
