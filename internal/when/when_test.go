package when_test

import (
	"strings"
	"testing"
	"time"

	"blobtail/internal/when"
)

func zone(t testing.TB, name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// A Friday, 14:04:05 UTC.
func friday(t testing.TB) time.Time {
	return time.Date(2026, 11, 20, 15, 4, 5, 678, zone(t, "Europe/Berlin"))
}

// times are texts with the times that they mean on that day.
func times() map[string]string {
	return map[string]string{
		"2026-11-20T15:04:05Z":            "2026-11-20T15:04:05Z",
		"2026-11-20T15:04:05.123456789Z":  "2026-11-20T15:04:05.123456789Z",
		"2026-11-20T15:04:05-05:00":       "2026-11-20T20:04:05Z",
		"2026-11-20T15:04+01:00":          "2026-11-20T14:04:00Z",
		"2026-11-20 15:04:05+01:00":       "2026-11-20T14:04:05Z",
		"2026-11-20 15:04:05 +01:00":      "2026-11-20T14:04:05Z", // logquery's own
		"2026-11-20 15:04:05 +0530":       "2026-11-20T09:34:05Z",
		"2026-11-20 15:04:05 UTC":         "2026-11-20T15:04:05Z",
		"2026-11-20 15:04:05.25 utc":      "2026-11-20T15:04:05.25Z",
		"2026-11-20":                      "2026-11-19T23:00:00Z",
		"2026-07-01":                      "2026-06-30T22:00:00Z",
		"2026/11/20":                      "2026-11-19T23:00:00Z",
		"2026-11-20 15:04":                "2026-11-20T14:04:00Z",
		"2026-11-20T15:04":                "2026-11-20T14:04:00Z",
		"2026-11-20 15:04:05":             "2026-11-20T14:04:05Z",
		"2026-11-20 15:04:05.5":           "2026-11-20T14:04:05.5Z",
		"2026-11-20 15:04:05,123":         "2026-11-20T14:04:05.123Z",
		"2026/11/20 15:04:05":             "2026-11-20T14:04:05Z",
		"20261120T150405Z":                "2026-11-20T15:04:05Z",
		"20261120T150405":                 "2026-11-20T14:04:05Z",
		"2026-11-20 3pm":                  "2026-11-20T14:00:00Z",
		"10/Nov/2026:15:04:05 +0000":      "2026-11-10T15:04:05Z",
		"[10/Nov/2026:15:04:05 +0000]":    "2026-11-10T15:04:05Z",
		"Nov 10 15:04:05":                 "2026-11-10T14:04:05Z",
		"Nov  9 15:04:05":                 "2026-11-09T14:04:05Z",
		"Nov 21 15:04:05":                 "2025-11-21T14:04:05Z", // not yet this year
		"Feb 29 15:04:05":                 "2024-02-29T14:04:05Z",
		"Tue, 10 Nov 2026 15:04:05 GMT":   "2026-11-10T15:04:05Z",
		"Tue, 10 Nov 2026 15:04:05 +0100": "2026-11-10T14:04:05Z",
		"Tuesday, 10-Nov-26 15:04:05 UTC": "2026-11-10T15:04:05Z",
		"Tue Nov 10 15:04:05 2026":        "2026-11-10T14:04:05Z",
		"Tue Nov 10 15:04:05 +0100 2026":  "2026-11-10T14:04:05Z",
		"Tue Nov 10 15:04:05 UTC 2026":    "2026-11-10T15:04:05Z",
		"Nov 10":                          "2026-11-09T23:00:00Z",
		"10 Nov":                          "2026-11-09T23:00:00Z",
		"24 December":                     "2025-12-23T23:00:00Z",
		"Nov 10, 2026":                    "2026-11-09T23:00:00Z",
		"10 Nov 2026 15:04":               "2026-11-10T14:04:00Z",
		"15:04":                           "2026-11-20T14:04:00Z", // a moment ago
		"15:05":                           "2026-11-19T14:05:00Z", // not yet today
		"00:00":                           "2026-11-19T23:00:00Z",
		"15:04:05":                        "2026-11-20T14:04:05Z",
		"15:04:06":                        "2026-11-19T14:04:06Z",
		"14:04 UTC":                       "2026-11-20T14:04:00Z",
		"14:05Z":                          "2026-11-19T14:05:00Z",
		"3pm":                             "2026-11-20T14:00:00Z",
		"3:30 PM":                         "2026-11-19T14:30:00Z",
		"noon":                            "2026-11-20T11:00:00Z",
		"yesterday 15:04":                 "2026-11-19T14:04:00Z",
		"Yesterday at 3pm":                "2026-11-19T14:00:00Z",
		"yesterday 3 pm":                  "2026-11-19T14:00:00Z",
		"monday 9:00 UTC":                 "2026-11-16T09:00:00Z",
		"now":                             "2026-11-20T14:04:05.000000678Z",
		" now ":                           "2026-11-20T14:04:05.000000678Z",
		"now-2h":                          "2026-11-20T12:04:05.000000678Z",
		"now - 2h":                        "2026-11-20T12:04:05.000000678Z",
		"now+1h":                          "2026-11-20T15:04:05.000000678Z",
		"-2h":                             "2026-11-20T12:04:05.000000678Z",
		"- 2 h":                           "2026-11-20T12:04:05.000000678Z",
		"-1d12h":                          "2026-11-19T02:04:05.000000678Z",
		"-1w":                             "2026-11-13T14:04:05.000000678Z",
		"2h ago":                          "2026-11-20T12:04:05.000000678Z",
		"last week":                       "2026-11-13T14:04:05.000000678Z",
		"Last 3 hours":                    "2026-11-20T11:04:05.000000678Z",
		"15:04 America/New_York":          "2026-11-19T20:04:00Z",
		"2026-11-20 15:04 Asia/Kolkata":   "2026-11-20T09:34:00Z",
		"10 minutes ago":                  "2026-11-20T13:54:05.000000678Z",
		"1 hour and 30 minutes ago":       "2026-11-20T12:34:05.000000678Z",
		"1 month ago":                     "2026-10-20T13:04:05.000000678Z", // in summer time
		"-1y":                             "2025-11-20T14:04:05.000000678Z",
		"today":                           "2026-11-19T23:00:00Z",
		"Yesterday":                       "2026-11-18T23:00:00Z",
		"tomorrow":                        "2026-11-20T23:00:00Z",
		"friday":                          "2026-11-19T23:00:00Z", // today
		"Mon":                             "2026-11-15T23:00:00Z",
		"saturday":                        "2026-11-13T23:00:00Z",
		"1795183445":                      "2026-11-20T14:04:05Z",
		"@1795183445":                     "2026-11-20T14:04:05Z",
		"@0":                              "1970-01-01T00:00:00Z",
		"1795183445.25":                   "2026-11-20T14:04:05.25Z",
		"1795183445678":                   "2026-11-20T14:04:05.678Z",
		"1795183445678901":                "2026-11-20T14:04:05.678901Z",
		"1795183445678901234":             "2026-11-20T14:04:05.678901234Z",
	}
}

func TestTime(t *testing.T) {
	for text, want := range times() {
		got, err := when.Time(text, friday(t))
		if err != nil {
			t.Errorf("%v", err)
		} else if got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q: %s, want %s", text, got.UTC().Format(time.RFC3339Nano), want)
		}
	}
}

