package blobs_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// corruptions is how many blobs are damaged: a number from the environment, or as
// many as the daily suite has time for.
func corruptions(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("BLOBTAIL_CORRUPTIONS")); err == nil {
		return n
	}
	return testkit.Share(3000, 500)
}

// specimen is a blob that is to be damaged, with its records.
type specimen struct {
	service, key string
	body         []byte
	attrs        storage.Attrs
	blocks       []blobfmt.Block
	recs         []rec // in order
	want         []string
	parts        map[string][2]int // where each part of the blob begins and ends
}

// grow stores a blob of some shape, with texts of random length. For every second one
// it adds another blob with records of the same times, so that a read must compare
// the origins.
func grow(b *builder, rng *rand.Rand, service string, records, longest int) specimen {
	b.t.Helper()
	s := specimen{service: service}
	step := []int64{1, 1e6, 7e9}[rng.IntN(3)]
	from := uint64(1 + rng.IntN(5))
	for i := range records {
		t := noon + int64(i)*step
		o := 1 + uint64(i)%from
		text := make([]byte, rng.IntN(longest))
		for j := range text {
			text[j] = byte('a' + rng.IntN(26))
		}
		s.recs = append(s.recs, rec{service: service, time: t, origin: origin(o), index: uint32(i),
			line: line(t, "info", service, fmt.Sprintf("%s record %d: %s", service, i, text))})
	}
	s.key, _ = b.add(time.Hour, s.recs)
	s.want = lines(s.recs)
	if rng.IntN(2) == 0 {
		var other []rec
		for i := range min(records, 20) {
			r := s.recs[i]
			r.origin, r.index = origin(99), uint32(i)
			r.line = line(r.time, "warn", service, fmt.Sprintf("neighbour %d", i))
			other = append(other, r)
		}
		b.add(time.Hour, other)
		s.want = lines(append(slices.Clone(s.recs), other...))
	}
	s.dissect(b)
	return s
}

// dissect finds the parts of the stored blob.
func (s *specimen) dissect(b *builder) {
	b.t.Helper()
	blob, err := b.store.Stat(b.t.Context(), s.key)
	if err != nil {
		b.t.Fatal(err)
	}
	s.attrs, s.body = blob.Attrs, storagetest.Body(b.t, b.store, s.key)
	x, err := blobfmt.ReadIndex(s.key, blob.Size, func(off, n int64) ([]byte, error) { return s.body[off : off+n], nil })
	if err != nil {
		b.t.Fatal(err)
	}
	s.blocks = x.Blocks
	size, at := len(s.body), int(x.Offset)+8
	footer := size - 32
	table := footer - int(binary.LittleEndian.Uint32(s.body[footer:]))
	s.parts = map[string][2]int{"blocks": {0, at - 8}, "header of the index": {at - 8, at}, "section table": {table, footer}, "footer": {footer, size}}
	for e := table; e < footer; e += 16 { // as in docs/reference/format.md: id at 0, stored length at 4
		name := map[uint16]string{3: "origins", 4: "block index"}[binary.LittleEndian.Uint16(s.body[e:])]
		end := at + int(binary.LittleEndian.Uint32(s.body[e+4:]))
		s.parts[name] = [2]int{at, end}
		at = end
	}
}

// pick chooses a byte: half the time anywhere, otherwise in a part that was chosen
// first, so that small parts are hit too.
func (s *specimen) pick(rng *rand.Rand, size int) (part string, at int) {
	at = rng.IntN(size)
	if rng.IntN(2) == 0 {
		names := slices.Sorted(maps.Keys(s.parts))
		if p := s.parts[names[rng.IntN(len(names))]]; p[1] > p[0] {
			at = p[0] + rng.IntN(p[1]-p[0])
		}
	}
	for name, p := range s.parts {
		if at >= p[0] && at < p[1] {
			return name, at
		}
	}
	return "", at
}

// intact returns the lines in blocks that [from, to) does not touch.
func (s *specimen) intact(from, to int) map[string]bool {
	keep := make(map[string]bool, len(s.want))
	for _, l := range s.want {
		keep[l] = true
	}
	n := 0
	for _, b := range s.blocks {
		hit := int(b.Offset+b.Stored) > from && int(b.Offset) < to
		for _, r := range s.recs[n : n+b.Records] {
			if hit {
				delete(keep, r.line)
			}
		}
		n += b.Records
	}
	return keep
}

