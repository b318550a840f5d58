package remote

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"blobtail/reading"
	"blobtail/reading/form"
)

// Part asks for a part of a joint question, as [reading.Store.Part] does.
func (c *Client) Part(ctx context.Context, a reading.Ask, j *reading.Joint) (*reading.Part, *reading.Outcome, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, nil, err
	}
	params := a.Values()
	if params.Set("joint", string(text)); j.Slices != nil && j.Slices.Zone != nil {
		params.Set("timezone", zoneOf(j.Slices.Zone))
	}
	b, _, err := c.open(ctx, request{path: form.Parts, params: params, kind: form.Portable})
	if refused, ok := errors.AsType[*Error](err); ok && refused.Status == http.StatusBadRequest {
		if why, ok := strings.CutPrefix(refused.Detail, "logql: "); ok {
			return nil, nil, &reading.AskError{Key: "logql", Err: errors.New(why)}
		}
	}
	if err != nil {
		return nil, nil, failure(a.Services, err)
	}
	defer b.Close()
	var f form.Part
	if err = gob.NewDecoder(io.LimitReader(b, mostAnswer)).Decode(&f); err == nil && f.Of == nil {
		err = errors.New("the answer has no part")
	}
	if err != nil {
		return nil, nil, &BrokenError{c.base.String(), err}
	}
	return f.Of, c.end(&f.End), nil
}
