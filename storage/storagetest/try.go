package storagetest

import (
	"testing"

	"blobtail/storage"
)

// testTryCreate tests that a try of a write leaves no object.
func testTryCreate(t *testing.T, s storage.BlobStore) {
	trier, ok := s.(storage.Trier)
	if !ok {
		t.Skip("this driver cannot try a write")
	}
	create(t, s, "web/1", []byte("x"))
	for range 2 {
		if err := trier.TryCreate(t.Context()); err != nil {
			t.Errorf("TryCreate: %v", err)
		}
	}
	if list := collect(t, s.List(t.Context(), "", "")); len(list) != 1 {
		t.Errorf("List = %+v, want one object", list)
	}
}
