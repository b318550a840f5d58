package storeid

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"time"

	"blobtail/storage"
)

const (
	// Each run of `retention copy` that comes to its end leaves an object in the copy. The greatest
	// name counts: _copy/20261120T150405Z.000001
	copyPrefix = "_copy/"
	copyTime   = "20060102T150405Z"
	// promoted is the object of a copy that has become an ordinary store.
	promoted = "_promoted"
)

// A Copy is what a copy says about itself.
type Copy struct {
	Source   string   // id of its original
	Services []string // names and globs of those that it has; nil: all
	Extent
}

// Extent is the span of times in which a copy has each record that was acknowledged before the last
// run began.
type Extent struct {
	From    time.Time `json:"from,omitzero"` // zero: from the first record on
	Through time.Time `json:"through"`       // zero: no run has come to its end
}

// A CopyError says that a store is a copy that was not promoted. Only `retention copy` writes to it.
type CopyError struct{ Copy }

// Error implements error.
func (e *CopyError) Error() string {
	return "this store is a copy of the store " + e.Source +
		", and only retention copy may write to it; retention promote makes it a store of its own"
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
	_, err := blobs.Stat(ctx, promoted)
	e := &CopyError{Copy{Source: v.Source, Services: v.Services}}
	for errors.Is(err, storage.ErrNotExist) { // a run deletes the object of the one before
		last, _, lerr := lastRun(ctx, blobs)
		var body []byte
		if err = lerr; err == nil && last != "" {
			if body, err = get(ctx, blobs, last); err == nil {
				err = json.Unmarshal(body, &e.Extent)
			}
		}
		if err == nil {
			return e
		}
	}
	return err
}

// lastRun lists the objects of runs, and returns the key of the last one.
func lastRun(ctx context.Context, blobs storage.BlobStore) (key string, all []storage.Blob, err error) {
	for b, err := range blobs.List(ctx, copyPrefix, "") {
		if err != nil {
			return "", nil, err
		}
		key, all = b.Key, append(all, b)
	}
	return key, all, nil
}

// ErrNoCopy says that a store is no copy of another one.
var ErrNoCopy = errors.New("the store is not the copy that it should be")

// EnsureCopy makes an empty store a copy of a source, or returns the copy that it is. The error is
// [ErrNoCopy] if it is another one.
func EnsureCopy(ctx context.Context, blobs storage.BlobStore, source string, services []string) (Copy, error) {
	id, err := Read(ctx, blobs)
	if id == "" && err == nil {
		for b, lerr := range blobs.List(ctx, "", "") {
			if id, err = Read(ctx, blobs); id == "" && err == nil { // another copier may have begun
				err = fmt.Errorf("%w: it has objects such as %s, and a copy begins with an empty store", ErrNoCopy, b.Key)
			}
			err = cmp.Or(lerr, err)
			break
		}
	}
	if id == "" && err == nil {
		random := make([]byte, idBytes)
		rand.Read(random)
		id := strconv.AppendQuote(nil, hex.EncodeToString(random))
		line, merr := json.Marshal(identity{Format: format, ID: id, Copy: true, Source: source, Services: services})
		if len(line) >= maxBody || merr != nil {
			return Copy{}, errors.Join(merr, fmt.Errorf("%w: so many names of services do not fit into its object %s", ErrNoCopy, Key))
		}
		err = blobs.Create(ctx, Key, append(line, '\n'), storage.Attrs{ContentType: "application/json"})
		if err == nil || errors.Is(err, storage.ErrExist) {
			_, err = Read(ctx, blobs)
		}
	}
	is, ok := errors.AsType[*CopyError](err)
	switch {
	case ok && is.Source == source && slices.Equal(is.Services, services):
		return is.Copy, nil
	case ok:
		err = fmt.Errorf("%w: it is one of the store %s with the services %q (none: all), not of %s with %q",
			ErrNoCopy, is.Source, is.Services, source, services)
	case err == nil:
		err = fmt.Errorf("%w: it is a store of its own, and a copy begins with an empty one", ErrNoCopy)
	}
	return Copy{}, err
}

// Ended notes in a copy that a run has come to its end, and what the copy has by that.
func (e Extent) Ended(ctx context.Context, blobs storage.BlobStore, now time.Time) error {
	last, old, err := lastRun(ctx, blobs)
	if err != nil {
		return err
	}
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	at, n := now.UTC().Format(copyTime), 1
	if len(last) == len(copyPrefix+copyTime)+len(".000001") && path.Base(last) >= at { // the clock may have gone back
		at = path.Base(last)[:len(copyTime)]
		n, _ = strconv.Atoi(last[len(last)-6:])
		n++
	}
	err = blobs.Create(ctx, fmt.Sprintf("%s%s.%06d", copyPrefix, at, n), append(body, '\n'), storage.Attrs{ContentType: "application/json"})
	if err != nil && !errors.Is(err, storage.ErrExist) { // that of another run at this moment is as good
		return fmt.Errorf("note the end of the run: %w", err)
	}
	_ = blobs.Delete(ctx, old...) // they do no harm
	return nil
}

// Promote makes a copy an ordinary store. It may be repeated.
func Promote(ctx context.Context, blobs storage.BlobStore) error {
	if err := blobs.Create(ctx, promoted, nil, storage.Attrs{}); err != nil && !errors.Is(err, storage.ErrExist) {
		return fmt.Errorf("promote the copy: %w", err)
	}
	return nil
}
