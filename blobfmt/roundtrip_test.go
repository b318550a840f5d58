package blobfmt_test

import (
	"bytes"
	"crypto/sha256"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"blobtail/blobfmt"
	"blobtail/record"

	"github.com/klauspost/compress/zstd"
)

// A reader gets the written lines, for any sizes, and the index of each block matches a
// plain count of its lines.
func TestRoundTrip(t *testing.T) {
	small := newEncoder(t, blobfmt.EncoderOptions{BlockSize: 4 << 10})
	large := newEncoder(t, blobfmt.EncoderOptions{})
	better := newEncoder(t, blobfmt.EncoderOptions{Level: zstd.SpeedBetterCompression, BlockSize: 64 << 10})
	d := blobfmt.NewDecoder(1)
	for seed := range uint64(36) {
		r := rand.New(rand.NewPCG(seed, 1))
		recs := makeRecords(r, 1+r.IntN(1+r.IntN(4000)))
		e := []*blobfmt.Encoder{small, large, better}[seed%3]
		body, m := encode(t, e, recs)
		checkMeta(t, recs, body, m)
		x := readIndex(t, body)
		checkIndex(t, d, body, x, recs)
		checkWalk(t, d, body, x)
		if found := blobfmt.Verify(testKey, body, m); found != nil {
			t.Fatalf("seed %d: verify: %v", seed, found)
		}
		if m2, err := blobfmt.ParseMeta(m.Map()); err != nil || m2 != m {
			t.Fatalf("seed %d: metadata %v came back as %v, %v", seed, m, m2, err)
		}
	}
}

func checkMeta(t *testing.T, recs []rec, body []byte, m blobfmt.Meta) {
	t.Helper()
	all := join(recs)
	want := blobfmt.Meta{
		Batch: testBatch, First: recs[0].time, Last: recs[len(recs)-1].time,
		Records: int64(len(recs)), RawBytes: int64(len(all)),
		CRC: crc32.Checksum(all, crc32.MakeTable(crc32.Castagnoli)), SHA256: sha256.Sum256(body),
	}
	for _, r := range recs {
		want.Levels[levelOf(r.level)]++
	}
	want.IDs = m.IDs // Verify has compared it with the index
	if m != want {
		t.Fatalf("metadata %+v, want %+v", m, want)
	}
}

func levelOf(word string) record.Level {
	for l := record.Trace; l < record.Other; l++ {
		if l.String() == word {
			return l
		}
	}
	return record.Other
}

func checkIndex(t *testing.T, d *blobfmt.Decoder, body []byte, x *blobfmt.Index, recs []rec) {
	t.Helper()
	o, err := x.Origins()
	if err != nil {
		t.Fatal(err)
	}
	if dict, err := x.Dict(); err != nil || !slices.Equal(dict, o.Dict) {
		t.Errorf("the dictionary alone: %d origins, %v; want %d", len(dict), err, len(o.Dict))
	}
	for i, b := range x.Blocks {
		lines, err := d.Block([]byte("kept"), body[b.Offset:b.Offset+b.Stored], b)
		if err != nil {
			t.Fatal(err)
		}
		mine := recs[:b.Records]
		recs = recs[b.Records:]
		if string(lines) != "kept"+string(join(mine)) || b.Raw != int64(len(lines)-4) {
			t.Fatalf("block %d does not hold its records", i)
		}
		if b.First != mine[0].time || b.Last != mine[len(mine)-1].time {
			t.Fatalf("block %d: times %d to %d", i, b.First, b.Last)
		}
		checkCounts(t, b, mine)
		for _, s := range o.Blocks[i] {
			for k := range s.Count {
				if o.Dict[s.Origin] != mine[0].origin || s.First+k != mine[0].index {
					t.Fatalf("block %d: an origin is wrong", i)
				}
				mine = mine[1:]
			}
		}
	}
	if len(recs) > 0 {
		t.Fatalf("%d records are missing", len(recs))
	}
}

func checkCounts(t *testing.T, b blobfmt.Block, recs []rec) {
	t.Helper()
	var levels [record.NumLevels]int
	var minutes []blobfmt.MinuteCount
	for _, r := range recs {
		l := levelOf(r.level)
		levels[l]++
		if m := r.time / 60e9; len(minutes) == 0 || minutes[len(minutes)-1].Minute != m {
			minutes = append(minutes, blobfmt.MinuteCount{Minute: m})
		}
		minutes[len(minutes)-1].Levels[l]++
	}
	if b.Levels != levels || !reflect.DeepEqual(b.Minutes, minutes) {
		t.Fatalf("counts %v %v, want %v %v", b.Levels, b.Minutes, levels, minutes)
	}
}

func checkWalk(t *testing.T, d *blobfmt.Decoder, body []byte, x *blobfmt.Index) {
	t.Helper()
	i := 0
	for f, err := range d.Walk(testKey, body) {
		if err != nil {
			t.Fatal(err)
		}
		b := x.Blocks[i]
		if f.Offset != b.Offset || f.Stored != b.Stored || int64(len(f.Lines)) != b.Raw {
			t.Fatalf("the walk finds block %d at %d, length %d", i, f.Offset, f.Stored)
		}
		i++
	}
	if i != len(x.Blocks) {
		t.Fatalf("the walk finds %d blocks of %d", i, len(x.Blocks))
	}
}

