package when

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"blobtail/record/times"
)

// stamps are forms of dates with times. Each may be followed by a zone. Package time
// accepts a fraction after the seconds even if a form has none.
var stamps = [...]string{
	"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05", // RFC 3339, ISO 8601
	"2006/01/02 15:04", "2006/01/02 15:04:05", // Go, nginx's errors
	"20060102T1504", "20060102T150405", // ISO 8601, basic
	"02/Jan/2006:15:04:05",                                                // Apache, nginx
	"Mon, 2 Jan 2006 15:04:05", "2 Jan 2006 15:04:05", "2 Jan 2006 15:04", // RFC 1123, RFC 2822
	"Monday, 02-Jan-06 15:04:05", "02 Jan 06 15:04", // RFC 850, RFC 822
	"Mon Jan 2 15:04:05 2006", "Jan 2 2006 15:04:05", "Jan 2, 2006 15:04:05", "Jan 2, 2006, 15:04:05", // ANSI C
}

// zoned are forms with the zone between the time and the year.
var zoned = [...]string{"Mon Jan 2 15:04:05 -0700 2006", "Mon Jan 2 15:04:05 MST 2006"} // Ruby, date(1)

// yearless are forms of syslog.
var yearless = [...]string{"Jan 2 15:04:05", "Jan 2 15:04"}

// parseStamp reads a date with a time of day, and a zone if there is one. known is false
// for other forms.
func parseStamp(text string, now time.Time) (t time.Time, known bool, err error) {
	text = comma().ReplaceAllString(text, "$1.$2")
	for _, form := range zoned {
		if t, err := time.Parse(form, text); err == nil {
			if name, off := t.Zone(); off == 0 && name != "UTC" && name != "GMT" && name != "" && name[0] != '+' {
				return t, false, nil // an offset that package time does not know is 0 to it
			}
			return t, true, nil
		}
	}
	if rest, name, ok := cutZone(text); ok {
		if zone, err := offset(name); err == nil {
			if t, ok := stamp(rest, zone); ok {
				return t, true, nil
			}
		}
	}
	if _, ok := stamp(text, time.UTC); ok {
		wall, _ := stamp(text, time.UTC)
		here, _ := stamp(text, now.Location())
		t, err = only(here, wall)
		return t, true, err
	}
	for _, form := range yearless {
		for back := range 8 {
			wall, err := time.Parse(form+" 2006", fmt.Sprintf("%s %d", text, now.Year()-back))
			if err != nil {
				continue
			}
			if t, err = at(dayOf(wall), wall, now.Location()); err != nil || !t.After(now) {
				return t, true, err
			}
		}
	}
	// By a date in numbers a person may mean one of two days, and a program means one.
	if t, known, err = mixedUp(text); known {
		return t, known, err
	}
	return machine(text, now)
}

func isDigit(c byte) bool { return c-'0' < 10 }

// machine reads the forms of programs that are not among those above, by the reader of the
// times of records.
func machine(text string, now time.Time) (t time.Time, known bool, err error) {
	here := times.Reader{Zone: now.Location(), Now: now.UnixNano()}
	ns, part := here.Read([]byte(text))
	utc := times.Reader{Now: now.UnixNano()}
	wall, _ := utc.Read([]byte(text))
	_, dated := times.Parse([]byte(text))
	klog := len(text) > 1 && text[0] >= 'A' && isDigit(text[1])
	_, number := times.Number([]byte(text))
	switch {
	case part != times.Full, number, !dated && !klog: // numbers and other dates without a year are read elsewhere
		return t, false, nil
	case ns == wall: // it has a zone, or this is UTC
		return time.Unix(0, ns).In(now.Location()), true, nil
	}
	t, err = only(time.Unix(0, ns).In(now.Location()), time.Unix(0, wall).UTC())
	return t, true, err
}

// comma separates a fraction of seconds in many logs.
func comma() *regexp.Regexp { return regexp.MustCompile(`(:\d\d),(\d+)`) }

