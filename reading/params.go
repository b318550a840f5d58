package reading

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/when"
)

// Params are the parameters of a request, in the text form of an [Ask] and beside it. A parameter
// has one reader, for all routes. Errors are [*ParamError].
type Params url.Values

// ParamError is a mistake in a parameter.
type ParamError struct {
	Name string
	Err  error // its text names the parameter and the mistake
}

// Error implements error.
func (e *ParamError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ParamError) Unwrap() error { return e.Err }

func badParam(name, format string, args ...any) error {
	return &ParamError{name, fmt.Errorf(format, args...)}
}

// Get is the only value of a parameter, "" if it is not given.
func (p Params) Get(name string) string { return url.Values(p).Get(name) }

// Flag reads a parameter that is 1 or 0.
func (p Params) Flag(name string) (bool, error) {
	switch text := p.Get(name); text {
	case "", "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	default:
		return false, badParam(name, "%s=%.60s: it must be 1 or 0", name, text)
	}
}

// Number reads a parameter from least to most; missing is its value if it is not given.
func (p Params) Number(name string, missing, least, most int) (int, error) {
	text := p.Get(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, badParam(name, "%s=%.60s is no number; want one such as %d", name, text, max(missing, least, 1))
	}
	if n < least || n > most {
		return 0, badParam(name, "%s=%.60s: it must be from %d to %d", name, text, least, most)
	}
	return n, nil
}

// Word reads a parameter that is one of some words; without it, it is the first one.
func (p Params) Word(name string, words ...string) (string, error) {
	text := p.Get(name)
	if text == "" {
		return words[0], nil
	}
	if !slices.Contains(words, text) {
		last := len(words) - 1
		return "", badParam(name, "%s=%.60s: it must be %s or %s", name, text, strings.Join(words[:last], ", "), words[last])
	}
	return text, nil
}

// List reads a parameter of names with commas between them.
func (p Params) List(name string) (names []string) {
	for _, text := range p[name] {
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				names = append(names, part)
			}
		}
	}
	return names
}

// at reads a time; read tells the meaning of a text.
func at(text string, read func(text string) (time.Time, error)) (time.Time, error) {
	ns, err := when.Typed(text, func(text string) (int64, error) {
		t, err := read(text)
		return t.UnixNano(), err
	})
	return time.Unix(0, ns), err
}

// Span reads the range of times: from, to, since and day, in the zone of now.
func (p Params) Span(now time.Time) (Range, error) {
	rng := Always()
	from, to, since, day := p.Get("from"), p.Get("to"), p.Get("since"), p.Get("day")
	switch {
	case from != "" && since != "":
		return rng, badParam("since", "from and since say the same; leave one out")
	case day != "" && from+to+since != "":
		return rng, badParam("day", "day is a range already; leave out from, to and since")
	case day != "":
		from, to, err := when.Day(day, now)
		if err != nil {
			return rng, badParam("day", "day: %w", err)
		}
		return Range{From: from.UnixNano(), To: to.UnixNano()}, nil
	}
	until := now
	for _, end := range []struct {
		name, text string
		ns         *int64
	}{{"from", from, &rng.From}, {"to", to, &rng.To}} {
		if end.text == "" {
			continue
		}
		t, err := at(end.text, func(text string) (time.Time, error) { return when.Time(text, now) })
		if err != nil {
			return rng, badParam(end.name, "%s: %w", end.name, err)
		}
		*end.ns = t.UnixNano()
		until = t // only to counts: since excludes from
	}
	if since != "" {
		t, err := at(since, func(text string) (time.Time, error) { return when.Since(text, until, now) })
		if err != nil {
			return rng, badParam("since", "since: %w", err)
		}
		rng.From = t.UnixNano()
	}
	if rng.From != Oldest && rng.To != Newest && rng.From >= rng.To {
		hint := ""
		if _, _, err := when.Day(from, now); err == nil && rng.From == rng.To {
			hint = "; for the whole day: day=" + from
		}
		show := func(ns int64) string { return time.Unix(0, ns).In(now.Location()).Format(time.RFC3339Nano) }
		return rng, badParam("from", "the range is empty: from %s is not before to %s%s", show(rng.From), show(rng.To), hint)
	}
	return rng, nil
}
