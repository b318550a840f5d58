package units

import "testing"

// A number and its noun agree.
func TestCount(t *testing.T) {
	for _, c := range []struct {
		n     int64
		thing string
		want  string
	}{
		{0, "record", "0 records"}, {1, "record", "1 record"}, {2, "record", "2 records"}, {1200, "blob", "1,200 blobs"}, {-1234567, "byte", "-1,234,567 bytes"},
		{1, "entry", "1 entry"}, {2, "entry", "2 entries"}, {2, "day", "2 days"}, {1, "series", "1 series"}, {3, "series", "3 series"}, {2, "index", "2 indexes"}, {100, "address", "100 addresses"},
	} {
		if got := Count(c.n, c.thing); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}
