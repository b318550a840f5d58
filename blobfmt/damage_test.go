package blobfmt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/dev/testkit"
)

// One flipped bit anywhere is detected, and costs only the block that contains it.
func TestFlippedBits(t *testing.T) {
	const blobs, flipsEach = 40, 50
	e := newEncoder(t, blobfmt.EncoderOptions{BlockSize: 1 << 10})
	d := blobfmt.NewDecoder(1)
	for seed := range uint64(blobs) {
		r := rand.New(rand.NewPCG(seed, 2))
		body, m := encode(t, e, makeRecords(r, 10+r.IntN(20)))
		blocks := readIndex(t, body).Blocks
		lines := make([]string, len(blocks))
		for i, b := range blocks {
			got, err := d.Block(nil, body[b.Offset:b.Offset+b.Stored], b)
			if err != nil {
				t.Fatal(err)
			}
			lines[i] = string(got)
		}
		for range flipsEach {
			at := r.IntN(len(body))
			bad := bytes.Clone(body)
			bad[at] ^= 1 << r.IntN(8)
			checkFlip(t, d, bad, int64(at), blocks, lines, m)
		}
	}
}

func checkFlip(t *testing.T, d *blobfmt.Decoder, bad []byte, at int64, blocks []blobfmt.Block, want []string, m blobfmt.Meta) {
	t.Helper()
	if len(blobfmt.Verify(testKey, bad, m)) == 0 {
		t.Fatalf("a bit flipped at %d of %d is not found", at, len(bad))
	}
	sound := map[int64]string{}
	x, err := blobfmt.ReadIndex(testKey, int64(len(bad)), readFrom(bad))
	if err == nil {
		for _, b := range x.Blocks {
			lines, err := d.Block(nil, bad[b.Offset:b.Offset+b.Stored], b)
			if err == nil {
				sound[b.Offset] = string(lines)
			} else {
				checkCorrupt(t, err, b.Offset, b.Stored)
			}
		}
	} else {
		for f, err := range d.Walk(testKey, bad) {
			if err == nil {
				sound[f.Offset] = string(f.Lines)
			}
		}
	}
	for i, b := range blocks {
		inside := at >= b.Offset && at < b.Offset+b.Stored
		lines, ok := sound[b.Offset]
		if inside == ok {
			t.Fatalf("a bit flipped at %d: block at %d, length %d, read: %t", at, b.Offset, b.Stored, ok)
		}
		if ok && lines != want[i] {
			t.Fatalf("a bit flipped at %d: the block at %d has other lines", at, b.Offset)
		}
	}
	checkWalkPassesOver(t, d, bad, at, blocks, want)
}

// checkWalkPassesOver checks that a walk without the index finds all blocks but the
// damaged one, and reports the damaged span. Some bits of a frame do not affect its
// content; then the walk returns the right lines.
func checkWalkPassesOver(t *testing.T, d *blobfmt.Decoder, bad []byte, at int64, blocks []blobfmt.Block, want []string) {
	t.Helper()
	index := blocks[len(blocks)-1].Offset + blocks[len(blocks)-1].Stored
	found := map[int64]string{}
	for f, err := range d.Walk(testKey, bad) {
		var c *blobfmt.CorruptError
		switch {
		case err == nil:
			found[f.Offset] = string(f.Lines)
		// Within the index, a wrong length misleads the walk, but no lines are lost.
		case !errors.As(err, &c) || at < index && (at < c.Offset || at >= c.Offset+c.Length):
			t.Fatalf("a bit flipped at %d: the walk reports %v", at, err)
		}
	}
	for i, b := range blocks {
		inside := at >= b.Offset && at < b.Offset+b.Stored
		if lines, ok := found[b.Offset]; !ok && !inside || ok && lines != want[i] {
			t.Fatalf("a bit flipped at %d: the walk finds the block at %d: %t", at, b.Offset, ok)
		}
	}
}

func checkCorrupt(t *testing.T, err error, offset, length int64) {
	t.Helper()
	var c *blobfmt.CorruptError
	if !errors.As(err, &c) || c.Blob != testKey || c.Offset != offset || c.Length != length {
		t.Fatalf("error %v, want a CorruptError at %d, length %d", err, offset, length)
	}
}

