package buffer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"blobtail/record"
	"blobtail/wal"
)

// unit is runs that are read together: those of one batch, which has each identity
// once, or those that someone who follows has not seen.
type unit struct {
	key    key
	follow bool // of any key
	span   span
	runs   extents // of an open batch, or to follow
	batch  *Batch  // one that is cut, as it was; its record says the runs
	of     *Batch  // the same, as it is

	// What the first reading found out.
	read bool
	skip map[wal.Pos]bool // copies, and runs that do not read
	lots map[wal.Pos]lots // of the others that have some

	// For the merge.
	next []cursor // to be begun, in order
	rest bool     // there are more behind these
	last cursor   // the one that was begun last
}

// heldRun is a run as a reader sees it.
type heldRun struct {
	run
	extent
	origin record.Origin
	lots   lots // nil: all lines are the reader's
	want   lot  // which of them are
}

// has reports whether line i is the reader's.
func (h *heldRun) has(i int) bool { return h.lots == nil || h.lots[i] == h.want }

// liveReader reads units. It belongs to one goroutine.
type liveReader struct {
	ctx     context.Context
	b       *Buffer
	q       LiveQuery
	missing MissingError
	twice   *twiceReader // of who follows

	window  []byte
	line    []byte
	segment wal.Segment // the last one that was asked for
	origins map[record.Origin]*seenRun
}

// seenRun is the first run of an origin in a unit, and once there is another one
// that is no copy of it, the lines of all.
type seenRun struct {
	extent
	family family
}

// scanWindow is how much of the log a scan reads at once, unless one run is longer.
const scanWindow = 1 << 20

// scan reads the runs of a unit, checks them and calls f for each, which must not
// keep its bytes. What does not read is left out and noted, once.
func (r *liveReader) scan(u *unit, f func(*heldRun) error) error {
	runs, rec := u.runs, batchRecord{}
	if u.batch != nil {
		var err error
		if rec, err = u.batch.readRecord(); err != nil {
			if fatal := r.fatal(err); fatal != nil || u.read {
				return fatal
			}
			u.read = true
			r.missing.batch(fmt.Errorf("%d records of %s: %w", u.batch.records, u.key.service, err))
			return nil
		}
		runs = rec.runs
	}
	if !u.read {
		u.skip, u.lots = map[wal.Pos]bool{}, map[wal.Pos]lots{}
		r.origins = map[record.Origin]*seenRun{}
	}
	sum := &sums{span: noSpan(), f: f}
	if u.batch != nil {
		sum.wantRecords, sum.wantBytes = rec.records, rec.bytes
	}
	var group []extent
	for e := range runs.all() {
		if u.skip[e.pos] {
			continue
		}
		if n := len(group); n > 0 && (!near(group[n-1], e) || int64(e.pos-group[0].pos)+int64(e.len) > scanWindow) {
			if err := r.group(u, group, sum); err != nil {
				return err
			}
			group = group[:0]
		}
		group = append(group, e)
	}
	if len(group) > 0 {
		if err := r.group(u, group, sum); err != nil {
			return err
		}
	}
	if cap(r.window) > 2*scanWindow {
		r.window = nil // of one long run, and a merge may last
	}
	r.done(u, sum)
	return nil
}

// sums are what the runs of a unit add up to.
type sums struct {
	records int
	bytes   int64
	// A copy lacks records that its batch counts twice, so its own record says how
	// many there should be.
	wantRecords int
	wantBytes   int64
	span        span
	f           func(*heldRun) error
}

// done ends the reading of a unit. The first one tells the batch its span, so that
// the next snapshot may pass it over.
func (r *liveReader) done(u *unit, sum *sums) {
	if u.read || u.follow {
		u.read = true
		return
	}
	u.read = true
	r.origins = nil
	if u.batch == nil {
		return
	}
	if sum.records != sum.wantRecords || sum.bytes != sum.wantBytes {
		r.missing.batch(fmt.Errorf("batch %x of %s has %d records in %d bytes, there are %d in %d",
			u.batch.id, u.key.service, sum.wantRecords, sum.wantBytes, sum.records, sum.bytes))
		return
	}
	r.b.mu.Lock()
	u.of.span = sum.span
	r.b.mu.Unlock()
}

