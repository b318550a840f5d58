package copying

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

// dayOf is the day of a blob or a part by its key.
func dayOf(key string) (day horizon.Day, ours bool) {
	if name, ok := closed.ParseName(key); ok {
		return name.Day, true
	}
	name, err := blobfmt.ParseName(key)
	return horizon.DayOf(name.Period), err == nil
}

func foreign(b storage.Blob) bool { _, ours := dayOf(b.Key); return !ours }

// compared are the objects with a prefix: those that the copy lacks, and those that it has and the
// original has not. The original may have others under their names.
type compared struct {
	known          map[string]bool // keys of both
	lacks, surplus []storage.Blob
}

func (c *copier) compare(ctx context.Context, prefix string) (d compared, err error) {
	there := map[string]storage.Blob{}
	d.known = map[string]bool{}
	for b, err := range c.to.List(ctx, prefix, "") {
		if err != nil {
			return d, err
		}
		there[b.Key], d.known[b.Key] = b, true
	}
	for b, err := range c.from.List(ctx, prefix, "") {
		if err != nil {
			return d, err
		}
		was, taken := there[b.Key]
		d.known[b.Key] = true
		if !taken {
			d.lacks = append(d.lacks, b)
		} else if c.sum(&was) == c.sum(&b) {
			delete(there, b.Key)
		}
	}
	d.surplus = slices.Collect(maps.Values(there))
	return d, nil
}

// day copies the objects of a day, and again if the original changes meanwhile. One that is on its way
// out is left to the next run.
func (c *copier) day(ctx context.Context, d daily) error {
	prefix := d.service + d.day.Start().Format("/2006/01/02/")
	if to, ok := c.to.(storage.Sweeper); ok { // a run that was killed may have left what was erased since
		if err := to.Sweep(ctx, prefix); err != nil {
			return fmt.Errorf("sweep %s of the copy: %w", prefix, err)
		}
	}
	for n := 1; ; n++ {
		err := c.dayOnce(ctx, d, prefix)
		if !errors.Is(err, storage.ErrNotExist) {
			return err
		}
		expired, herr := horizon.Read(ctx, c.from, d.service)
		if herr != nil || expired.Hides(d.service, d.day) {
			return herr
		}
		if n == attempts {
			c.problem(err, true)
			return nil
		}
	}
}

// dayOnce is day without another attempt. The error is [storage.ErrNotExist] then. Without all its
// blobs a day gets no part, and nothing of it goes.
func (c *copier) dayOnce(ctx context.Context, at daily, prefix string) error {
	d, err := c.compare(ctx, prefix)
	if err != nil {
		return err
	}
	var blobs, parts []storage.Blob
	for _, b := range d.lacks {
		if _, part := closed.ParseName(b.Key); part {
			parts = append(parts, b)
		} else if !foreign(b) {
			blobs = append(blobs, b)
		}
	}
	if all, err := c.bring(ctx, blobs); err != nil || !all {
		return err
	}
	c.mu.Lock()
	c.gone[at] = slices.DeleteFunc(d.surplus, foreign)
	c.mu.Unlock()
	if n := len(parts); n > 0 {
		part := parts[n-1].Key
		if lacks := c.lacking(ctx, part, d.known); lacks != "" { // or it came after the listing
			return fmt.Errorf("%s is not in the copy: it names %s, which %w in the original", part, lacks, storage.ErrNotExist)
		}
	}
	for _, b := range slices.Backward(parts) { // the last one counts, and all its blobs are there
		if all, err := c.bring(ctx, []storage.Blob{b}); err != nil || !all {
			return err
		}
	}
	return nil
}

// lacking returns the key of a blob that the last part of a day names, and that is not known; "": there
// is none.
func (c *copier) lacking(ctx context.Context, key string, known map[string]bool) string {
	next, _ := closed.ParseName(key)
	next.Number++
	part, err := catalog.ReadPart(ctx, c.from, key)
	if err != nil || known[next.String()] {
		return ""
	}
	for _, b := range part.Blobs {
		if !known[b.Key] {
			return b.Key
		}
	}
	return ""
}

// bring copies objects, and reports whether all are there. One that the original does not have any more
// is the error; another one that did not come is a problem.
func (c *copier) bring(ctx context.Context, objects []storage.Blob) (all bool, err error) {
	for i := range objects {
		c.o.Progress.Expect(1, objects[i].Size)
	}
	all = true
	for i, oerr := range fanout.All(len(objects), blobsAtOnce, func(i int) error { return c.copy(ctx, &objects[i]) }) {
		if oerr == nil {
			continue
		}
		all, oerr = false, fmt.Errorf("%s is not in the copy: %w", objects[i].Key, oerr)
		if errors.Is(oerr, storage.ErrNotExist) {
			err = oerr
		} else if ctx.Err() == nil {
			c.problem(oerr, true)
		}
	}
	return all, cmp.Or(ctx.Err(), err)
}