// A truncated blob is detected at any length, and its whole blocks are returned.
func TestTruncation(t *testing.T) {
	e := newEncoder(t, blobfmt.EncoderOptions{BlockSize: 1 << 10})
	d := blobfmt.NewDecoder(1)
	body, m := encode(t, e, makeRecords(rand.New(rand.NewPCG(3, 3)), 12))
	blocks := readIndex(t, body).Blocks
	for n := range body {
		cut := body[:n]
		if _, err := blobfmt.ReadIndex(testKey, int64(n), readFrom(cut)); !errors.As(err, new(*blobfmt.CorruptError)) {
			t.Fatalf("cut at %d: the index reads with %v", n, err)
		}
		if len(blobfmt.Verify(testKey, cut, m)) == 0 {
			t.Fatalf("cut at %d: not found", n)
		}
		whole, got := 0, 0
		for _, b := range blocks {
			if b.Offset+b.Stored <= int64(n) {
				whole++
			}
		}
		for _, err := range d.Walk(testKey, cut) {
			if err == nil {
				got++
			}
		}
		if got != whole {
			t.Fatalf("cut at %d: %d blocks of %d", n, got, whole)
		}
	}
}

// Not all damage is random. Where the checksums match, the comparison of lines, index,
// metadata and name detects it.
func TestVerifyFinds(t *testing.T) {
	e := newEncoder(t, blobfmt.EncoderOptions{BlockSize: 4 << 10})
	body, m := encode(t, e, makeRecords(rand.New(rand.NewPCG(4, 4)), 300))
	with := func(change func(m *blobfmt.Meta)) blobfmt.Meta {
		changed := m
		change(&changed)
		return changed
	}
	for _, tt := range []struct {
		name string
		key  string
		body []byte
		meta blobfmt.Meta
		want string
	}{
		{"another checksum", testKey, body, with(func(m *blobfmt.Meta) { m.CRC++ }), "checksum of the lines"},
		{"another first time", testKey, body, with(func(m *blobfmt.Meta) { m.First-- }), "firsttimestamp"},
		{"other levels", testKey, body, with(func(m *blobfmt.Meta) { m.Levels[0]++; m.Levels[1]-- }), "levels"},
		{"another count", testKey, body, with(func(m *blobfmt.Meta) { m.Records++ }), "records"},
		{"another length", testKey, body, with(func(m *blobfmt.Meta) { m.RawBytes++ }), "rawbytes"},
		{"compacted", testKey, body, with(func(m *blobfmt.Meta) { m.Compacted = 2 }), "replaces 0 batches"},
		{"another service", "api/2026/11/20/1500/000001.log", body, m, `service "web"`},
		{"another period", "web/2026/11/20/1400/000001.log", body, m, "not in the blob's period"},
		{"no name", "web.log", body, m, "blob name"},
		{"bytes behind it", testKey, append(bytes.Clone(body), 0), m, "footer"},
		{"no index", testKey, body[:readIndex(t, body).Offset], m, "footer"},
		{"empty", testKey, nil, m, "too short"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := fmt.Sprint(blobfmt.Verify(tt.key, tt.body, tt.meta))
			if !strings.Contains(found, tt.want) {
				t.Errorf("found %s, want %q", found, tt.want)
			}
		})
	}
}

// An index can be valid in form, with every checksum right, and still not match the
// lines.
func TestVerifyHoldsIndexAgainstLines(t *testing.T) {
	start := testPeriod.UnixNano()
	recs := []rec{
		{time: start, line: makeLine(start, "info", "web", "one")},
		{time: start + 60e9, line: makeLine(start+60e9, "warn", "web", "two")},
	}
	body, m := encode(t, newEncoder(t, blobfmt.EncoderOptions{}), recs)
	swapped := patchSection(body, 4, func(section []byte) []byte {
		section = bytes.Clone(section)
		masks := section[len(section)-6:] // minute, levels, count; twice
		masks[1], masks[4] = masks[4], masks[1]
		return section
	})
	if _, err := blobfmt.ReadIndex(testKey, int64(len(swapped)), readFrom(swapped)); err != nil {
		t.Fatal(err)
	}
	if found := fmt.Sprint(blobfmt.Verify(testKey, swapped, m)); !strings.Contains(found, "does not describe") {
		t.Errorf("found %s", found)
	}
}

