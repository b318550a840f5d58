package tables_test

import (
	"testing"

	"blobtail/storage"
	"blobtail/storage/storagetest"
)

func BenchmarkStore(b *testing.B) {
	storagetest.BenchTables(b, func(b *testing.B) storage.TableStore { return open(b, b.TempDir()) })
}
