package erase

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/erasure"
	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/internal/lease"
	"blobtail/record"
	"blobtail/retention"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

// look returns the blobs of a listed day that have records to be erased, replaced ones too. Each blob
// is read once.
func (r *run) look(ctx context.Context, l *catalog.Listing) (matching []*catalog.Entry, err error) {
	counts, replaces := make([]int64, len(l.Blobs)), make([][]blobfmt.BatchID, len(l.Blobs))
	for i, err := range fanout.All(len(l.Blobs), runtime.GOMAXPROCS(0), func(i int) (err error) {
		e, known := &l.Blobs[i], false
		if counts[i], known = r.matches[idOf(e)]; known || e.State != catalog.Sound {
			return e.Err
		}
		body, err := catalog.Read(ctx, r.blobs, e.Key, 0, e.Size)
		if err == nil {
			replaces[i], err = each(e.Key, body, func(line []byte, _ record.Key) error {
				if r.match(l.Service, line) {
					counts[i]++
				}
				return nil
			})
			r.o.Progress.Finish(1, e.Size)
		}
		return err
	}) {
		switch e := &l.Blobs[i]; {
		case err == nil:
			r.matches[idOf(e)] = counts[i]
			for _, id := range replaces[i] {
				r.replaced[id] = true
			}
		case errors.Is(err, storage.ErrNotExist): // it went since
		case e.State != catalog.Sound, errors.As(err, new(*blobfmt.CorruptError)), errors.Is(err, storage.ErrDamaged):
			r.problem(e.Key, fmt.Errorf("it was not searched to the end: %w", err))
		default:
			return nil, err
		}
		if counts[i] > 0 {
			matching = append(matching, &l.Blobs[i])
		}
	}
	return matching, ctx.Err()
}

// idOf tells the content of a blob.
func idOf(e *catalog.Entry) [2]string { return [2]string{e.Key, e.Version} }

// each calls visit for the records of a blob, in order, and returns what it replaces.
func each(key string, body []byte, visit func(line []byte, k record.Key) error) (replaces []blobfmt.BatchID, err error) {
	d := blobfmt.NewDecoder(1)
	x, err := d.ReadIndex(key, int64(len(body)), func(off, n int64) ([]byte, error) { return body[off : off+n], nil })
	if err != nil {
		return nil, err
	}
	origins, err := x.Origins()
	var lines []byte
	for i := 0; i < len(x.Blocks) && err == nil; i++ {
		b, keys := x.Blocks[i], origins.Keys(i)
		lines, err = d.Block(lines[:0], body[b.Offset:b.Offset+b.Stored], b)
		for line := range bytes.Lines(lines) {
			k := keys.Next()
			if k.Time, _ = record.LineTime(line); err == nil {
				err = visit(line, k)
			}
		}
	}
	return x.Replaces, err
}

// claim returns an error if a day is held. It is called directly before each step that changes something,
// behind a mark that a hold takes for one of a run that works: so one of both sees the other.
func (r *run) claim(ctx context.Context, service string, day horizon.Day) error {
	d := retention.Day{Service: service, Day: day}
	err := r.free(ctx, d)
	if err == nil && !erasure.Within(r.marked, erasure.Longest) {
		r.marked = time.Now()
		if err = erasure.Mark(ctx, r.blobs, service, day, r.marked); err == nil {
			err = r.free(ctx, d)
		}
	}
	return err
}

// free returns an error if one of some days is held.
func (r *run) free(ctx context.Context, days ...retention.Day) error {
	holds, err := hold.List(ctx, r.blobs)
	var held []string
	for _, d := range days {
		if h := holds.Of(d.Service, d.Day); h != nil {
			held = append(held, fmt.Sprintf("%s of %s by %s", d.Day, d.Service, h.Name))
		}
	}
	if len(held) > 0 {
		return &retention.RefusedError{Reason: fmt.Sprintf("some days are held, so nothing more is erased: %s; "+
			"leave them out with --from, --to and --service, or release the hold", strings.Join(held, ", "))}
	}
	return err
}

