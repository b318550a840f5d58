package runlog

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"

	"blobtail/record"
)

// candidate is a line that may be among the newest. Its hash distinguishes it from other
// lines with its key.
type candidate struct {
	record.Key
	hash uint64
}

func (a *candidate) compare(b *candidate) int {
	return cmp.Or(a.Key.Compare(&b.Key), cmp.Compare(a.hash, b.hash))
}

// newestOf gathers the last n lines: it collects more, and now and then drops all but n.
type newestOf struct {
	*Reading
	n     int
	lines []candidate
	seed  maphash.Seed
	from  int64 // an older line cannot be among them
}

// newest finds the oldest of the newest lines of the units, and how many of them have
// its key. It reads the units that end last first, and none that ends before the lines
// found by then.
func (r *Reading) newest(units []Unit) (from record.Key, most int, err error) {
	slices.SortFunc(units, func(a, b Unit) int { return cmp.Compare(b.Span.Last, a.Span.Last) })
	w := &newestOf{Reading: r, n: r.q.Newest, from: r.q.From, seed: maphash.MakeSeed()}
	for i := 0; i < len(units) && units[i].Span.Last >= w.from; i++ {
		if err := w.unit(&units[i]); err != nil {
			return from, 0, err
		}
	}
	w.trim()
	if len(w.lines) < w.n {
		return record.Key{Time: r.q.From}, math.MaxInt, nil
	}
	from = w.lines[0].Key
	for most < w.n && w.lines[most].Key == from {
		most++
	}
	return from, most, nil
}

// unit takes the lines of a unit. With a filter most lines may be needed, and one reading
// finds them. Without one the last chunks have the newest lines.
func (w *newestOf) unit(u *Unit) error {
	if w.q.Keep != nil {
		if err := w.scan(u, w.take); err != nil {
			return err
		}
		w.narrow()
	} else if err := w.scan(u, nil); err != nil {
		return err
	}
	slices.SortFunc(u.chunks, func(a, b *chunk) int { return cmp.Compare(b.span.Last, a.span.Last) })
	for i, c := range u.chunks {
		if c.span.Last < w.from {
			u.chunks = slices.Delete(u.chunks, i, len(u.chunks))
			break
		}
		if w.q.Keep == nil {
			if err := w.read(c, w.take); err != nil {
				return err
			}
			w.narrow()
		}
	}
	return nil
}

// take adds the lines of a run that may be among the newest.
func (w *newestOf) take(r *Run) error {
	if !r.Span().Touches(w.from, w.q.To) {
		return nil
	}
	rows := r.rows()
	for rows.next() && !beyond(rows.time, w.q.To) {
		if rows.time >= w.from && (w.q.Keep == nil || w.q.Keep(rows.line)) {
			w.lines = append(w.lines, candidate{record.Key{Time: rows.time, Origin: r.Origin, Index: rows.index}, maphash.Bytes(w.seed, rows.line)})
		}
		if w.n <= math.MaxInt/4 && len(w.lines) >= 2*w.n+1024 {
			w.trim()
		}
	}
	return nil
}

// narrow trims the lines if that drops enough of them to be worth a sort.
func (w *newestOf) narrow() {
	if len(w.lines)-w.n >= w.n/8 {
		w.trim()
	}
}

// trim leaves the n newest of the lines, in order and each once.
func (w *newestOf) trim() {
	slices.SortFunc(w.lines, func(a, b candidate) int { return a.compare(&b) })
	w.lines = slices.Compact(w.lines)
	if n := len(w.lines); n >= w.n {
		w.lines = slices.Delete(w.lines, 0, n-w.n)
		w.from = max(w.from, w.lines[0].Time)
	}
}
