package when

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A span is a stretch of time. Months have no fixed length, and so count on the calendar.
type span struct {
	months int
	rest   time.Duration
}

func (s span) before(t time.Time) time.Time { return t.AddDate(0, -s.months, 0).Add(-s.rest) }
func (s span) after(t time.Time) time.Time  { return t.AddDate(0, s.months, 0).Add(s.rest) }

// amount is a number with its unit.
func amount() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?(µs|[a-z]+)(?: and |, ?| )?`)
}

// units by name. A month is 0 here.
var units = map[string]time.Duration{
	"ns": 1, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour,
	"w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour,
}

var months = map[string]int{"mo": 1, "month": 1, "y": 12, "yr": 12, "year": 12}

// parseSpan reads a span in lower case, such as 1d12h, 2 hours, 1h and 30 minutes, 1mo.
func parseSpan(text string) (total span, ok bool) {
	for text != "" {
		part := amount().FindStringSubmatch(text)
		if part == nil {
			return span{}, false
		}
		text = text[len(part[0]):]
		name := part[2]
		if len(name) > 2 && name != "ms" {
			name = strings.TrimSuffix(name, "s")
		}
		n, err := strconv.ParseFloat(part[1], 64)
		if err != nil {
			return span{}, false
		}
		if m := months[name]; m > 0 {
			if n != math.Trunc(n) || n > 12_000 {
				return span{}, false
			}
			total.months += m * int(n)
			continue
		}
		unit, known := units[name]
		if !known || n*float64(unit) > float64(math.MaxInt64/2-total.rest) {
			return span{}, false
		}
		total.rest += time.Duration(n * float64(unit))
	}
	return total, total != span{}
}

// meanings returns the texts that a text with the unit M may mean: the M of other programs is a
// month, and here it reads like the m of a minute. Any other text means itself.
func meanings(text string) []string {
	var minutes, months strings.Builder
	for i := range len(text) {
		unit := text[i] == 'M' && amountBefore(text[:i]) && !startsWithLetter(text[i+1:])
		if unit {
			minutes.WriteByte('m')
			months.WriteString("mo")
			continue
		}
		minutes.WriteByte(text[i])
		months.WriteByte(text[i])
	}
	if months.Len() == len(text) {
		return []string{text}
	}
	return []string{minutes.String(), months.String()}
}

// amountBefore reports whether a text ends in a number, with a blank behind it or without.
func amountBefore(text string) bool {
	text = strings.TrimSuffix(text, " ")
	return text != "" && text[len(text)-1]-'0' < 10
}

func startsWithLetter(text string) bool { return text != "" && (text[0]|0x20)-'a' < 26 }

// oneMeaning refuses a text that may mean several.
func oneMeaning(text string) error {
	if of := meanings(text); len(of) > 1 {
		return &ambiguousError{of}
	}
	return nil
}

// parseRelative reads a time relative to now, in lower case: now, now-2h, -2h, +2h, 2h ago, last
// week and last 2 hours. known is false for other forms.
func parseRelative(text string, now time.Time) (t time.Time, known bool, err error) {
	if before, ago := strings.CutSuffix(text, " ago"); ago {
		if s, ok := parseSpan(before); ok {
			return s.before(now), true, nil
		}
		return t, false, nil
	}
	if length, last := strings.CutPrefix(text, "last "); last {
		for _, length := range [...]string{length, "1 " + length} {
			if s, ok := parseSpan(length); ok {
				return s.before(now), true, nil
			}
		}
		return t, false, nil
	}
	text, fromNow := strings.CutPrefix(text, "now")
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return now, fromNow, nil
	case text[0] != '-' && text[0] != '+':
		return t, false, nil
	}
	rest := strings.TrimSpace(text[1:])
	s, ok := parseSpan(rest)
	if !ok {
		if rest != "" && strings.Trim(rest, "0123456789") == "" && len(rest) < unixDigits {
			return t, true, unitMissing(text[:1] + rest)
		}
		return t, false, nil
	}
	if text[0] == '-' {
		return s.before(now), true, nil
	}
	return s.after(now), true, nil
}
