package compact

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/erasure"
	"blobtail/catalog/horizon"
	"blobtail/retention/closing"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

// FirstNumber is the first number of the compactor's lane.
const FirstNumber = 99*blobfmt.LaneSize + 1

// gets is how many blobs are read at once.
const gets = 8

// rewrite makes one blob of a group.
func (r *run) rewrite(ctx context.Context, u *unit, group []*blob) error {
	w := &Work{Store: r.store, Closer: r.closer, Name: group[0].Name, Begun: time.Now(), Grace: r.o.Grace}
	for _, b := range u.blobs {
		w.Listed = append(w.Listed, &b.Entry)
	}
	for _, b := range group {
		w.Of = append(w.Of, b.Meta.Batch)
	}
	if outrun, err := w.outrun(ctx); outrun || err != nil {
		return cmp.Or(err, errMoved)
	}
	group, cursors, err := r.load(ctx, group)
	if err != nil || !worth(group) {
		return err
	}
	r.enc.Reset()
	if slices.ContainsFunc(group, func(b *blob) bool { return b.Meta.Erased }) {
		r.enc.Erased(u.hour.UnixNano())
	}
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
	w.Name = nameOf(u, group)
	meta.Place = w.Name.Place()
	if found := blobfmt.Verify(w.Name.String(), body, meta); len(found) > 0 || meta.Records+copies != records {
		r.problem(u.prefix(), fmt.Errorf("what was made of its blobs is not sound, and was not stored: %d of %d records, %w",
			meta.Records+copies, records, errors.Join(found...)))
		return nil
	}
	key, err := w.Put(ctx, body, meta, replaces)
	if errors.Is(err, ErrLate) {
		r.problem(key, err)
		return nil
	}
	if err != nil || key == "" {
		return err
	}
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
	name := blobfmt.Name{Service: u.service, Period: group[0].Name.Period, Number: FirstNumber}
	if slices.ContainsFunc(group, func(b *blob) bool { return !b.Name.Period.Equal(name.Period) }) {
		name.Period = u.hour
	}
	return name
}

// ErrLate says that a blob may have records that a run has erased meanwhile, and has to stay.
var ErrLate = errors.New("it may have records that retention erase has erased meanwhile: run that again")

// Work is the making of a blob of blobs.
type Work struct {
	Store  storage.BlobStore
	Closer *closing.Closer
	Name   blobfmt.Name      // the first one to try
	Of     []blobfmt.BatchID // what it is made of
	Listed []*catalog.Entry  // of its hour, or more, before
	Begun  time.Time         // before the blobs were read
	Grace  time.Duration     // for so long nothing is deleted that the blob replaces
}

// listed reports whether a blob of a name was listed, and has the batch or not.
func (w *Work) listed(key string, batch blobfmt.BatchID, same bool) bool {
	return slices.ContainsFunc(w.Listed, func(e *catalog.Entry) bool { return e.Key == key && (e.Meta.Batch == batch) == same })
}

// outrun reports whether an erased blob that came since the listing replaces one of Of. own are no such blobs.
func (w *Work) outrun(ctx context.Context, own ...blobfmt.BatchID) (bool, error) {
	return erasure.Outrun(ctx, w.Store, w.Closer.Replaces(ctx), w.Name, w.Of, func(e *catalog.Entry) bool {
		return slices.Contains(own, e.Meta.Batch) || w.listed(e.Key, e.Meta.Batch, true)
	})
}

// Put stores the blob, unless it is there. It takes it back if an erased blob has replaced what it was
// made of: the error is ErrLate if it is too late for that, or that the blobs have moved. The key is
// "" if the day has been dropped: then nothing may be stored.
func (w *Work) Put(ctx context.Context, body []byte, meta blobfmt.Meta, replaces []blobfmt.BatchID) (key string, err error) {
	if !erasure.Within(w.Begun, erasure.Longest) {
		return "", fmt.Errorf("%s: its blobs took too long to read: %w", w.Name, errMoved)
	}
	begun := time.Now()
	key, made, err := w.create(ctx, body, meta)
	if err != nil || key == "" {
		return "", err
	}
	outrun, err := w.outrun(ctx, meta.Batch)
	switch {
	case err != nil:
		return "", err
	case !outrun:
		w.Closer.Made(key, replaces)
		return key, nil
	case !made: // another run has, and looks too
		return "", errMoved
	case !erasure.Within(begun, w.Grace/2): // what it replaces may have been deleted for it
		return key, ErrLate
	}
	if err := w.Store.Delete(ctx, storage.Blob{Key: key}); err != nil {
		return "", fmt.Errorf("take back what was made of erased records: %w", err)
	}
	w.Closer.TookBack(key)
	return "", errMoved
}

// create stores the blob under the first free number, unless it is there: made is false then.
func (w *Work) create(ctx context.Context, body []byte, meta blobfmt.Meta) (key string, made bool, err error) {
	attrs := storage.Attrs{ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: meta.Map()}
	if gone, err := w.dropped(ctx); gone || err != nil {
		return "", false, err
	}
	for name := w.Name; name.Number <= blobfmt.MaxNumber; name.Number++ {
		key = name.String()
		if w.listed(key, meta.Batch, false) {
			continue
		}
		err := w.Store.Create(ctx, key, body, attrs)
		if err == nil {
			// A drop first marks the day and then lists it. So either the drop has
			// listed this blob, or this check finds the mark.
			gone, err := w.dropped(ctx)
			if err != nil || !gone {
				return key, true, err
			}
			if err := w.Store.Delete(ctx, storage.Blob{Key: key}); err != nil {
				return "", false, fmt.Errorf("take back a blob of a day that was dropped: %w", err)
			}
			return "", false, nil
		}
		if !errors.Is(err, storage.ErrExist) {
			return "", false, fmt.Errorf("create %s: %w", key, err)
		}
		own, err := w.holds(ctx, key, meta)
		if own || err != nil {
			return key, false, err
		}
	}
	return "", false, fmt.Errorf("no numbers are left for %s", w.Name)
}

// holds reports whether the blob under a taken name is the same as the new one.
func (w *Work) holds(ctx context.Context, key string, meta blobfmt.Meta) (bool, error) {
	held, err := w.Store.Stat(ctx, key)
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

func (w *Work) dropped(ctx context.Context) (bool, error) {
	h, err := horizon.Read(ctx, w.Store, w.Name.Service)
	return err == nil && h.Hides(w.Name.Service, horizon.DayOf(w.Name.Period)), err
}
