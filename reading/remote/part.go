package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"blobtail/reading"
	"blobtail/reading/form"
)

// VersionError says that a server makes no parts of this version: it is of another version of blobtail.
type VersionError struct{ Server string }

// Error implements error.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the server %s has no %s, since it is of another version of blobtail", e.Server, form.Parts)
}

// Part reads a slice of a joint, as [reading.Store.Part] does.
func (c *Client) Part(ctx context.Context, j reading.Joint) (*reading.Part, *reading.Outcome, error) {
	if j.Table != nil { // its query chooses the services
		j.Ask = reading.Ask{Services: []string{"*"}, Range: j.Ask.Range, Live: j.Ask.Live, Here: j.Ask.Here}
	}
	text, err := json.Marshal(&j)
	if err != nil {
		return nil, nil, err
	}
	params := j.Ask.Values()
	if params.Set("joint", string(text)); j.Split != nil && j.Split.Zone != nil {
		params.Set("timezone", zoneOf(j.Split.Zone))
	}
	b, _, err := c.open(ctx, request{path: form.Parts, params: params, kind: form.Portable})
	if err != nil {
		if refused, ok := errors.AsType[*Error](err); ok && refused.Status == http.StatusNotFound && refused.Title != "No such service" {
			return nil, nil, &VersionError{c.base.String()}
		}
		return nil, nil, failure(j.Ask.Services, err)
	}
	defer b.Close()
	data, err := io.ReadAll(io.LimitReader(b, mostAnswer))
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		return nil, nil, &BrokenError{c.base.String(), err}
	}
	var f form.Part
	if err := f.Decode(data, &j); err != nil {
		return nil, nil, fmt.Errorf("the answer of the server %s cannot be read: %w", c.base, err)
	}
	return f.Of, c.end(&f.End), nil
}
