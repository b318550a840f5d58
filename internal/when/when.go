// Package when reads times as people write them: on the command line, and copied from
// other programs' logs.
//
// [Time] reads one time, [Day] a whole day, [Since] the beginning of a stretch that ends
// at a known time, and [Zone] the name of a zone. A text with several readings is an error
// that lists them; the package never guesses. It knows no languages but English, and no
// calendar but Go's.
//
// Package time parses every form with a date. The packages that accept any form of date
// guess between day and month, so they are not used.
package when

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Time reads a time. One without a zone is in the zone of now, one without a date is the
// latest such time that is not after now, and relative forms count from now. The year is
// from 1678 to 2261, so that the time fits a number of ns since 1970. Errors quote the text
// and give examples.
func Time(text string, now time.Time) (time.Time, error) {
	text = strings.Join(strings.Fields(text), " ")
	if n := len(text); n > 1 && text[0] == '[' && text[n-1] == ']' {
		text = text[1 : n-1] // as nginx writes it
	}
	t, err := parse(text, now)
	if err == nil {
		err = oneMeaning(text)
	}
	if err != nil {
		return t, fmt.Errorf("time %q: %w", text, err)
	}
	if y := t.Year(); y < 1678 || y > 2261 {
		return t, fmt.Errorf("time %q: the year must be from 1678 to 2261", text)
	}
	return t, nil
}

// Since reads the beginning of a stretch that ends at until: how long it is, such as 2h,
// "2 hours" and 1mo, or when it begins, as [Time] reads it.
func Since(text string, until, now time.Time) (time.Time, error) {
	text = strings.Join(strings.Fields(text), " ")
	if s, ok := parseSpan(strings.ToLower(text)); ok {
		if err := oneMeaning(text); err != nil {
			return time.Time{}, fmt.Errorf("%q: %w", text, err)
		}
		t := s.before(until)
		if y := t.Year(); y < 1678 || y > 2261 {
			return t, fmt.Errorf("%q is too long: the year must be from 1678 to 2261", text)
		}
		return t, nil
	}
	if n, err := strconv.Atoi(text); err == nil && n != 0 && len(text) < unixDigits {
		return time.Time{}, unitMissing(text)
	}
	if t, err := Time(text, now); err == nil {
		return t, nil
	} else if many := new(ambiguousError); errors.As(err, &many) {
		return t, err
	}
	return time.Time{}, fmt.Errorf("%q is neither a duration nor a time; want 90s, 15m, 12h, 3d, 1d12h, today or 15:04", text)
}

// Length reads how long a stretch is, such as 5m, "5 minutes" and 1d12h. Months have no
// length, and a text with two readings has none.
func Length(text string) (time.Duration, bool) {
	text = strings.Join(strings.Fields(text), " ")
	s, ok := parseSpan(strings.ToLower(text))
	return s.rest, ok && s.months == 0 && oneMeaning(text) == nil
}

// Day reads a day: a date, today, yesterday, tomorrow or the name of a weekday, which is
// the latest one. It returns the day's beginning and end.
func Day(text string, now time.Time) (from, to time.Time, err error) {
	day, ok := parseDay(strings.ToLower(strings.TrimSpace(text)), now)
	if _, _, many := mixedUp(strings.TrimSpace(text)); !ok && many != nil {
		return from, to, fmt.Errorf("day %q: %w", text, many)
	}
	if !ok {
		return from, to, fmt.Errorf("%q is no day; days look like 2026-11-20, 10 Nov, today, yesterday or monday", text)
	}
	return day.begin(now.Location()), day.plus(1).begin(now.Location()), nil
}

const examples = "times look like 2026-11-20T15:04:05Z, 2026-11-20, 2026-11-20 15:04, 15:04, yesterday 15:04, monday, -2h, 2h ago, @1795183445"

func parse(text string, now time.Time) (time.Time, error) {
	// Scripts write RFC 3339. Compiling the expressions of the other forms takes longer than a
	// short read has for all of its command line.
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	lower := strings.ToLower(text)
	if t, known, err := parseRelative(lower, now); known {
		return t, err
	}
	if t, ok := parseUnix(strings.TrimPrefix(text, "@"), text != "" && text[0] == '@'); ok {
		return t, nil
	}
	if day, ok := parseDay(lower, now); ok {
		return day.begin(now.Location()), nil
	}
	if t, known, err := parseClock(lower, now); known {
		return t, err
	}
	if t, known, err := parseStamp(text, now); known {
		return t, err
	}
	if i := strings.LastIndexByte(text, ' '); i > 0 && strings.Contains(text[i:], "/") {
		if zone, err := Zone(text[i+1:]); err == nil {
			return parse(text[:i], now.In(zone))
		}
	}
	return time.Time{}, whyNot(text)
}

// unixDigits is how many digits a count since 1970 has at least, unless it follows "@":
// 2026 and 20261120 would be seconds of 1970.
const unixDigits = 9

// parseUnix reads a count since 1970. Its magnitude decides the unit: seconds up
// to the year 5138, then ms, µs and ns, so that each covers its last centuries.
func parseUnix(text string, marked bool) (time.Time, bool) {
	whole, frac, point := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || len(whole) < unixDigits && !marked || whole[0] == '+' || whole[0] == '-' && !marked {
		return time.Time{}, false
	}
	if point {
		if n >= 1e11 || n < 0 || frac == "" || len(frac) > 9 {
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

// An ambiguousError lists the times that a text may mean.
type ambiguousError struct{ readings []string }

func (e *ambiguousError) Error() string {
	last := len(e.readings) - 1
	return fmt.Sprintf("it may mean %s or %s; write the one you mean", strings.Join(e.readings[:last], ", "), e.readings[last])
}

func unitMissing(number string) error {
	sign := strings.TrimRight(number, "0123456789")
	number = number[len(sign):]
	return &ambiguousError{[]string{sign + number + "s", sign + number + "m", sign + number + "h"}}
}

// whyNot explains why a text is no time.
func whyNot(text string) error {
	if _, ok := parseSpan(strings.ToLower(text)); ok {
		many := &ambiguousError{}
		for _, span := range meanings(text) {
			span = strings.ReplaceAll(strings.ToLower(span), " ", "")
			many.readings = append(many.readings, "-"+span, "+"+span)
		}
		return many
	}
	if _, zone, ok := cutZone(text); ok {
		if of := abbreviated[strings.ToUpper(zone)]; of != nil {
			return fmt.Errorf("%s is the zone of %s; write the offset instead, such as +05:30", strings.ToUpper(zone), strings.Join(of, ", "))
		}
	}
	return errors.New("not a time; " + examples)
}
