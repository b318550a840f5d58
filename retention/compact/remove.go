package compact

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"blobtail/blobfmt"
	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/record"
	"blobtail/storage"
)

// remove deletes the blobs that a live one replaces, if that is old enough and the account of the
// day says so.
func (r *run) remove(ctx context.Context, u *unit, live, dead []*blob) error {
	owner := make(map[blobfmt.BatchID]*blob)
	for _, d := range live {
		for _, id := range d.replaces {
			if owner[id] == nil && r.old(d) {
				owner[id] = d
			}
		}
	}
	due := make(map[*blob][]*blob)
	for _, b := range dead {
		if d := owner[b.Meta.Batch]; d != nil && u.linked[link{b.Key, b.Meta.Batch}] {
			due[d] = append(due[d], b)
		} else {
			r.out.Waiting++
		}
	}
	for _, d := range live {
		if len(due[d]) == 0 {
			continue
		}
		if d.Meta.Erased { // it lacks records of theirs
			holds, err := hold.List(ctx, r.store)
			if err != nil {
				return err
			}
			if holds.Of(u.service, horizon.DayOf(u.hour)) != nil {
				r.out.Waiting += len(due[d])
				continue
			}
		}
		if err := r.removeFor(ctx, d, due[d]); err != nil {
			return err
		}
	}
	return nil
}

// old reports whether a blob has existed for a grace: readers that listed the hour
// before it existed have finished.
func (r *run) old(b *blob) bool {
	return !b.Created.IsZero() && r.now.Sub(b.Created) >= r.o.Grace
}

// removeFor deletes those replaced blobs with every record in d, as d is stored. An erased d lacks some.
func (r *run) removeFor(ctx context.Context, d *blob, due []*blob) error {
	held := make([]uint64, 0, d.Meta.Records)
	err := r.records(ctx, d, r.dec, func(c *cursor) error {
		held = append(held, r.print(c))
		return nil
	})
	slices.Sort(held)
	if isDamage(err) {
		r.problem(d.Key, fmt.Errorf("so nothing was deleted that it replaces: %w", err))
		return nil
	}
	if err != nil {
		return err
	}
	errs := atOnce(due, func(_ int, b *blob) error {
		return r.records(ctx, b, blobfmt.NewDecoder(1), func(c *cursor) error {
			if _, found := slices.BinarySearch(held, r.print(c)); !found && !d.Meta.Erased {
				return &damage{fmt.Errorf("its record %s of %s, number %d, is not there", c.key.Origin, record.AppendTime(nil, c.key.Time), c.key.Index)}
			}
			return nil
		})
	})
	var gone []storage.Blob
	for i, b := range due {
		switch {
		case errs[i] == nil:
			gone = append(gone, b.Object())
		case isDamage(errs[i]):
			r.problem(b.Key, fmt.Errorf("replaced by %s, and not deleted: %w", d.Key, errs[i]))
		case !errors.Is(errs[i], errMoved): // otherwise it has gone already
			return errs[i]
		}
	}
	return r.delete(ctx, gone)
}

// delete deletes blobs. Some may have to stay, for example under a legal hold.
func (r *run) delete(ctx context.Context, blobs []storage.Blob) error {
	stay := map[string]error{}
	for _, e := range storage.KeyErrors(r.store.Delete(ctx, blobs...)) {
		if e.Key == "" {
			return fmt.Errorf("delete what is replaced: %w", e.Err)
		}
		stay[e.Key] = e.Err
	}
	for _, b := range blobs {
		if err, ok := stay[b.Key]; ok {
			if errors.Is(err, storage.ErrHeld) {
				r.out.Held++
			} else {
				r.problem(b.Key, err)
			}
			continue
		}
		r.out.Deleted++
		r.out.Freed += b.Size
		r.o.Log.Info().Str("blob", b.Key).Int64("bytes", b.Size).Msg("deleted what is replaced")
	}
	return nil
}

// print is the hash of a cursor's record: identity and line. The seed is random for each run, so
// no sender can write lines that collide with others.
func (r *run) print(c *cursor) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	maphash.WriteComparable(&h, c.key)
	h.Write(c.line)
	return h.Sum64()
}

// records reads a blob whole and calls visit at each of its records.
func (r *run) records(ctx context.Context, b *blob, d *blobfmt.Decoder, visit func(*cursor) error) error {
	c, err := r.cursor(ctx, b)
	for err == nil {
		var more bool
		if more, err = c.next(d); !more {
			break
		}
		err = visit(c)
	}
	return err
}