// check reads a damaged store. The result must have no line that was never stored, no
// line out of order, and all lines of intact blocks. Nothing may be left out
// silently. It returns how many lines are missing and whether the read reported
// anything.
func (s *specimen) check(t *testing.T, store storage.BlobStore, keep map[string]bool, where string) (missing int, told bool) {
	t.Helper()
	r := blobs.New(store, blobs.Options{Workers: 2})
	q := blobs.Query{Services: []string{s.service}, Range: blobs.Always()}
	got, sum := read(t, r, q)
	at := 0
	for _, l := range got {
		i := slices.Index(s.want[at:], l)
		if i < 0 {
			t.Fatalf("%s: never stored, twice, or out of order: %s", where, l)
		}
		at += i + 1
		delete(keep, l)
	}
	if len(keep) > 0 {
		t.Fatalf("%s: %d lines of intact blocks are missing: %v, %v", where, len(keep), sum.Problems, sum.Warnings)
	}
	if missing = len(s.want) - len(got); missing > 0 {
		p := (*blobs.Problem)(nil)
		if sum.Complete() || !errors.As(errors.Join(sum.Problems...), &p) || p.Blob != s.key {
			t.Fatalf("%s: %d lines are missing, and all that is said is %v", where, missing, sum.Problems)
		}
	}
	return missing, !sum.Complete() || len(sum.Warnings) > 0
}

