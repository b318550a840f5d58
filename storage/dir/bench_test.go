package dir_test

import (
	"testing"

	"blobtail/storage"
	"blobtail/storage/storagetest"
)

func BenchmarkStore(b *testing.B) {
	storagetest.Bench(b, 10_000, func(b *testing.B) storage.BlobStore { return open(b, b.TempDir()) })
}
