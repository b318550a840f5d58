package storagetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"blobtail/storage"
)

// testOpen checks that an open object gives the same bytes as Get, also after its deletion.
func testOpen(t *testing.T, s storage.BlobStore) {
	opener, ok := s.(storage.Opener)
	if !ok {
		t.Skip("the store opens no objects")
	}
	body := random(10_000)
	create(t, s, "web/a.log", body)
	if o, err := opener.Open(t.Context(), "web/b.log"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("a missing object: %v, %v", o, err)
	}
	o, err := opener.Open(t.Context(), "web/a.log")
	if err != nil {
		t.Fatal(err)
	}
	compare := func(when string, off, n int64) {
		t.Helper()
		want := body[min(off, 10_000):]
		if n >= 0 {
			want = want[:min(n, int64(len(want)))]
		}
		r, err := o.Get(t.Context(), off, n)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes from %d: %d bytes, %v; want %d", when, n, off, len(got), err, len(want))
		}
	}
	ranges := [][2]int64{{0, -1}, {0, 10}, {9990, 10}, {9990, 11}, {5000, -1}, {10_000, 1}, {20_000, -1}, {7, 0}}
	for _, r := range ranges {
		compare("stored", r[0], r[1])
	}
	if err := s.Delete(t.Context(), storage.Blob{Key: "web/a.log"}); err != nil {
		t.Fatal(err)
	}
	for _, r := range ranges {
		compare("deleted", r[0], r[1])
	}
	if _, err := o.Get(t.Context(), -1, 1); err == nil {
		t.Error("a negative offset is accepted")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := o.Get(ended, 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}
