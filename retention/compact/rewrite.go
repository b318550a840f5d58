package compact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

// firstNumber is the first number of the compactor's lane.
const firstNumber = 99*blobfmt.LaneSize + 1

// gets is how many blobs are read at once.
const gets = 8

// rewrite makes one blob of a group.
func (r *run) rewrite(ctx context.Context, u *unit, group []*blob) error {
	group, cursors, err := r.load(ctx, group)
	if err != nil || !worth(group) {
		return err
	}
	r.enc.Reset()
	copies, err := merge(r.dec, cursors, r.enc.Add)
	if err != nil {
		r.problem(u.prefix(), fmt.Errorf("its blobs do not go into one: %w", err))
		return nil
	}
	id, replaces := identity(group)
	r.enc.Replaces(replaces...)
	body, meta, err := r.enc.Finish(id)
	if err != nil {
		return err
	}
	var records, in int64
	for _, b := range group {
		records += b.Meta.Records
		in += b.Size
	}
	name := nameOf(u, group)
	meta.Place = name.Place()
	if found := blobfmt.Verify(name.String(), body, meta); len(found) > 0 || meta.Records+copies != records {
		r.problem(u.prefix(), fmt.Errorf("what was made of its blobs is not sound, and was not stored: %d of %d records, %w",
			meta.Records+copies, records, errors.Join(found...)))
		return nil
	}
	key, err := r.put(ctx, u, name, body, meta)
	if err != nil || key == "" {
		return err
	}
	r.closer.Made(key, replaces)
	r.out.Waiting += len(group)
	r.out.In += len(group)
	r.out.BytesIn += in
	r.out.Out++
	r.out.BytesOut += int64(len(body))
	r.out.Records += meta.Records
	r.o.Log.Info().Str("blob", key).Int("of", len(group)).Int64("records", meta.Records).Int64("copies", copies).
		Int64("before", in).Int("after", len(body)).Msg("compacted")
	return nil
}

// load reads the blobs of a group, a few at a time, and returns the sound ones.
func (r *run) load(ctx context.Context, group []*blob) (sound []*blob, cursors []*cursor, err error) {
	all := make([]*cursor, len(group))
	for i, err := range atOnce(group, func(i int, b *blob) (err error) {
		all[i], err = r.cursor(ctx, b)
		return err
	}) {
		switch b := group[i]; {
		case isDamage(err):
			r.problem(b.Key, err)
		case err != nil:
			return nil, nil, err
		default:
			b.replaces = all[i].index.Replaces
			sound, cursors = append(sound, b), append(cursors, all[i])
		}
	}
	return sound, cursors, nil
}

// atOnce calls do for each blob, for a few at once, and returns their errors.
func atOnce(blobs []*blob, do func(i int, b *blob) error) []error {
	return fanout.All(len(blobs), gets, func(i int) error { return do(i, blobs[i]) })
}

// identity returns the id of the blob that stands for a group, which follows from the
// group, and its replaced batches: those of the group and the ones that they replaced
// in turn. Copies of these may still arrive.
func identity(group []*blob) (id blobfmt.BatchID, replaces []blobfmt.BatchID) {
	var ids []blobfmt.BatchID
	for _, b := range group {
		ids = append(ids, b.Meta.Batch)
		replaces = append(replaces, b.replaces...)
	}
	slices.SortFunc(ids, func(a, b blobfmt.BatchID) int { return bytes.Compare(a[:], b[:]) })
	ids = slices.Compact(ids)
	h := sha256.New()
	h.Write([]byte("blobtail compacted\n"))
	for _, b := range ids {
		h.Write(b[:])
	}
	copy(id[:], h.Sum(nil))
	return id, append(replaces, ids...)
}

// nameOf returns the first name for a group: in its period, or in the first of the
// hour if it has blobs of several.
func nameOf(u *unit, group []*blob) blobfmt.Name {
	name := blobfmt.Name{Service: u.service, Period: group[0].Name.Period, Number: firstNumber}
	if slices.ContainsFunc(group, func(b *blob) bool { return !b.Name.Period.Equal(name.Period) }) {
		name.Period = u.hour
	}
	return name
}

// put stores a blob under the first free number, unless another compactor has stored it
// before. The key is "" if the day has been dropped: then nothing may be stored.
func (r *run) put(ctx context.Context, u *unit, name blobfmt.Name, body []byte, meta blobfmt.Meta) (key string, err error) {
	attrs := storage.Attrs{ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: meta.Map()}
	if gone, err := r.dropped(ctx, u); gone || err != nil {
		return "", err
	}
	for ; name.Number <= blobfmt.MaxNumber; name.Number++ {
		key = name.String()
		if slices.ContainsFunc(u.blobs, func(b *blob) bool { return b.Key == key && b.Meta.Batch != meta.Batch }) {
			continue
		}
		err := r.store.Create(ctx, key, body, attrs)
		if err == nil {
			// A drop first marks the day and then lists it. So either the drop has
			// listed this blob, or this check finds the mark.
			gone, err := r.dropped(ctx, u)
			if err != nil || !gone {
				return key, err
			}
			if err := r.store.Delete(ctx, storage.Blob{Key: key}); err != nil {
				return "", fmt.Errorf("take back a blob of a day that was dropped: %w", err)
			}
			return "", nil
		}
		if !errors.Is(err, storage.ErrExist) {
			return "", fmt.Errorf("create %s: %w", key, err)
		}
		own, err := r.holds(ctx, key, meta)
		if own || err != nil {
			return key, err
		}
	}
	return "", fmt.Errorf("no numbers are left for %s", name)
}

// holds reports whether the blob under a taken name is the same as the new one.
func (r *run) holds(ctx context.Context, key string, meta blobfmt.Meta) (bool, error) {
	held, err := r.store.Stat(ctx, key)
	switch {
	case errors.Is(err, storage.ErrDamaged):
		return false, nil
	case errors.Is(err, storage.ErrNotExist):
		return false, fmt.Errorf("%s: %w", key, errMoved)
	case err != nil:
		return false, fmt.Errorf("see whose %s is: %w", key, err)
	}
	got, err := blobfmt.ParseMeta(held.Metadata)
	if err != nil || got.Batch != meta.Batch {
		return false, nil
	}
	if got.Records != meta.Records || got.CRC != meta.CRC {
		return false, fmt.Errorf("%s stands for the same batches with %d records, crc %08x, and not %d, crc %08x", key, got.Records, got.CRC, meta.Records, meta.CRC)
	}
	return true, nil
}

func (r *run) dropped(ctx context.Context, u *unit) (bool, error) {
	h, err := horizon.Read(ctx, r.store, u.service)
	return err == nil && h.Hides(u.service, horizon.DayOf(u.hour)), err
}
