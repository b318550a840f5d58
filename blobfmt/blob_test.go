package blobfmt_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/record"
)

// A rec is a record made up by the tests. The model for comparison with blobs is a sorted
// slice of these.
type rec struct {
	time   int64
	origin record.Origin
	index  uint32
	level  string
	line   []byte
}

const testKey = "web/2026/11/20/1500/000001.log"

var (
	testPeriod = time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	testBatch  = blobfmt.BatchID{0: 0xb1, 15: 0x0b}
	levelWords = []string{"trace", "debug", "info", "info", "info", "info", "warn", "error", "critical", "chatty", ""}
)

func makeLine(t int64, level, service, msg string) []byte {
	line := append([]byte(`{"ts":"`), record.AppendTime(nil, t)...)
	return fmt.Appendf(line, `","level":"%s","service":"%s","msg":"%s"}`+"\n", level, service, msg)
}

func makeOrigin(r *rand.Rand, ms int64) (o record.Origin) {
	binary.BigEndian.PutUint64(o[:], uint64(ms)<<16)
	binary.BigEndian.PutUint16(o[6:], uint16(r.Uint32()))
	binary.BigEndian.PutUint64(o[8:], r.Uint64())
	return o
}

// makeRecords makes up requests with records in one hour. Each request's indexes are in
// order of time, and all records are sorted as a blob needs them.
func makeRecords(r *rand.Rand, n int) []rec {
	var recs []rec
	for len(recs) < n {
		size := min(1+r.IntN(1+r.IntN(200)), n-len(recs))
		start := testPeriod.UnixNano() + r.Int64N(int64(50*time.Minute))
		width := 1 + r.Int64N(int64(10*time.Minute))
		origin := makeOrigin(r, start/1e6)
		index := uint32(r.IntN(3)) * uint32(r.IntN(1000))
		times := make([]int64, size)
		for i := range times {
			times[i] = start + r.Int64N(width)
			if r.IntN(10) == 0 {
				times[i] = start // many records with one time
			}
		}
		slices.Sort(times)
		for i, t := range times {
			level := levelWords[r.IntN(len(levelWords))]
			msg := fmt.Sprintf("request %d took %d ms, id %016x", r.IntN(1000), r.IntN(1000), r.Uint64())
			if r.IntN(500) == 0 {
				msg += string(bytes.Repeat([]byte("long "), r.IntN(20000)))
			}
			recs = append(recs, rec{t, origin, index + uint32(i), level, makeLine(t, level, "web", msg)})
		}
	}
	slices.SortFunc(recs, func(a, b rec) int {
		return cmp.Or(cmp.Compare(a.time, b.time), bytes.Compare(a.origin[:], b.origin[:]), cmp.Compare(a.index, b.index))
	})
	return recs
}

func newEncoder(t testing.TB, o blobfmt.EncoderOptions) *blobfmt.Encoder {
	t.Helper()
	e, err := blobfmt.NewEncoder(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// encode makes a blob of records. The caller may keep the body.
func encode(t testing.TB, e *blobfmt.Encoder, recs []rec) ([]byte, blobfmt.Meta) {
	t.Helper()
	e.Reset()
	for _, r := range recs {
		if err := e.Add(r.line, r.time, r.origin, r.index); err != nil {
			t.Fatal(err)
		}
	}
	body, m, err := e.Finish(testBatch)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(body), m
}

func join(recs []rec) []byte {
	var all []byte
	for _, r := range recs {
		all = append(all, r.line...)
	}
	return all
}

func readFrom(body []byte) blobfmt.ReadFunc {
	return func(off, n int64) ([]byte, error) {
		if off < 0 || n < 0 || off+n > int64(len(body)) {
			return nil, fmt.Errorf("read [%d, +%d) of %d bytes", off, n, len(body))
		}
		return body[off : off+n : off+n], nil
	}
}

func readIndex(t testing.TB, body []byte) *blobfmt.Index {
	t.Helper()
	x, err := blobfmt.ReadIndex(testKey, int64(len(body)), readFrom(body))
	if err != nil {
		t.Fatal(err)
	}
	return x
}
