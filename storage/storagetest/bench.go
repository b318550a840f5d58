package storagetest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"blobtail/storage"
)

// Bench compares drivers. It measures the creation of small and of usual objects, alone
// and by eight at once, a list of listed objects with their metadata, and a read of an
// object's end. Azurite slows down with each blob that it holds: give it few.
func Bench(b *testing.B, listed int, open func(b *testing.B) storage.BlobStore) {
	for _, size := range []int{4 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("Create/%dKiB", size>>10), func(b *testing.B) {
			s, body := open(b), random(size)
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				create(b, s, fmt.Sprintf("web/2026/11/20/1500/%06d.log", i), body)
			}
		})
		b.Run(fmt.Sprintf("CreateAtOnce/%dKiB", size>>10), func(b *testing.B) {
			s, body := open(b), random(size)
			b.SetBytes(int64(size))
			b.SetParallelism(4)
			var n atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					key := fmt.Sprintf("web/2026/11/20/1500/%06d.log", n.Add(1))
					if err := s.Create(b.Context(), key, body, attrs()); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
	b.Run(fmt.Sprintf("List/%d", listed), func(b *testing.B) {
		s := open(b)
		for i := range listed {
			create(b, s, fmt.Sprintf("web/2026/11/%02d/%02d00/%06d.log", i/2400+1, i/100%24, i%100+1), nil)
		}
		for b.Loop() {
			if n := len(collect(b, s.List(b.Context(), "web/", ""))); n != listed {
				b.Fatalf("%d objects of %d", n, listed)
			}
		}
	})
	b.Run("Get/64KiB", func(b *testing.B) {
		s := open(b)
		create(b, s, "web/1.log", random(1<<20))
		b.SetBytes(64 << 10)
		for b.Loop() {
			read(b, s, "web/1.log", 1<<20-64<<10, -1)
		}
	})
}

// BenchTables measures the operations of the tail: a transaction of two rows of 30 KB,
// and a scan for the newest.
func BenchTables(b *testing.B, open func(b *testing.B) storage.TableStore) {
	rows := func(i int) []storage.Row {
		var rows []storage.Row
		for _, kind := range []string{"a", "e"} {
			key := fmt.Sprintf("%s-%010d", kind, 1<<30-i)
			rows = append(rows, storage.Row{Key: key, Props: map[string]any{"lines": random(30 << 10), "first": int64(i)}})
		}
		return rows
	}
	b.Run("Upsert", func(b *testing.B) {
		s := open(b)
		for i := 0; b.Loop(); i++ {
			upsert(b, s, "tail20261120", "web~0", rows(i))
		}
	})
	b.Run("Scan/5", func(b *testing.B) {
		s := open(b)
		for i := range 200 {
			upsert(b, s, "tail20261120", "web~0", rows(i))
		}
		for b.Loop() {
			if n := len(scan(b, s, "tail20261120", "web~0", "a-", "a~", 5)); n != 5 {
				b.Fatal(n)
			}
		}
	})
}
