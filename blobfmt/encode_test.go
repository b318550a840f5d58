package blobfmt_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/record"

	"github.com/klauspost/compress/zstd"
)

// Refused lines leave the blob unchanged.
func TestAddRefuses(t *testing.T) {
	start := testPeriod.UnixNano()
	low, high := record.Origin{1}, record.Origin{2}
	e := newEncoder(t, blobfmt.EncoderOptions{})
	first := makeLine(start+5, "info", "web", "first")
	if err := e.Add(first, start+5, high, 7); err != nil {
		t.Fatal(err)
	}
	good := func(t int64) []byte { return makeLine(t, "info", "web", "next") }
	for _, tt := range []struct {
		name   string
		line   []byte
		time   int64
		origin record.Origin
		index  uint32
	}{
		{"an earlier time", good(start + 4), start + 4, high, 8},
		{"a lower origin", good(start + 5), start + 5, low, 8},
		{"a lower index", good(start + 5), start + 5, high, 6},
		{"the same record", good(start + 5), start + 5, high, 7},
		{"the next hour", good(start + 3600e9), start + 3600e9, high, 8},
		{"another time than the line's, same second", good(start + 6), start + 7, high, 8},
		{"another time than the line's", good(start + 2e9), start + 3e9, high, 8},
		{"no time", []byte(`{"level":"info","service":"web","msg":"a line without a time"}` + "\n"), start + 6, high, 8},
		{"a damaged time", bytes.Replace(good(start+6), []byte("T15"), []byte(" 15"), 1), start + 6, high, 8},
		{"a damaged fraction", bytes.Replace(good(start+6), []byte("6Z"), []byte("x0"), 1), start + 6, high, 8},
		{"no newline", bytes.TrimSuffix(good(start+6), []byte("\n")), start + 6, high, 8},
		{"two lines", append(good(start+6), good(start+6)...), start + 6, high, 8},
		{"cut short", []byte(`{"ts":"` + "}\n"), start + 6, high, 8},
		{"empty", nil, start + 6, high, 8},
		{"too long", makeLine(start+6, "info", "web", strings.Repeat("x", 8<<20)), start + 6, high, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if e.Add(tt.line, tt.time, tt.origin, tt.index) == nil {
				t.Error("it is taken")
			}
		})
	}
	body, m, err := e.Finish(testBatch)
	if err != nil || m.Records != 1 || m.RawBytes != int64(len(first)) {
		t.Fatalf("records %d, bytes %d, %v", m.Records, m.RawBytes, err)
	}
	if found := blobfmt.Verify(testKey, body, m); found != nil {
		t.Error(found)
	}
}

// Calls out of order are refused, and after Reset an Encoder works like a new one.
func TestEncoderLifeCycle(t *testing.T) {
	start := testPeriod.UnixNano()
	e := newEncoder(t, blobfmt.EncoderOptions{})
	if _, _, err := e.Finish(testBatch); err == nil {
		t.Error("a blob without lines is taken")
	}
	line := makeLine(start, "info", "web", "once")
	if err := e.Add(line, start, record.Origin{1}, 0); err != nil {
		t.Fatal(err)
	}
	body, _, err := e.Finish(testBatch)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Finish(testBatch); err == nil {
		t.Error("a second Finish is taken")
	}
	if e.Add(line, start+1, record.Origin{1}, 1) == nil {
		t.Error("a line after Finish is taken")
	}
	before := bytes.Clone(body)
	e.Reset()
	if _, _, err := e.Finish(testBatch); err == nil {
		t.Error("Reset keeps lines")
	}
	after, _ := encode(t, e, []rec{{time: start, origin: record.Origin{1}, line: line}})
	if !bytes.Equal(before, after) {
		t.Error("the same lines make another blob after Reset")
	}
}

func TestEncoderOptions(t *testing.T) {
	for _, o := range []blobfmt.EncoderOptions{{BlockSize: -1}, {BlockSize: 4<<20 + 1}, {Level: zstd.EncoderLevel(99)}} {
		if _, err := blobfmt.NewEncoder(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// Times at the ends of int64, and before 1970, work like any other.
func TestExtremeTimes(t *testing.T) {
	e := newEncoder(t, blobfmt.EncoderOptions{BlockSize: 100})
	for _, start := range []int64{math.MinInt64, math.MinInt64 + 120e9, -1e18, -3600e9, -1, 0, math.MaxInt64 - 120e9, math.MaxInt64 - 2} {
		var recs []rec
		for i := range int64(3) {
			at := start + i
			if !hourOf(at).Equal(hourOf(start)) {
				break // the hour ends between the two
			}
			recs = append(recs, rec{time: at, index: uint32(i), level: "info", line: makeLine(at, "info", "web", "x")})
		}
		body, m := encode(t, e, recs)
		key := blobfmt.Name{Service: "web", Period: hourOf(start), Number: 1}.String()
		if found := blobfmt.Verify(key, body, m); found != nil {
			t.Errorf("%s: %v", key, found)
		}
		checkIndexTimes(t, readIndex(t, body), recs)
	}
}

func checkIndexTimes(t *testing.T, x *blobfmt.Index, recs []rec) {
	t.Helper()
	for i, b := range x.Blocks {
		if b.First != recs[i].time || b.Last != recs[i].time {
			t.Errorf("block %d: %d to %d, want %d", i, b.First, b.Last, recs[i].time)
		}
	}
}

func hourOf(ns int64) time.Time {
	t := time.Unix(0, ns).UTC()
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), 0, 0, 0, time.UTC)
}

// A blob of a newer program is refused by name if it cannot be read. It is read if it
// only has additional information.
func TestNewerFormats(t *testing.T) {
	start := testPeriod.UnixNano()
	body, m := encode(t, newEncoder(t, blobfmt.EncoderOptions{}),
		[]rec{{time: start, line: makeLine(start, "info", "web", "x")}})

	more := addSection(body, 99, []byte("from the future"))
	m.SHA256 = sha256.Sum256(more)
	if found := blobfmt.Verify(testKey, more, m); found != nil {
		t.Errorf("with an unknown section: %v", found)
	}
	newer := bytes.Clone(body)
	mendFooter(newer, func(footer []byte) { footer[16] = 2 })
	if _, err := blobfmt.ReadIndex(testKey, int64(len(newer)), readFrom(newer)); !errors.Is(err, blobfmt.ErrNewer) {
		t.Errorf("footer version 2: %v", err)
	}
	stored := m.Map()
	stored["format"] = "3"
	if _, err := blobfmt.ParseMeta(stored); !errors.Is(err, blobfmt.ErrNewer) {
		t.Errorf("metadata format 3: %v", err)
	}
}