// copy copies an object. Its bytes have to be those of which its metadata have the hash.
func (c *copier) copy(ctx context.Context, b *storage.Blob) error {
	room := min(max(b.Size, leastBytes), mostBytes)
	if err := c.room.Acquire(ctx, room); err != nil {
		return err
	}
	defer c.room.Release(room)
	if err := c.wait(ctx, b.Size); err != nil {
		return err
	}
	body, err := catalog.Read(ctx, c.from, b.Key, 0, -1)
	if err != nil {
		return err
	}
	hash := sha256.Sum256(body)
	if want := b.Metadata["sha"]; int64(len(body)) != b.Size || want != "" && want != hex.EncodeToString(hash[:]) {
		return fmt.Errorf("%w: the original is not what its metadata say: see logquery verify", storage.ErrDamaged)
	}
	err = c.to.Create(ctx, b.Key, body, b.Attrs)
	if errors.Is(err, storage.ErrExist) { // another copier was quicker, or the answer was lost
		var there storage.Blob
		if there, err = c.to.Stat(ctx, b.Key); err == nil && c.sum(&there) != c.sum(b) {
			err = errors.New("another object has its name there")
		}
	}
	if err != nil {
		return err
	}
	c.o.Progress.Finish(1, b.Size)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did.Copied, c.did.Bytes = c.did.Copied+1, c.did.Bytes+b.Size
	return nil
}

// wait returns when so many bytes may be copied.
func (c *copier) wait(ctx context.Context, n int64) error {
	if c.o.Bandwidth == 0 {
		return nil
	}
	if err := c.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.turn.Release(1)
	select {
	case <-time.After(time.Duration(float64(n) / float64(c.o.Bandwidth) * float64(time.Second))):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// remove deletes objects of the copy in the versions that were listed.
func (c *copier) remove(ctx context.Context, objects []storage.Blob) {
	if len(objects) == 0 {
		return
	}
	stay := storage.KeyErrors(c.to.Delete(ctx, objects...))
	for _, err := range stay {
		c.problem(fmt.Errorf("the original has deleted an object that stays in the copy: %w", err), false)
	}
	c.did.Deleted += len(objects) - len(stay)
}

// forget deletes what the original has deleted for a reason. It comes last: what hides or replaces an
// object is in the copy by then.
func (c *copier) forget(ctx context.Context) error {
	for at, objects := range c.gone {
		if len(objects) == 0 {
			continue
		}
		expired, err := horizon.Read(ctx, c.to, at.service) // the mark of a day came before its first blob went
		if err == nil && !expired.Hides(at.service, at.day) {
			objects, err = c.explained(ctx, at, objects)
			if errors.Is(err, storage.ErrNotExist) { // another copier deletes at this moment: the next run sees what is left
				continue
			}
		}
		if err == nil && len(objects) > 0 {
			c.remove(ctx, objects)
			err = c.day(ctx, at) // the original may have others under their names
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// explained are those of the objects of a day that went for a reason: a blob of the copy replaces them, or
// they were undone: another one replaces a part of what they were made of, and all of it is in both stores.
func (c *copier) explained(ctx context.Context, at daily, objects []storage.Blob) (goes []storage.Blob, err error) {
	l, err := catalog.ListDay(ctx, c.to, at.service, at.day)
	if err != nil {
		return nil, err
	}
	replaced, there := map[blobfmt.BatchID]bool{}, map[blobfmt.BatchID]bool{}
	by := map[blobfmt.BatchID][]blobfmt.BatchID{} // of both stores
	for i := range l.Blobs {
		e, ids := &l.Blobs[i], []blobfmt.BatchID(nil)
		if e.Meta.Compacted > 0 {
			if ids, err = c.replaces(ctx, e.Key, e.Size); err != nil {
				return nil, err
			}
		}
		both := !slices.ContainsFunc(objects, func(b storage.Blob) bool { return b.Key == e.Key })
		there[e.Meta.Batch] = there[e.Meta.Batch] || both
		for _, id := range ids {
			if replaced[id] = true; both {
				there[id], by[id] = true, append(by[id], e.Meta.Batch)
			}
		}
	}
	for _, b := range objects {
		of, err := c.replaces(ctx, b.Key, b.Size)
		if err != nil {
			return nil, err
		}
		meta, _ := blobfmt.ParseMeta(b.Metadata)
		lacks := slices.ContainsFunc(of, func(id blobfmt.BatchID) bool { return !there[id] })
		undone := !lacks && slices.ContainsFunc(of, func(id blobfmt.BatchID) bool {
			return slices.ContainsFunc(by[id], func(other blobfmt.BatchID) bool { return !slices.Contains(of, other) })
		})
		if replaced[meta.Batch] || undone {
			goes = append(goes, b)
			continue
		}
		c.problem(fmt.Errorf("%s: the original does not have this object any more, and nothing there says why: "+
			"was it removed by hand? The copy keeps it", b.Key), false)
	}
	return goes, nil
}

// replaces are the batches that a blob of the copy replaces; of one that is not sound there are none.
func (c *copier) replaces(ctx context.Context, key string, size int64) ([]blobfmt.BatchID, error) {
	x, err := blobfmt.ReadIndex(key, size, func(off, n int64) ([]byte, error) { return catalog.Read(ctx, c.to, key, off, n) })
	if errors.As(err, new(*blobfmt.CorruptError)) || errors.Is(err, storage.ErrDamaged) || errors.Is(err, blobfmt.ErrNewer) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("what %s replaces in the copy cannot be told: %w", key, err)
	}
	return x.Replaces, nil
}
