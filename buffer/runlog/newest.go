package runlog

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"blobtail/buffer/wal"
	"blobtail/record"
)

// candidate is a line that may be among the newest.
type candidate struct {
	record.Key
	size uint32
	pos  wal.Pos
}

func (a *candidate) compare(b *candidate) int {
	if n := a.Key.Compare(&b.Key); n != 0 {
		return n
	}
	return cmp.Compare(a.pos, b.pos)
}

// newestOf gathers the last n lines: it collects more, and now and then drops all but n.
type newestOf struct {
	*Reading
	n     int
	lines []candidate
	from  int64 // an older line cannot be among them
}

// newest emits the last lines of the units in order. It reads the units that end
// last first, and none that ends before the lines found by then.
func (r *Reading) newest(units []*Unit, emit func(*record.Entry) error) error {
	slices.SortFunc(units, func(a, b *Unit) int { return cmp.Compare(b.Span.Last, a.Span.Last) })
	w := &newestOf{Reading: r, n: r.q.Newest, from: r.q.From}
	for _, u := range units {
		if u.Span.Last < w.from {
			break
		}
		if err := r.scan(u, w.take); err != nil {
			return err
		}
		u.skip, u.lots = nil, nil
		if err := w.trim(); err != nil {
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
		if err := r.emit(&a.Key, line, emit); err != nil {
			return err
		}
	}
	return nil
}

// take adds the lines of a run that may be among the newest.
func (w *newestOf) take(p *part) error {
	if !p.span().Touches(w.from, w.q.To) {
		return nil
	}
	pos, lines := p.End()-wal.Pos(len(p.lines)), p.lines
	rows := p.rows()
	for i := 0; rows.next() && !beyond(rows.time, w.q.To); i++ {
		line := lines[:rows.size]
		lines = lines[rows.size:]
		if p.has(i) && rows.time >= w.from && (w.q.Keep == nil || w.q.Keep(line)) {
			w.lines = append(w.lines, candidate{record.Key{Time: rows.time, Origin: p.origin, Index: rows.index}, uint32(rows.size), pos})
		}
		pos += wal.Pos(rows.size)
		if len(w.lines) >= w.most() {
			if err := w.trim(); err != nil {
				return err
			}
		}
	}
	return nil
}

// most is the number of lines that are gathered before all but n are dropped.
func (w *newestOf) most() int {
	if w.n > math.MaxInt/4 {
		return math.MaxInt
	}
	return 2*w.n + 1024
}

// trim leaves the n newest of the lines, in order and each once.
func (w *newestOf) trim() error {
	slices.SortFunc(w.lines, func(a, b candidate) int { return a.compare(&b) })
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
		w.from = max(w.from, w.lines[0].Time)
	}
	return nil
}

// among reports whether a copy of a line is at the end of lines.
func (w *newestOf) among(lines []candidate, a candidate) (bool, error) {
	var own []byte
	for _, b := range slices.Backward(lines) {
		if b.Key != a.Key {
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

// lineOf reads a line; nil if the log lacks it. It counts that.
func (r *Reading) lineOf(a *candidate) ([]byte, error) {
	r.line = sized(r.line, int(a.size))[:a.size]
	err := r.log.ReadAt(r.line, a.pos)
	if err == nil {
		return r.line, nil
	}
	if fatal := r.fatal(err); fatal != nil {
		return nil, fatal
	}
	r.missing.add(&r.missing.Runs, fmt.Errorf("a line at %d in segment %d: %w", a.pos.Offset(), a.pos.Segment(), err))
	return nil, nil
}
