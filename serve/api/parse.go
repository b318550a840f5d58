package api

import (
	"errors"

	"blobtail/internal/budget"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/reading/search"
)

// parsed answers with what a question says, and reads no record. It is for a page at which somebody
// types, so a mistake is a part of the answer.
func (c *call) parsed() error {
	answer := form.Parsed{Terms: []search.Term{}, Notes: []string{}}
	if typed := c.params.Get("typed"); typed != "" {
		w := search.WordAt(typed)
		answer.Word = &w
	}
	if c.params.Get("logql")+c.params.Get("service") == "" {
		c.params["service"] = []string{"*"}
	}
	a, err := c.ask()
	if err == nil {
		answer.Range = c.rangeOf(&a)
		_, err = a.Matcher(budget.Of(c.r.Context()))
	}
	var (
		of    *reading.ParamError
		field *reading.AskError
		at    *search.Mistake
	)
	switch {
	case errors.As(err, &at):
		answer.Mistake = &form.Mistake{Parameter: "q", Line: at.Line, Column: at.Column, Text: at.Text}
	case errors.As(err, &of):
		answer.Mistake = &form.Mistake{Parameter: of.Name, Text: err.Error()}
	case errors.As(err, &field):
		answer.Mistake = &form.Mistake{Parameter: field.Key, Text: field.Err.Error()}
	case isMistake(err):
		answer.Mistake = &form.Mistake{Parameter: "q", Text: err.Error()}
	case err != nil:
		return err
	case a.LogQL != "":
		answer.LogQL = a.LogQL
	default:
		q, within := a.Searched(), reading.ParseServices(c.params["service"])
		if len(within) == 1 && within[0] == "*" {
			within = nil
		}
		answer.Line, answer.Index, answer.Terms, answer.Notes = q.String(), q.Index(), q.Terms(), append(answer.Notes, q.Notes()...)
		var notes []string
		answer.LogQL, notes = q.LogQL(a.Fold, within)
		answer.Lacks = append(answer.Lacks, notes...)
	}
	return c.json(answer)
}
