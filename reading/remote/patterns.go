package remote

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"blobtail/reading"
	"blobtail/reading/form"
)

// Patterns implements [reading.Source].
func (c *Client) Patterns(ctx context.Context, a reading.Ask, o reading.PatternOptions) (*reading.Patterns, *reading.Outcome, error) {
	params := a.Values()
	params.Set("sample", strconv.Itoa(o.Sample))
	if o.Top > 0 {
		params.Set("top", strconv.Itoa(o.Top))
	}
	if rng := o.Against; rng != nil {
		stamp := func(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }
		params.Set("to2", stamp(rng.To))
		if rng.From != reading.Oldest {
			params.Set("from2", stamp(rng.From))
		}
	}
	var f form.Patterns
	if err := c.object(ctx, "patterns", params, &f); err != nil {
		return nil, nil, failure(a.Services, err)
	}
	p, err := f.Result(nanos, placeOf)
	if err != nil {
		return nil, nil, fmt.Errorf("the answer of the server %s cannot be read: %w", c.base, err)
	}
	out := c.outcome(&f.Outcome)
	out.Records, out.More = p.Basis.Records, p.Basis.Newest
	return p, out, nil
}
