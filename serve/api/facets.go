package api

import (
	"blobtail/reading"
	"blobtail/reading/form"
)

const (
	// chosenSample and mostSample are how many of the newest records the values are taken
	// from: unless asked otherwise, and at most.
	chosenSample = 10_000
	mostSample   = 1_000_000
	chosenTop    = 10
)

// facets answers with the fields of records and their most frequent values.
func (c *call) facets() error {
	a, err := c.ask()
	if err != nil {
		return err
	}
	o := reading.SurveyOptions{Fields: c.params.List("fields")}
	if o.Top, err = c.params.Number("top", chosenTop, 1, reading.MostValues); err != nil {
		return err
	}
	if o.Sample, err = c.params.Number("sample", chosenSample, 0, mostSample); err != nil {
		return err
	}
	if len(o.Fields) > reading.MostSurveyed {
		return badRequest("fields names %d fields; at most %d have facets at once", len(o.Fields), reading.MostSurveyed)
	}
	s, out, err := c.store.Survey(c.r.Context(), a, o)
	if err != nil {
		return err
	}
	answer := form.FacetsOf(s, out)
	answer.Range = c.rangeOf(&a)
	return c.json(answer)
}