// Blocks are no larger than their limit, unless one line is longer.
func TestBlockSize(t *testing.T) {
	e := newEncoder(t, blobfmt.EncoderOptions{BlockSize: 1000})
	recs := makeRecords(rand.New(rand.NewPCG(1, 1)), 2000)
	body, _ := encode(t, e, recs)
	for _, b := range readIndex(t, body).Blocks {
		if b.Raw > 1000 && b.Records > 1 {
			t.Errorf("a block of %d records has %d bytes", b.Records, b.Raw)
		}
	}
}

func TestReplaces(t *testing.T) {
	e := newEncoder(t, blobfmt.EncoderOptions{})
	recs := makeRecords(rand.New(rand.NewPCG(1, 1)), 10)
	a, b, c := blobfmt.BatchID{1}, blobfmt.BatchID{2}, blobfmt.BatchID{3}
	e.Replaces(b, c)
	e.Replaces(a, b)
	for _, r := range recs {
		if err := e.Add(r.line, r.time, r.origin, r.index); err != nil {
			t.Fatal(err)
		}
	}
	body, m, err := e.Finish(testBatch)
	if err != nil || m.Compacted != 3 {
		t.Fatalf("compacted %d, %v", m.Compacted, err)
	}
	if got := readIndex(t, body).Replaces; !reflect.DeepEqual(got, []blobfmt.BatchID{a, b, c}) {
		t.Errorf("replaces %v", got)
	}
	if found := blobfmt.Verify(testKey, body, m); found != nil {
		t.Error(found)
	}
}

// A reader reads the last 64 KiB. It reads more only if the index is larger and the
// caller needs the origins.
func TestReadsOfAnIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	small := makeRecords(r, 5000)
	large := makeRecords(r, 20000)
	for i := range large {
		large[i].origin = makeOrigin(r, large[i].time/1e6) // 16 random bytes each: an index of 200 KiB
	}
	e := newEncoder(t, blobfmt.EncoderOptions{BlockSize: 64 << 10})
	for _, tt := range []struct {
		name         string
		recs         []rec
		reads, after int
	}{
		{"small index", small, 1, 1},
		{"large index", dedupeTimes(large), 1, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body, _ := encode(t, e, tt.recs)
			reads := 0
			x, err := blobfmt.ReadIndex(testKey, int64(len(body)), func(off, n int64) ([]byte, error) {
				reads++
				return readFrom(body)(off, n)
			})
			if err != nil || reads != tt.reads {
				t.Fatalf("%d reads, %v", reads, err)
			}
			if _, err := x.Origins(); err != nil || reads != tt.after {
				t.Fatalf("%d reads after the origins, %v", reads, err)
			}
		})
	}
}

// Dict returns the dictionary of Origins, whether it takes less of its section than the first
// of zstd's blocks, which is 128 KiB of it, or more.
func TestDict(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	spans, many := makeRecords(r, 60000), makeRecords(r, 20000)
	for i := range many {
		many[i].origin = makeOrigin(r, many[i].time/1e6)
		clear(many[i].origin[10:]) // so that the section is compressed
	}
	e := newEncoder(t, blobfmt.EncoderOptions{})
	for name, recs := range map[string][]rec{"long spans": spans, "many origins": dedupeTimes(many), "one record": spans[:1]} {
		t.Run(name, func(t *testing.T) {
			body, _ := encode(t, e, recs)
			x := readIndex(t, body)
			o, err := x.Origins()
			if err != nil {
				t.Fatal(err)
			}
			dict, err := x.Dict()
			if err != nil || !slices.Equal(dict, o.Dict) {
				t.Errorf("%d origins, %v, want %d", len(dict), err, len(o.Dict))
			}
		})
	}
}

// dedupeTimes keeps the first record of each time, so that changed origins need
// no sorting.
func dedupeTimes(recs []rec) []rec {
	kept := recs[:1]
	for _, r := range recs[1:] {
		if r.time != kept[len(kept)-1].time {
			kept = append(kept, r)
		}
	}
	return kept
}

// Every zstd reader prints exactly the lines; this one is zstd's own.
func TestZstdPrintsTheLines(t *testing.T) {
	bin, err := exec.LookPath("zstd")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("zstd is not installed, and CI must have it")
		}
		t.Skip("zstd is not installed")
	}
	// The small blocks are of the zstd package, the large ones of linezstd.
	for blockSize, recs := range map[int][]rec{64 << 10: makeRecords(rand.New(rand.NewPCG(7, 1)), 3000), 0: corpus(10000, 1000, 8)} {
		body, _ := encode(t, newEncoder(t, blobfmt.EncoderOptions{BlockSize: blockSize}), recs)
		checkIndex(t, blobfmt.NewDecoder(1), body, readIndex(t, body), recs)
		file := filepath.Join(t.TempDir(), "blob.log")
		if err := os.WriteFile(file, body, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(bin, "-dc", file).Output()
		if err != nil || !bytes.Equal(out, join(recs)) {
			t.Errorf("zstd -dc printed %d bytes, %v", len(out), err)
		}
		if out, err := exec.Command(bin, "-t", file).CombinedOutput(); err != nil {
			t.Errorf("zstd -t: %v: %s", err, out)
		}
	}
}
