package main

import (
	"errors"
	"testing"

	"blobtail/internal/storeid"
	"blobtail/internal/storeid/premises"
	"blobtail/record"
	"blobtail/storage/fsys"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// No record gets into the buffer while the log may belong to another store.
func TestGate(t *testing.T) {
	dir := t.TempDir()
	if err := (storeid.Binding{ID: "0123456789abcdef0123456789abcdef", Spec: "azure:logs"}).Save(fsys.OS(), dir); err != nil {
		t.Fatal(err)
	}
	refuse := storagetest.Times(-1, storagetest.Get, "", storagetest.Fault{Before: storagetest.ErrFault})
	cut := storagetest.Faulty(mem.New(mem.Options{}), refuse)
	p, err := premises.Open(t.Context(), premises.Options{FS: fsys.OS(), Dir: dir, Blobs: cut, Spec: "azure:losg", Remote: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (gate{premises: p}).Accept(t.Context(), nil); !errors.Is(err, record.ErrUnheld) {
		t.Errorf("a request to another name: %v", err)
	}
}
