package when

import (
	"fmt"
	"strings"
	"time"
)

// A day is a date of no zone.
type day struct {
	year  int
	month time.Month
	day   int
}

func dayOf(t time.Time) day {
	y, m, d := t.Date()
	return day{y, m, d}
}

func (d day) plus(days int) day {
	return dayOf(time.Date(d.year, d.month, d.day+days, 12, 0, 0, 0, time.UTC))
}

// begin is the first moment of the day in a zone. Where clocks go forward at midnight the
// day begins at one.
func (d day) begin(zone *time.Location) time.Time {
	t := time.Date(d.year, d.month, d.day, 0, 0, 0, 0, zone)
	if dayOf(t) != d { // package time shows a time of the gap as one before it
		_, t = t.ZoneBounds()
	}
	return t
}

// parseDay reads a day in lower case.
func parseDay(text string, now time.Time) (day, bool) {
	today := dayOf(now)
	switch text {
	case "today":
		return today, true
	case "yesterday":
		return today.plus(-1), true
	case "tomorrow":
		return today.plus(1), true
	}
	for back := range 7 {
		d := today.plus(-back)
		name := strings.ToLower(time.Date(d.year, d.month, d.day, 12, 0, 0, 0, time.UTC).Weekday().String())
		if text == name || text == name[:3] {
			return d, true
		}
	}
	for _, form := range [...]string{"2006-01-02", "2006/1/2", "2 Jan 2006", "2 January 2006", "Jan 2 2006", "Jan 2, 2006", "January 2 2006", "January 2, 2006"} {
		if t, err := time.Parse(form, text); err == nil {
			return dayOf(t), true
		}
	}
	for _, form := range [...]string{"Jan 2", "January 2", "2 Jan", "2 January"} {
		if d, ok := latest(form+" 2006", text, now, today); ok {
			return d, true
		}
	}
	return day{}, false
}

// latest reads a day without a year: the latest one that is not after today.
func latest(form, text string, now time.Time, today day) (day, bool) {
	for back := range 8 { // until a leap year, over one that is none
		t, err := time.Parse(form, fmt.Sprintf("%s %d", text, now.Year()-back))
		if err != nil {
			continue
		}
		if d := dayOf(t); !today.before(d) {
			return d, true
		}
	}
	return day{}, false
}

func (d day) before(other day) bool {
	return d.begin(time.UTC).Before(other.begin(time.UTC))
}

// parseClock reads a time of day in lower case, alone or behind a day, with or without a
// zone. known is false for other forms.
func parseClock(text string, now time.Time) (t time.Time, known bool, err error) {
	zone := now.Location()
	if rest, name, ok := cutZone(text); ok {
		if z, err := offset(name); err == nil {
			text, zone = rest, z
		}
	}
	dayText, clockText := "", text
	if i := strings.LastIndexByte(text, ' '); i >= 0 {
		dayText, clockText = strings.TrimSuffix(text[:i], " at"), text[i+1:]
		if clockText == "am" || clockText == "pm" {
			j := strings.LastIndexByte(text[:i], ' ')
			dayText, clockText = text[:max(j, 0)], text[j+1:]
		}
	}
	clock, ok := parseTimeOfDay(clockText)
	if !ok {
		return t, false, nil
	}
	now = now.In(zone)
	if dayText != "" {
		d, ok := parseDay(dayText, now)
		if !ok {
			return t, false, nil
		}
		t, err = at(d, clock, zone)
		return t, true, err
	}
	today := dayOf(now)
	for back := range 2 {
		t, err = at(today.plus(-back), clock, zone)
		if err != nil || !t.After(now) {
			return t, true, err
		}
	}
	return t, true, nil
}

func parseTimeOfDay(text string) (time.Time, bool) {
	switch text {
	case "noon":
		text = "12:00"
	case "midnight":
		text = "00:00"
	}
	text = strings.Replace(text, ",", ".", 1)
	// Package time accepts a fraction after the seconds even if the form has none.
	for _, form := range [...]string{"15:04", "15:04:05", "3pm", "3:04pm", "3:04:05pm", "3 pm", "3:04 pm"} {
		if t, err := time.Parse(form, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// at is a time of day on a day in a zone. Where clocks change, a time may exist twice or
// not at all.
func at(d day, clock time.Time, zone *time.Location) (time.Time, error) {
	h, m, s := clock.Clock()
	return only(time.Date(d.year, d.month, d.day, h, m, s, clock.Nanosecond(), zone), time.Date(d.year, d.month, d.day, h, m, s, clock.Nanosecond(), time.UTC))
}

// only returns t, which package time has made of a wall clock, if no other time has the
// same wall clock, and t itself has it.
func only(t, wall time.Time) (time.Time, error) {
	const form = "2006-01-02 15:04:05.999999999"
	want := wall.Format(form)
	if t.Format(form) != want {
		return t, fmt.Errorf("no clock showed it: clocks went forward then, %s is %s", want, t.Format(form+" -07:00"))
	}
	for _, near := range [...]time.Time{t.Add(-24 * time.Hour), t.Add(24 * time.Hour)} {
		_, off := near.Zone()
		other := wall.Add(-time.Duration(off) * time.Second).In(t.Location())
		if !other.Equal(t) && other.Format(form) == want {
			if other.Before(t) {
				t, other = other, t
			}
			return t, &ambiguousError{[]string{t.Format(form + " -07:00"), other.Format(form + " -07:00")}}
		}
	}
	return t, nil
}
