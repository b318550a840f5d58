// Package openstore turns what a user writes after --store into a store. It is
// the one place that knows all drivers; everything else knows the contracts.
package openstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"blobtail/storage"
	"blobtail/storage/dir"
)

// Default is the store of a command that is not told of any.
const Default = "dir:./data"

// BadSpecError says that a store is not written as it must be.
type BadSpecError struct{ Spec string }

func (e *BadSpecError) Error() string {
	return fmt.Sprintf("store %q: it must be dir:PATH or azure:[ACCOUNT/]CONTAINER", e.Spec)
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
	kind, rest, ok := strings.Cut(spec, ":")
	if !ok || rest == "" {
		return nil, nil, &BadSpecError{spec}
	}
	switch kind {
	case "dir":
		s, err := dir.Open(rest, dir.Options{Create: create})
		if err != nil {
			return nil, nil, err
		}
		return s, func() error { return nil }, nil
	case "azure":
		return nil, nil, errors.New("azure: this build has no driver for it")
	}
	return nil, nil, &BadSpecError{spec}
}
