package main

import (
	"context"
	"errors"
	"io"
	"testing"

	"blobtail/internal/storeid"
	"blobtail/internal/storeid/premises"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/fsys"
	"blobtail/storage/mem"
)

// cutStore cannot be reached.
type cutStore struct{ storage.BlobStore }

func (cutStore) Get(context.Context, string, int64, int64) (io.ReadCloser, error) {
	return nil, errors.New("the cable is cut")
}

// No record gets into the buffer while the log may belong to another store.
func TestGate(t *testing.T) {
	dir := t.TempDir()
	if err := (storeid.Binding{ID: "0123456789abcdef0123456789abcdef", Spec: "azure:logs"}).Save(fsys.OS(), dir); err != nil {
		t.Fatal(err)
	}
	p, err := premises.Open(t.Context(), premises.Options{FS: fsys.OS(), Dir: dir, Blobs: cutStore{mem.New(mem.Options{})}, Spec: "azure:losg", Remote: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (gate{premises: p}).Accept(t.Context(), nil); !errors.Is(err, record.ErrUnheld) {
		t.Errorf("a request to another name: %v", err)
	}
}
