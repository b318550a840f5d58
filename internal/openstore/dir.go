//go:build linux

package openstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"blobtail/internal/storeid"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/dir/tables"
	"blobtail/storage/fsys"
)

func openDir(spec Spec, create bool, o Options) (*Store, error) {
	reads := o.Reads
	explain := func(err error) string { return fsys.Place{Dir: spec.place, Reads: reads}.Remedy(err) }
	blobs, err := dir.Open(spec.place, dir.Options{Create: create, Remember: o.Remember, Bare: o.Bare})
	if err != nil {
		if fix := explain(err); fix != "" {
			err = fmt.Errorf("%w; %s", err, fix)
		}
		return nil, err
	}
	if err := notALog(spec); err != nil {
		return nil, errors.Join(err, blobs.Close())
	}
	if err := notOfAnother(spec, reads); err != nil {
		return nil, errors.Join(err, blobs.Close())
	}
	rows, err := tables.Open(spec.place)
	if err != nil {
		return nil, errors.Join(err, blobs.Close())
	}
	return &Store{Blobs: blobs, Tables: rows, Explain: explain, Close: func() error { return errors.Join(rows.Close(), blobs.Close()) }}, nil
}

// notOfAnother refuses root, if it may write, in a store that another user has made. Root may do
// anything there, and that user could not read what root has made: a horizon of root's stops an
// ingester. The error is [storage.ErrUnauthorized].
func notOfAnother(spec Spec, reads bool) error {
	made := filepath.Join(spec.place, storeid.Key)
	if _, err := os.Lstat(made); err != nil || reads || os.Geteuid() != 0 {
		return nil
	}
	owner, other := fsys.Owner(made)
	if !other {
		return nil
	}
	return fmt.Errorf("%w: the store %s belongs to user %s, who could not read what root makes there; run this as %s: runuser -u %s -- COMMAND",
		storage.ErrUnauthorized, spec.place, owner, owner, owner)
}

// notALog refuses the directory of an ingester's log, which looks like an empty store. The error
// is a [*BadSpecError] with the store of that ingester.
func notALog(spec Spec) error {
	of, err := storeid.LoadBinding(fsys.OS(), spec.place)
	if err != nil || of.ID == "" {
		return nil // a file of another kind has that name
	}
	if _, err := os.Lstat(filepath.Join(spec.place, storeid.Key)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	reason := "it is the log of an ingester, with records that are in no blob yet; its store is " + of.Spec
	if dir, ok := strings.CutPrefix(of.Spec, inDir+":"); ok && !filepath.IsAbs(dir) {
		reason += ", as the ingester names it from the directory that it was started in"
	}
	return &BadSpecError{spec.String(), reason}
}
