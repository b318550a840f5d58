package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"blobtail/blobfmt"
	"blobtail/reading"
	"blobtail/reading/form"
)

// Body implements [reading.Source]. Damage that every reader of the body sees is no error.
func (c *Client) Body(ctx context.Context, key string) (body []byte, warning, err error) {
	body, warning, err = c.blob(ctx, key, url.Values{"stored": {"1"}})
	refused, ok := errors.AsType[*Error](err)
	switch {
	case ok && refused.Status == http.StatusNotFound:
		return nil, nil, &reading.NoBlobError{Key: key, Expired: strings.Contains(refused.Detail, "has expired")}
	case !ok || refused.Status != http.StatusBadGateway || refused.Title != "Damaged blob":
		return body, warning, err
	}
	if body, warning, err = c.blob(ctx, key, url.Values{"stored": {"1"}, "partial": {"1"}}); err == nil {
		err = damage(key, body, strings.TrimSuffix(refused.Detail, "; add partial=1 to have the rest of it"))
	}
	return body, warning, err
}

// damage is the error of a damaged blob. It is nil for damage that every reader of the body sees.
func damage(key string, body []byte, detail string) error {
	for _, err := range blobfmt.NewDecoder(1).Walk(key, body) {
		if err != nil && err.Error() == detail {
			return nil
		}
	}
	return &reading.Problem{Blob: key, Err: errors.New(strings.TrimPrefix(detail, key+": "))}
}

func (c *Client) blob(ctx context.Context, name string, params url.Values) (body []byte, warning, err error) {
	b, header, err := c.open(ctx, request{path: "blobs/" + name, params: params, kind: form.Stored})
	if err != nil {
		return nil, nil, err
	}
	defer b.Close()
	body, err = io.ReadAll(io.LimitReader(b, mostAnswer))
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		return nil, nil, &BrokenError{c.base.String(), err}
	}
	if text := header.Get("Blobtail-Warning"); text != "" {
		warning = errors.New(text)
	}
	return body, warning, nil
}
