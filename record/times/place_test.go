package times_test

import (
	"fmt"
	"testing"

	"blobtail/record/times"
)

// Unknown names count against a Reader only among records of one arrival. At another time it looks
// again for a place that it passed over.
func TestUnknownPlaces(t *testing.T) {
	const text = "26-Nov-2026 09:14:21 Europe/Vienna"
	r := times.Reader{Now: 1795690000_000000000}
	want, part := r.Read([]byte(text))
	if part != times.Full {
		t.Skip("this host has no zones")
	}
	r = times.Reader{Now: r.Now}
	for i := range 200 {
		if _, part := r.Read(fmt.Appendf(nil, "26-Nov-2026 09:14:21 Europe/No%s", string(rune('a'+i%26))+string(rune('a'+i/26)))); part != times.None {
			t.Fatal("there is such a place")
		}
	}
	if _, part := r.Read([]byte(text)); part != times.None {
		t.Error("there is no bound")
	}
	r.Now++
	if got, part := r.Read([]byte(text)); part != times.Full || got != want {
		t.Errorf("%d %d, want %d", got, part, want)
	}
}
