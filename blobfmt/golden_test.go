package blobfmt_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"blobtail/blobfmt"
	"blobtail/record"
)

// tiny is the blob that docs/reference/format.md explains byte by byte.
func tiny(t *testing.T, o blobfmt.EncoderOptions) ([]byte, blobfmt.Meta, []rec) {
	start := testPeriod.UnixNano()
	origin := record.Origin{0x01, 0x9a, 0xa1, 0xdc, 0x73, 0x80, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9}
	recs := []rec{
		{start + 1e9, origin, 0, "info", makeLine(start+1e9, "info", "web", "ready")},
		{start + 61e9, origin, 1, "error", makeLine(start+61e9, "error", "web", "gone")},
	}
	body, m := encode(t, newEncoder(t, o), recs)
	name, err := blobfmt.ParseName(testKey)
	if err != nil {
		t.Fatal(err)
	}
	m.Place = name.Place()
	return body, m, recs
}

// The bytes of version 1 do not change. Only a new version of the zstd package may choose
// other bytes. Then the files in testdata must still be readable unchanged; the first
// comparison and the document may follow. Blobs without filters are those of earlier
// versions.
func TestGolden(t *testing.T) {
	for file, o := range map[string]blobfmt.EncoderOptions{"testdata/tiny.log": {}, "testdata/tiny-nofilters.log": {FilterPercent: -1}} {
		body, m, recs := tiny(t, o)
		golden, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(golden, body) {
			t.Errorf("%s is not what the encoder writes (%v), which is\n%s", file, err, hex.Dump(body))
		}
		if found := blobfmt.Verify(testKey, golden, m); found != nil {
			t.Error(found)
		}
		checkIndex(t, blobfmt.NewDecoder(1), golden, readIndex(t, golden), recs)
	}
}

// large is a blob with several blocks, compressed origins and replaced batches.
func large(t *testing.T, o blobfmt.EncoderOptions) ([]byte, blobfmt.Meta, []rec) {
	o.BlockSize = 64 << 10
	e := newEncoder(t, o)
	e.Replaces(blobfmt.BatchID{1}, blobfmt.BatchID{2})
	recs := corpus(600, 1000, 4)
	for _, r := range recs {
		if err := e.Add(r.line, r.time, r.origin, r.index); err != nil {
			t.Fatal(err)
		}
	}
	body, m, err := e.Finish(testBatch)
	if err != nil {
		t.Fatal(err)
	}
	return body, m, recs
}

func TestGoldenLarge(t *testing.T) {
	for file, o := range map[string]blobfmt.EncoderOptions{"testdata/large.log": {}, "testdata/large-nofilters.log": {FilterPercent: -1}} {
		golden, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		body, m, recs := large(t, o)
		if !bytes.Equal(golden, body) {
			t.Errorf("%s is not what the encoder writes", file)
		}
		ids := []byte{5, 2, 3, 1, 4}
		if o.FilterPercent < 0 {
			ids = []byte{2, 3, 4}
		}
		table := golden[len(golden)-32-len(ids)*16:]
		for i, id := range ids {
			if table[16*i] != id || id == 3 && table[16*i+2] != 1 {
				t.Errorf("%s has no replaced batches, no compressed origins or no filters", file)
			}
		}
		if found := blobfmt.Verify(testKey, golden, m); found != nil {
			t.Error(found)
		}
		checkIndex(t, blobfmt.NewDecoder(1), golden, readIndex(t, golden), recs)
	}
}

// The document shows the written bytes and the metadata.
func TestDocument(t *testing.T) {
	doc, err := os.ReadFile("../docs/reference/format.md")
	if err != nil {
		t.Fatal(err)
	}
	body, m, recs := tiny(t, blobfmt.EncoderOptions{})
	var shown []byte
	for _, row := range regexp.MustCompile(`(?m)^[0-9a-f]{4}  ((?:[0-9a-f]{2} ?)+)`).FindAllSubmatch(doc, -1) {
		b, err := hex.DecodeString(strings.ReplaceAll(string(row[1]), " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, b...)
	}
	if !bytes.Equal(shown, body) {
		t.Errorf("docs/reference/format.md shows %d bytes that are not the blob's:\n%s", len(shown), hex.Dump(body))
	}
	want := []string{string(bytes.TrimSpace(recs[0].line)), string(bytes.TrimSpace(recs[1].line)), testKey}
	for k, v := range m.Map() {
		want = append(want, "    "+k+"="+v+"\n")
	}
	for _, w := range want {
		if !bytes.Contains(doc, []byte(w)) {
			t.Errorf("docs/reference/format.md does not show %s", w)
		}
	}
}
