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

func unknownParam(name string, known []string) error {
	f := badRequest("there is no parameter %.60q here; there are %s", name, strings.Join(known, ", "))
	if len(known) == 0 {
		f = badRequest("there is no parameter %.60q here, nor any other", name)
	}
	return &problem{Refusal: f, near: spelling.Near(name, known)}
}

// ask reads the parameters of a question.
func (c *call) ask() (reading.Ask, error) { return reading.ParseAsk(c.params, c.now) }

// live reads the mode of unflushed records, of a route that has no other part of a question.
func (c *call) live() (reading.Mode, error) {
	word, err := c.params.Word("live", "auto", "off", "only")
	if err != nil {
		return 0, err
	}
	return reading.ParseMode(word)
}
