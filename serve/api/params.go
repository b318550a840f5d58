package api

import (
	"net/url"
	"slices"
	"strings"

	"blobtail/internal/spelling"
	"blobtail/internal/when"
	"blobtail/reading"
)

// parse reads the parameters. A misspelt one is an error: without the filter that it was
// meant to be, the answer would be another one.
func (c *call) parse(known []string) error {
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return badRequest("the query of the URL cannot be read: %v; write %%XX for bytes that are no letters, as curl --data-urlencode does", err)
	}
	c.params = reading.Params(values)
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			return unknownParam(name, known)
		case slices.Contains(all, ""):
			return badRequest("%s is given without a value; give one, or leave it out", name)
		case len(all) > 1 && !reading.Repeats(name):
			return badRequest("%s is given %d times; leave all but one out", name, len(all))
		}
	}
	if name := c.params.Get("timezone"); name != "" {
		zone, err := when.Typed(name, when.Zone)
		if err != nil {
			return badRequest("timezone: %w", err)
		}
		c.now = c.now.In(zone)
	}
	return nil
}

// others are the names that other APIs have for parameters, each with an example.
const others = `parameter
(?i)(?:start|begin|after|since|from|min)[-_]?(?:time|ts|date)?	from	start	from
(?i)(?:end|until|before|to|max)[-_]?(?:time|ts|date)?	to	end_time	to
(?i)(?:query|filter|expr|search|kql|logsql)	q	query	q
(?i)(?:app|job|container|index|stream|services)	service	app	service
(?i)(?:size|count|n|lines|max|batch|take|limit.*)	limit	size	limit
(?i)(?:direction|sort|order_?by)	order	direction	order
(?i)(?:step|interval|bucket)	by	step	by
(?i)(?:severity|priority|lvl|levels)	level	severity	level
(?i)(?:tz|zone|time_zone)	timezone	tz	timezone
(?i)(?:columns|select|_source|field)	fields	columns	fields
`

func unknownParam(name string, known []string) error {
	near := spelling.First(name, spelling.Habits(others, "parameter"))
	if !slices.Contains(known, near) {
		near = spelling.Near(name, known)
	}
	f := badRequest("there is no parameter %.60q here; there are %s", name, strings.Join(known, ", "))
	if len(known) == 0 {
		f = badRequest("there is no parameter %.60q here, nor any other", name)
	}
	return &problem{Refusal: f, near: near}
}

// ask reads the parameters of a question. The forms of the server are those of one that names none.
func (c *call) ask() (a reading.Ask, err error) {
	if a, err = reading.ParseAsk(c.params, c.now); a.Parse == "" && a.LogQL == "" && a.Here.Part == nil {
		a.Parse = c.o.Forms
	}
	return a, err
}

// live reads the mode of unflushed records, of a route that has no other part of a question.
func (c *call) live() (reading.Mode, error) {
	word, err := c.params.Word("live", "auto", "off", "only")
	if err != nil {
		return 0, err
	}
	return reading.ParseMode(word)
}
