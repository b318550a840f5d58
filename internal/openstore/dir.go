//go:build linux

package openstore

import (
	"errors"
	"fmt"

	"blobtail/storage/dir"
	"blobtail/storage/dir/tables"
	"blobtail/storage/fsys"
)

func openDir(spec Spec, create, reads bool) (*Store, error) {
	explain := func(err error) string { return fsys.Place{Dir: spec.place, Reads: reads}.Remedy(err) }
	blobs, err := dir.Open(spec.place, dir.Options{Create: create})
	if err != nil {
		if fix := explain(err); fix != "" {
			err = fmt.Errorf("%w; %s", err, fix)
		}
		return nil, err
	}
	rows, err := tables.Open(spec.place)
	if err != nil {
		return nil, errors.Join(err, blobs.Close())
	}
	return &Store{Blobs: blobs, Tables: rows, Explain: explain, Close: func() error { return errors.Join(rows.Close(), blobs.Close()) }}, nil
}
