package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// storedKind is the media type of a blob as it is stored.
const storedKind = "application/zstd"

// DamagedError says that some of a blob cannot be read.
type DamagedError struct{ Detail string }

// Error implements error.
func (e *DamagedError) Error() string { return e.Detail }

// Blob returns the stored bytes of a blob. With a [*DamagedError] it returns what there is of
// them. The warning is a fact for people, or "".
func (c *Client) Blob(ctx context.Context, name string) (body []byte, warning string, err error) {
	body, warning, err = c.blob(ctx, name, url.Values{"stored": {"1"}})
	damaged, ok := errors.AsType[*Error](err)
	if !ok || damaged.Status != http.StatusBadGateway || damaged.Title != "Damaged blob" {
		return body, warning, err
	}
	if body, warning, err = c.blob(ctx, name, url.Values{"stored": {"1"}, "partial": {"1"}}); err == nil {
		err = &DamagedError{strings.TrimSuffix(damaged.Detail, "; add partial=1 to have the rest of it")}
	}
	return body, warning, err
}

func (c *Client) blob(ctx context.Context, name string, params url.Values) (body []byte, warning string, err error) {
	b, header, err := c.open(ctx, request{path: "blobs/" + name, params: params, kind: storedKind})
	if err != nil {
		return nil, "", err
	}
	defer b.Close()
	body, err = io.ReadAll(io.LimitReader(b, mostAnswer))
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if err != nil {
		return nil, "", &BrokenError{c.base.String(), err}
	}
	return body, header.Get("Blobtail-Warning"), nil
}
