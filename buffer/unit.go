package buffer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"blobtail/record"
	"blobtail/wal"
)

// unit is runs that are read together: those of one batch, which has one run of an
// origin, or those that someone who follows has not seen.
type unit struct {
	key    key
	follow bool // of any key
	span   span
	runs   extents // of an open batch, or to follow
	batch  *Batch  // one that is cut, as it was; its record says the runs
	of     *Batch  // the same, as it is

	// What the first reading found out.
	read    bool
	skip    map[wal.Pos]bool // copies, and runs that do not read
	renamed map[wal.Pos]bool // known by their places

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
}

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
	origins map[record.Origin]seenRun
}

// seenRun is the first run of an origin in a unit.
type seenRun struct {
	extent
	first   uint32
	records int
	time0   int64
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
		u.skip, u.renamed = map[wal.Pos]bool{}, map[wal.Pos]bool{}
		r.origins = map[record.Origin]seenRun{}
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
		if err := r.twice.identify(h, placeOf(e.pos, r.segment)); err != nil {
			return err
		}
	} else {
		if !u.read && !run.origin.IsZero() {
			r.onePerOrigin(u, h)
		}
		if u.renamed[e.pos] {
			h.origin = placeOf(e.pos, r.segment)
		}
	}
	sum.records += run.records
	sum.bytes += int64(len(run.lines))
	if u.skip[e.pos] {
		return nil
	}
	sum.span.add(span{run.time0, run.last})
	return sum.f(h)
}

// onePerOrigin finds out what loader.onePerOrigin will do with a run when the batch
// is stored: the first of an origin keeps it, copies are dropped, others are known
// by their places.
func (r *liveReader) onePerOrigin(u *unit, h *heldRun) {
	first, ok := r.origins[h.origin]
	if !ok {
		r.origins[h.origin] = seenRun{h.extent, h.first, h.records, h.time0}
		return
	}
	if first.first == h.first && first.records == h.records && first.time0 == h.time0 && first.len == h.len {
		p := make([]byte, first.len)
		if err := r.b.log.ReadAt(p, first.pos); err == nil {
			other, _, err := parseRun(p)
			if err == nil && bytes.Equal(other.table, h.table) && bytes.Equal(other.lines, h.lines) {
				u.skip[h.pos] = true
				return
			}
		}
	}
	u.renamed[h.pos] = true
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
