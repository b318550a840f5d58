package azure_test

import (
	"testing"

	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// BenchmarkStore measures the cost of the driver, not of Azure.
func BenchmarkStore(b *testing.B) {
	storagetest.Bench(b, 500, func(b *testing.B) storage.BlobStore { return open(b) })
}
