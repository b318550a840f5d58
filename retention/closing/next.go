package closing

import (
	"slices"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/closed"
)

// first returns the first part of a day. lost are blobs that the day lacks.
func first(l *catalog.Listing, lost []closed.Loss, look catalog.Lookup) (*closed.Part, error) {
	a := &account{Part: &closed.Part{Lost: lost}, listing: l, replaced: catalog.NewReplaced(look)}
	err := a.replaced.Read(catalog.Replacing(l.Blobs)...)
	for i := range l.Blobs {
		a.take(blobOf(&l.Blobs[i]))
	}
	a.Sort()
	return a.Part, err
}

// next returns the next part of a day, after the one before, by a listing that is younger than that.
// It is nil if there is nothing to say. took are blobs that it forgets, lost those that the listing
// lacks. missing are blobs of the account that are gone; they stay in it.
func next(before *closed.Part, took map[string]bool, l *catalog.Listing, lost []closed.Loss, look catalog.Lookup) (
	p *closed.Part, missing []closed.Blob, err error) {
	a := &account{Part: &closed.Part{}, listing: l, replaced: catalog.NewReplaced(look)}
	if err := a.replaced.Read(catalog.Replacing(l.Blobs)...); err != nil {
		return nil, nil, err
	}
	a.Before = before.Sum
	was := before.Digests()
	before.Blobs = slices.DeleteFunc(before.Blobs, func(b closed.Blob) bool { return took[b.Key] })
	if missing, err = l.Missing(before, a.replaced); err != nil {
		return nil, nil, err
	}
	hashed := a.after(before, missing)
	known := len(a.Lost)
	a.lose(before, lost)
	if a.Sort(); !hashed && len(a.Lost) == known && (l.Accounted() || a.Digests() == was) {
		return nil, missing, nil
	}
	return a.Part, missing, nil
}

// account is a part that is being made.
type account struct {
	*closed.Part
	listing  *catalog.Listing
	replaced *catalog.Replaced
}

func blobOf(e *catalog.Entry) closed.Blob { return closed.BlobOf(e.Key, e.Size, &e.Meta) }

// take puts a listed blob into the account.
func (a *account) take(b closed.Blob) {
	if a.replaced.Has(b.Batch) {
		a.Replaced = append(a.Replaced, b)
	} else {
		a.Blobs = append(a.Blobs, b)
	}
}

// lose takes the losses that the part before knows nothing of.
func (a *account) lose(before *closed.Part, lost []closed.Loss) {
	known := map[string]bool{}
	for _, b := range slices.Concat(before.Blobs, before.Replaced) {
		known[b.Key] = true
	}
	for _, l := range a.Lost {
		known[l.Key] = true
	}
	for _, l := range lost {
		if !known[l.Key] {
			a.Lost = append(a.Lost, l)
			a.Events = append(a.Events, closed.Event{Kind: closed.Lost, Key: l.Key})
		}
	}
}

type place struct {
	key   string
	batch blobfmt.BatchID
}

// after goes on from the part before. hashed reports whether a blob has its hash by now.
func (a *account) after(before *closed.Part, missing []closed.Blob) (hashed bool) {
	gone, listed, known, come := map[place]bool{}, map[place]*catalog.Entry{}, map[place]bool{}, map[string]bool{}
	taken := map[string]bool{}  // names of missing blobs: another one there may be in a wrong place
	unread := map[string]bool{} // names of blobs that do not tell their batch
	for _, b := range missing {
		gone[place{b.Key, b.Batch}], taken[b.Key] = true, true
		a.Blobs = append(a.Blobs, b)
	}
	for i := range a.listing.Blobs {
		e := &a.listing.Blobs[i]
		listed[place{e.Key, e.Meta.Batch}], unread[e.Key] = e, e.State != catalog.Sound
	}
	for _, list := range [][]closed.Blob{before.Blobs, before.Replaced} {
		for _, b := range list {
			at := place{b.Key, b.Batch}
			known[at] = true
			if e := listed[at]; e != nil {
				if b.SHA256 == (closed.Hash{}) && e.Meta.SHA256 != b.SHA256 {
					b.SHA256, hashed = e.Meta.SHA256, true
				}
				a.take(b)
			} else if unread[b.Key] {
				taken[b.Key] = true
				a.take(b)
			} else if !gone[at] {
				a.Events = append(a.Events, closed.Event{Kind: closed.Deleted, Key: b.Key})
			}
		}
	}
	for i := range a.listing.Blobs {
		e := &a.listing.Blobs[i]
		if known[place{e.Key, e.Meta.Batch}] || taken[e.Key] {
			continue
		}
		come[e.Key] = true
		event := closed.Event{Kind: closed.Late, Key: e.Key}
		switch {
		case e.Meta.Gone != "":
			event.Kind, event.Gone = closed.Erased, e.Meta.Gone
		case e.Meta.Compacted > 0:
			event.Kind = closed.Compacted
		}
		a.Events = append(a.Events, event)
		a.take(blobOf(e))
	}
	for _, l := range before.Lost {
		if !come[l.Key] { // a number that lacked may come late
			a.Lost = append(a.Lost, l)
		}
	}
	return hashed
}