// Each refusal names the forms to write.
func TestNoTime(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "times look like",
		"2026":                         "times look like",
		"20261120":                     "times look like",
		"2026-13-01":                   "times look like",
		"2026-11-31":                   "times look like",
		"25:00":                        "times look like",
		"now2h":                        "times look like",
		"nowhere":                      "times look like",
		"-":                            "times look like",
		"1795183445.":                  "times look like",
		"1795183445678.5":              "times look like",
		"-300000d":                     "times look like",
		"-2":                           "-2s, -2m or -2h",
		"+90":                          "+90s, +90m or +90h",
		"2h":                           "-2h or +2h",
		"1M":                           "-1m, +1m, -1mo or +1mo",
		"-1M":                          "-1m or -1mo",
		"+2 M":                         "+2 m or +2 mo",
		"now-1M":                       "now-1m or now-1mo",
		"now-1M12h":                    "now-1m12h or now-1mo12h",
		"3M ago":                       "3m ago or 3mo ago",
		"2 hours":                      "-2hours or +2hours",
		"0001-01-01":                   "the year must be from 1678 to 2261",
		"9999-01-01":                   "the year must be from 1678 to 2261",
		"10/11/2026":                   "2026-11-10 or 2026-10-11",
		"10.11.2026 15:04":             "2026-11-10 15:04 or 2026-10-11 15:04",
		"11/13/2026":                   "dates look like 2026-11-13",
		"15:04 IST":                    "Asia/Kolkata, Europe/Dublin, Asia/Jerusalem",
		"2026-11-20 15:04 PST":         "America/Los_Angeles",
		"Tue Nov 10 15:04:05 PST 2026": "times look like",
		"2026-10-25 02:30":             "2026-10-25 02:30:00 +02:00 or 2026-10-25 02:30:00 +01:00",
		"2026-03-29 02:30":             "no clock showed it",
	} {
		if got, err := when.Time(text, friday(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}

// On the day when clocks go back, the day keeps its real length, and the two times of a
// clock are told apart by their offset.
func TestClockChange(t *testing.T) {
	now := time.Date(2026, 10, 26, 1, 0, 0, 0, zone(t, "Europe/Berlin"))
	from, to, err := when.Day("yesterday", now)
	if err != nil || to.Sub(from) != 25*time.Hour {
		t.Errorf("yesterday lasted %s, %v", to.Sub(from), err)
	}
	for text, want := range map[string]string{"2026-10-25 02:30 +02:00": "2026-10-25T00:30:00Z", "2026-10-25 02:30 +01:00": "2026-10-25T01:30:00Z"} {
		if got, err := when.Time(text, now); err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q: %s, %v", text, got.UTC(), err)
		}
	}
	// In 2018 clocks went forward at midnight in São Paulo.
	now = time.Date(2018, 11, 5, 12, 0, 0, 0, zone(t, "America/Sao_Paulo"))
	if got, err := when.Time("2018-11-04", now); err != nil || got.Format(time.RFC3339) != "2018-11-04T01:00:00-02:00" {
		t.Errorf("the day began at %s, %v", got, err)
	}
}

func TestSince(t *testing.T) {
	now := friday(t)
	until := now.Add(-time.Hour)
	for text, want := range map[string]string{
		"90s": "2026-11-20T13:02:35.000000678Z", "1.5h": "2026-11-20T11:34:05.000000678Z", "1d12h": "2026-11-19T01:04:05.000000678Z",
		"2 hours": "2026-11-20T11:04:05.000000678Z", "1mo": "2026-10-20T12:04:05.000000678Z", "1y": "2025-11-20T13:04:05.000000678Z",
		"today": "2026-11-19T23:00:00Z", "15:04": "2026-11-20T14:04:00Z", "-1h": "2026-11-20T13:04:05.000000678Z",
	} {
		got, err := when.Since(text, until, now)
		if err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q: %s, %v, want %s", text, got.UTC().Format(time.RFC3339Nano), err, want)
		}
	}
	for text, want := range map[string]string{"": "neither", "0": "neither", "400y": "too long", "2000y": "too long", "90": "90s, 90m or 90h", "1M": "1m or 1mo", "1M2M": "1m2m or 1mo2mo", "12 M": "12 m or 12 mo", "-1M": "-1m or -1mo", "soon": "neither a duration nor a time", "10/11/2026": "2026-11-10 or 2026-10-11"} {
		if got, err := when.Since(text, until, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}

// A stretch has a length only if its text has one reading.
func TestLength(t *testing.T) {
	for text, want := range map[string]time.Duration{"5 minutes": 5 * time.Minute, "1D12H": 36 * time.Hour, "5MS": 5 * time.Millisecond, "5Min": 5 * time.Minute, "1M": -1, "1mo": -1, "": -1} {
		got, ok := when.Length(text)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %s, %t", text, got, ok)
		}
	}
}

func TestNoDay(t *testing.T) {
	for text, want := range map[string]string{"10/11/2026": "2026-11-10 or 2026-10-11", "11/13/2026": "dates look like 2026-11-13", "soon": "days look like"} {
		if from, _, err := when.Day(text, friday(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v, want %s", text, from, err, want)
		}
	}
}

func TestZone(t *testing.T) {
	for name, want := range map[string]string{
		"Europe/Berlin": "Europe/Berlin", "asia/kolkata": "Asia/Kolkata", "america/new_york": "America/New_York", "utc": "UTC", "cet": "CET", "+05:30": "", "-0800": "",
	} {
		if got, err := when.Zone(name); err != nil || got.String() != want {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{"berlin": "Europe/Berlin", "IST": "Asia/Kolkata, Europe/Dublin", "": "zones look like", "local": "zones look like", "../etc": "zones look like"} {
		if got, err := when.Zone(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %s", name, got, err, want)
		}
	}
}

// A plus sign that was typed in a URL comes as a blank.
func TestTyped(t *testing.T) {
	now := friday(t)
	at := func(text string) (int64, error) {
		got, err := when.Time(text, now)
		return got.UnixNano(), err
	}
	since := func(text string) (int64, error) {
		got, err := when.Since(text, now, now)
		return got.UnixNano(), err
	}
	for _, test := range []struct {
		text, want string
		read       func(string) (int64, error)
	}{
		{"2026-11-20T10:00:00 01:00", "2026-11-20T09:00:00Z", at},
		{"2026-11-20T10:00:00.5 0530", "2026-11-20T04:30:00.5Z", at},
		{"2026-11-20 10:00 01:00", "2026-11-20T09:00:00Z", at},
		{"20/Nov/2026:15:04:05  0100", "2026-11-20T14:04:05Z", at},
		{"Fri, 20 Nov 2026 15:04:05 0100", "2026-11-20T14:04:05Z", at},
		{"10:00 01:00", "2026-11-20T09:00:00Z", at},
		{"now 1h", "2026-11-20T15:04:05.000000678Z", at},
		{" 1h", "2026-11-20T15:04:05.000000678Z", at},
		{"2026-11-20 01:00", "2026-11-20T00:00:00Z", at}, // 01:00 is no zone of a day
		{"2026-11-20 15:04:05 +01:00", "2026-11-20T14:04:05Z", at},
		{"1h 30m", "2026-11-20T12:34:05.000000678Z", since},
		{" 2h", "two readings", since}, // the last two hours, or from in two hours on
		{"2026-11-20T25:00:00 01:00", "write %2B", at},
		{"soon", "times look like", at},
		{strings.Repeat(" ", 9) + "1h", "-1h or +1h", at},
	} {
		got, err := when.Typed(test.text, test.read)
		said := time.Unix(0, got).UTC().Format(time.RFC3339Nano)
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, test.want) {
			t.Errorf("%q: %s, want %s", test.text, said, test.want)
		}
	}
	for text := range times() { // none of them gets a second reading
		want, _ := at(text)
		if got, err := when.Typed(text, at); err != nil || got != want {
			t.Errorf("%q: %s, %v", text, time.Unix(0, got), err)
		}
	}
	if zone, err := when.Typed(" 05:30", when.Zone); err != nil || zone.String() != "" {
		t.Errorf("%v, %v", zone, err)
	}
}

func FuzzTime(f *testing.F) {
	for _, text := range []string{
		"now-1d12h", "2026-11-20 15:04:05.5", "15:04", "1795183445.25", "-2w", "2026-11-20T15:04+01:00", "yesterday 3pm", "2 hours ago",
		"10/Nov/2026:15:04:05 +0000", "Nov 10 15:04:05", "10/11/2026", "@12", "15:04 IST",
	} {
		f.Add(text)
	}
	now := time.Date(2026, 11, 20, 15, 4, 5, 0, zone(f, "Europe/Berlin"))
	f.Fuzz(func(t *testing.T, text string) {
		at, err := when.Time(text, now)
		if err != nil {
			return
		}
		// The time can be written in each of our forms and read again.
		for _, form := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999 -07:00"} {
			again, err := when.Time(at.UTC().Format(form), now)
			if err != nil || !again.Equal(at) {
				t.Errorf("%q is %s, but its form %s is %s, %v", text, at, at.UTC().Format(form), again, err)
			}
		}
	})
}
