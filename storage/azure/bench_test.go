package azure_test

import (
	"testing"

	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// It tells what the driver costs, not what Azure does.
func BenchmarkStore(b *testing.B) {
	storagetest.Bench(b, 500, func(b *testing.B) storage.BlobStore { return open(b) })
}
