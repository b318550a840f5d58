package blobs_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
)

// The last block of a blob and the first one of the next are searched at the same time: neither core
// waits for the other between two blobs.
func TestSearchBeyondABlob(t *testing.T) {
	read := func(ctx context.Context, p *blobs.Plan) error {
		_, err := p.Read(ctx, func([]byte) error { return nil })
		return err
	}
	fold := func(ctx context.Context, p *blobs.Plan) error {
		of := blobs.Fold{Of: func([]byte) (any, int64, error) { return 0, 1, nil }}
		_, err := p.Fold(ctx, of, func(any) error { return nil })
		return err
	}
	for name, ask := range map[string]func(context.Context, *blobs.Plan) error{"read": read, "fold": fold} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBuilder(t, 1<<10)
				start := time.Date(2026, 7, 14, 7, 0, 0, 0, time.UTC)
				for hour, msg := range []string{"first", "second"} {
					at := start.Add(time.Duration(hour) * time.Hour).UnixNano()
					b.add(time.Hour, []rec{{service: "web", time: at, level: "info", origin: origin(uint64(hour) + 1), line: line(at, "info", "web", msg)}})
				}
				second := make(chan struct{})
				met := false
				q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Filter: blobs.Filter{Accept: func(line []byte) bool {
					if strings.Contains(string(line), "second") {
						close(second)
						return true
					}
					select {
					case <-second:
						met = true
					case <-time.After(time.Minute):
					}
					return true
				}}}
				plan, err := blobs.New(b.store, blobs.Options{Workers: 2}).Plan(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				if err := ask(t.Context(), plan); err != nil {
					t.Fatal(err)
				}
				if !met {
					t.Error("the second blob is searched only after the first one")
				}
			})
		})
	}
}

// A near store is read in small parts, which take little memory. A distant one gets few requests.
func TestGroups(t *testing.T) {
	testkit.FullOnly(t, "it counts requests")
	b := newBuilder(t, 64<<10)
	r := rand.New(rand.NewPCG(1, 1))
	var recs []rec
	for i := range 4000 {
		at := time.Date(2026, 7, 14, 7, 0, 0, i, time.UTC).UnixNano()
		recs = append(recs, rec{service: "web", time: at, level: "info", origin: origin(1), index: uint32(i),
			line: line(at, "info", "web", noise(r, 512))})
	}
	b.add(time.Hour, recs)
	const size = 4000 * 512 // the blob has more
	for distant, most := range map[bool]int64{false: 100, true: 5} {
		_, sum := read(t, blobs.New(b.store, blobs.Options{Workers: 2, Distant: distant}), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
		if got := sum.Requests; got > most || !distant && got < size>>18 {
			t.Errorf("distant %t: %d requests for %d bytes", distant, got, sum.Fetched)
		}
	}
}

// noise is a text that can hardly be compressed.
func noise(r *rand.Rand, n int) string {
	text := make([]byte, 0, n)
	for len(text) < n {
		text = append(text, base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, r.Uint64()))[:8]...)
	}
	return string(text)
}
