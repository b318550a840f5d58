package azure_test

import (
	"os"
	"testing"

	"blobtail/internal/dev/testenv"
	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/storagetest"
)

// env is shared by the tests of this package: Azurite takes a second to start.
var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// open returns a store with a container of its own.
func open(t testing.TB) *azure.Store {
	t.Helper()
	a := env.Azurite(t)
	s, err := azure.Open(testenv.Name("c"), azure.Options{Getenv: a.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureContainer(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) (storage.BlobStore, storage.TableStore) {
		s := open(t)
		// Tables belong to the account, which the tests share.
		for name, err := range s.Tables(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Drop(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		return s, s
	})
}