// group reads neighbouring runs at once. Where that fails it reads them one by one.
func (r *liveReader) group(u *unit, group []extent, sum *sums) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	first, last := group[0], group[len(group)-1]
	n := int64(last.pos-first.pos) + int64(last.len)
	err := r.fill(first.pos, n)
	if err != nil && len(group) > 1 {
		for i := range group {
			if err := r.group(u, group[i:i+1], sum); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		if fatal := r.fatal(err); fatal != nil {
			return fatal
		}
		r.lack(u, first, err)
		return nil
	}
	for _, e := range group {
		at := int(e.pos - first.pos)
		if err := r.one(u, e, r.window[at:at+int(e.len)], sum); err != nil {
			return err
		}
	}
	return nil
}

// fill reads into r.window what the log has at pos. The length may come from a
// record that rotted, so it is held against the segment's first.
func (r *liveReader) fill(pos wal.Pos, n int64) error {
	if r.segment.Number != pos.Segment() || int64(pos.Offset())+n > r.segment.Size {
		var ok bool
		if r.segment, ok = r.b.log.Segment(pos.Segment()); !ok {
			return fmt.Errorf("segment %d is gone: %w", pos.Segment(), fs.ErrNotExist)
		}
		if int64(pos.Offset())+n > r.segment.Size {
			return fmt.Errorf("%d bytes at %d of segment %d: %w", n, pos.Offset(), pos.Segment(), io.ErrUnexpectedEOF)
		}
	}
	r.window = sized(r.window, int(n))[:n]
	return r.b.log.ReadAt(r.window, pos)
}

// one hands out the run in p.
func (r *liveReader) one(u *unit, e extent, p []byte, sum *sums) error {
	run, n, err := parseRun(p)
	if err == nil && (n != len(p) || !u.follow && run.key != u.key) {
		err = errRun
	}
	if err != nil {
		r.lack(u, e, err)
		return nil
	}
	h := &heldRun{run: run, extent: e, origin: run.identity(e.pos, r.segment)}
	if u.follow {
		if h.lots, err = r.twice.lots(h, placeOf(e.pos, r.segment)); err != nil {
			return err
		}
	} else {
		if !u.read && !run.origin.IsZero() {
			r.onePerOrigin(u, h)
		}
		h.lots = u.lots[e.pos]
	}
	sum.records += run.records
	sum.bytes += int64(len(run.lines))
	if u.skip[e.pos] {
		return nil
	}
	sum.span.add(span{run.time0, run.last})
	if slices.Contains(h.lots, renamed) {
		other := *h
		other.origin, other.want = placeOf(e.pos, r.segment), renamed
		if err := sum.f(&other); err != nil {
			return err
		}
	}
	return sum.f(h)
}

// onePerOrigin finds out what loader.onePerOrigin will do with a run when the batch
// is stored.
func (r *liveReader) onePerOrigin(u *unit, h *heldRun) {
	seen, ok := r.origins[h.origin]
	if !ok {
		r.origins[h.origin] = &seenRun{extent: h.extent}
		return
	}
	if first := r.again(seen.extent); first != nil {
		if first.isCopyOf(&h.run) {
			u.skip[h.pos] = true
			return
		}
		if seen.family == nil {
			seen.family = family{}
			seen.family.join(first)
		}
	}
	if seen.family == nil {
		seen.family = family{} // the first one is gone, and the batch with it
	}
	if lots := seen.family.join(&h.run); slices.Contains(lots, stands) || slices.Contains(lots, renamed) {
		u.lots[h.pos] = lots
	} else if lots != nil {
		u.skip[h.pos] = true
	}
}

// again reads a run once more; nil where that fails.
func (r *liveReader) again(e extent) *run {
	p := make([]byte, e.len)
	if r.b.log.ReadAt(p, e.pos) != nil {
		return nil
	}
	run, _, err := parseRun(p)
	if err != nil {
		return nil
	}
	return &run
}

// lack notes that a run does not read.
func (r *liveReader) lack(u *unit, e extent, err error) {
	u.skip[e.pos] = true
	r.missing.run(fmt.Errorf("the run at %d in segment %d: %w", e.pos.Offset(), e.pos.Segment(), err))
}

// fatal is the error that ends the reading of everything, or nil.
func (r *liveReader) fatal(err error) error {
	if errors.Is(err, wal.ErrClosed) {
		return err
	}
	return r.ctx.Err()
}
