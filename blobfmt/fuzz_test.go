package blobfmt_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"blobtail/blobfmt"
	"blobtail/record"
)

// seedBlobs are small blobs with several blocks, with and without compressed
// sections and replaced batches.
func seedBlobs(tb testing.TB) [][]byte {
	e := newEncoder(tb, blobfmt.EncoderOptions{BlockSize: 1 << 10})
	var blobs [][]byte
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 5))
		body, _ := encode(tb, e, makeRecords(r, 5+int(seed)*100))
		blobs = append(blobs, body)
	}
	return blobs
}

// Any bytes lead to an index with blocks inside the blob, or to one of the documented
// errors.
func FuzzReadIndex(f *testing.F) {
	for _, b := range seedBlobs(f) {
		f.Add(b)
		f.Add(patchSection(b, 4, func(s []byte) []byte { return s[:len(s)/2] }))
		f.Add(patchSection(b, 3, func(s []byte) []byte { return append(bytes.Clone(s), 0) }))
	}
	d := blobfmt.NewDecoder(1)
	f.Fuzz(func(t *testing.T, body []byte) {
		readAll(t, d, body)
		blobfmt.Verify(testKey, body, blobfmt.Meta{})
	})
}

// Random bytes do not have right checksums. Here all checksums are right, and only the
// contents of the sections are made up.
func FuzzSections(f *testing.F) {
	blobs := seedBlobs(f)
	for _, b := range blobs {
		f.Add(sectionOf(b, 3), sectionOf(b, 4))
	}
	d := blobfmt.NewDecoder(1)
	f.Fuzz(func(t *testing.T, origins, blocks []byte) {
		body := patchSection(blobs[0], 3, func([]byte) []byte { return origins })
		body = patchSection(body, 4, func([]byte) []byte { return blocks })
		readAll(t, d, body)
		blobfmt.Verify(testKey, body, blobfmt.Meta{})
	})
}

func sectionOf(body []byte, id uint16) (section []byte) {
	patchSection(body, id, func(s []byte) []byte {
		section = bytes.Clone(s)
		return s
	})
	return section
}

func readAll(t *testing.T, d *blobfmt.Decoder, body []byte) {
	x, err := blobfmt.ReadIndex(testKey, int64(len(body)), readFrom(body))
	if err != nil {
		checkPromised(t, err)
		return
	}
	for _, b := range x.Blocks {
		if b.Offset < 0 || b.Offset+b.Stored > x.Offset || b.Raw > 8<<20 || b.Last < b.First || b.Records < 1 {
			t.Fatalf("block %+v of a blob of %d bytes", b, len(body))
		}
		if _, err := d.Block(nil, body[b.Offset:b.Offset+b.Stored], b); err != nil {
			checkPromised(t, err)
		}
	}
	dict, err := x.Dict()
	if err != nil {
		checkPromised(t, err)
	}
	o, err := x.Origins()
	if err != nil {
		checkPromised(t, err)
		return
	}
	if !slices.Equal(dict, o.Dict) {
		t.Fatalf("%d origins in the dictionary alone, %d with the rest", len(dict), len(o.Dict))
	}
	for i, b := range x.Blocks {
		n := 0
		for _, s := range o.Blocks[i] {
			n += int(s.Count)
			_ = o.Dict[s.Origin]
		}
		if n != b.Records {
			t.Fatalf("spans of %d records for a block of %d", n, b.Records)
		}
	}
}

func checkPromised(t *testing.T, err error) {
	t.Helper()
	if !errors.As(err, new(*blobfmt.CorruptError)) && !errors.Is(err, blobfmt.ErrNewer) {
		t.Fatalf("error %v", err)
	}
}

// For any bytes a walk ends. Its frames lie in the blob, in order and without overlap.
func FuzzWalk(f *testing.F) {
	for _, b := range seedBlobs(f) {
		f.Add(b)
		f.Add(b[len(b)/3:])
		f.Add(append(bytes.Clone(b), b...))
	}
	d := blobfmt.NewDecoder(1)
	f.Fuzz(func(t *testing.T, body []byte) {
		at := int64(0)
		for f, err := range d.Walk(testKey, body) {
			off, length := f.Offset, f.Stored
			if err != nil {
				var c *blobfmt.CorruptError
				if !errors.As(err, &c) {
					t.Fatal(err)
				}
				off, length = c.Offset, c.Length
			} else if len(f.Lines) == 0 || f.Lines[len(f.Lines)-1] != '\n' {
				t.Fatal("a block without lines")
			}
			if off < at || length < 1 || off+length > int64(len(body)) {
				t.Fatalf("[%d, +%d) after %d, of %d", off, length, at, len(body))
			}
			at = off + length
		}
	})
}

// A name parses only if it prints to the same bytes.
func FuzzParseName(f *testing.F) {
	for _, key := range []string{testKey, "_rejected/1999/01/01/0059/999999.log", "web/2026/11/20/1500/000000.log",
		"web/2026/02/30/1500/000001.log", "web/2026/11/20/2400/000001.log", "Web/2026/11/20/1500/000001.log", ""} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		n, err := blobfmt.ParseName(key)
		if err != nil {
			return
		}
		if n.String() != key || n.Number < 1 || n.Number > blobfmt.MaxNumber || !record.ValidStored(n.Service) {
			t.Fatalf("%q parses as %+v", key, n)
		}
	})
}

// Metadata parse only if they print to the same values, next to any other keys.
func FuzzParseMeta(f *testing.F) {
	m := blobfmt.Meta{Records: 3, RawBytes: 500, CRC: 0xc0ffee, Compacted: 2}
	m.Levels[record.Info] = 3
	s := m.Map()
	add := func() {
		f.Add(s["format"], s["batch"], s["firsttimestamp"], s["lasttimestamp"], s["records"], s["rawbytes"], s["crc"], s["levels"], s["compacted"])
	}
	add()
	s["levels"] = "1.1.1"
	add()
	s["format"] = "2"
	add()
	f.Fuzz(func(t *testing.T, format, batch, first, last, records, rawBytes, crc, levels, compacted string) {
		stored := map[string]string{"Format": format, "BATCH": batch, "firsttimestamp": first, "Lasttimestamp": last,
			"records": records, "rawBytes": rawBytes, "crc": crc, "levels": levels, "unknown": "kept"}
		if compacted != "" {
			stored["compacted"] = compacted
		}
		m, err := blobfmt.ParseMeta(stored)
		if err != nil {
			return
		}
		again := m.Map()
		if again["batch"] != batch || again["firsttimestamp"] != first || again["lasttimestamp"] != last ||
			again["records"] != records || again["levels"] != levels || again["crc"] != crc || again["compacted"] != compacted {
			t.Fatalf("%v came back as %v", stored, again)
		}
	})
}
