package cli_test

import (
	"testing"
	"time"

	"blobtail/internal/cli"
)

func berlin(t testing.TB) *time.Location {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 11, 20, 15, 4, 5, 678, berlin(t)) // 14:04:05 UTC
	for text, want := range map[string]string{
		"2026-11-20T15:04:05Z":           "2026-11-20T15:04:05Z",
		"2026-11-20T15:04:05.123456789Z": "2026-11-20T15:04:05.123456789Z",
		"2026-11-20T15:04:05-05:00":      "2026-11-20T20:04:05Z",
		"2026-11-20T15:04+01:00":         "2026-11-20T14:04:00Z",
		"2026-11-20 15:04:05+01:00":      "2026-11-20T14:04:05Z",
		"2026-11-20":                     "2026-11-19T23:00:00Z",
		"2026-07-01":                     "2026-06-30T22:00:00Z",
		"2026-11-20 15:04":               "2026-11-20T14:04:00Z",
		"2026-11-20T15:04":               "2026-11-20T14:04:00Z",
		"2026-11-20 15:04:05":            "2026-11-20T14:04:05Z",
		"2026-11-20 15:04:05.5":          "2026-11-20T14:04:05.5Z",
		"15:04":                          "2026-11-20T14:04:00Z", // a moment ago
		"15:05":                          "2026-11-19T14:05:00Z", // not yet today
		"00:00":                          "2026-11-19T23:00:00Z",
		"15:04:05":                       "2026-11-20T14:04:05Z",
		"15:04:06":                       "2026-11-19T14:04:06Z",
		"now":                            "2026-11-20T14:04:05.000000678Z",
		" now ":                          "2026-11-20T14:04:05.000000678Z",
		"now-2h":                         "2026-11-20T12:04:05.000000678Z",
		"now - 2h":                       "",
		"now- 2h":                        "2026-11-20T12:04:05.000000678Z",
		"now+1h":                         "2026-11-20T15:04:05.000000678Z",
		"-2h":                            "2026-11-20T12:04:05.000000678Z",
		"-1d12h":                         "2026-11-19T02:04:05.000000678Z",
		"-1w":                            "2026-11-13T14:04:05.000000678Z",
		"today":                          "2026-11-19T23:00:00Z",
		"Yesterday":                      "2026-11-18T23:00:00Z",
		"1795183445":                     "2026-11-20T14:04:05Z",
		"1795183445.25":                  "2026-11-20T14:04:05.25Z",
		"1795183445678":                  "2026-11-20T14:04:05.678Z",
		"1795183445678901":               "2026-11-20T14:04:05.678901Z",
		"1795183445678901234":            "2026-11-20T14:04:05.678901234Z",

		"": "", "2026": "", "20261120": "", "2026-13-01": "", "2026-11-31": "", "25:00": "",
		"now2h": "", "nowhere": "", "-": "", "-2": "", "2h": "", "1795183445.": "", "1795183445678.5": "",
		"0001-01-01": "", "9999-01-01": "", "tomorrow": "", "-300000d": "",
	} {
		got, err := cli.ParseTime(text, now)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q: %s, want an error", text, got.UTC())
		case want != "" && err != nil:
			t.Errorf("%v", err)
		case want != "" && got.UTC().Format(time.RFC3339Nano) != want:
			t.Errorf("%q: %s, want %s", text, got.UTC().Format(time.RFC3339Nano), want)
		}
	}
}

// On the day when clocks go back, 02:30 is one of two times, and the day keeps its real
// length.
func TestParseTimeAcrossClockChange(t *testing.T) {
	now := time.Date(2026, 10, 26, 1, 0, 0, 0, berlin(t))
	got, err := cli.ParseTime("yesterday", now)
	if err != nil || now.Sub(got) != 26*time.Hour {
		t.Errorf("yesterday began %s ago, %v", now.Sub(got), err)
	}
}

func FuzzParseTime(f *testing.F) {
	for _, text := range []string{"now-1d12h", "2026-11-20 15:04:05.5", "15:04", "1795183445.25", "-2w", "2026-11-20T15:04+01:00"} {
		f.Add(text)
	}
	now := time.Date(2026, 11, 20, 15, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		at, err := cli.ParseTime(text, now)
		if err != nil {
			return
		}
		// The parsed time can be written down and parsed again.
		again, err := cli.ParseTime(at.UTC().Format(time.RFC3339Nano), now)
		if err != nil || !again.Equal(at) {
			t.Errorf("%q is %s, but its RFC 3339 form %s, %v", text, at, again, err)
		}
	})
}
