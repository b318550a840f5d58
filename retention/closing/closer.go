package closing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

// A Closer writes parts, and a root that names them. [Run] and package compact have one for a run.
type Closer struct {
	store storage.BlobStore
	now   time.Time
	bytes bool
	made  map[string][]blobfmt.BatchID // what blobs replace that the caller has made
	took  map[string]bool              // blobs that the caller has made and deleted
	added closed.Parts
}

// NewCloser returns a Closer for a run at a time.
func NewCloser(store storage.BlobStore, now time.Time) *Closer {
	return &Closer{store: store, now: now, made: map[string][]blobfmt.BatchID{}, took: map[string]bool{}, added: closed.Parts{}}
}

// Made tells which batches a blob replaces, so that nobody has to read it.
func (c *Closer) Made(key string, replaces []blobfmt.BatchID) { c.made[key] = replaces }

// TookBack tells that the caller has made a blob and deleted it. A part may have it: the next one does not.
func (c *Closer) TookBack(key string) { c.took[key] = true }

// Added reports whether there is a part that no root names.
func (c *Closer) Added() bool { return len(c.added) > 0 }

// Update closes a listed day, or adds a part to its account. part is nil if there is nothing to say,
// or the day was dropped. missing are blobs of the account that are gone, which it keeps.
func (c *Closer) Update(ctx context.Context, l *catalog.Listing) (part *closed.Part, missing []closed.Blob, err error) {
	for {
		if part, missing, err = c.update(ctx, l); !errors.Is(err, storage.ErrExist) {
			return part, missing, err
		}
		if l, err = catalog.ListDay(ctx, c.store, l.Service, l.Day); err != nil { // another run was first
			return nil, nil, err
		}
	}
}

func (c *Closer) update(ctx context.Context, l *catalog.Listing) (part *closed.Part, missing []closed.Blob, err error) {
	var before *closed.Part
	lacking, listed := catalog.Gaps(l.Blobs), l.Part.Part
	switch {
	case l.Part.Part.Number > 0:
		l, before, err = c.Settled(ctx, l)
	case len(lacking) > 0: // blobs may have come behind the listing
		if l, err = catalog.ListDay(ctx, c.store, l.Service, l.Day); err == nil && l.Part.Part.Number > 0 {
			err = storage.ErrExist
		}
	}
	if err == nil && c.bytes {
		err = c.hash(ctx, l)
	}
	if err != nil {
		return nil, nil, err
	}
	if before == nil {
		part, err = first(l, losses(lacking, l), c.Replaces(ctx))
	} else {
		part, missing, err = next(before, c.took, l, losses(lacking, l), c.Replaces(ctx))
	}
	if err != nil || part == nil && len(missing) == 0 {
		return nil, missing, err
	}
	dropped, err := horizon.Read(ctx, c.store, l.Service) // two requests, however many services there are
	if err != nil || dropped.Hides(l.Service, l.Day) {
		return nil, nil, err
	}
	if part == nil {
		return nil, missing, nil
	}
	if l.Part.Part.Number < listed.Number { // a new account would hide that
		return nil, missing, fmt.Errorf("%s was removed since it was listed", listed)
	}
	return part, missing, c.write(ctx, l, part)
}

// Settled lists a day until the listing is younger than its part, and reads that; nil: there is none.
// A part that is gone since it was listed, as below a horizon, has the day listed again.
func (c *Closer) Settled(ctx context.Context, l *catalog.Listing) (_ *catalog.Listing, p *closed.Part, err error) {
	for gone := ""; ; gone = l.Part.Key {
		if l, err = catalog.Settled(ctx, c.store, l.Service, l.Day, l.Part.Part.Number); err != nil || l.Part.Part.Number == 0 {
			return l, nil, err
		}
		if p, err = catalog.ReadPart(ctx, c.store, l.Part.Key); !errors.Is(err, storage.ErrNotExist) || l.Part.Key == gone {
			return l, p, err
		}
	}
}

// Replaces looks up what compacted blobs replace.
func (c *Closer) Replaces(ctx context.Context) catalog.Lookup {
	return func(e *catalog.Entry) ([]blobfmt.BatchID, error) {
		if ids, ok := c.made[e.Key]; ok {
			return ids, nil
		}
		x, err := blobfmt.ReadIndex(e.Key, e.Size, func(off, n int64) ([]byte, error) { return catalog.Read(ctx, c.store, e.Key, off, n) })
		if err != nil {
			return nil, fmt.Errorf("what %s replaces cannot be told: %w", e.Key, err)
		}
		return x.Replaces, nil
	}
}

