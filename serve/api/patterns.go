package api

import (
	"time"

	"blobtail/internal/when"
	"blobtail/reading"
	"blobtail/reading/form"
)

// chosenMined is how many of the newest records patterns are taken from, unless asked otherwise.
const chosenMined = 100_000

// patterns answers with the texts that messages have in common, and with those that another window
// does not have.
func (c *call) patterns() error {
	a, err := c.ask()
	if err != nil {
		return err
	}
	o := reading.PatternOptions{}
	if o.Top, err = c.params.Number("top", 50, 1, reading.MostPatterns); err != nil {
		return err
	}
	if o.Sample, err = c.params.Number("sample", chosenMined, 0, mostSample); err != nil {
		return err
	}
	if o.Against, err = c.against(&a); err != nil {
		return err
	}
	p, out, err := c.store.Patterns(c.r.Context(), a, o)
	if err != nil {
		return err
	}
	answer := form.PatternsOf(p, out)
	answer.Range = c.rangeOf(&a)
	return c.json(answer)
}

// against reads the second window: from2 and to2, or since2, which is a time before its end. Without
// to2 it ends where the first window begins. An open end of the first window is the present then, by
// which its length is known.
func (c *call) against(a *reading.Ask) (*reading.Range, error) {
	from, to, since := c.params.Get("from2"), c.params.Get("to2"), c.params.Get("since2")
	if from == "" && to == "" && since == "" {
		return nil, nil
	}
	if from != "" && since != "" {
		return nil, badRequest("from2 and since2 say the same; leave one out")
	}
	rng := reading.Range{From: reading.Oldest, To: a.Range.From}
	for _, end := range []struct {
		name, text string
		ns         *int64
	}{{"from2", from, &rng.From}, {"to2", to, &rng.To}} {
		if end.text == "" {
			continue
		}
		ns, err := when.Typed(end.text, func(text string) (int64, error) {
			t, err := when.Time(text, c.now)
			return t.UnixNano(), err
		})
		if err != nil {
			return nil, badRequest("%s: %w", end.name, err)
		}
		*end.ns = ns
	}
	if rng.To == reading.Oldest {
		return nil, badRequest("the second window needs an end: to2, or from or since of the first window, before which it is")
	}
	if since != "" {
		until := time.Unix(0, rng.To).In(c.now.Location())
		ns, err := when.Typed(since, func(text string) (int64, error) {
			t, err := when.Since(text, until, c.now)
			return t.UnixNano(), err
		})
		if err != nil {
			return nil, badRequest("since2: %w", err)
		}
		rng.From = ns
	}
	if rng.From != reading.Oldest && rng.From >= rng.To {
		return nil, badRequest("the second window is empty: it ends at %s", form.Stamp(rng.To))
	}
	if a.Range.To == reading.Newest {
		a.Range.To = max(c.now.UnixNano(), a.Range.From+1)
	}
	return &rng, nil
}
