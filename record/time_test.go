package record_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"blobtail/record"
	clock "blobtail/record/times"
)

// The package's own calendar and the standard library's agree everywhere.
func TestAppendTime(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	times := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64, -1e9, -86400e9, -86400e9 - 1}
	for range 20000 {
		times = append(times, int64(r.Uint64()))
	}
	for day := time.Date(1890, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2110; day = day.AddDate(0, 0, 1) {
		times = append(times, day.UnixNano(), day.UnixNano()-1)
	}
	for _, ns := range times {
		want := time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z")
		got := record.AppendTime([]byte("x"), ns)
		if string(got) != "x"+want {
			t.Fatalf("AppendTime(%d) = %s, want x%s", ns, got, want)
		}
		if back, ok := record.ParseCanonicalTime(got[1:]); !ok || back != ns {
			t.Fatalf("ParseCanonicalTime(%s) = %d, %v; want %d", got[1:], back, ok, ns)
		}
		if back, ok := clock.Parse(got[1:]); !ok || back != ns {
			t.Fatalf("times.Parse(%s) = %d, %v; want %d", got[1:], back, ok, ns)
		}
	}
}

// Replacing any byte by one that is no digit makes the time invalid.
func TestParseCanonicalTimeIsStrict(t *testing.T) {
	const good = "2026-11-20T15:04:05.123456789Z"
	for i := range len(good) {
		for _, c := range []byte("/:;.-,TZtz \x00\xff\xb0?") {
			if c == good[i] {
				continue
			}
			bad := good[:i] + string([]byte{c}) + good[i+1:]
			if _, ok := record.ParseCanonicalTime([]byte(bad)); ok {
				t.Errorf("took %q", bad)
			}
		}
	}
	for _, bad := range []string{"", good[:29], good + "Z", "2026-11-20T15:04:60.000000000Z", "2026-11-20T24:00:00.000000000Z",
		"2026-02-29T00:00:00.000000000Z", "2026-13-01T00:00:00.000000000Z", "9999-01-01T00:00:00.000000000Z", "0000-01-01T00:00:00.000000000Z"} {
		if _, ok := record.ParseCanonicalTime([]byte(bad)); ok {
			t.Errorf("took %q", bad)
		}
	}
}

// Ten zero bytes are no date, although a new cache has them.
func TestDateOfZeroBytes(t *testing.T) {
	text := []byte(strings.Repeat("\x00", 10) + "T15:04:05.000000000Z")
	if ns, ok := record.ParseCanonicalTime(text); ok {
		t.Errorf("it is %d", ns)
	}
	var c record.DayCache
	if ns, ok := c.Parse(text); ok {
		t.Errorf("it is %d", ns)
	}
}
