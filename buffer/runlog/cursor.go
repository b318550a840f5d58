package runlog

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"blobtail/buffer/wal"
	"blobtail/record"
)

// cursor is at a line of a run. It knows the line's key; the bytes are read on demand.
type cursor struct {
	record.Key
	size   uint32 // of the line
	left   uint32 // lines from here on, this one too
	rows   uint32 // bytes of the table from row on
	places bool   // the table has the indexes
	row    wal.Pos
	line   wal.Pos
	end    wal.Pos // of the run
	run    wal.Pos
	buf    *windows
	lots   *part // nil: all lines of the run are wanted
}

// windows are parts of the run that are in memory.
type windows struct {
	row, line     []byte
	rowAt, lineAt wal.Pos
}

// compare orders lines with the same key by their runs.
func (c *cursor) compare(d *cursor) int {
	if n := c.Key.Compare(&d.Key); n != 0 {
		return n
	}
	return cmp.Compare(c.run, d.run)
}

// cursorAt is at the first line of the part that is in [from, to); ok is false when
// there is none.
func cursorAt(p *part, from, to int64) (c cursor, ok bool) {
	if !p.span().Touches(from, to) {
		return c, false
	}
	c = cursor{run: p.Pos, end: p.End(), places: p.places}
	c.line = c.end - wal.Pos(len(p.lines))
	lines := c.line
	rows := p.rows()
	for i := 0; rows.next(); i++ {
		if rows.time >= from && p.has(i) {
			ok = true
			break
		}
		c.line += wal.Pos(rows.size)
	}
	c.Key = record.Key{Time: rows.time, Origin: p.origin, Index: rows.index}
	c.size, c.left = uint32(rows.size), uint32(rows.left)+1
	c.rows = uint32(len(rows.d.rest))
	c.row = lines - wal.Pos(c.rows)
	if p.lots != nil {
		c.lots = &part{lots: p.lots, want: p.want}
	}
	return c, ok && !beyond(c.Time, to)
}

// wanted reports whether the line is in the part.
func (c *cursor) wanted() bool {
	return c.lots == nil || c.lots.has(len(c.lots.lots)-int(c.left))
}

const (
	// wholeRun is the longest remainder of a run that is read at once.
	wholeRun = 256 << 10
	// lineWindow and rowWindow are the sizes of the reads of a longer one.
	lineWindow = 64 << 10
	rowWindow  = 4 << 10
	// fewRows is the size of the reads of a table when memory is short.
	fewRows = 48
	// longestRow is the length of three varints: a time, a length and a place.
	longestRow = 3 * binary.MaxVarintLen64
)

// bytes reads the line at c; it is valid until the next is read. While room lasts it
// reads ahead.
func (r *Reading) bytes(c *cursor, room *int) ([]byte, error) {
	if c.left > 1 && c.buf == nil {
		c.buf = &windows{}
		if n := int(c.end - c.row); n <= wholeRun && n <= *room {
			*room -= n
			p := make([]byte, n)
			if err := r.log.ReadAt(p, c.row); err != nil {
				return nil, err
			}
			*c.buf = windows{p[:c.rows:c.rows], p, c.row, c.row}
		}
	}
	if c.buf != nil {
		w := c.buf
		if within(w.line, w.lineAt, c.line, int(c.size)) {
			return w.line[c.line-w.lineAt:][:c.size], nil
		}
		*room += cap(w.line)
		w.line = nil
		if n := min(max(lineWindow, int(c.size)), int(c.end-c.line)); n > int(c.size) && n <= *room {
			*room -= n
			w.line, w.lineAt = make([]byte, n), c.line
			if err := r.log.ReadAt(w.line, c.line); err != nil {
				return nil, err
			}
			return w.line[:c.size], nil
		}
	}
	r.line = sized(r.line, int(c.size))[:c.size]
	return r.line, r.log.ReadAt(r.line, c.line)
}

func within(p []byte, at, pos wal.Pos, n int) bool {
	return pos >= at && int64(pos-at)+int64(n) <= int64(len(p))
}

// advance moves to the next line of the part; it returns false if there is none.
func (r *Reading) advance(c *cursor, room *int) (bool, error) {
	for {
		if more, err := r.step(c, room); !more || err != nil || c.wanted() {
			return more, err
		}
	}
}

// step moves to the next line; it returns false if there is none.
func (r *Reading) step(c *cursor, room *int) (bool, error) {
	if c.left--; c.left == 0 {
		return false, nil
	}
	w := c.buf
	if n := min(longestRow, int(c.rows)); !within(w.row, w.rowAt, c.row, n) {
		// A window for rows is small, and every run that is begun has one. When memory is
		// short it is not counted.
		n = min(fewRows, int(c.rows))
		if *room > rowWindow {
			n = min(rowWindow, int(c.rows))
		}
		w.row, w.rowAt = sized(w.row, n)[:n], c.row
		if err := r.log.ReadAt(w.row, c.row); err != nil {
			return false, err
		}
	}
	d := decoder{w.row[c.row-w.rowAt:], true}
	before := len(d.rest)
	c.line += wal.Pos(c.size)
	c.Time += int64(d.uvarint())
	c.size = uint32(d.uvarint())
	c.Index++
	if c.places {
		c.Index = d.index(c.Index)
	}
	if !d.ok || c.line+wal.Pos(c.size) > c.end {
		return false, fmt.Errorf("%w: its table changed", errRun)
	}
	c.row += wal.Pos(before - len(d.rest))
	c.rows -= uint32(before - len(d.rest))
	return !beyond(c.Time, r.q.To), nil
}

// release returns the memory of a run that has been read.
func (c *cursor) release(room *int) {
	if c.buf != nil {
		*room += cap(c.buf.line)
		c.buf = nil
	}
}
