package dir_test

import (
	"testing"

	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) (storage.BlobStore, storage.TableStore) {
		return open(t, t.TempDir()), nil
	})
}

func open(t testing.TB, root string) *dir.Store {
	t.Helper()
	s, err := dir.Open(root, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
