package readapi

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/spelling"
	"blobtail/internal/when"
	"blobtail/newest"
	"blobtail/query"
	"blobtail/query/where"
)

// params are the parameters of a request, each of them known to the route.
type params url.Values

// repeatable are the parameters that may be given more than once.
func repeatable(name string) bool {
	return slices.Contains([]string{"service", "text", "words", "expr", "fields"}, name)
}

// parse reads the parameters. A misspelt one is an error: without the filter that it was
// meant to be, the answer would be another one.
func (c *call) parse(known []string) error {
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return badRequest("the query of the URL cannot be read: %v; write %%XX for bytes that are no letters, as curl --data-urlencode does", err)
	}
	c.params = params(values)
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			return unknownParam(name, known)
		case slices.Contains(all, ""):
			return badRequest("%s is given without a value; give one, or leave it out", name)
		case len(all) > 1 && !repeatable(name):
			return badRequest("%s is given %d times; leave all but one out", name, len(all))
		}
	}
	if name := c.params.get("timezone"); name != "" {
		zone, err := when.Typed(name, when.Zone)
		if err != nil {
			return badRequest("timezone: %w", err)
		}
		c.now = c.now.In(zone)
	}
	return nil
}

func unknownParam(name string, known []string) error {
	f := badRequest("there is no parameter %.60q here; there are %s", name, strings.Join(known, ", "))
	if len(known) == 0 {
		f = badRequest("there is no parameter %.60q here, nor any other", name)
	}
	return &problem{Refusal: f, near: spelling.Near(name, known)}
}

// get is the only value of a parameter, "" if it is not given.
func (p params) get(name string) string { return url.Values(p).Get(name) }

// flag reads a parameter that is 1 or 0.
func (p params) flag(name string) (bool, error) {
	switch text := p.get(name); text {
	case "", "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	default:
		return false, badRequest("%s=%.60s: it must be 1 or 0", name, text)
	}
}

// number reads a parameter from least to most; missing is its value if it is not given.
func (p params) number(name string, missing, least, most int) (int, error) {
	text := p.get(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, badRequest("%s=%.60s is no number; want one such as %d", name, text, max(missing, least, 1))
	}
	if n < least || n > most {
		return 0, badRequest("%s=%d: it must be from %d to %d", name, n, least, most)
	}
	return n, nil
}

// word reads a parameter that is one of some words; without it, it is the first one.
func (p params) word(name string, words ...string) (string, error) {
	text := p.get(name)
	if text == "" {
		return words[0], nil
	}
	if !slices.Contains(words, text) {
		last := len(words) - 1
		return "", badRequest("%s=%.60s: it must be %s or %s", name, text, strings.Join(words[:last], ", "), words[last])
	}
	return text, nil
}

// list reads a parameter of names with commas between them.
func (p params) list(name string) (names []string) {
	for _, text := range p[name] {
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				names = append(names, part)
			}
		}
	}
	return names
}

// query reads the parameters that select records, and the mode of unflushed ones.
func (c *call) query() (q query.Query, mode newest.Mode, err error) {
	q.MaxRaw = c.o.MaxBytes
	if mode, err = c.mode(); err != nil {
		return q, 0, err
	}
	if q.Range, err = c.span(); err != nil {
		return q, 0, err
	}
	if text := c.params.get("logql"); text != "" {
		err = c.logql(text, &q)
		return q, mode, err
	}
	for _, text := range c.params["service"] {
		if len(query.ParseServices([]string{text})) == 0 {
			return q, 0, badRequest("service=%.100s names no service; %sservices lists them", text, Prefix)
		}
	}
	if q.Services = query.ParseServices(c.params["service"]); len(q.Services) == 0 {
		return q, 0, badRequest("which service? Add service=NAME, or service=* for all; %sservices lists them", Prefix)
	}
	q.Filter, err = c.filter()
	return q, mode, err
}

func (c *call) mode() (newest.Mode, error) {
	text, err := c.params.word("live", "auto", "off", "only")
	return map[string]newest.Mode{"auto": newest.Auto, "off": newest.Off, "only": newest.Only}[text], err
}

// filter reads the parameters of the filter.
func (c *call) filter() (f query.Filter, err error) {
	f.Texts, f.Words, f.Exprs = c.params["text"], c.params["words"], c.params["expr"]
	if text := c.params.get("level"); text != "" {
		if text, err = typedLevels(text); err == nil {
			f.Levels, err = query.ParseLevels(text)
		}
		if err != nil {
			return f, badRequest("level: %w", err)
		}
	}
	if text := c.params.get("where"); text != "" {
		if f.Where, err = where.Parse(budget.Of(c.r.Context()), text); err != nil {
			return f, badRequest("where: %w", err)
		}
	}
	if f.Invert, err = c.params.flag("not"); err == nil {
		f.Fold, err = c.params.flag("fold")
	}
	return f, err
}

// typedLevels is a list of levels as it was typed. A blank at its end was the + of warn+, which
// is a blank in a URL. One before a comma may have been that, or be there for no reason.
func typedLevels(text string) (string, error) {
	if strings.Contains(text, " ,") {
		return "", fmt.Errorf("%q has two readings, because a + in a URL is a blank: write %%2B for a +, and no blank before a comma", text)
	}
	if level, typed := strings.CutSuffix(text, " "); typed && !strings.HasSuffix(level, "+") {
		return level + "+", nil
	}
	return text, nil
}

// at reads a time; what a text means is for read.
func at(text string, read func(text string) (time.Time, error)) (time.Time, error) {
	ns, err := when.Typed(text, func(text string) (int64, error) {
		t, err := read(text)
		return t.UnixNano(), err
	})
	return time.Unix(0, ns), err
}

// span reads the parameters of the range of times.
func (c *call) span() (query.Range, error) {
	rng := query.Always()
	from, to, since, day := c.params.get("from"), c.params.get("to"), c.params.get("since"), c.params.get("day")
	switch {
	case from != "" && since != "":
		return rng, badRequest("from and since say the same; leave one out")
	case day != "" && from+to+since != "":
		return rng, badRequest("day is a range already; leave out from, to and since")
	case day != "":
		from, to, err := when.Day(day, c.now)
		if err != nil {
			return rng, badRequest("day: %w", err)
		}
		return query.Range{From: from.UnixNano(), To: to.UnixNano()}, nil
	}
	until := c.now
	for _, end := range []struct {
		name, text string
		ns         *int64
	}{{"from", from, &rng.From}, {"to", to, &rng.To}} {
		if end.text == "" {
			continue
		}
		t, err := at(end.text, func(text string) (time.Time, error) { return when.Time(text, c.now) })
		if err != nil {
			return rng, badRequest("%s: %w", end.name, err)
		}
		*end.ns = t.UnixNano()
		until = t // only to counts: since excludes from
	}
	if since != "" {
		t, err := at(since, func(text string) (time.Time, error) { return when.Since(text, until, c.now) })
		if err != nil {
			return rng, badRequest("since: %w", err)
		}
		rng.From = t.UnixNano()
	}
	if rng.From != query.Oldest && rng.To != query.Newest && rng.From >= rng.To {
		hint := ""
		if _, _, err := when.Day(from, c.now); err == nil && rng.From == rng.To {
			hint = "; for the whole day: day=" + from
		}
		show := func(ns int64) string { return time.Unix(0, ns).In(c.now.Location()).Format(time.RFC3339Nano) }
		return rng, badRequest("the range is empty: from %s is not before to %s%s", show(rng.From), show(rng.To), hint)
	}
	return rng, nil
}
