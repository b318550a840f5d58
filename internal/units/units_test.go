package units_test

import (
	"strings"
	"testing"

	"blobtail/internal/units"
)

// A text with two readings is refused with both; so is one with none.
func TestTwoReadings(t *testing.T) {
	for text, want := range map[string]string{
		"1M": "1m or 30d", "6M": "6m or 180d", "M": "no duration", "1M2h": "no duration", "-1M": "no duration", "99999999999999999999M": "no duration", "90": "no duration",
	} {
		var d units.Duration
		if err := d.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v, want %s", text, d, err, want)
		}
	}
	for text, want := range map[string]string{
		"32M": "32MiB or 32MB", "1.5 g": "1.5GiB or 1.5GB", "10k": "10KiB or 10KB", "M": "no size", "32mb": "no size", "32MM": "no size", "x1M": "no size", "-1M": "no size", "": "no size",
	} {
		var s units.Size
		if err := s.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v, want %s", text, s, err, want)
		}
	}
}

func TestOneReading(t *testing.T) {
	var d units.Duration
	for text, want := range map[string]string{"90s": "1m30s", "1d12h": "36h", "2w": "336h", "0": "0s"} {
		if err := d.UnmarshalText([]byte(text)); err != nil || d.String() != want {
			t.Errorf("%q: %s, %v", text, d, err)
		}
	}
	var s units.Size
	for text, want := range map[string]string{"512KiB": "512KiB", "32MB": "31250KiB", "1 GiB": "1GiB", "10kB": "10000B", "7": "7B"} {
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != want {
			t.Errorf("%q: %s, %v", text, s, err)
		}
	}
}
