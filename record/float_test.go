package record_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"blobtail/record"
)

func TestAppendFloat(t *testing.T) {
	check := func(f float64) {
		t.Helper()
		want, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if got := record.AppendFloat([]byte("x"), f); string(got) != "x"+string(want) {
			t.Errorf("%s, want %s", got[1:], want)
		}
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 1, 0.001, 0.0005, 1e-6, 9e-7, 1.5e-9, 1e20, 1e21, 1.5e300, 5e-324,
		math.MaxFloat64, 999999999999.999, 1e12, 12345678, 0.1 + 0.2, 100, 1.25} {
		check(f)
		check(-f)
	}
	r := rand.New(rand.NewPCG(9, 9))
	for range 200_000 {
		if f := math.Float64frombits(r.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			check(f)
		}
		check(float64(r.Uint64N(1e16)>>r.IntN(50)) / []float64{1, 10, 100, 1000, 10000}[r.IntN(5)])
		check(r.Float64() * 1e4)
	}
}
