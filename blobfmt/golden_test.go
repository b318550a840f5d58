package blobfmt_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"blobtail/blobfmt"
	"blobtail/record"
)

// tiny is the blob that docs/FORMAT.md explains byte by byte.
func tiny(t *testing.T) ([]byte, blobfmt.Meta, []rec) {
	start := testPeriod.UnixNano()
	origin := record.Origin{0x01, 0x9a, 0xa1, 0xdc, 0x73, 0x80, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9}
	recs := []rec{
		{start + 1e9, origin, 0, "info", makeLine(start+1e9, "info", "web", "ready")},
		{start + 61e9, origin, 1, "error", makeLine(start+61e9, "error", "web", "gone")},
	}
	body, m := encode(t, newEncoder(t, blobfmt.EncoderOptions{}), recs)
	return body, m, recs
}

// The bytes of version 1 do not change. Only a new version of the zstd package may choose
// other bytes. Then the files in testdata must still be readable unchanged; the first
// comparison and the document may follow.
func TestGolden(t *testing.T) {
	body, m, recs := tiny(t)
	golden, err := os.ReadFile("testdata/tiny.log")
	if err != nil || !bytes.Equal(golden, body) {
		t.Errorf("testdata/tiny.log is not what the encoder writes (%v), which is\n%s", err, hex.Dump(body))
	}
	if found := blobfmt.Verify(testKey, golden, m); found != nil {
		t.Error(found)
	}
	checkIndex(t, blobfmt.NewDecoder(1), golden, readIndex(t, golden), recs)
}

// large is a blob with several blocks, compressed origins and replaced batches.
func large(t *testing.T) ([]byte, blobfmt.Meta, []rec) {
	e := newEncoder(t, blobfmt.EncoderOptions{BlockSize: 64 << 10})
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
	golden, err := os.ReadFile("testdata/large.log")
	if err != nil {
		t.Fatal(err)
	}
	body, m, recs := large(t)
	if !bytes.Equal(golden, body) {
		t.Error("testdata/large.log is not what the encoder writes")
	}
	if table := golden[len(golden)-32-3*16:]; table[0] != 2 || table[16] != 3 || table[16+2] != 1 {
		t.Error("testdata/large.log has no replaced batches or no compressed origins")
	}
	if found := blobfmt.Verify(testKey, golden, m); found != nil {
		t.Error(found)
	}
	checkIndex(t, blobfmt.NewDecoder(1), golden, readIndex(t, golden), recs)
}

// The document shows the written bytes and the metadata.
func TestDocument(t *testing.T) {
	doc, err := os.ReadFile("../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	body, m, recs := tiny(t)
	var shown []byte
	for _, row := range regexp.MustCompile(`(?m)^[0-9a-f]{4}  ((?:[0-9a-f]{2} ?)+)`).FindAllSubmatch(doc, -1) {
		b, err := hex.DecodeString(strings.ReplaceAll(string(row[1]), " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, b...)
	}
	if !bytes.Equal(shown, body) {
		t.Errorf("docs/FORMAT.md shows %d bytes that are not the blob's:\n%s", len(shown), hex.Dump(body))
	}
	want := []string{string(bytes.TrimSpace(recs[0].line)), string(bytes.TrimSpace(recs[1].line)), testKey}
	for k, v := range m.Map() {
		want = append(want, fmt.Sprintf("| `%s` | `%s` |", k, v))
	}
	for _, w := range want {
		if !bytes.Contains(doc, []byte(w)) {
			t.Errorf("docs/FORMAT.md does not show %s", w)
		}
	}
}
