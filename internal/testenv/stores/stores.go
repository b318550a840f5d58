// Package stores opens a store of each kind for a test.
package stores

import (
	"testing"

	"blobtail/internal/testenv"
	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/dir"
	"blobtail/storage/dir/tables"
	"blobtail/storage/mem"
)

// Each runs a subtest for each kind of store, several at once: in memory, in a directory,
// and in Azurite, as [testenv.Env.Azurite] has it. Its stores are new, but all subtests in
// Azurite that share an account share their tables.
func Each(t *testing.T, env *testenv.Env, test func(t *testing.T, blobs storage.BlobStore, tables storage.TableStore)) {
	t.Run("mem", func(t *testing.T) {
		t.Parallel()
		s := mem.New(mem.Options{})
		test(t, s, s)
	})
	t.Run("dir", func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		blobs, err := dir.Open(root, dir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { blobs.Close() })
		tabs, err := tables.Open(root)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tabs.Close() })
		test(t, blobs, tabs)
	})
	t.Run("azure", func(t *testing.T) {
		t.Parallel()
		s, err := azure.Open(testenv.Name("c"), azure.Options{Getenv: env.Azurite(t).Getenv})
		if err == nil {
			err = s.EnsureContainer(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		test(t, s, s)
	})
}
