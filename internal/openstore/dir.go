//go:build linux

package openstore

import (
	"errors"

	"blobtail/storage/dir"
	"blobtail/storage/dir/tables"
)

func openDir(spec Spec, create bool) (*Store, error) {
	blobs, err := dir.Open(spec.place, dir.Options{Create: create})
	if err != nil {
		return nil, err
	}
	rows, err := tables.Open(spec.place)
	if err != nil {
		return nil, errors.Join(err, blobs.Close())
	}
	return &Store{Blobs: blobs, Tables: rows, Close: func() error { return errors.Join(rows.Close(), blobs.Close()) }}, nil
}
