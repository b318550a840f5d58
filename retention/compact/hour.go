package compact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/retention/closing"
	"blobtail/storage"
)

// blob is one sound blob of an hour, as it was listed.
type blob struct {
	catalog.Entry
	// replaces are the batches that a compacted blob replaces, once its index was read.
	replaces []blobfmt.BatchID
}

// unit is one service and hour.
type unit struct {
	service string
	hour    time.Time
	blobs   []*blob
	linked  map[link]bool // the replaced blobs that the account of the day knows of
}

func (u *unit) prefix() string {
	return strings.TrimSuffix(blobfmt.PeriodPrefix(u.service, u.hour), "00/")
}

// service lists a service and does each closed day in which there is something to do when the
// listing has passed it. Metadata alone decide, so that the work of earlier runs costs only its
// part of the listing.
func (r *run) service(ctx context.Context, service string) error {
	for l, err := range r.view.Listings(ctx, service, catalog.Range{}) {
		if err == nil {
			err = r.day(ctx, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// day compacts the hours of a day that has an account. Another one is left alone, since its gaps in
// numbers go with the blobs: package closing looks at them first.
func (r *run) day(ctx context.Context, l *catalog.Listing) error {
	for _, key := range l.Foreign {
		r.foreign(key)
	}
	if l.Part.Part.Number == 0 {
		if l.Day <= closing.Last(r.now, closing.After) {
			r.out.Unclosed++
		}
		return nil
	}
	var units []*unit
	for i := range l.Blobs {
		e := &l.Blobs[i]
		if len(units) == 0 || !units[len(units)-1].hour.Equal(e.Hour()) {
			units = append(units, &unit{service: l.Service, hour: e.Hour()})
		}
		u := units[len(units)-1]
		if e.State != catalog.Sound {
			r.problem(e.Key, e.Err)
			continue
		}
		u.blobs = append(u.blobs, &blob{Entry: *e})
	}
	units = slices.DeleteFunc(units, func(u *unit) bool {
		groups, _ := r.groups(u.blobs) // by the metadata of its blobs
		return len(groups) == 0 && !slices.ContainsFunc(u.blobs, u.replaces)
	})
	if len(units) == 0 && l.Accounted() {
		return nil
	}
	linked, ok, err := r.account(ctx, l)
	if err != nil {
		return r.failed(ctx, l.Part.Key, err)
	}
	if !ok {
		return nil
	}
	for _, u := range units {
		u.linked = linked
		if err := r.step(ctx, u); err != nil {
			return err
		}
	}
	if _, _, err := r.closer.Update(ctx, l); err != nil {
		return r.failed(ctx, l.Part.Key, fmt.Errorf("write the next part of the account: %w", err))
	}
	return nil
}

// shownForeign is how many foreign objects are named in the log.
const shownForeign = 10

func (r *run) foreign(key string) {
	if r.out.Foreign++; r.out.Foreign <= shownForeign {
		r.o.Log.Info().Str("key", key).Msg("no blob of ours; left alone")
	}
}

// replaces reports whether a compacted blob may replace another one of its hour, or be
// replaced by one.
func (u *unit) replaces(d *blob) bool {
	return d.Meta.Compacted > 0 && slices.ContainsFunc(u.blobs, func(b *blob) bool {
		return d.MayReplace(&b.Entry) || b.MayReplace(&d.Entry)
	})
}

// hour compacts one hour: it rewrites its groups, and then removes the replaced blobs that
// are due. A run that is killed in between finds them again, and so the hour.
func (r *run) hour(ctx context.Context, u *unit) error {
	if ok, err := r.readReplaces(ctx, u); !ok || err != nil {
		return err
	}
	live, dead := split(u.blobs)
	if b := idReused(live); b != nil {
		r.problem(b.Key, errors.New("has the batch id of another blob of its hour, and other lines, so nothing of this hour was touched"))
		return nil
	}
	groups, ready := r.groups(live)
	var failed error
	for _, g := range groups {
		if failed = r.rewrite(ctx, u, g); failed != nil {
			break
		}
	}
	if errors.Is(failed, errMoved) {
		return failed
	}
	if !ready {
		r.out.Waiting += len(dead)
		return failed
	}
	// Also after a failure: on a full disk this makes the room to rewrite.
	return errors.Join(failed, r.remove(ctx, u, live, dead))
}

// split parts the blobs that a reader shows from the replaced ones.
func split(blobs []*blob) (live, dead []*blob) {
	named := make(map[blobfmt.BatchID]bool)
	for _, b := range blobs {
		for _, id := range b.replaces {
			named[id] = true
		}
	}
	for _, b := range blobs {
		if named[b.Meta.Batch] {
			dead = append(dead, b)
		} else {
			live = append(live, b)
		}
	}
	return live, dead
}

// idReused returns a blob that has the id of another blob but different lines. A blob
// that replaced this id would hide both, even if it held only one.
func idReused(live []*blob) *blob {
	first := make(map[blobfmt.BatchID]*blob)
	for _, b := range live {
		a := first[b.Meta.Batch]
		if a == nil {
			first[b.Meta.Batch] = b
		} else if a.Meta.Records != b.Meta.Records || a.Meta.CRC != b.Meta.CRC {
			return b
		}
	}
	return nil
}

// readReplaces reads the batches that the compacted blobs of an hour replace, if they
// can matter. If one index cannot be read, the replaced blobs are unknown: ok is false
// then, and the hour is left as it is.
func (r *run) readReplaces(ctx context.Context, u *unit) (ok bool, err error) {
	for _, d := range u.blobs {
		if !u.replaces(d) {
			continue
		}
		x, err := blobfmt.ReadIndex(d.Key, d.Size, func(off, n int64) ([]byte, error) { return r.read(ctx, d, off, n) })
		if _, corrupt := errors.AsType[*blobfmt.CorruptError](err); corrupt || errors.Is(err, blobfmt.ErrNewer) {
			err = r.damaged(ctx, d, err)
		}
		switch {
		case isDamage(err):
			r.problem(d.Key, fmt.Errorf("what it replaces cannot be told, so nothing of this hour was touched: %w", err))
			return false, nil
		case err != nil:
			return false, err
		}
		d.replaces = x.Replaces
	}
	return true, nil
}

// errMoved says that the listed blob has been deleted or replaced by another. A caller lists again.
var errMoved = fmt.Errorf("the blob is not as it was listed: %w", storage.ErrNotExist)

// damage is an error in a blob; errors of the store are different.
type damage struct{ error }

func (d *damage) Unwrap() error { return d.error }

func isDamage(err error) bool {
	_, ok := errors.AsType[*damage](err)
	return ok
}

// read reads n bytes of a blob from an offset.
func (r *run) read(ctx context.Context, b *blob, off, n int64) ([]byte, error) {
	body, err := r.store.Get(ctx, b.Key, off, n)
	var out []byte
	if err == nil {
		out = make([]byte, n)
		_, err = io.ReadFull(body, out)
		if cerr := body.Close(); err == nil {
			err = cerr
		}
	}
	switch {
	case errors.Is(err, storage.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", b.Key, errMoved)
	case errors.Is(err, storage.ErrDamaged), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, r.damaged(ctx, b, fmt.Errorf("it cannot be read to the end: %w", err))
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", b.Key, err)
	}
	return out, nil
}

// damaged distinguishes damage from another blob that has got the name meanwhile: an
// ingester may use it again once the first one is deleted.
func (r *run) damaged(ctx context.Context, b *blob, err error) error {
	now, serr := r.store.Stat(ctx, b.Key)
	switch {
	case errors.Is(serr, storage.ErrNotExist), serr == nil && now.Version != b.Version:
		return fmt.Errorf("%s: %w", b.Key, errMoved)
	case serr != nil && !errors.Is(serr, storage.ErrDamaged):
		return serr
	}
	return &damage{err}
}
