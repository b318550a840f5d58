package lease_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/lease"
	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/dir/tables"
	"blobtail/storage/mem"
)

// BenchmarkEnter is the price of the lease for a request. It is nearly nothing while
// the row says Holding. After an idle time it is one write of the table and one of the
// notes, by the store.
func BenchmarkEnter(b *testing.B) {
	b.Run("holding", func(b *testing.B) {
		a := benched(b, mem.New(mem.Options{}))
		b.ReportAllocs()
		for b.Loop() {
			leave, err := a.Enter(b.Context(), math.MaxInt64)
			if err != nil {
				b.Fatal(err)
			}
			leave()
		}
	})
	b.Run("idle/dir", func(b *testing.B) {
		s, err := tables.Open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		enterIdle(b, s)
	})
	b.Run("idle/azurite", func(b *testing.B) {
		s, err := azure.Open(testenv.Name("c"), azure.Options{Getenv: env.Azurite(b).Getenv})
		if err != nil {
			b.Fatal(err)
		}
		enterIdle(b, s)
	})
}

func benched(b *testing.B, s storage.TableStore) *lease.Announcer {
	b.Helper()
	a, err := lease.New(s, lease.Options{Dir: b.TempDir(), Store: testenv.Name("store")})
	if err != nil {
		b.Fatal(err)
	}
	return a
}

// enterIdle enters after the row said Idle, over and over.
func enterIdle(b *testing.B, s storage.TableStore) {
	a := benched(b, s)
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		if err := a.Idle(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		begun := time.Now()
		leave, err := a.Enter(b.Context(), math.MaxInt64)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
		leave()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