// pass makes and deletes what is due in the days that were found.
func (r *run) pass(ctx context.Context) error {
	for _, d := range r.out.Days {
		r.marked = time.Time{}
		if err := r.claim(ctx, d.Service, d.Day); err != nil {
			return err
		}
		l, err := catalog.ListDay(ctx, r.blobs, d.Service, d.Day)
		if err == nil {
			err = r.day(ctx, l)
		}
		if err != nil && !errors.Is(err, storage.ErrNotExist) { // else the next pass lists it again
			return err
		}
	}
	lines, err := r.tail(ctx, false)
	r.out.Lines += lines
	r.swept = !r.until.IsZero()
	return err
}

// day makes the erased blobs of a day, writes the next part of its account, and deletes the blobs that
// erased ones replaced long ago.
func (r *run) day(ctx context.Context, l *catalog.Listing) error {
	matching, err := r.look(ctx, l)
	if err != nil {
		return err
	}
	var compacted, dead []*catalog.Entry
	for i := range l.Blobs {
		if l.Blobs[i].Meta.Compacted > 0 {
			compacted = append(compacted, &l.Blobs[i])
		}
	}
	replaced := catalog.NewReplaced(r.closer.Replaces(ctx))
	if err := replaced.Read(compacted...); err != nil {
		return err
	}
	for _, e := range matching {
		if replaced.Has(e.Meta.Batch) {
			dead = append(dead, e)
		} else if err := r.replace(ctx, l, e); err != nil {
			return err
		}
	}
	if l.Part.Part.Number > 0 {
		_, missing, err := r.closer.Update(ctx, l)
		for _, b := range missing {
			r.problem(b.Key, &catalog.MissingError{Blob: b})
		}
		if errors.Is(err, closed.ErrUnread) || errors.Is(err, storage.ErrDamaged) {
			r.problem(l.Part.Key, fmt.Errorf("so nothing of this day was deleted: %w", err))
			return nil
		}
		if err != nil {
			return fmt.Errorf("write the next part of the account: %w", err)
		}
	}
	for _, e := range compacted {
		if e.Meta.Erased && !replaced.Has(e.Meta.Batch) && !e.Created.IsZero() && r.now.Sub(e.Created) >= r.o.Patience {
			if err := r.delete(ctx, e, dead); err != nil {
				return err
			}
		}
	}
	return nil
}

// delete deletes the blobs that an erased one replaces, if it is sound as it is stored.
func (r *run) delete(ctx context.Context, by *catalog.Entry, dead []*catalog.Entry) error {
	replaces, _ := r.closer.Replaces(ctx)(by) // of an unsound one it is not known
	var due []storage.Blob
	for _, e := range dead {
		if e.Hour().Equal(by.Hour()) && slices.Contains(replaces, e.Meta.Batch) {
			due = append(due, e.Object())
		}
	}
	if len(due) == 0 {
		return nil
	}
	body, err := catalog.Read(ctx, r.blobs, by.Key, 0, by.Size)
	if err != nil && !errors.Is(err, storage.ErrDamaged) {
		return err
	}
	if found := blobfmt.Verify(by.Key, body, by.Meta); len(found) > 0 || err != nil {
		r.problem(by.Key, fmt.Errorf("so nothing was deleted that it replaces: %w", errors.Join(append(found, err)...)))
		return nil
	}
	if err := r.claim(ctx, by.Name.Service, by.Day()); err != nil {
		return err
	}
	stay := storage.KeyErrors(r.blobs.Delete(ctx, due...))
	for _, e := range stay {
		r.problem(e.Key, e.Err)
	}
	r.out.Deleted += len(due) - len(stay)
	return ctx.Err()
}