func stamp(text string, zone *time.Location) (time.Time, bool) {
	for _, form := range stamps {
		if t, err := time.ParseInLocation(form, text, zone); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// numbers are day, month and year, or month, day and year.
func numbers() *regexp.Regexp { return regexp.MustCompile(`^(\d{1,2})[./-](\d{1,2})[./-](\d{4})(.*)$`) }

// mixedUp refuses dates that do not tell the day from the month, and lists the readings.
func mixedUp(text string) (t time.Time, known bool, err error) {
	part := numbers().FindStringSubmatch(text)
	if part == nil {
		return t, false, nil
	}
	var readings []string
	for _, order := range [...][2]string{{part[2], part[1]}, {part[1], part[2]}} {
		if t, err := time.Parse("2006-1-2", part[3]+"-"+order[0]+"-"+order[1]); err == nil {
			readings = append(readings, t.Format(time.DateOnly)+part[4])
		}
	}
	switch {
	case len(readings) == 0:
		return t, false, nil
	case len(readings) == 1, readings[0] == readings[1]:
		return t, true, fmt.Errorf("dates look like %s", readings[0])
	}
	return t, true, &ambiguousError{readings}
}

// zoneAtEnd is Z, an offset or a name at the end of a time.
func zoneAtEnd() *regexp.Regexp {
	return regexp.MustCompile(`^(.*\d(?:\.\d+)?(?: ?[aApP][mM])?)(?: ?([zZ]|[+-]\d\d:?\d\d|[+-]\d\d)| ([A-Za-z]{2,5}))$`)
}

// cutZone cuts the zone off the end of a time.
func cutZone(text string) (rest, zone string, ok bool) {
	part := zoneAtEnd().FindStringSubmatch(text)
	if part == nil {
		return text, "", false
	}
	return part[1], part[2] + part[3], true
}

// offset makes a zone of Z, UTC, GMT or an offset such as +05:30, +0530 and +05.
func offset(text string) (*time.Location, error) {
	switch strings.ToUpper(text) {
	case "Z", "UTC", "GMT":
		return time.UTC, nil
	}
	for _, form := range [...]string{"-07:00", "-0700", "-07"} {
		if t, err := time.Parse(form, text); err == nil {
			_, seconds := t.Zone()
			return time.FixedZone("", seconds), nil
		}
	}
	return nil, fmt.Errorf("%q is no offset", text)
}

// abbreviated are zones that share their letters with others, or that no table of zones has.
var abbreviated = map[string][]string{
	"IST": {"Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"},
	"CST": {"America/Chicago", "Asia/Shanghai", "America/Havana"},
	"BST": {"Europe/London", "Asia/Dhaka"},
	"PST": {"America/Los_Angeles", "Asia/Manila"},
	"PDT": {"America/Los_Angeles"}, "CDT": {"America/Chicago"}, "EDT": {"America/New_York"}, "MDT": {"America/Denver"},
	"CEST": {"Europe/Berlin"}, "EEST": {"Europe/Athens"}, "JST": {"Asia/Tokyo"}, "AEST": {"Australia/Sydney"},
}

// Zone finds a zone by its name, in any case, or by its offset from UTC.
func Zone(name string) (*time.Location, error) {
	if zone, err := offset(name); err == nil {
		return zone, nil
	}
	if of := abbreviated[strings.ToUpper(name)]; of != nil {
		return nil, fmt.Errorf("%s is the zone of %s; write a name or an offset", strings.ToUpper(name), strings.Join(of, ", "))
	}
	for _, spelt := range [...]string{name, titled(name), strings.ToUpper(name)} {
		if zone, err := time.LoadLocation(spelt); err == nil && spelt != "" && !strings.EqualFold(spelt, "local") {
			return zone, nil
		}
	}
	return nil, fmt.Errorf("unknown zone %q; zones look like Europe/Berlin, UTC or +05:30", name)
}

// titled is a name as the tables spell most: America/New_York.
func titled(name string) string {
	out := []byte(strings.ToLower(name))
	for i := range out {
		if (i == 0 || strings.IndexByte("/_-", out[i-1]) >= 0) && 'a' <= out[i] && out[i] <= 'z' {
			out[i] -= 'a' - 'A'
		}
	}
	return string(out)
}
