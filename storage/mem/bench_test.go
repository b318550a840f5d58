package mem_test

import (
	"testing"

	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

func BenchmarkStore(b *testing.B) {
	storagetest.Bench(b, 10_000, func(*testing.B) storage.BlobStore { return mem.New(mem.Options{}) })
}
