package runlog

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"blobtail/buffer/wal"
)

const (
	// maxGap is the most bytes of other batches in one read: that is cheaper than another
	// read.
	maxGap = 8 << 10
	// maxRead is the most bytes of one read, unless one run is longer.
	maxRead = 1 << 20
)

// near reports whether two consecutive runs are read together.
func near(a, b Extent) bool {
	return a.Pos.Segment() == b.Pos.Segment() && b.Pos-a.End() <= maxGap
}

// Reader reads runs of the log and checks them. Only one goroutine may use it at a
// time; it keeps its memory for the next list.
type Reader struct {
	log     *wal.Log
	keep    bool // window keeps the bytes of all reads, and its owner has made it large enough
	window  []byte
	segment wal.Segment // the last one that was read
	run     Run         // for f
}

// NewReader returns a reader of a log. Runs are valid until f returns.
func NewReader(log *wal.Log) *Reader { return &Reader{log: log} }

// Read calls f for each valid run of the list, in order. A run of another bin is
// invalid; the zero bin allows any.
//
// Reading is strict if bad is nil: the first run that cannot be read ends it, with
// an error. Otherwise it is lenient: bad gets each such run with the reason, and ends
// the reading if it returns an error. [Rotten] distinguishes rot from a disk failure.
func (r *Reader) Read(ctx context.Context, list *Extents, bin Bin, f func(*Run) error, bad func(Extent, error) error) error {
	var group []Extent
	for e := range list.All() {
		if n := len(group); n > 0 && (!near(group[n-1], e) || int64(e.End()-group[0].Pos) > maxRead) {
			if err := r.read(ctx, group, bin, f, bad); err != nil {
				return err
			}
			group = group[:0]
		}
		group = append(group, e)
	}
	if len(group) == 0 {
		return nil
	}
	err := r.read(ctx, group, bin, f, bad)
	if !r.keep && cap(r.window) > 2*maxRead {
		r.window = nil // of one long run
	}
	return err
}

// read reads neighbouring runs at once. If that fails, a lenient reading reads them one
// by one.
func (r *Reader) read(ctx context.Context, group []Extent, bin Bin, f func(*Run) error, bad func(Extent, error) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	start := group[0].Pos
	window, err := r.fill(start, int64(group[len(group)-1].End()-start))
	switch {
	case err == nil:
	case bad == nil:
		return fmt.Errorf("read the log at %d of segment %d: %w", start.Offset(), start.Segment(), err)
	case len(group) == 1:
		return bad(group[0], err)
	default:
		for i := range group {
			if err := r.read(ctx, group[i:i+1], bin, f, bad); err != nil {
				return err
			}
		}
		return nil
	}
	for _, e := range group {
		run := &r.run
		*run = Run{Extent: e}
		n, err := run.parse(window[e.Pos-start:][:e.Len], bin.Service)
		if err == nil && (n != int(e.Len) || bin != (Bin{}) && run.Bin != bin) {
			err = fmt.Errorf("%w: of another length or batch", errRun)
		}
		switch {
		case err == nil:
			run.at = len(r.window) - len(window) + int(e.End()-start) - len(run.lines)
			run.identify(r.segment)
			err = f(run)
		case bad == nil:
			err = fmt.Errorf("the run at %d in segment %d: %w", e.Pos.Offset(), e.Pos.Segment(), err)
		default:
			err = bad(e, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fill reads n bytes of the log. The length may come from a record that rotted, so it is
// checked against the segment before memory is allocated for it.
func (r *Reader) fill(pos wal.Pos, n int64) ([]byte, error) {
	if r.segment.Number != pos.Segment() || int64(pos.Offset())+n > r.segment.Size {
		var ok bool
		if r.segment, ok = r.log.Segment(pos.Segment()); !ok {
			return nil, fmt.Errorf("segment %d is gone: %w", pos.Segment(), fs.ErrNotExist)
		}
		if int64(pos.Offset())+n > r.segment.Size {
			return nil, fmt.Errorf("%d bytes at %d of segment %d: %w", n, pos.Offset(), pos.Segment(), io.ErrUnexpectedEOF)
		}
	}
	if !r.keep {
		r.window = sized(r.window, int(n))
	}
	at := len(r.window)
	r.window = r.window[:at+int(n)]
	return r.window[at:], r.log.ReadAt(r.window[at:], pos)
}

// one reads a single run, outside of a list and with memory of its own. It returns nil if
// that fails.
func (r *Reader) one(e Extent) (run *Run) {
	own := Reader{log: r.log}
	_ = own.read(context.Background(), []Extent{e}, Bin{}, func(x *Run) error { run = x; return nil }, nil)
	return run
}

// sized returns an empty slice with room for n: s, or a larger one. Batches differ in
// size, and the first use of fresh memory is expensive, so a new slice gets more. It is
// allocated anew, because growing clears it, and the collector cannot interrupt the
// clearing and spins on it.
func sized[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:0]
	}
	return make([]T, 0, n+n/8)
}