// hash has the blobs of a listing hashed that have no hash in their metadata.
func (c *Closer) hash(ctx context.Context, l *catalog.Listing) error {
	for i := range l.Blobs {
		e := &l.Blobs[i]
		if e.State != catalog.Sound || e.Meta.SHA256 != (closed.Hash{}) {
			continue
		}
		body, err := catalog.Read(ctx, c.store, e.Key, 0, -1)
		if err != nil {
			return fmt.Errorf("read %s: %w", e.Key, err)
		}
		e.Meta.SHA256 = closed.HashOf(body)
	}
	return nil
}

// losses are the lacking blobs that a later listing lacks too.
func losses(lacking []blobfmt.Name, l *catalog.Listing) (lost []closed.Loss) {
	come := make(map[string]bool, len(l.Blobs))
	for i := range l.Blobs {
		come[l.Blobs[i].Key] = true
	}
	for _, n := range lacking {
		if key := n.String(); !come[key] {
			lost = append(lost, closed.Loss{Key: key})
		}
	}
	return lost
}

// write writes the next part of a listed day. The error is [storage.ErrExist] if another run was first.
func (c *Closer) write(ctx context.Context, l *catalog.Listing, p *closed.Part) error {
	p.Made = c.now.UTC().Truncate(time.Second)
	p.Name = closed.Name{Service: l.Service, Day: l.Day, Number: l.Part.Part.Number + 1}.String()
	body, meta, err := p.Encode()
	if err == nil {
		err = c.store.Create(ctx, p.Name, body, storage.Attrs{ContentType: closed.ContentType, Metadata: meta})
	}
	if err == nil {
		p.Sum = closed.HashOf(body)
		c.added.Set(l.Day, l.Service, p.Sum)
	}
	return err
}

// revise writes the next part of a day as change makes it of the listing and the part before; nil: as
// it is. A day without an account, and one that this version cannot read, is left alone.
func (c *Closer) revise(ctx context.Context, service string, day horizon.Day,
	change func(*catalog.Listing, *closed.Part) (*closed.Part, error)) error {
	for {
		l, before, err := c.Settled(ctx, &catalog.Listing{Service: service, Day: day})
		if err != nil || before == nil {
			return err
		}
		p, err := change(l, before)
		if err == nil && p != nil {
			p.Before = before.Sum
			err = c.write(ctx, l, p)
		}
		if !errors.Is(err, storage.ErrExist) {
			return err
		}
	}
}

// Drop has the account of a day say that the day was dropped. The caller deletes the first blob after that.
func (c *Closer) Drop(ctx context.Context, service string, day horizon.Day) error {
	err := c.revise(ctx, service, day, func(_ *catalog.Listing, before *closed.Part) (*closed.Part, error) {
		if slices.Contains(before.Events, closed.Event{Kind: closed.Dropped}) {
			return nil, nil
		}
		return &closed.Part{Events: []closed.Event{{Kind: closed.Dropped}}}, nil
	})
	if errors.Is(err, closed.ErrUnread) {
		return nil
	}
	return err
}

// Accept has the account of a day say that the blobs that are missing are known to be lost. Reads
// are complete without them then, and say so. It returns these losses; none: nothing is missing. The
// error wraps [storage.ErrNotExist] if the day has no account.
func (c *Closer) Accept(ctx context.Context, service string, day horizon.Day) (lost []closed.Loss, err error) {
	found := false
	err = c.revise(ctx, service, day, func(l *catalog.Listing, p *closed.Part) (*closed.Part, error) {
		found = true
		missing, err := l.Missing(p, catalog.NewReplaced(c.Replaces(ctx)))
		if lost = nil; len(missing) == 0 || err != nil {
			return nil, err
		}
		for _, b := range missing {
			lost = append(lost, closed.Loss{Key: b.Key, Records: b.Records})
		}
		return &closed.Part{Blobs: slices.DeleteFunc(p.Blobs, func(b closed.Blob) bool { return slices.Contains(missing, b) }),
			Replaced: p.Replaced, Lost: append(p.Lost, lost...)}, nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%s has no account of %s: %w", service, day, storage.ErrNotExist)
	}
	return lost, err
}