// patchSection changes one section of an index and fixes all checksums. It follows
// docs/reference/format.md and does not use the package's own code.
func patchSection(body []byte, id uint16, change func([]byte) []byte) []byte {
	le := binary.LittleEndian
	table := crc32.MakeTable(crc32.Castagnoli)
	footer := body[len(body)-32:]
	indexLen := int(le.Uint32(footer[8:]))
	start := len(body) - indexLen
	entries := body[len(body)-32-int(le.Uint32(footer)) : len(body)-32]
	out := bytes.Clone(body[:start])
	var newTable []byte
	at := start
	for e := entries; len(e) > 0; e = e[16:] {
		section := body[at : at+int(le.Uint32(e[4:]))]
		at += len(section)
		entry := bytes.Clone(e[:16])
		if le.Uint16(e) == id {
			section = change(section)
			le.PutUint32(entry[4:], uint32(len(section)))
			if entry[2] == 0 {
				le.PutUint32(entry[8:], uint32(len(section)))
			}
			le.PutUint32(entry[12:], crc32.Checksum(section, table))
		}
		out = append(out, section...)
		newTable = append(newTable, entry...)
	}
	out = append(out, newTable...)
	end := bytes.Clone(footer)
	le.PutUint32(end, uint32(len(newTable)))
	le.PutUint32(end[4:], crc32.Checksum(newTable, table))
	le.PutUint32(end[8:], uint32(len(out)+32-start))
	le.PutUint32(end[20:], crc32.Checksum(end[:20], table))
	out = append(out, end...)
	le.PutUint32(out[start-4:], uint32(len(out)-start))
	return out
}

// addSection puts one more section in front of the others.
func addSection(body []byte, id uint16, section []byte) []byte {
	le := binary.LittleEndian
	table := crc32.MakeTable(crc32.Castagnoli)
	footer := body[len(body)-32:]
	start := len(body) - int(le.Uint32(footer[8:]))
	entries := len(body) - 32 - int(le.Uint32(footer))
	var entry []byte
	entry = le.AppendUint16(entry, id)
	entry = append(entry, 0, 0)
	entry = le.AppendUint32(entry, uint32(len(section)))
	entry = le.AppendUint32(entry, uint32(len(section)))
	entry = le.AppendUint32(entry, crc32.Checksum(section, table))
	out := bytes.Clone(body[:start])
	out = append(out, section...)
	out = append(out, body[start:entries]...)
	newTable := append(entry, body[entries:len(body)-32]...)
	out = append(out, newTable...)
	out = append(out, footer...)
	mendFooter(out, func(footer []byte) {
		le.PutUint32(footer, uint32(len(newTable)))
		le.PutUint32(footer[4:], crc32.Checksum(newTable, table))
		le.PutUint32(footer[8:], uint32(len(out)-start))
	})
	le.PutUint32(out[start-4:], uint32(len(out)-start))
	return out
}

// mendFooter changes the footer and fixes its checksum.
func mendFooter(body []byte, change func(footer []byte)) {
	footer := body[len(body)-32:]
	change(footer)
	binary.LittleEndian.PutUint32(footer[20:], crc32.Checksum(footer[:20], crc32.MakeTable(crc32.Castagnoli)))
}

// Some frames are cheap to store, slow to decompress and wrong at their end. Without a
// bound they would keep a walk busy for an hour.
func TestWalkOfHostileFrames(t *testing.T) {
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xa4, 0, 0, 0x80, 0} // 8 MiB of content
	for i := range 64 {
		h := 128<<10<<3 | 1<<1 // a run of 128 KiB
		if i == 63 {
			h |= 1 // the last
		}
		frame = append(frame, byte(h), byte(h>>8), byte(h>>16), '\n')
	}
	frame = append(frame, 1, 2, 3, 4) // not the checksum
	body := bytes.Repeat(frame, 4000)
	start := testkit.CPU()
	damaged := int64(0)
	for _, err := range blobfmt.NewDecoder(1).Walk(testKey, body) {
		var c *blobfmt.CorruptError
		if !errors.As(err, &c) {
			t.Fatal(err)
		}
		damaged += c.Length
	}
	if damaged != int64(len(body)) {
		t.Errorf("%d bytes of %d are reported", damaged, len(body))
	}
	if d := testkit.CPU() - start; d > 20*time.Second {
		t.Errorf("it took %s", d)
	}
}
