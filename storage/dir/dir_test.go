package dir_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
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

// In a bare store a file has the bytes of its object alone, as other programs want it.
func TestBare(t *testing.T) {
	root := t.TempDir()
	s, err := dir.Open(root, dir.Options{Bare: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	body := []byte("PAR1 ... \x5d\x2a\x4d\x18 PAR1")
	storagetest.Put(t, s, "a=b/c", body, storage.Attrs{ContentType: "text/plain"})
	if file, err := os.ReadFile(filepath.Join(root, "a=b/c")); err != nil || !bytes.Equal(file, body) {
		t.Errorf("%q, %v", file, err)
	}
	if all := storagetest.Objects(t, s, ""); len(all) != 1 || all[0].Size != int64(len(body)) || all[0].ContentType != "" {
		t.Errorf("%+v", all)
	}
	if got := storagetest.Body(t, s, "a=b/c"); !bytes.Equal(got, body) {
		t.Errorf("%q", got)
	}
	if err := s.Create(t.Context(), "a=b/c", nil, storage.Attrs{}); !errors.Is(err, storage.ErrExist) {
		t.Error(err)
	}
}
