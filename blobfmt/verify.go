package blobfmt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	"blobtail/blobfmt/filter"
	"blobtail/record"
)

// maxFindings bounds the findings of Verify for one blob.
const maxFindings = 100

// Verify checks a whole blob. It checks the checksums and the order of its lines, then
// its index, its metadata m and its key against the lines. It returns all findings (up to
// 100), with damaged spans as [*CorruptError], or nil if the blob is valid.
func Verify(key string, body []byte, m Meta) []error {
	v := verifier{key: key, d: NewDecoder(1)}
	var err error
	if v.name, err = ParseName(key); err != nil {
		v.add(err)
	}
	v.start = record.ClampTime(v.name.Period)
	x, err := v.d.ReadIndex(key, int64(len(body)), func(off, n int64) ([]byte, error) {
		return body[off : off+n], nil // ReadIndex respects the given size
	})
	if err != nil {
		v.add(err)
		for f, err := range v.d.Walk(key, body) {
			if err != nil {
				v.damaged = true
				v.add(err)
				continue
			}
			v.block(f.Lines, f.Offset, KeyReader{})
		}
	} else {
		// ReadIndex reads the header that zstd needs only if it is near enough to the end.
		head := body[x.Offset:]
		if binary.LittleEndian.Uint32(head) != indexMagic || int(binary.LittleEndian.Uint32(head[4:])) != len(head)-skippableHeader {
			v.addf("the index is not a skippable frame")
		}
		if x.HasFilters() {
			v.filters = filter.NewBuilder()
		}
		v.blocks(body, x)
		v.verifyFilters(body, x, m)
	}
	v.totals(x, m)
	if sum := sha256.Sum256(body); m.SHA256 != [sha256.Size]byte{} && m.SHA256 != sum {
		v.addf("its bytes have the SHA-256 %x, and the metadata say %x", sum, m.SHA256)
	}
	return v.found
}

// A verifier collects the findings for one blob.
type verifier struct {
	key   string
	name  Name  // zero if the key is not a name
	start int64 // of its period
	d     *Decoder
	found []error

	damaged bool            // some lines are unreadable, so the totals mean nothing
	seen    Meta            // the sums over the lines
	filters *filter.Builder // of the lines; nil: the blob has none
	origins bool            // they are known; otherwise keys are times only
	any     bool            // there was a line
	last    record.Key
}

func (v *verifier) add(err error) {
	if len(v.found) < maxFindings {
		v.found = append(v.found, err)
	}
}

func (v *verifier) addf(format string, args ...any) {
	v.add(fmt.Errorf("blob %s: %s", v.key, fmt.Sprintf(format, args...)))
}

// blocks checks every block against its description in the index.
func (v *verifier) blocks(body []byte, x *Index) {
	o, err := x.Origins()
	if v.origins = err == nil; err != nil {
		v.add(err)
		o = &Origins{Blocks: make([][]Span, len(x.Blocks))}
	}
	var lines []byte
	for i, b := range x.Blocks {
		lines, err = v.d.Block(lines[:0], body[b.Offset:b.Offset+b.Stored], b)
		if err != nil {
			v.damaged = true
			v.add(err)
			continue
		}
		got := v.block(lines, b.Offset, o.Keys(i))
		b.Offset, b.Stored, b.CRC, b.blob = 0, 0, 0, ""
		if !reflect.DeepEqual(got, b) {
			v.addf("the index does not describe the block at offset %d", x.Blocks[i].Offset)
		}
	}
}

// block checks the lines of a block and returns the right description for the index. It
// reports the first bad line only.
func (v *verifier) block(lines []byte, offset int64, keys KeyReader) Block {
	v.seen.CRC = checksum(v.seen.CRC, lines)
	if v.filters != nil {
		v.filters.Block(lines, nil)
	}
	got := Block{Raw: int64(len(lines))}
	bad, badLine := 0, 0
	var reason error
	for len(lines) > 0 {
		n := bytes.IndexByte(lines, '\n') + 1
		at := keys.Next()
		if err := v.line(lines[:n], &at); err != nil {
			if bad++; bad == 1 {
				reason, badLine = err, got.Records+1
			}
		}
		got.count(at.Time, record.LineLevel(lines[:n]))
		v.last, v.any = at, true
		lines = lines[n:]
	}
	if bad > 0 {
		v.addf("block at offset %d, line %d (%d bad in all): %v", offset, badLine, bad, reason)
	}
	v.seen.add(&got)
	return got
}

// line checks one line and fills in its time.
func (v *verifier) line(line []byte, at *record.Key) error {
	t, ok := record.LineTime(line)
	service, hasService := record.LineService(line)
	if !ok || !hasService || !bytes.HasSuffix(line, []byte(lineSuffix)) {
		at.Time = v.last.Time
		return errors.New("not a canonical line")
	}
	at.Time = t
	order := v.last.Compare(at)
	switch {
	case v.any && (order > 0 || order == 0 && v.origins):
		return errors.New("it does not come after the line before")
	case v.name.Service == "":
		return nil
	case string(service) != v.name.Service:
		return fmt.Errorf("it belongs to service %q", service)
	// A name does not contain the length of its period. The length always divides the
	// hour.
	case t < v.start || t > lastOfHour(v.start):
		return fmt.Errorf("its time %s is not in the blob's period", record.AppendTime(nil, t))
	}
	return nil
}

// totals compares metadata, index and lines.
func (v *verifier) totals(x *Index, m Meta) {
	if x != nil && x.CRC != m.CRC {
		v.addf("the checksum of the lines is %08x in the index and %08x in the metadata", x.CRC, m.CRC)
	}
	if x != nil && len(x.Replaces) != m.Compacted {
		v.addf("the index replaces %d batches, the metadata say %d", len(x.Replaces), m.Compacted)
	}
	if v.damaged {
		return
	}
	seen := v.seen
	seen.Batch, seen.Compacted, seen.IDs, seen.SHA256, seen.Place = m.Batch, m.Compacted, m.IDs, m.SHA256, m.Place // not in the lines
	if seen.Erased, seen.Gone = m.Erased, m.Gone; m.Erased && !v.any {
		seen.First, seen.Last = m.First, m.Last
	}
	want := m.Map()
	for key, value := range seen.Map() {
		if want[key] != value {
			v.addf("metadata say %s %s, the lines say %s", key, want[key], value)
		}
	}
}
