package record_test

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"testing"

	"blobtail/record"
)

// Keys compare by time, then by the bytes of the origin, then by index.
func TestKeyCompare(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	random := func() (k record.Key) {
		k.Time, k.Index = rnd.Int64N(3)-1, rnd.Uint32N(3)
		for _, i := range []int{0, 7, 8, 15} {
			k.Origin[i] = byte(rnd.IntN(2)) * 0x80
		}
		return k
	}
	for range 20000 {
		a, b := random(), random()
		want := cmp.Or(cmp.Compare(a.Time, b.Time), bytes.Compare(a.Origin[:], b.Origin[:]), cmp.Compare(a.Index, b.Index))
		if got := a.Compare(&b); got != want {
			t.Fatalf("%v and %v compare as %d, want %d", a, b, got, want)
		}
	}
}
