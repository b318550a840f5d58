package when_test

import (
	"testing"
	"time"

	"blobtail/internal/when"
)

// Times of programs are read as those of records are.
func TestMachines(t *testing.T) {
	now := time.Date(2026, 11, 20, 16, 0, 0, 0, time.FixedZone("", 3600))
	for text, want := range map[string]string{
		"20-Nov-2026 11:00:06.257":                 "2026-11-20T10:00:06.257Z",
		"I1120 11:00:06.257000":                    "2026-11-20T10:00:06.257Z",
		"Nov 20, 2026 11:00:06 AM":                 "2026-11-20T10:00:06Z",
		"2026-11-20 10:00:06.257 +0000 UTC m=+1.5": "2026-11-20T10:00:06.257Z",
		"/Date(1795168806257)/":                    "2026-11-20T10:00:06.257Z",
	} {
		got, err := when.Time(text, now)
		if err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q is %v, %v; want %s", text, got, err, want)
		}
	}
	if got, err := when.Time("11/20/2026 10:00:06 AM", now); err == nil {
		t.Errorf("an American date is %v", got)
	}
}
