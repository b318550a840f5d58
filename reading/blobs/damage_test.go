package blobs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

const noon = int64(1795780800) * 1e9 // 2026-11-27T12:00:00Z

// some makes n records of a service, a second apart.
func some(service string, n int, o uint64) []rec {
	var recs []rec
	for i := range n {
		t := noon + int64(i)*1e9
		recs = append(recs, rec{service: service, time: t, origin: origin(o), index: uint32(i),
			line: line(t, "info", service, fmt.Sprintf("message %d of origin %d", i, o))})
	}
	return recs
}

func lines(recs []rec) []string {
	recs = slices.Clone(recs)
	slices.SortFunc(recs, compareRecs)
	var out []string
	for _, r := range recs {
		out = append(out, r.line)
	}
	return out
}

// damaged copies a store and changes one blob of it.
func damaged(t *testing.T, from storage.BlobStore, key string, change func(b *storage.Blob, body []byte) []byte) storage.BlobStore {
	t.Helper()
	out := mem.New(mem.Options{})
	storagetest.Copy(t, from, out, func(b *storage.Blob, body []byte) []byte {
		if b.Key == key {
			return change(b, body)
		}
		return body
	})
	return out
}

// If one blob is damaged in any way, the others are read, the damage is reported, and
// only stored lines are shown.
func TestDamage(t *testing.T) {
	b := newBuilder(t, 500)
	first, second := some("web", 30, 1), some("web", 30, 2)
	key, _ := b.add(time.Hour, first)
	b.add(time.Hour, second)
	both := lines(append(slices.Clone(first), second...))
	for _, c := range []struct {
		name   string
		change func(b *storage.Blob, body []byte) []byte
		left   int    // at least so many of first are still read
		says   string // in the problems; "": it is complete, with a warning
	}{
		// The frame's header stays, so only this block is lost.
		{"block", func(b *storage.Blob, body []byte) []byte { body[150] ^= 1; return body }, 20, key + ": damaged at offset "},
		{"index", func(b *storage.Blob, body []byte) []byte { body[len(body)-3] ^= 1; return body }, 30, ""},
		{"all", func(b *storage.Blob, body []byte) []byte { clear(body); return body }, 0, key},
		{"cut", func(b *storage.Blob, body []byte) []byte { return body[:len(body)/2] }, 10, key},
		{"empty", func(b *storage.Blob, body []byte) []byte { return body[:0] }, 0, key},
		{"no metadata", func(b *storage.Blob, body []byte) []byte { b.Metadata = nil; return body }, 30, blobfmt.ErrForeign.Error()},
		{"newer", func(b *storage.Blob, body []byte) []byte {
			b.Metadata["format"] = "3"
			return body
		}, 0, blobfmt.ErrNewer.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := damaged(t, b.store, key, c.change)
			for _, reverse := range []bool{false, true} {
				r := blobs.New(store, blobs.Options{})
				got, sum := read(t, r, blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Reverse: reverse})
				if reverse {
					slices.Reverse(got)
				}
				for _, l := range got {
					if !slices.Contains(both, l) {
						t.Errorf("never stored: %s", l)
					}
				}
				if len(got) < len(second)+c.left {
					t.Errorf("%d lines, want at least %d", len(got), len(second)+c.left)
				}
				if sum.Complete() != (c.says == "") {
					t.Errorf("problems %v", sum.Problems)
				}
				if c.says == "" && (len(sum.Warnings) == 0 || len(got) != len(both)) {
					t.Errorf("%d lines, warnings %v", len(got), sum.Warnings)
				}
				if c.says != "" && !strings.Contains(errors.Join(sum.Problems...).Error(), c.says) {
					t.Errorf("problems do not say %q: %v", c.says, sum.Problems)
				}
			}
			plan, err := blobs.New(store, blobs.Options{}).Plan(context.Background(), blobs.Query{Services: []string{"*"},
				Range: blobs.Range{From: noon + 1, To: blobs.Newest}})
			if err != nil {
				t.Fatal(err)
			}
			if n, sum, err := plan.Count(context.Background()); err != nil || n < int64(len(second)-1+c.left-1) || n > 58 {
				t.Errorf("count %d, %v, %v", n, sum.Problems, err)
			}
		})
	}
}

