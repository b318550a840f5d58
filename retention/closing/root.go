package closing

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"time"

	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

// Root writes the root of a run, with the parts that it has added. The run has closed all days up to
// through; 0: those that were closed before. key signs it; nil: it is not signed.
func (c *Closer) Root(ctx context.Context, key ed25519.PrivateKey, through horizon.Day) (*closed.Root, error) {
	marks, err := horizon.Marks(ctx, c.store)
	if err != nil {
		return nil, err
	}
	r := &closed.Root{Made: c.now.UTC().Truncate(time.Second), Days: c.added, Dropped: catalog.DroppedSum(marks)}
	if through != 0 {
		r.Through = through.String()
	}
	for {
		if err := before(ctx, c.store, r, horizon.DayOf(c.now)); err != nil {
			return nil, err
		}
		body, err := r.Encode(key)
		if err == nil {
			err = c.store.Create(ctx, r.Name, body, storage.Attrs{ContentType: closed.ContentType, Metadata: r.Meta()})
		}
		if !errors.Is(err, storage.ErrExist) {
			r.Sum = closed.HashOf(body)
			return r, err
		}
	}
}

// before links a root to the last one, and names it. A root that this version cannot read is linked
// by its hash.
func before(ctx context.Context, store storage.BlobStore, r *closed.Root, today horizon.Day) error {
	last, err := catalog.LastRoot(ctx, store)
	if err != nil && !errors.Is(err, closed.ErrUnread) {
		return err
	}
	r.Name = closed.RootName(today, 1)
	if last == nil {
		return nil
	}
	r.Name = closed.NextRoot(last.Name, today)
	r.BeforeName, r.Before, r.Through = last.Name, last.Sum, cmp.Or(r.Through, last.Through)
	return nil
}
