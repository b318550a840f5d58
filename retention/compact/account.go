package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/storage"
)

// A link is a replaced blob in an account. Its name may be free again, and used for another batch.
type link struct {
	key   string
	batch blobfmt.BatchID
}

// account returns the replaced blobs that the account of a listed day knows of. ok is
// false if the day has to be left alone: the account cannot be read, is not the newest any more, or
// names a blob that is not there.
func (r *run) account(ctx context.Context, l *catalog.Listing) (linked map[link]bool, ok bool, err error) {
	var part *closed.Part
	whole := l.Accounted()
	if whole {
		part, err = catalog.ReadPart(ctx, r.store, l.Part.Key)
	} else if l, part, err = r.closer.Settled(ctx, l); part == nil && err == nil {
		err = storage.ErrNotExist
	}
	if errors.Is(err, closed.ErrUnread) || errors.Is(err, storage.ErrDamaged) {
		r.problem(l.Part.Key, fmt.Errorf("so nothing of this day was touched: %w", err))
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	listed := map[link]*catalog.Entry{}
	for i := range l.Blobs {
		listed[link{l.Blobs[i].Key, l.Blobs[i].Meta.Batch}] = &l.Blobs[i]
	}
	for _, b := range slices.Concat(part.Blobs, part.Replaced) {
		e := listed[link{b.Key, b.Batch}]
		if e != nil && e.State == catalog.Sound && !b.Is(closed.BlobOf(e.Key, e.Size, &e.Meta)) {
			r.problem(b.Key, errors.New("so nothing of this day was touched: it is not the blob that the account has"))
			return nil, false, nil
		}
	}
	if !whole {
		missing, err := l.Missing(part, catalog.NewReplaced(r.closer.Replaces(ctx)))
		if len(missing) > 0 && err == nil {
			err = r.view.Look(ctx)
		}
		if r.view.Hides(l.Service, l.Day) {
			return nil, false, err // dropped since
		}
		for _, b := range missing {
			r.problem(b.Key, fmt.Errorf("so nothing of this day was touched: %w", &catalog.MissingError{Blob: b}))
		}
		if len(missing) > 0 || err != nil {
			return nil, false, err
		}
	}
	linked = map[link]bool{}
	for _, b := range part.Replaced {
		linked[link{b.Key, b.Batch}] = true
	}
	if len(linked) == 0 {
		return nil, true, nil
	}
	// A run that has written another part may know that a replaced blob has to stay.
	after := l.Part.Part
	after.Number++
	if _, err := r.store.Stat(ctx, after.String()); !errors.Is(err, storage.ErrNotExist) {
		return nil, false, cmp.Or(err, errMoved)
	}
	return linked, true, nil
}