// Verify detects a flipped bit anywhere in a blob. A read of the blob never returns a
// line that was not stored, and never hides a lost one.
func TestEveryFlippedBit(t *testing.T) {
	testkit.FullOnly(t, "each bit of a blob, one after another")
	b := newBuilder(t, 300)
	recs := some("web", 10, 1)
	key, _ := b.add(time.Hour, recs)
	want := lines(recs)
	blob, err := b.store.Stat(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range blob.Size {
		store := damaged(t, b.store, key, func(_ *storage.Blob, body []byte) []byte { body[i] ^= 1 << (i % 8); return body })
		r := blobs.New(store, blobs.Options{Workers: 1})
		got, sum := read(t, r, blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
		for _, l := range got {
			if !slices.Contains(want, l) {
				t.Fatalf("byte %d: never stored: %s", i, l)
			}
		}
		if sum.Complete() && len(got) != len(want) {
			t.Fatalf("byte %d: complete with %d of %d lines", i, len(got), len(want))
		}
		v, err := r.Verify(context.Background(), blobs.Query{Range: blobs.Always()}, blobs.VerifyOptions{}, func(blobs.Finding) {})
		if err != nil || v.Bad == 0 {
			t.Fatalf("byte %d: verify found nothing: %+v, %v", i, v, err)
		}
	}
}

func TestVanished(t *testing.T) {
	b := newBuilder(t, 500)
	key, _ := b.add(time.Hour, some("web", 30, 1))
	b.add(time.Hour, some("web", 30, 2))
	store := failing(b.store, -1, storagetest.Get, key, storage.ErrNotExist)
	got, sum := read(t, blobs.New(store, blobs.Options{}), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
	if len(got) != 30 || len(sum.Problems) != 1 || !errors.Is(sum.Problems[0], storage.ErrNotExist) {
		t.Errorf("%d lines, %v", len(got), sum.Problems)
	}
}

// Two blobs change their names after the first of them was read. Then one has been read twice, and the
// other one not.
func TestSwappedMeanwhile(t *testing.T) {
	hit := 0
	for n := range uint64(60) {
		b := newBuilder(t, 500)
		later := some("web", 1, 100+n)
		later[0].time += int64(time.Hour)
		later[0].line = line(later[0].time, "info", "web", fmt.Sprintf("message %d of origin %d", 0, 100+n))
		first, _ := b.add(time.Hour, some("web", 1, 200+n))
		second, _ := b.add(time.Hour, later)
		s := &swapping{BlobStore: b.store, first: first, second: second, read: make(chan struct{})}
		s.swap = func() {
			bodies := [][]byte{storagetest.Body(t, b.store, first), storagetest.Body(t, b.store, second)}
			if len(bodies[0]) == len(bodies[1]) {
				hit++
			}
			was := storagetest.Objects(t, b.store, "web/")
			if err := b.store.Delete(context.Background(), was...); err != nil {
				t.Fatal(err)
			}
			b.put(second, bodies[0], was[0].Metadata)
			b.put(first, bodies[1], was[1].Metadata)
		}
		got, sum := read(t, blobs.New(s, blobs.Options{}), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
		if len(sum.Problems) == 0 {
			t.Errorf("it is complete: %q, warnings %v", got, sum.Warnings)
		}
	}
	if hit == 0 {
		t.Error("no two blobs have the same size")
	}
}

// swapping is a store whose blobs are swapped once the first is read, before the second is.
type swapping struct {
	storage.BlobStore
	first, second string
	read          chan struct{}
	swap          func()
	once          sync.Once
}

func (s *swapping) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if key == s.second {
		<-s.read
		s.once.Do(s.swap)
	}
	r, err := s.BlobStore.Get(ctx, key, off, n)
	if key == s.first {
		close(s.read)
	}
	return r, err
}

// A refusal concerns more than one blob, so it ends the read.
func TestRefused(t *testing.T) {
	b := newBuilder(t, 500)
	b.add(time.Hour, some("web", 30, 1))
	store := failing(b.store, -1, storagetest.Get, "", storage.ErrUnauthorized)
	plan, err := blobs.New(store, blobs.Options{}).Plan(context.Background(), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Read(context.Background(), func([]byte) error { return nil }); !errors.Is(err, storage.ErrUnauthorized) {
		t.Error(err)
	}
	emitted := errors.New("enough")
	plan, _ = blobs.New(b.store, blobs.Options{}).Plan(context.Background(), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
	if _, err := plan.Read(context.Background(), func([]byte) error { return emitted }); err != emitted {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := plan.Read(ctx, func([]byte) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestForeignAndNames(t *testing.T) {
	b := newBuilder(t, 0)
	b.add(time.Hour, some("web", 3, 1))
	b.add(time.Hour, some("web-2", 3, 2))
	b.add(time.Hour, some("_rejected", 3, 3))
	b.put("web/2026/11/27/notes.txt", []byte("hello"), nil)
	b.put("_horizon/web/20261101", nil, nil)
	b.put("Upper/2026/11/27/1200/000001.log", []byte("x"), nil)
	r := blobs.New(b.store, blobs.Options{})
	sure := func(names []string) (blobs.Summary, error) {
		plan, err := r.Plan(t.Context(), blobs.Query{Services: names, Range: blobs.Always(), Sure: true})
		if err != nil {
			return blobs.Summary{}, err
		}
		return plan.Read(t.Context(), func([]byte) error { return nil })
	}
	for _, c := range []struct {
		names []string
		lines int
		err   string
	}{
		{[]string{"*"}, 6, ""},
		{[]string{"web*", "web"}, 6, ""},
		{[]string{"web-?"}, 3, ""},
		{[]string{"_rejected"}, 3, ""},
		{[]string{"_*"}, 3, ""},
		{[]string{"timeout"}, 0, `no service "timeout"`},
		{[]string{"_horizon"}, 0, `no service "_horizon"`},
		{[]string{"../etc"}, 0, `no service "../etc"`},
		{[]string{"x*"}, 0, `no service matches "x*"`},
		{[]string{"[x"}, 0, `glob "[x": syntax error in pattern`},
		{[]string{"nope", "x*"}, 0, `no service "nope"`},
		{[]string{"y*", "x*"}, 0, `no service matches "y*"`},
		{[]string{"web", "nope"}, 3, `no service "nope"`},
		{[]string{"web-?", "nope", "x*", "../etc"}, 3, `no service "nope"; no service "../etc"`},
		{[]string{"web", "x*"}, 3, ``},
	} {
		plan, err := r.Plan(context.Background(), blobs.Query{Services: c.names, Range: blobs.Always()})
		if len(c.names) > 1 && c.err != "" && err == nil { // the other service is read, and nothing is missing
			n := 0
			sum, err := plan.Read(context.Background(), func(b []byte) error { n += strings.Count(string(b), "\n"); return nil })
			var absent []string
			for _, none := range sum.Absent {
				absent = append(absent, none.Error())
			}
			if err != nil || n != c.lines || !sum.Complete() || strings.Join(absent, "; ") != c.err {
				t.Errorf("%v: %d lines, %v, %v, %v", c.names, n, absent, sum.Problems, err)
			}
			continue
		}
		if err != nil || c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%v: error %v, want %s", c.names, err, c.err)
			}
			continue
		}
		n := 0
		sum, err := plan.Read(context.Background(), func(b []byte) error { n += strings.Count(string(b), "\n"); return nil })
		if err != nil || n != c.lines || !sum.Complete() || len(sum.Absent) > 0 {
			t.Errorf("%v: %d lines, %v, %v", c.names, n, err, sum.Problems)
		}
		if sum, err := sure(c.names); err != nil || !sum.Complete() || len(sum.Absent) > 0 {
			t.Errorf("%v, and nobody asks whether there are some: %+v, %v", c.names, sum, err)
		}
		services, err := r.Services(t.Context(), c.names)
		if err != nil || slices.Contains(services, "web") && (len(sum.Warnings) != 1 || !strings.Contains(fmt.Sprint(sum.Warnings), "web/: 1 object is")) {
			t.Errorf("%v: %v, %v", c.names, sum.Warnings, err)
		}
	}
	if sum, err := sure([]string{"nope", "x*"}); err != nil || !sum.Complete() || len(sum.Absent) > 0 {
		t.Errorf("nobody asks whether there are some: %+v, %v", sum, err)
	}
	if _, err := r.Plan(context.Background(), blobs.Query{Services: []string{"Web"}, Range: blobs.Always()}); err.(*blobs.NoServiceError).Near != "web" {
		t.Error(err)
	}
}
