// Package catalog lists the contents of a store: its services, their days, and the
// blobs of a service in order of their names.
//
// [Services] and [Days] go by the names of directories. [Blobs] lists a part of a
// service and judges each object by its name and its metadata alone; it opens
// nothing. Every listed object becomes an [Entry], foreign and damaged ones too:
// readers skip them, retention deletes by the name, the bill counts them.
//
// A reader makes a [View], which knows the dropped days (package horizon). Its
// listings mark each entry of such a day as hidden, and its [Walk] passes over the
// day. [Replacing] finds the compacted blobs that may replace others. Its caller reads
// their indexes, because only an index names the replaced batches.
//
// # Dropped days
//
// A dropped day is hidden from readers in one place, the [View]. It reads the horizons
// concurrently with the requests before the first listing. If that listing ends within 2.5 s, it
// lacks no blob of a day that was hidden since, because retention deletes nothing so soon. After
// a slower one, the view reads the horizons again concurrently with the listed blobs. Everything
// that was deleted before the listing ended had been hidden before that, so the second read
// explains a short listing.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/record"
	"blobtail/storage"
)

// Store is the part of a blob store that this package needs.
type Store interface {
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error]
	Dirs(ctx context.Context, prefix string) iter.Seq2[string, error]
	Stat(ctx context.Context, key string) (storage.Blob, error)
}

// State is the judgement of an object by its name and its metadata.
type State uint8

const (
	// Sound is a blob with readable metadata.
	Sound State = iota
	// Damaged is a blob with unreadable metadata, or of another service or period.
	Damaged
	// Newer is a blob in a later format.
	Newer
	// Foreign is an object that blobtail did not write: its name is not a blob's, or
	// it has no metadata of a blob and the store knows of no damage.
	Foreign
	// Unknown is an object without metadata where the store failed to say whether it
	// is damaged.
	Unknown
	// Account is a part of the account of a day: see package closed.
	Account
)

// Entry is one object of a service, as it was listed.
type Entry struct {
	Key     string
	Size    int64
	Created time.Time // zero: unknown; see [storage.Blob]
	Version string
	Tier    string // "": reading costs what it usually does

	// Name is zero if the key is not the name of a blob.
	Name blobfmt.Name
	// Part is zero if the object is no [Account].
	Part closed.Name
	// Meta has only First and Last unless the state is Sound: the bounds that the name
	// sets to the times of the records.
	Meta  blobfmt.Meta
	State State
	// Metadata are those of an [Account].
	Metadata map[string]string
	// Hidden means that the day of the blob has been dropped. Only a [View] sets it.
	Hidden bool
	// Err is the reason why the state is not Sound. It wraps [storage.ErrDamaged] if the
	// store found the damage.
	Err error
}

// Named reports whether the object has the name of a blob.
func (e *Entry) Named() bool { return e.Name.Number > 0 }

// Day is the day of a named entry, which decides when it is dropped.
func (e *Entry) Day() horizon.Day { return horizon.DayOf(e.Name.Period) }

// Hour is the UTC hour of a named entry, in which all its records lie.
func (e *Entry) Hour() time.Time { return e.Name.Period.Truncate(time.Hour) }

// Object names the entry for a deletion of the very object that was listed.
func (e *Entry) Object() storage.Blob {
	return storage.Blob{Key: e.Key, Size: e.Size, Version: e.Version}
}

// Blob reports whether the object is a blob, sound or not. If the store failed to answer,
// that is unknown; see Err.
func (e *Entry) Blob() bool { return e.State == Sound || e.State == Damaged || e.State == Newer }

// judge makes the entry of a listed object. It asks the store about an object that
// has the name of a blob and no metadata: they may be damaged.
func judge(ctx context.Context, store Store, o *storage.Blob, m *Memory) Entry {
	e := Entry{Key: o.Key, Size: o.Size, Created: o.Created, Version: o.Version, Tier: o.Tier}
	if m.recall(&e, o) {
		return e
	}
	if e.Name, e.Err = blobfmt.ParseName(o.Key); e.Err != nil {
		e.State = Foreign
		if part, ok := closed.ParseName(o.Key); ok {
			e.State, e.Part, e.Metadata, e.Err = Account, part, o.Metadata, nil
		}
		return e
	}
	if e.Meta, e.Err = blobfmt.ParseMeta(o.Metadata); e.Err == nil {
		e.Err = e.Name.Check(e.Meta)
	}
	if e.Err == nil {
		m.keep(&e, o)
		return e
	}
	e.Meta = blobfmt.Meta{}
	e.Meta.First, e.Meta.Last = bounds(e.Name.Period)
	switch {
	case errors.Is(e.Err, blobfmt.ErrNewer):
		e.State = Newer
	case !errors.Is(e.Err, blobfmt.ErrForeign):
		e.State = Damaged
	default:
		_, err := store.Stat(ctx, o.Key)
		switch e.State = Foreign; {
		case errors.Is(err, storage.ErrDamaged):
			e.State, e.Err = Damaged, err
		case err != nil && !errors.Is(err, storage.ErrNotExist):
			e.State, e.Err = Unknown, err
		}
	}
	return e
}

// bounds are the times between which all records of a period lie, in ns. A name does not
// contain the length of its period, which ends within the UTC hour.
func bounds(period time.Time) (first, last int64) {
	return record.ClampTime(period), record.ClampTime(period.Truncate(time.Hour).Add(time.Hour - 1))
}

// IsService reports whether blobs may be stored under a name. The other names of the
// system hold horizons and policies.
func IsService(name string) bool { return record.ValidService(name) || name == record.RejectedService }

// Services lists the services of a store by name, in byte order.
func Services(ctx context.Context, store Store) ([]string, error) {
	names := []string{}
	for name, err := range store.Dirs(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("list services: %w", err)
		}
		if IsService(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// MayReplace reports whether e may replace b, a sound blob of the same hour, as far as
// the metadata show. A compacted blob holds all records of a blob that it replaces. It
// replaces that blob, and all batches that the other blob replaces. An erased blob lacks some: only its
// section tells which blobs it replaces.
func (e *Entry) MayReplace(b *Entry) bool {
	c, m := &e.Meta, &b.Meta
	if c.Erased {
		return m.Batch != c.Batch
	}
	if m.Compacted >= c.Compacted || m.First < c.First || m.Last > c.Last || m.Records > c.Records || m.RawBytes > c.RawBytes {
		return false
	}
	for l, n := range m.Levels {
		if n > c.Levels[l] {
			return false
		}
	}
	return true
}

// Replacing returns the entries with indexes to be read: each compacted one that may
// replace another of its service and hour. The entries are in the order of their
// listings.
func Replacing(entries []Entry) (out []*Entry) {
	for len(entries) > 0 {
		service, start, n := entries[0].Name.Service, entries[0].Hour(), 1
		for n < len(entries) && entries[n].Name.Service == service && entries[n].Hour().Equal(start) {
			n++
		}
		hour := entries[:n]
		for i := range hour {
			e := &hour[i]
			if e.Meta.Compacted > 0 && slices.ContainsFunc(hour, func(b Entry) bool { return b.State == Sound && e.MayReplace(&b) }) {
				out = append(out, e)
			}
		}
		entries = entries[n:]
	}
	return out
}
