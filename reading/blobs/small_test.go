package blobs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"blobtail/reading/blobs"
)

// A blob of up to 256 KiB is fetched whole, in one request, and still read by its
// index. That also holds if it is longer than the 64 KiB that a read of an index
// requests.
func TestSmallBlobs(t *testing.T) {
	for _, records := range []int{1, 100, 700, 1500} {
		b := newBuilder(t, 0)
		from := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC).UnixNano()
		r := rand.New(rand.NewPCG(1, 2))
		var recs []rec
		for i := range records {
			ns := from + int64(i)*int64(time.Second)
			msg := fmt.Sprintf("%016x%016x%016x%016x%016x%016x%016x%016x", r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64())
			recs = append(recs, rec{service: "web", time: ns, origin: origin(1), index: uint32(i), line: line(ns, "info", "web", msg)})
		}
		b.add(time.Hour, recs)
		plan, err := blobs.New(b.store, blobs.Options{}).Plan(context.Background(), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
		if err != nil {
			t.Fatal(err)
		}
		sum, err := plan.Read(context.Background(), func([]byte) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if sum.Records != int64(records) || len(sum.Warnings)+len(sum.Problems) > 0 {
			t.Errorf("%d records: %d read, %d bytes fetched, warnings %v, problems %v", records, sum.Records, sum.Fetched, sum.Warnings, sum.Problems)
		}
	}
}