// replace makes the erased blob of a blob, and stores it.
func (r *run) replace(ctx context.Context, l *catalog.Listing, e *catalog.Entry) error {
	w := &compact.Work{Store: r.blobs, Closer: r.closer, Of: []blobfmt.BatchID{e.Meta.Batch}, Begun: time.Now(), Grace: r.o.Patience}
	w.Name = blobfmt.Name{Service: l.Service, Period: e.Name.Period, Number: compact.FirstNumber}
	for i := range l.Blobs {
		w.Listed = append(w.Listed, &l.Blobs[i])
	}
	err := r.claim(ctx, l.Service, l.Day)
	var body []byte
	if err == nil {
		body, err = catalog.Read(ctx, r.blobs, e.Key, 0, e.Size)
	}
	if err != nil {
		return err
	}
	if found := blobfmt.Verify(e.Key, body, e.Meta); len(found) > 0 {
		r.problem(e.Key, fmt.Errorf("it is not sound, so nothing was erased from it: %w", found[0]))
		return nil
	}
	r.enc.Reset()
	gone := int64(0)
	replaces, err := each(e.Key, body, func(line []byte, k record.Key) error {
		if r.match(l.Service, line) {
			gone++
			return nil
		}
		return r.enc.Add(line, k.Time, k.Origin, k.Index)
	})
	if err != nil {
		return err
	}
	replaces = append(replaces, e.Meta.Batch)
	r.enc.Replaces(replaces...)
	r.enc.Erased(e.Hour().UnixNano())
	body, meta, err := r.enc.Finish(identity(r.expr, e.Meta.Batch))
	if err != nil {
		return err
	}
	meta.Gone, meta.Place = fmt.Sprintf("%d.%x", gone, r.expr), w.Name.Place()
	if found := blobfmt.Verify(w.Name.String(), body, meta); len(found) > 0 || meta.Records+gone != e.Meta.Records || gone == 0 {
		return fmt.Errorf("what was made of %s is not sound, and was not stored: %d and %d of %d records, %w",
			e.Key, meta.Records, gone, e.Meta.Records, errors.Join(found...))
	}
	key, err := w.Put(ctx, body, meta, replaces)
	if errors.Is(err, compact.ErrLate) {
		r.problem(key, err)
		return nil
	}
	if err == nil && key != "" {
		r.out.Made++
		r.out.Records += gone
		r.o.Log.Info().Str("blob", key).Str("of", e.Key).Int64("records", meta.Records).Int64("erased", gone).Msg("erased")
	}
	return err
}

// identity is the id of the erased blob of a blob. It differs from that of a compacted one.
func identity(expr [sha256.Size]byte, of blobfmt.BatchID) (id blobfmt.BatchID) {
	sum := sha256.Sum256(slices.Concat([]byte("blobtail erased\n"), expr[:], of[:]))
	copy(id[:], sum[:])
	return id
}

// again waits until the patience is over and no ingester holds a record from before the run, and then
// searches again.
func (r *run) again(ctx context.Context, patience time.Duration) (err error) {
	begun, left, holding := time.Now(), patience, true
	for holding || left > 0 {
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return ctx.Err()
		}
		if r.now, err = storage.Now(ctx, r.blobs, time.Now()); err == nil {
			holding, err = r.holding(ctx, true)
		}
		if err != nil {
			return err
		}
		if left = patience - time.Since(begun); holding {
			left = max(left, 10*time.Second)
		}
	}
	return r.search(ctx)
}

// holding reports whether an ingester that runs may hold records from before the run, by its row. If
// nobody waits for one that does, that is a problem.
func (r *run) holding(ctx context.Context, wait bool) (holding bool, err error) {
	rows, err := lease.List(ctx, r.tables, r.o.Tail.Store)
	bad, err := lease.Unread(err)
	if bad != nil {
		r.problem("ingesters", bad)
	}
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		return false, err
	}
	for _, i := range rows {
		at, has := "ingester "+i.ID+" on "+i.Host, !i.Oldest.IsZero() && !i.Oldest.After(r.begun)
		switch live := i.Live(r.now); {
		case i.State != lease.Holding || !has && (i.At.After(r.begun) || live && !wait):
		case !live || !wait:
			todo := "POST /flush to it, and repeat this in 10 s"
			if !live {
				todo = "start it (or ingest adopt, or forget), and repeat this when they are stored"
			}
			r.problem(at, errors.New("it has records that are not stored: "+todo))
		default:
			holding = true
			r.o.Log.Info().Str("ingester", i.ID).Msg("waiting until it has stored what it holds; POST /flush makes that sooner")
		}
	}
	return holding, nil
}
