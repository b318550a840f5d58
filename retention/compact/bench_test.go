package compact_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/internal/dev/corpus"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// day is a service's day from five ingesters that cut every five minutes: 1,440 blobs
// of 500 records.
func day(b *testing.B) *mem.Store {
	const lanes, cuts, records = 5, 288, 500
	store := mem.New(mem.Options{})
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	start := time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC)
	next, stop := iter.Pull(corpus.Options{Seed: 1, Records: lanes * cuts * records, Services: 1, From: start, Span: 24 * time.Hour}.All())
	defer stop()
	p := meaning.NewReader()
	numbers := map[blobfmt.Name]int{}
	made := uint64(0)
	for range cuts {
		var batches [lanes]map[int64][]stored // by the hour: jitter moves a record into the next
		for l := range batches {
			batches[l] = map[int64][]stored{}
		}
		for i := range lanes * records {
			r, _ := next()
			if _, err := p.Scan(r.Line); err != nil {
				b.Fatal(err)
			}
			line, stamp := p.AppendLine(nil, &meaning.Defaults{})
			l := i % lanes
			h := stamp.Time / 3600e9
			batches[l][h] = append(batches[l][h], stored{time: stamp.Time, line: line})
		}
		for l, hours := range batches {
			for h, recs := range hours {
				made++
				slices.SortStableFunc(recs, func(a, b stored) int { return cmp.Compare(a.time, b.time) })
				enc.Reset()
				for i, r := range recs {
					var o record.Origin
					binary.BigEndian.PutUint64(o[:], uint64(recs[0].time/1e6)<<16)
					binary.BigEndian.PutUint64(o[8:], made*0x9e3779b97f4a7c15)
					if err := enc.Add(r.line, r.time, o, uint32(i)); err != nil {
						b.Fatal(err)
					}
				}
				body, meta, err := enc.Finish(batch(made))
				if err != nil {
					b.Fatal(err)
				}
				name := blobfmt.Name{Service: corpus.Services()[0], Period: time.Unix(h*3600, 0).UTC(), Number: l * blobfmt.LaneSize}
				numbers[name]++
				name.Number += numbers[name]
				storagetest.Put(b, store, name.String(), body, storage.Attrs{Metadata: meta.Map()})
			}
		}
	}
	return store
}

// BenchmarkDay measures the cost and the savings of compacting a day of small blobs:
// the first run writes, the second deletes.
func BenchmarkDay(b *testing.B) {
	var store *mem.Store
	for b.Loop() {
		b.StopTimer()
		store = day(b)
		blobs, size := 0, int64(0)
		for o := range store.List(context.Background(), "", "") {
			blobs++
			size += o.Size
		}
		b.ReportMetric(float64(blobs), "blobs-before")
		b.ReportMetric(float64(size)/1e6, "MB-before")
		readDay(b, store, "before")
		b.StartTimer()
		writing, calls := runDay(b, store)
		b.ReportMetric(writing.Seconds(), "cpu-s-write")
		b.ReportMetric(float64(calls[storagetest.Get]), "gets-write")
		b.ReportMetric(float64(calls[storagetest.List]), "lists-write")
		b.ReportMetric(float64(calls[storagetest.Create]), "puts")
		removing, calls := runDay(b, store)
		b.ReportMetric(removing.Seconds(), "cpu-s-delete")
		b.ReportMetric(float64(calls[storagetest.Get]), "gets-delete")
		b.ReportMetric(float64(calls[storagetest.List]), "lists-delete")
		b.ReportMetric(float64(calls[storagetest.Delete]), "deletes")
		b.StopTimer()
		blobs, size = 0, 0
		for o := range store.List(context.Background(), "", "") {
			blobs++
			size += o.Size
		}
		b.ReportMetric(float64(blobs), "blobs-after")
		b.ReportMetric(float64(size)/1e6, "MB-after")
		readDay(b, store, "after")
		b.StartTimer()
	}
}

func runDay(b *testing.B, store *mem.Store) (time.Duration, map[storagetest.Op]int) {
	begun := cpu()
	var c calls
	got, err := compact.Run(context.Background(), c.of(store), compact.Options{Grace: -1, Log: zerolog.Nop(),
		Now: func() time.Time { return time.Now().Add(time.Hour) }})
	if err != nil || len(got.Problems) > 0 {
		b.Fatal(err, got.Problems)
	}
	return cpu() - begun, c.n
}

// readDay reports the cost of reading the whole day, and of finding a text in it.
func readDay(b *testing.B, store *mem.Store, when string) {
	r := blobs.New(store, blobs.Options{})
	begun := cpu()
	plan, err := r.Plan(context.Background(), blobs.Query{Services: []string{corpus.Services()[0]}, Range: blobs.Always()})
	if err != nil {
		b.Fatal(err)
	}
	lines := 0
	sum, err := plan.Read(context.Background(), func(part []byte) error { lines += bytes.Count(part, []byte("\n")); return nil })
	if err != nil || !sum.Complete() || lines != 720_000 {
		b.Fatal(err, sum.Problems, lines)
	}
	b.ReportMetric((cpu() - begun).Seconds(), "cpu-s-read-"+when)
	b.ReportMetric(float64(sum.Requests), "gets-read-"+when)
	b.ReportMetric(float64(sum.Bytes)/1e6, "MB-lines")
}
