package copying

import (
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

// gone are the objects of a day that the original does not have any more.
type gone struct {
	service string
	day     horizon.Day
	objects []storage.Blob
}

// dayOf is the day of a blob or a part by its key.
func dayOf(key string) (day horizon.Day, part, ours bool) {
	if name, ok := closed.ParseName(key); ok {
		return name.Day, true, true
	}
	name, err := blobfmt.ParseName(key)
	return horizon.DayOf(name.Period), false, err == nil
}

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

// day copies the objects of a service and a day, and again if the original changes meanwhile.
func (c *copier) day(ctx context.Context, service string, day horizon.Day) (err error) {
	again := true
	for n := 1; again && err == nil; n++ {
		var expired horizon.Horizons
		if n > 1 { // it may be on its way out
			expired, err = horizon.Read(ctx, c.from, service)
		}
		if err == nil {
			again, err = c.dayOnce(ctx, service, day, n == attempts, expired.Hides(service, day))
		}
	}
	return err
}

// dayOnce reports whether the original changed meanwhile; never at the last attempt. Of a hidden day it
// only notes what is gone.
func (c *copier) dayOnce(ctx context.Context, service string, day horizon.Day, last, hidden bool) (again bool, err error) {
	d, err := c.compare(ctx, service+"/"+day.Start().Format("2006/01/02/"))
	if err != nil {
		return false, err
	}
	var blobs, parts []storage.Blob
	for _, b := range d.lacks {
		switch _, part, ours := dayOf(b.Key); {
		case hidden:
		case part:
			parts = append(parts, b)
		case ours:
			blobs = append(blobs, b)
		}
	}
	if again, err = c.bring(ctx, blobs, last); again || err != nil {
		return again, err
	}
	if n := len(parts); n > 0 {
		if lacks := c.lacking(ctx, parts[n-1].Key, d.known); lacks != "" && !last {
			return true, nil // it came after the listing
		} else if lacks != "" {
			c.problem(fmt.Errorf("%s is not in the copy: it names %s, which the original lacks", parts[n-1].Key, lacks), true)
			parts = nil
		}
	}
	for _, b := range slices.Backward(parts) { // the last one counts, and all its blobs are there
		if again, err := c.bring(ctx, []storage.Blob{b}, last); again || err != nil {
			return again, err
		}
	}
	d.surplus = slices.DeleteFunc(d.surplus, func(b storage.Blob) bool { _, _, ours := dayOf(b.Key); return !ours })
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(d.surplus) > 0 {
		c.gone = append(c.gone, gone{service, day, d.surplus})
	}
	return false, nil
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

// bring copies objects. It reports whether one of them is not in the original any more. At the last
// attempt that is a problem.
func (c *copier) bring(ctx context.Context, blobs []storage.Blob, last bool) (again bool, err error) {
	bytes := int64(0)
	for i := range blobs {
		bytes += blobs[i].Size
	}
	c.o.Progress.Expect(len(blobs), bytes)
	for i, err := range fanout.All(len(blobs), blobsAtOnce, func(i int) error { return c.copy(ctx, &blobs[i]) }) {
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return false, ctx.Err()
		case errors.Is(err, storage.ErrNotExist) && !last:
			again = true
		default:
			c.problem(fmt.Errorf("%s is not in the copy: %w", blobs[i].Key, err), true)
		}
	}
	return again, nil
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
	c.mu.Lock()
	if now := time.Now(); c.free.Before(now) {
		c.free = now
	}
	pause := time.Until(c.free)
	c.free = c.free.Add(time.Duration(float64(n) / float64(c.o.Bandwidth) * float64(time.Second)))
	c.mu.Unlock()
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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
	if len(c.gone) == 0 {
		return nil
	}
	expired, err := horizon.Read(ctx, c.to) // the mark of a day came before its first blob went
	if err != nil {
		return err
	}
	for _, g := range c.gone {
		reason := always
		if !expired.Hides(g.service, g.day) {
			if reason, err = c.reasons(ctx, &g); err != nil {
				return err
			}
		}
		var goes []storage.Blob
		for _, b := range g.objects {
			if reason(b) {
				goes = append(goes, b)
				continue
			}
			c.problem(fmt.Errorf("%s: the original does not have this object any more, and nothing there says why: "+
				"was it removed by hand? The copy keeps it", b.Key), false)
		}
		if c.remove(ctx, goes); len(goes) > 0 { // the original may have others under their names
			if err := c.day(ctx, g.service, g.day); err != nil {
				return err
			}
		}
	}
	return nil
}

func always(storage.Blob) bool { return true }

// reasons tells of which objects of a day the original says why they went. It may have others under
// their names by now, so their batches count.
func (c *copier) reasons(ctx context.Context, g *gone) (func(storage.Blob) bool, error) {
	for _, err := range c.from.List(ctx, erasures+g.service+"/"+g.day.Start().Format("20060102")+".", "") {
		return always, err
	}
	type batch struct{ key, id string }
	replaced := map[batch]bool{} // by the last part that names it
	for b, err := range c.from.List(ctx, closed.PartPrefix(g.service, g.day), "") {
		if err != nil {
			return nil, err
		}
		part, err := catalog.ReadPart(ctx, c.from, b.Key)
		if err != nil {
			c.problem(err, false)
			continue
		}
		for _, b := range part.Blobs {
			replaced[batch{b.Key, b.Batch.String()}] = false
		}
		for _, b := range part.Replaced {
			replaced[batch{b.Key, b.Batch.String()}] = true
		}
	}
	return func(b storage.Blob) bool { return replaced[batch{b.Key, b.Metadata["batch"]}] }, nil
}
