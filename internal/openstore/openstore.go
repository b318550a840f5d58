// Package openstore turns what a user writes after --store into a store. It is
// the one place that knows all drivers; everything else knows the contracts.
package openstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/dir"
	"blobtail/storage/dir/tables"
)

// Default is the store of a command that is not told of any.
const Default = "dir:./data"

// BadSpecError says that a store is not written as it must be.
type BadSpecError struct {
	Spec   string
	Reason string
}

func (e *BadSpecError) Error() string { return fmt.Sprintf("store %q: %s", e.Spec, e.Reason) }

// Check says whether spec can be a store, without looking for it. The error is a
// *BadSpecError.
func Check(spec string) error {
	kind, rest, _ := strings.Cut(spec, ":")
	switch {
	case rest == "" || kind != "dir" && kind != "azure":
		return &BadSpecError{spec, "it must be dir:PATH or azure:[ACCOUNT/]CONTAINER"}
	case kind == "azure":
		if _, _, err := azure.ParseSpec(rest); err != nil {
			return &BadSpecError{spec, err.Error()}
		}
	}
	return nil
}

// Remote says whether reading the store costs money or a network.
func Remote(spec string) bool { return !strings.HasPrefix(spec, "dir:") }

// Open opens the blob store that spec names: dir:PATH or
// azure:[ACCOUNT/]CONTAINER. With create it is made when there is none, without
// it that is [storage.ErrNotExist]. A malformed spec is a *BadSpecError. The
// function returned gives up what the store holds.
func Open(ctx context.Context, spec string, create bool) (storage.BlobStore, func() error, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if err := Check(spec); err != nil {
		return nil, nil, err
	}
	if root, ok := strings.CutPrefix(spec, "dir:"); ok {
		s, err := dir.Open(root, dir.Options{Create: create})
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
	s, err := openAzure(ctx, strings.TrimPrefix(spec, "azure:"), create)
	if err != nil {
		return nil, nil, err
	}
	return s, func() error { return nil }, nil
}

// Tables opens the tables that belong to a blob store which [Open] gave for the
// same spec. It asks the store nothing and makes nothing: a table is made by the
// first that writes to it. The function returned gives up what they hold; it
// comes before that of the blob store.
func Tables(spec string, blobs storage.BlobStore) (storage.TableStore, func() error, error) {
	if t, ok := blobs.(storage.TableStore); ok {
		return t, func() error { return nil }, nil
	}
	t, err := tables.Open(strings.TrimPrefix(spec, "dir:"))
	if err != nil {
		return nil, nil, err
	}
	return t, t.Close, nil
}

// Name tells stores apart that have their tables in common, as the containers of
// an account do: it is that of the container, and of a directory, which has its
// own, "".
func Name(spec string) string {
	rest, ok := strings.CutPrefix(spec, "azure:")
	if !ok {
		return ""
	}
	return rest[strings.LastIndexByte(rest, '/')+1:]
}

// makeTimeout bounds what making a container may cost a start. A service that is
// down must not keep an ingester from taking records.
const makeTimeout = time.Second

func openAzure(ctx context.Context, spec string, create bool) (storage.BlobStore, error) {
	s, err := azure.Open(spec, azure.Options{})
	if err != nil || !create {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, makeTimeout)
	defer cancel()
	// The first Create tries again, and says what is wrong.
	_ = s.EnsureContainer(ctx)
	return &making{s}, nil
}

// making is a store whose container is made when it turns out to be missing: the
// service may have been down at the start.
type making struct{ *azure.Store }

func (m *making) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	err := m.Store.Create(ctx, key, body, attrs)
	if !errors.Is(err, storage.ErrNotExist) {
		return err
	}
	if err := m.EnsureContainer(ctx); err != nil {
		return err
	}
	return m.Store.Create(ctx, key, body, attrs)
}
