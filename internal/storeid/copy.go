package storeid

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/storage"
)

const (
	// Each run of `retention copy` that comes to its end leaves an object in the copy. The greatest
	// name counts: _copy/20261120T150405Z.000001
	copyPrefix = "_copy/"
	copyTime   = "20060102T150405Z"
	// Promoted is the object of a copy that has become an ordinary store.
	Promoted = "_promoted"
)

// Extent is the span of times in which a copy has each record that was acknowledged before the last
// run began.
type Extent struct {
	From    time.Time `json:"from,omitzero"` // zero: from the first record on
	Through time.Time `json:"through"`       // zero: no run has come to its end
}

// A CopyError says that a store is a copy that was not promoted. Only `retention copy` writes to it.
type CopyError struct {
	Source   string   // id of its original
	Services []string // names and globs of those that it has; nil: all
	Extent
}

// Error implements error.
func (e *CopyError) Error() string {
	return "this store is a copy of the store " + e.Source +
		", and only retention copy may write to it; retention promote makes it a store of its own"
}

// Whole says what a copy has.
func (e *CopyError) Whole() string {
	text := "whole before " + e.Through.UTC().Format(time.RFC3339)
	switch {
	case e.Through.IsZero():
		text = "not whole: it may lack blobs"
	case !e.From.IsZero():
		text = "whole from " + e.From.UTC().Format(time.RFC3339) + " to " + e.Through.UTC().Format(time.RFC3339)
	}
	if e.Services != nil {
		text += " in the services " + strings.Join(e.Services, " ")
	}
	return text
}

// Lacks says why a read from a time to another, in ns since 1970, may lack records; nil: it has all.
func (e *CopyError) Lacks(from, to int64) error {
	switch {
	case e.Through.IsZero():
		return errors.New("this store is a copy that is not whole: no run of retention copy has come to its end. " +
			"Run it again, or read what there is with --live off")
	case to > e.Through.UnixNano():
		return fmt.Errorf("this store is a copy that is whole before %s: later records may be missing. "+
			"End the read there, or add --live off", e.Through.UTC().Format(time.RFC3339))
	case !e.From.IsZero() && from < e.From.UnixNano():
		return fmt.Errorf("this store is a copy that is whole from %s on: earlier records may be missing. "+
			"Run retention copy without --since", e.From.UTC().Format(time.RFC3339))
	}
	return nil
}

// copied returns what a copy says about itself as a [*CopyError]; nil: it was promoted.
func (v *identity) copied(ctx context.Context, blobs storage.BlobStore) error {
	_, err := blobs.Stat(ctx, Promoted)
	for errors.Is(err, storage.ErrNotExist) { // a run deletes the object of the one before
		e := &CopyError{Source: v.Source, Services: v.Services}
		var all []storage.Blob
		var body []byte
		if all, err = runs(ctx, blobs); len(all) > 0 && err == nil {
			if body, err = get(ctx, blobs, all[len(all)-1].Key); err == nil {
				err = json.Unmarshal(body, &e.Extent)
			}
		}
		if err == nil {
			return e
		}
	}
	return err
}

// runs lists the objects of runs.
func runs(ctx context.Context, blobs storage.BlobStore) (all []storage.Blob, err error) {
	for b, err := range blobs.List(ctx, copyPrefix, "") {
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// ErrNoCopy says that a store is no copy of another one.
var ErrNoCopy = errors.New("the store is not the copy that it should be")

// EnsureCopy makes an empty store a copy of a source if it may, and returns what the copy has. The
// error is [ErrNoCopy] if it is something else.
func EnsureCopy(ctx context.Context, blobs storage.BlobStore, source string, services []string, may bool) (Extent, error) {
	id, err := Read(ctx, blobs)
	if id == "" && err == nil && may {
		if err = begin(ctx, blobs, source, services); err == nil || errors.Is(err, storage.ErrExist) {
			id, err = Read(ctx, blobs)
		}
	}
	is, ok := errors.AsType[*CopyError](err)
	switch {
	case id == source:
		err = fmt.Errorf("%w: it is the original, by another name", ErrNoCopy)
	case ok && is.Source == source && slices.Equal(is.Services, services):
		return is.Extent, nil
	case ok:
		err = fmt.Errorf("%w: it is one of the store %s with the services %q (none: all), not of %s with %q: "+
			"name those, or begin another copy in an empty store",
			ErrNoCopy, is.Source, is.Services, source, services)
	case err == nil && id == "":
		err = fmt.Errorf("%w: its object %s has gone; is its disk mounted?", ErrNoCopy, Key)
	case err == nil:
		err = fmt.Errorf("%w: it is a store of its own, and a copy begins with an empty one", ErrNoCopy)
	}
	return Extent{}, err
}

// begin makes an empty store a copy. The error is [storage.ErrExist] if it has an id meanwhile.
func begin(ctx context.Context, blobs storage.BlobStore, source string, services []string) error {
	for b, err := range blobs.List(ctx, "", "") {
		if _, missing := blobs.Stat(ctx, Key); err == nil && errors.Is(missing, storage.ErrNotExist) {
			err = fmt.Errorf("%w: it has objects such as %s, and a copy begins with an empty store", ErrNoCopy, b.Key)
		}
		return cmp.Or(err, storage.ErrExist) // another copier has begun
	}
	id := json.RawMessage(strconv.Quote(newID()))
	line, err := json.Marshal(identity{Format: format, ID: id, Copy: true, Source: source, Services: services})
	if len(line) >= maxBody || err != nil {
		return errors.Join(err, fmt.Errorf("%w: so many names of services do not fit into its object %s", ErrNoCopy, Key))
	}
	return blobs.Create(ctx, Key, append(line, '\n'), storage.Attrs{ContentType: "application/json"})
}

// Ended notes in a copy that a run has come to its end, and what the copy has by that.
func (e Extent) Ended(ctx context.Context, blobs storage.BlobStore, now time.Time) error {
	old, err := runs(ctx, blobs)
	if err != nil {
		return err
	}
	at, last, n := now.UTC().Format(copyTime), "", 0
	if len(old) > 0 {
		fmt.Sscanf(old[len(old)-1].Key, copyPrefix+"%16s.%d", &last, &n)
	}
	key := fmt.Sprintf("%s%s.%06d", copyPrefix, max(at, last), n+1) // the clock may have gone back
	body, err := json.Marshal(e)
	if err == nil {
		err = blobs.Create(ctx, key, append(body, '\n'), storage.Attrs{ContentType: "application/json"})
	}
	if err != nil && !errors.Is(err, storage.ErrExist) { // that of another run at this moment is as good
		return fmt.Errorf("note the end of the run: %w", err)
	}
	_ = blobs.Delete(ctx, old...) // they do no harm
	return nil
}

// Promote makes a copy an ordinary store. It may be repeated.
func Promote(ctx context.Context, blobs storage.BlobStore) error {
	if err := blobs.Create(ctx, Promoted, nil, storage.Attrs{}); err != nil && !errors.Is(err, storage.ErrExist) {
		return fmt.Errorf("promote the copy: %w", err)
	}
	return nil
}
