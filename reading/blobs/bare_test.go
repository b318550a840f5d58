package blobs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/reading/blobs"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/storagetest"
)

var everything = blobs.Query{Range: blobs.Always()}

// cutStore is a directory with two blobs of one hour. The first can be cut short.
func cutStore(t *testing.T) (store storage.BlobStore, key string, whole []byte, cut func(n int), first, second []rec) {
	t.Helper()
	root := t.TempDir()
	d, err := dir.Open(root, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	b := newBuilder(t, 500)
	b.store = d
	first, second = some("web", 30, 1), some("web", 30, 2)
	key, _ = b.add(time.Hour, first)
	b.add(time.Hour, second)
	path := filepath.Join(root, key)
	if whole, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	cut = func(n int) {
		if err := errors.Join(os.Remove(path), os.WriteFile(path, whole[:n], 0o440)); err != nil {
			t.Fatal(err)
		}
	}
	return d, key, whole, cut, first, second
}

// A file that lost its end has lost its metadata. Every read returns all its whole
// lines, in their places, and reports the result as incomplete.
func TestCutFiles(t *testing.T) {
	store, key, whole, cut, first, second := cutStore(t)
	r := blobs.New(store, blobs.Options{})
	info, err := store.Stat(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	all := lines(append(slices.Clone(first), second...))
	got60 := blobs.Query{Services: []string{"web"}, Range: blobs.Always()}
	left := len(first)
	for n := len(whole) - 1; n >= 0; n -= 7 {
		cut(n)
		got, sum := read(t, r, got60)
		if len(got) < len(second) || len(got) > len(second)+left || n >= int(info.Size) && len(got) != len(all) {
			t.Fatalf("cut to %d of %d bytes: %d lines", n, info.Size, len(got))
		}
		left = len(got) - len(second)
		at := 0
		for _, l := range got { // a subsequence of all lines
			i := slices.Index(all[at:], l)
			if i < 0 {
				t.Fatalf("cut to %d bytes: out of order, or never stored: %s", n, l)
			}
			at += i + 1
		}
		if len(sum.Problems) == 0 || !errors.Is(sum.Problems[0], storage.ErrDamaged) ||
			sum.Problems[0].Error() != key+": damaged: the end is missing" {
			t.Fatalf("cut to %d bytes: %v", n, sum.Problems)
		}
		plan, err := r.Plan(t.Context(), got60)
		if err != nil {
			t.Fatal(err)
		}
		if count, sum, err := plan.Count(t.Context()); err != nil || int(count) != len(got) || sum.Complete() {
			t.Fatalf("cut to %d bytes: count %d, %v, %v; read %d", n, count, sum.Problems, err, len(got))
		}
	}
	if left != 0 {
		t.Errorf("%d lines of nothing", left)
	}
}

// Range, limit and filter apply to the lines of such a blob as to any others.
func TestCutFileSelection(t *testing.T) {
	store, key, whole, cut, first, second := cutStore(t)
	cut(len(whole) - 3)
	r := blobs.New(store, blobs.Options{})
	all := lines(append(slices.Clone(first), second...))
	rng := blobs.Range{From: noon + 10e9, To: noon + 20e9}
	for _, c := range []struct {
		name string
		q    blobs.Query
		want []string
	}{
		{"range", blobs.Query{Range: rng}, all[20:40]},
		{"backwards", blobs.Query{Range: rng, Reverse: true}, all[20:40]},
		{"newest", blobs.Query{Range: blobs.Always(), Limit: 5}, all[55:]},
		{"oldest", blobs.Query{Range: blobs.Always(), First: 5}, all[:5]},
		{"text", blobs.Query{Range: blobs.Always(), Filter: blobs.Filter{Texts: []string{"message 7 of origin 1"}}}, all[14:15]},
	} {
		c.q.Services = []string{"web"}
		got, sum := read(t, r, c.q)
		if c.q.Reverse {
			slices.Reverse(got)
		}
		if !slices.Equal(got, c.want) || sum.Complete() {
			t.Errorf("%s: %v\n got %q\nwant %q", c.name, sum.Problems, got, c.want)
		}
	}
	// Another hour is not affected.
	q := blobs.Query{Services: []string{"web"}, Range: blobs.Range{From: noon + 3600e9, To: blobs.Newest}}
	if got, sum := read(t, r, q); len(got) > 0 || !sum.Complete() {
		t.Errorf("the next hour: %d lines, %v", len(got), sum.Problems)
	}

	body, _, err := r.Body(t.Context(), key)
	if p := (*blobs.Problem)(nil); !errors.As(err, &p) || !errors.Is(err, storage.ErrDamaged) || !bytes.Equal(body, whole[:len(whole)-3]) {
		t.Errorf("Body: %d bytes of %d, %v", len(body), len(whole)-3, err)
	}
	entries, sum, err := r.List(t.Context(), blobs.Query{}, time.Time{})
	if err != nil || len(entries) != 1 || entries[0].Records != 30 || len(sum.Problems) != 1 {
		t.Errorf("%+v, %v, %v", entries, sum.Problems, err)
	}
	var found []string
	v, err := r.Verify(t.Context(), everything, blobs.VerifyOptions{}, func(f blobs.Finding) { found = append(found, f.Key+": "+f.Err.Error()) })
	if err != nil || v.Blobs != 1 || !slices.Equal(found, []string{key + ": damaged: the end is missing"}) {
		t.Errorf("verify: %+v, %q, %v", v, found, err)
	}
}

// If only the metadata are lost, copies are still found by the index.
func TestNoMetadataCopies(t *testing.T) {
	b := newBuilder(t, 500)
	recs := some("web", 30, 1)
	key, _ := b.add(time.Hour, recs)
	b.add(time.Hour, recs)
	store := damaged(t, b.store, key, func(b *storage.Blob, body []byte) []byte { b.Metadata = nil; return body })
	r := blobs.New(store, blobs.Options{})
	q := blobs.Query{Services: []string{"web"}, Range: blobs.Always()}
	got, sum := read(t, r, q)
	if !slices.Equal(got, lines(recs)) || len(sum.Problems) != 1 || !errors.Is(sum.Problems[0], blobfmt.ErrForeign) {
		t.Errorf("%d lines, %v", len(got), sum.Problems)
	}
	plan, err := r.Plan(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if n, _, err := plan.Count(t.Context()); n != 30 || err != nil {
		t.Errorf("count %d, %v", n, err)
	}
	if body, _, err := r.Body(t.Context(), key); len(body) == 0 || !errors.Is(err, blobfmt.ErrForeign) {
		t.Errorf("Body: %d bytes, %v", len(body), err)
	}
}

// A foreign object under a name of ours.
func TestForeignUnderOurName(t *testing.T) {
	for _, content := range []string{"", "hello\n", strings.Repeat("no line of ours\n", 10_000)} {
		b := newBuilder(t, 500)
		b.add(time.Hour, some("web", 30, 1))
		key := "web/2026/11/27/1200/000007.log"
		b.put(key, []byte(content), nil)
		got, sum := read(t, blobs.New(b.store, blobs.Options{}), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
		if len(got) != 30 || sum.Complete() || len(sum.Warnings) != 0 || !strings.Contains(errors.Join(sum.Problems...).Error(), key) {
			t.Errorf("%.20q: %d lines, %v", content, len(got), sum.Problems)
		}
	}
}

// An unknown, newer version of the index does not hide the blocks: their frames have
// their lengths.
func TestNewerIndex(t *testing.T) {
	b := newBuilder(t, 500)
	recs := some("web", 30, 1)
	key, _ := b.add(time.Hour, recs)
	store := damaged(t, b.store, key, func(_ *storage.Blob, body []byte) []byte {
		footer := body[len(body)-32:]
		footer[16] = 2
		binary.LittleEndian.PutUint32(footer[20:], crc32.Checksum(footer[:20], crc32.MakeTable(crc32.Castagnoli)))
		return body
	})
	got, sum := read(t, blobs.New(store, blobs.Options{}), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
	if !slices.Equal(got, lines(recs)) || !sum.Complete() || len(sum.Warnings) != 1 || !errors.Is(sum.Warnings[0], blobfmt.ErrNewer) {
		t.Errorf("%d lines, %v, %v", len(got), sum.Problems, sum.Warnings)
	}
}

// A blob that is whole when it is listed and cut short before it is opened.
func TestCutAfterListing(t *testing.T) {
	store, key, whole, cut, _, _ := cutStore(t)
	s := beforeGet(store, key, func() { cut(len(whole) - 3) })
	got, sum := read(t, blobs.New(s, blobs.Options{}), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
	if len(got) != 60 || sum.Complete() || !errors.Is(sum.Problems[0], storage.ErrDamaged) {
		t.Errorf("%d lines, %v", len(got), sum.Problems)
	}
}

// A batch under two names is a note with both names, since a read drops the copies.
// Two different batches with one id are a problem.
func TestVerifyTwins(t *testing.T) {
	b := newBuilder(t, 500)
	recs := some("web", 30, 1)
	key, _ := b.add(time.Hour, recs)
	b.batches = 0 // the same id again
	twin, _ := b.add(time.Hour, recs)
	verify := func() (notes, bad []string) {
		t.Helper()
		_, err := blobs.New(b.store, blobs.Options{}).Verify(t.Context(), everything, blobs.VerifyOptions{}, func(f blobs.Finding) {
			if text := f.Key + " " + f.Err.Error(); f.Note {
				notes = append(notes, text)
			} else {
				bad = append(bad, text)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return notes, bad
	}
	if notes, bad := verify(); !slices.Equal(notes, []string{twin + " holds the same batch as " + key + "; a read drops the copies"}) || bad != nil {
		t.Errorf("notes %q, bad %q", notes, bad)
	}
	b.batches = 0
	other, _ := b.add(time.Hour, some("web", 10, 3))
	if notes, bad := verify(); len(notes) != 1 || !slices.Equal(bad, []string{other + " has the batch id of " + key + ", and other lines"}) {
		t.Errorf("notes %q, bad %q", notes, bad)
	}
}

// A name that is used for another blob after the listing is no damage.
func TestVerifyNameUsedAgain(t *testing.T) {
	b := newBuilder(t, 500)
	key, _ := b.add(time.Hour, some("web", 30, 1))
	for _, lines := range []int{30, 3} { // one of about the same size, and a smaller one
		body, meta, _ := b.encode(some("web", lines, 2))
		body = slices.Clone(body)
		used := false
		store := storagetest.Faulty(b.store, func(op storagetest.Op, _ string) storagetest.Fault {
			if op == storagetest.Get && !used {
				used = true
				mark(t, b.store.Delete(context.Background(), storage.Blob{Key: key}))
				b.put(key, body, meta.Map())
			}
			return storagetest.Fault{}
		})
		var notes []string
		v, err := blobs.New(store, blobs.Options{}).Verify(t.Context(), everything, blobs.VerifyOptions{}, func(f blobs.Finding) {
			notes = append(notes, f.Key+" "+f.Err.Error())
		})
		if err != nil || v.Bad > 0 || !slices.Equal(notes, []string{key + " another blob has got its name since it was listed"}) {
			t.Errorf("%+v, %v, %q", v, err, notes)
		}
	}
}
