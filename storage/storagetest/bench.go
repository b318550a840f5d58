package storagetest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"blobtail/storage"
)

// Bench compares drivers: creation of small and of usual objects, alone and by
// eight at once, a list of listed objects with their metadata, and a read of an
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
