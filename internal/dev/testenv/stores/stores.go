// Package stores opens stores of every kind, for tests that make a claim on all of them.
package stores

import (
	"testing"

	"blobtail/internal/dev/testenv"
	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/dir"
	"blobtail/storage/dir/tables"
	"blobtail/storage/mem"
)

// Open makes a new store, which is closed at the end of the test. It has no blobs. The
// tables of Azure belong to an account, which the calls of one test share.
type Open func() (storage.BlobStore, storage.TableStore)

// Each runs a subtest for each kind of store: mem, dir and azure.
func Each(t *testing.T, env *testenv.Env, test func(t *testing.T, open Open)) {
	for name, open := range map[string]func(t *testing.T) (storage.BlobStore, storage.TableStore){
		"mem": func(*testing.T) (storage.BlobStore, storage.TableStore) {
			s := mem.New(mem.Options{})
			return s, s
		},
		"dir": openDir,
		"azure": func(t *testing.T) (storage.BlobStore, storage.TableStore) {
			s, err := azure.Open(testenv.Name("c"), azure.Options{Getenv: env.Azurite(t).Getenv})
			if err == nil {
				err = s.EnsureContainer(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			return s, s
		},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, func() (storage.BlobStore, storage.TableStore) { return open(t) })
		})
	}
}

func openDir(t *testing.T) (storage.BlobStore, storage.TableStore) {
	root := t.TempDir()
	blobs, err := dir.Open(root, dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { blobs.Close() })
	rows, err := tables.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rows.Close() })
	return blobs, rows
}
