package buffer

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"blobtail/record"
	"blobtail/wal"
)

// lineAt is a line that may be among the newest: where it is, and what orders it.
type lineAt struct {
	time   int64
	origin record.Origin
	index  uint32
	size   uint32
	pos    wal.Pos
}

func (a *lineAt) compare(b *lineAt) int {
	if a.time != b.time {
		return cmp.Compare(a.time, b.time)
	}
	return cmp.Or(bytes.Compare(a.origin[:], b.origin[:]), cmp.Compare(a.index, b.index), cmp.Compare(a.pos, b.pos))
}

// newestOf gathers the last n lines: it takes more, and now and then throws away
// all but n.
type newestOf struct {
	*liveReader
	n     int
	lines []lineAt
	from  int64 // what is older cannot be among them
}

// newest gives out the last lines of the units in order. It reads the units that
// end last first, and none that ends before the lines that are found by then.
func (r *liveReader) newest(units []*unit, emit func(*record.Entry) error) error {
	slices.SortFunc(units, func(a, b *unit) int { return cmp.Compare(b.span.last, a.span.last) })
	w := &newestOf{liveReader: r, n: r.q.Newest, from: r.q.From}
	for _, u := range units {
		if u.span.last < w.from {
			break
		}
		if err := r.scan(u, w.take); err != nil {
			return err
		}
		u.skip, u.lots = nil, nil
		if err := w.cut(); err != nil {
			return err
		}
	}
	for i := range w.lines {
		a := &w.lines[i]
		if i%1024 == 0 {
			if err := r.ctx.Err(); err != nil {
				return err
			}
		}
		line, err := r.lineOf(a)
		if err != nil {
			return err
		}
		if line == nil {
			continue
		}
		if err := emit(&record.Entry{Time: a.time, ID: record.ID{Origin: a.origin, Index: a.index}, Line: line}); err != nil {
			return err
		}
	}
	return nil
}

// take adds the lines of a run that may be among the newest.
func (w *newestOf) take(h *heldRun) error {
	if !(span{h.time0, h.last}).touches(w.from, w.q.To) {
		return nil
	}
	d := decoder{h.table, true}
	a := lineAt{time: h.time0, origin: h.origin, index: h.first, pos: h.pos + wal.Pos(int(h.len)-len(h.lines))}
	lines := h.lines
	for i := range h.records {
		a.time += int64(d.uvarint())
		a.size = uint32(d.uvarint())
		if h.places {
			a.index = d.index(a.index)
		}
		if beyond(a.time, w.q.To) {
			break
		}
		line := lines[:a.size]
		lines = lines[a.size:]
		if h.has(i) && a.time >= w.from && (w.q.Keep == nil || w.q.Keep(line)) {
			w.lines = append(w.lines, a)
		}
		a.index++
		a.pos += wal.Pos(a.size)
		if len(w.lines) >= w.most() {
			if err := w.cut(); err != nil {
				return err
			}
		}
	}
	return nil
}

// most is how many lines are gathered before all but n are thrown away.
func (w *newestOf) most() int {
	if w.n > math.MaxInt/4 {
		return math.MaxInt
	}
	return 2*w.n + 1024
}

// cut leaves the n newest of the lines, in order and each once.
func (w *newestOf) cut() error {
	slices.SortFunc(w.lines, func(a, b lineAt) int { return a.compare(&b) })
	once := w.lines[:0]
	for _, a := range w.lines {
		copied, err := w.among(once, a)
		if err != nil {
			return err
		}
		if !copied {
			once = append(once, a)
		}
	}
	w.lines = once
	if n := len(once); n >= w.n {
		w.lines = append(once[:0], once[n-w.n:]...)
		w.from = max(w.from, w.lines[0].time)
	}
	return nil
}

// among reports whether a copy of a line stands at the end of lines.
func (w *newestOf) among(lines []lineAt, a lineAt) (bool, error) {
	var own []byte
	for _, b := range slices.Backward(lines) {
		if b.time != a.time || b.origin != a.origin || b.index != a.index {
			break
		}
		if b.size != a.size {
			continue
		}
		if own == nil {
			line, err := w.lineOf(&a)
			if err != nil || line == nil {
				return false, err
			}
			own = bytes.Clone(line)
		}
		line, err := w.lineOf(&b)
		if err != nil || bytes.Equal(line, own) {
			return err == nil, err
		}
	}
	return false, nil
}

// lineOf reads a line; nil where that is not there any more, which is noted.
func (r *liveReader) lineOf(a *lineAt) ([]byte, error) {
	r.line = sized(r.line, int(a.size))[:a.size]
	err := r.b.log.ReadAt(r.line, a.pos)
	if err == nil {
		return r.line, nil
	}
	if fatal := r.fatal(err); fatal != nil {
		return nil, fatal
	}
	r.missing.run(fmt.Errorf("a line at %d in segment %d: %w", a.pos.Offset(), a.pos.Segment(), err))
	return nil, nil
}
