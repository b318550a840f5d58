package blobs_test

import (
	"fmt"
	"testing"
	"time"

	"blobtail/reading/blobs"
)

// An hour of a few blobs is divided into parts of the wanted size, and one of many blobs into larger
// ones: each part reads a piece of each blob. The parts are the range without gaps.
func TestParts(t *testing.T) {
	begin := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC).UnixNano()
	for _, c := range []struct{ services, hours, size, want int }{
		{2, 1, 10, 10}, {16, 1, 10, 10}, {32, 1, 10, 5}, {64, 1, 10, 2}, {400, 1, 10, 1}, {4, 3, 10, 30}, {4, 6, 1, 6},
	} {
		b := newBuilder(t, 0)
		all := int64(0)
		for hour := range c.hours {
			for n := range c.services {
				name, at := fmt.Sprint("s", 100+n), begin+int64(hour)*int64(time.Hour)
				key, _ := b.add(time.Hour, []rec{
					{service: name, time: at, line: line(at, "info", name, "m")},
					{service: name, time: at + 1_000_000, line: line(at+1_000_000, "info", name, "m")},
				})
				at0, err := b.store.Stat(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				all += at0.Size
			}
		}
		plan, err := blobs.New(b.store, blobs.Options{}).Plan(t.Context(), blobs.Query{Services: []string{"*"}, Range: blobs.Always()})
		if err != nil {
			t.Fatal(err)
		}
		parts := plan.Parts(all/int64(c.hours*c.size), false)
		if len(parts) != c.want {
			t.Errorf("%+v: %d parts", c, len(parts))
		}
		last, sum := blobs.Oldest, int64(0)
		for _, p := range parts {
			if p.From != last {
				t.Errorf("%+v: a part begins at %d, and the one before ends at %d", c, p.From, last)
			}
			last, sum = p.To, sum+p.Bytes
		}
		if last != blobs.Newest || sum > all || sum < all*9/10 {
			t.Errorf("%+v: the parts end at %d and have %d bytes of %d", c, last, sum, all)
		}
	}
}