// detected verifies a store and checks that exactly the damaged blobs are found.
func detected(t *testing.T, store storage.BlobStore, damaged map[string]string) {
	t.Helper()
	bad := map[string]bool{}
	_, err := blobs.New(store, blobs.Options{}).Verify(context.Background(), blobs.Query{Range: blobs.Always()}, blobs.VerifyOptions{},
		func(f blobs.Finding) {
			if !f.Note {
				bad[f.Key] = true
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	for key, where := range damaged {
		if !bad[key] {
			t.Errorf("verify finds nothing: %s", where)
		}
	}
	for key := range bad {
		if _, ok := damaged[key]; !ok {
			t.Errorf("verify complains of %q, which is sound", key)
		}
	}
}

// tally counts the outcomes for damaged blobs.
type tally struct {
	blobs, lines, missing, told int
	parts                       map[string]int
}

func (c *tally) add(part string, s *specimen, missing int, told bool) {
	if c.parts == nil {
		c.parts = map[string]int{}
	}
	c.blobs++
	c.parts[part]++
	c.lines += len(s.want)
	c.missing += missing
	if told {
		c.told++
	}
}

func (c *tally) report(t *testing.T, what string) {
	t.Logf("%d %s, all found by verify; of %d lines %d stood in damaged blocks and are missing, all said; %d reads had something to say, the others were right; by part: %v",
		c.blobs, what, c.lines, c.missing, c.told, c.parts)
}

// One random bit is flipped in each of thousands of blobs. Verify finds every one of
// them. A read returns only stored lines, all lines of the other blocks, and is
// silent only when nothing is missing.
func TestFlippedBits(t *testing.T) {
	const group = 50
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	var count tally
	for left := corruptions(t); left > 0; left -= group {
		b := newBuilder(t, []int{300, 1500, 8000}[rng.IntN(3)])
		store := mem.New(mem.Options{})
		var specimens []specimen
		for i := range min(left, group) {
			specimens = append(specimens, grow(b, rng, fmt.Sprintf("s%02d", i), shape(rng), 60))
		}
		damaged, places := map[string]string{}, map[string]int{}
		parts := map[string]string{}
		for i := range specimens {
			s := &specimens[i]
			part, at := s.pick(rng, len(s.body))
			bit := rng.IntN(8)
			s.body[at] ^= 1 << bit
			damaged[s.key] = fmt.Sprintf("seed %d, %s, %d left: bit %d of byte %d of %d in the %s", seed, s.key, left, bit, at, len(s.body), part)
			places[s.key], parts[s.key] = at, part
		}
		copyStore(t, b.store, store, specimens)
		detected(t, store, damaged)
		for i := range specimens {
			s := &specimens[i]
			at := places[s.key]
			missing, told := s.check(t, store, s.intact(at, at+1), damaged[s.key])
			count.add(parts[s.key], s, missing, told)
		}
		if t.Failed() {
			return
		}
	}
	count.report(t, "blobs with one bit flipped")
}

// shape is how many records a blob has: often few, sometimes several blocks.
func shape(rng *rand.Rand) int {
	return 1 + rng.IntN([]int{1, 10, 40, 150}[rng.IntN(4)])
}

// copyStore copies all blobs, with the bodies that the specimens have now.
func copyStore(t *testing.T, from, to storage.BlobStore, specimens []specimen) {
	t.Helper()
	storagetest.Copy(t, from, to, func(b *storage.Blob, body []byte) []byte {
		if i := slices.IndexFunc(specimens, func(s specimen) bool { return s.key == b.Key }); i >= 0 {
			return specimens[i].body
		}
		return body
	})
}

// The same in a directory, where a file also holds the attributes: a bit of those
// costs no line.
func TestFlippedBitsOfFiles(t *testing.T) {
	const group = 50
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 2))
	var count tally
	for left := corruptions(t) / 10; left > 0; left -= group {
		root := t.TempDir()
		store, err := dir.Open(root, dir.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		b := newBuilder(t, 1500)
		b.store = store
		damaged := map[string]string{}
		var specimens []specimen
		var places []int
		for i := range min(left, group) {
			s := grow(b, rng, fmt.Sprintf("s%02d", i), shape(rng), 60)
			path := filepath.Join(root, s.key)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			s.parts["attributes"] = [2]int{len(s.body), int(info.Size())}
			part, at := s.pick(rng, int(info.Size()))
			alter(t, path, func(f *os.File) error {
				var c [1]byte
				_, err := f.ReadAt(c[:], int64(at))
				c[0] ^= 1 << rng.IntN(8)
				_, werr := f.WriteAt(c[:], int64(at))
				return errors.Join(err, werr)
			})
			damaged[s.key] = part
			specimens, places = append(specimens, s), append(places, at)
		}
		detected(t, store, damaged)
		for i := range specimens {
			s, at := &specimens[i], places[i]
			where := fmt.Sprintf("seed %d, %s, %d left: byte %d in the %s", seed, s.key, left, at, damaged[s.key])
			missing, told := s.check(t, store, s.intact(at, at+1), where)
			count.add(damaged[s.key], s, missing, told)
		}
		if t.Failed() {
			return
		}
	}
	count.report(t, "files with one bit flipped")
}

// alter changes a read-only file, and leaves its mode as it was, since the store
// depends on it.
func alter(t *testing.T, path string, change func(f *os.File) error) {
	t.Helper()
	err := os.Chmod(path, 0o640)
	f, oerr := os.OpenFile(path, os.O_RDWR, 0)
	if err = errors.Join(err, oerr); err == nil {
		err = errors.Join(change(f), f.Close(), os.Chmod(path, 0o440))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A blob of several blocks, cut short at every byte: the damage is always detected,
// and every block before the cut is read.
func TestTruncated(t *testing.T) {
	step := testkit.Portion(1, 5, 53)
	rng := rand.New(rand.NewPCG(3, 3))
	size, longest := 1600, 100 // of a block, and of a text
	if os.Getenv("BLOBTAIL_CORRUPTIONS") != "" {
		size, longest = 8000, 500
	}
	t.Run("object", func(t *testing.T) {
		b := newBuilder(t, size)
		s := grow(b, rng, "web", 120, longest)
		var count tally
		for n := len(s.body) - 1; n >= 0; n -= step {
			store := mem.New(mem.Options{})
			cut := s
			cut.body = s.body[:n]
			copyStore(t, b.store, store, []specimen{cut})
			where := fmt.Sprintf("cut to %d of %d bytes", n, len(s.body))
			detected(t, store, map[string]string{s.key: where})
			missing, told := s.check(t, store, s.intact(n, len(s.body)), where)
			count.add("cut", &s, missing, told)
		}
		count.report(t, fmt.Sprintf("cuts of a blob of %d bytes and %d blocks", len(s.body), len(s.blocks)))
	})
	t.Run("file", func(t *testing.T) {
		root := t.TempDir()
		store, err := dir.Open(root, dir.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		b := newBuilder(t, size)
		b.store = store
		s := grow(b, rng, "web", 120, longest)
		path := filepath.Join(root, s.key)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		var count tally
		for n := int(info.Size()) - 1; n >= 0; n -= step {
			alter(t, path, func(f *os.File) error { return f.Truncate(int64(n)) })
			where := fmt.Sprintf("cut to %d of %d bytes", n, info.Size())
			detected(t, store, map[string]string{s.key: where})
			missing, told := s.check(t, store, s.intact(n, len(s.body)), where)
			count.add("cut", &s, missing, told)
		}
		count.report(t, fmt.Sprintf("cuts of a file of %d bytes and %d blocks", info.Size(), len(s.blocks)))
	})
}
