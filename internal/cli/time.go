package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/config"
)

// ParseTime reads a time as people write it. A time without a zone is in the zone of now,
// and relative forms count from now. The year is from 1678 to 2261, so that the time fits
// a number of ns since 1970. Errors quote the text and give examples.
func ParseTime(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	t, err := parseClock(text, now)
	if err != nil {
		return t, fmt.Errorf("time %q: %w", text, err)
	}
	if y := t.Year(); y < 1678 || y > 2261 {
		return t, fmt.Errorf("time %q: the year must be from 1678 to 2261", text)
	}
	return t, nil
}

func parseClock(text string, now time.Time) (time.Time, error) {
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch lower := strings.ToLower(text); {
	case lower == "now":
		return now, nil
	case lower == "today":
		return midnight, nil
	case lower == "yesterday":
		return midnight.AddDate(0, 0, -1), nil
	case strings.HasPrefix(lower, "now"):
		return relative(lower[len("now"):], now)
	case strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+"):
		return relative(text, now)
	}
	if t, ok := parseUnix(text); ok {
		return t, nil
	}
	return parseCalendar(text, now)
}

// relative reads a sign and a duration.
func relative(text string, now time.Time) (time.Time, error) {
	sign, rest := text[0], strings.TrimSpace(text[1:])
	d, err := config.ParseDuration(rest)
	if err != nil {
		return time.Time{}, err
	}
	switch sign {
	case '-':
		return now.Add(-d), nil
	case '+':
		return now.Add(d), nil
	}
	return time.Time{}, errors.New("after now comes + or - and a duration, such as now-2h")
}

// parseUnix reads a count since 1970. Its magnitude decides the unit: seconds up
// to the year 5138, then ms, µs and ns, so that each covers its last centuries.
func parseUnix(text string) (time.Time, bool) {
	whole, frac, point := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	// Nine digits at least, else 2026 and 20261120 would be seconds of 1970.
	if err != nil || len(whole) < 9 || whole[0] == '-' || whole[0] == '+' {
		return time.Time{}, false
	}
	if point {
		if n >= 1e11 || frac == "" || len(frac) > 9 {
			return time.Time{}, false
		}
		ns, err := strconv.ParseUint(frac+strings.Repeat("0", 9-len(frac)), 10, 64)
		return time.Unix(n, int64(ns)), err == nil
	}
	switch {
	case n < 1e11:
		return time.Unix(n, 0), true
	case n < 1e14:
		return time.UnixMilli(n), true
	case n < 1e17:
		return time.UnixMicro(n), true
	}
	return time.Unix(0, n), true
}

// parseCalendar reads dates and times of day.
func parseCalendar(text string, now time.Time) (time.Time, error) {
	text = strings.Replace(text, "T", " ", 1)
	// Go accepts a fraction after the seconds even if the form has none.
	for _, form := range [...]string{
		"2006-01-02", "2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02 15:04Z07:00", "2006-01-02 15:04:05Z07:00",
	} {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, form := range [...]string{"2006-01-02 15:04", "2006-01-02 15:04:05"} {
		for back := range 2 { // today or yesterday
			y, m, d := now.Date()
			day := time.Date(y, m, d-back, 0, 0, 0, 0, time.UTC) // in now's zone a day may lack its midnight
			t, err := time.ParseInLocation(form, day.Format(time.DateOnly)+" "+text, now.Location())
			if err == nil && !t.After(now) {
				return t, nil
			}
		}
	}
	return time.Time{}, errors.New("not a time; times look like 2026-11-20T15:04:05Z, 2026-11-20, 2026-11-20 15:04, 15:04, -2h, now-2h, yesterday, unix seconds")
}
