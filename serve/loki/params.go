package loki

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/units"
	"blobtail/internal/when"
	"blobtail/logql"
	"blobtail/reading"
	"blobtail/record"
	"blobtail/record/times"
)

// defaultLimit is how many lines an answer has, unless the request says.
const defaultLimit = 100

// defaultRange is how far back an answer goes, unless the request says.
const defaultRange = time.Hour

// instant reads a time. One that no record can have is the nearest one.
func (c *call) instant(name string, missing int64) (int64, error) {
	text := c.form.Get(name)
	if text == "" {
		return missing, nil
	}
	ns, err := when.Typed(text, func(text string) (int64, error) { return parseInstant(text, c.now) })
	if err != nil {
		return 0, refused("could not parse '%s' parameter: %v", name, err)
	}
	return ns, nil
}

// parseInstant reads a time: an integer of more than 10 digits is in ns, another number in
// seconds, and anything else as a person writes it.
func parseInstant(text string, now time.Time) (int64, error) {
	digits := strings.TrimPrefix(text, "-")
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if len(digits) > 10 {
			return n, nil
		}
		return record.ClampTime(time.Unix(n, 0)), nil
	}
	if strings.Trim(digits, "0123456789.") == "" {
		whole, fraction, _ := strings.Cut(digits, ".")
		if ns, ok := times.Number([]byte("0" + whole + "." + fraction + "0")); ok && len(whole) <= 10 {
			if digits != text {
				ns = -ns
			}
			return ns, nil
		}
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && strings.Contains(text, ".") && math.Abs(s) < 1e10 {
		whole, fraction := math.Modf(s)
		return record.ClampTime(time.Unix(int64(whole), int64(fraction*float64(time.Second)))), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return record.ClampTime(t), nil
	}
	t, err := when.Time(text, now.UTC())
	return record.ClampTime(t), err
}

// span reads how long something is.
func (c *call) span(name string, missing time.Duration) (time.Duration, error) {
	text := c.form.Get(name)
	if text == "" {
		return missing, nil
	}
	d, err := when.Typed(text, func(text string) (time.Duration, error) { return parseSpan(name, text) })
	if err != nil {
		return 0, refused("%v", err)
	}
	return d, nil
}

// parseSpan reads a number of seconds, or a number with a unit.
func parseSpan(name, text string) (time.Duration, error) {
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		ns := s * float64(time.Second)
		if !(math.Abs(ns) < math.MaxInt64/2) {
			return 0, fmt.Errorf("cannot parse %q to a valid duration. It overflows int64", text)
		}
		return time.Duration(math.Round(ns)), nil
	}
	d, err := units.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("cannot parse %q of '%s' to a valid duration", text, name)
	}
	return d, nil
}

// between reads the times from and to which an answer goes.
func (c *call) between() (reading.Range, error) {
	to, err := c.instant("end", c.now.UnixNano())
	if err != nil {
		return reading.Range{}, err
	}
	since, err := c.span("since", defaultRange)
	if err != nil {
		return reading.Range{}, err
	}
	from, err := c.instant("start", saturate(min(to, c.now.UnixNano()), -int64(since)))
	if err != nil {
		return reading.Range{}, err
	}
	if to < from {
		return reading.Range{}, refused("end timestamp must not be before or equal to start time")
	}
	return reading.Range{From: from, To: to}, nil
}

// widely is between, widened to whole minutes. Clients that look for labels around one record
// ask with equal ends.
func (c *call) widely() (reading.Range, error) {
	rng, err := c.between()
	if err != nil {
		return rng, err
	}
	const minute = int64(time.Minute)
	return reading.Range{From: saturate(floorDiv(rng.From, minute)*minute, 0), To: saturate(floorDiv(rng.To, minute)*minute, minute)}, nil
}

// saturate adds, and stays within the times that there are.
func saturate(ns, by int64) int64 {
	switch sum := ns + by; {
	case by > 0 && sum < ns:
		return math.MaxInt64
	case by < 0 && sum > ns:
		return math.MinInt64
	default:
		return sum
	}
}

// count reads a number of things that must be positive.
func (c *call) count(name string, missing int) (int, error) {
	text := c.form.Get(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, refused("%s must be a number, and %q is not", name, text)
	case n <= 0:
		return 0, refused("%s must be a positive value", name)
	}
	return n, nil
}

// limit reads how many lines an answer may have.
func (c *call) limit() (int, error) {
	n, err := c.count("limit", defaultLimit)
	if err == nil && n > maxEntries {
		return 0, refused("max entries limit per query exceeded, limit > max_entries_limit_per_query (%d > %d)", n, maxEntries)
	}
	return n, err
}

// forward reports whether the oldest lines are wanted.
func (c *call) forward() (bool, error) {
	switch text := c.form.Get("direction"); strings.ToLower(text) {
	case "", "backward":
		return false, nil
	case "forward":
		return true, nil
	default:
		return false, refused("invalid direction %q: it is forward or backward", text)
	}
}

// step reads the distance of points in a range.
func (c *call) step(rng reading.Range) (time.Duration, error) {
	seconds := (float64(rng.To) - float64(rng.From)) / float64(time.Second)
	missing := time.Duration(max(int64(seconds/250), 1)) * time.Second
	step, err := c.span("step", missing)
	if err == nil && step <= 0 {
		return 0, refused("zero or negative query resolution step widths are not accepted. Try a positive integer")
	}
	return step, err
}

// parse reads the query.
func (c *call) parse() (logql.Expr, error) {
	text := c.form.Get("query")
	if len(text) > maxText {
		return nil, tooLong(len(text))
	}
	return logql.Parse(text)
}

func tooLong(n int) error {
	return refused("the query is too long: it has %d bytes of text, and at most %d are taken", n, maxText)
}

// parseLog reads a query for lines. Without one it selects all of them.
func (c *call) parseLog() (*logql.LogExpr, error) {
	if text := strings.TrimSpace(c.form.Get("query")); text == "" || text == "*" {
		return &logql.LogExpr{}, nil
	}
	e, err := c.parse()
	if err != nil {
		return nil, err
	}
	log := logOf(e)
	if log == nil {
		return nil, refused("%s reads no lines", e)
	}
	return log, nil
}

// logOf returns the lines that a query counts, if it is one with numbers; of several the first.
func logOf(e logql.Expr) *logql.LogExpr {
	switch e := e.(type) {
	case *logql.LogExpr:
		return e
	case *logql.RangeAgg:
		return e.Range.Log
	case *logql.VectorAgg:
		return logOf(e.Of)
	case *logql.Binary:
		if l := logOf(e.Left); l != nil {
			return l
		}
		return logOf(e.Right)
	}
	return nil
}
