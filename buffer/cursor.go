package buffer

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"blobtail/record"
	"blobtail/wal"
)

// cursor stands before a line of a run. What it knows of the line is what orders
// it; the bytes are read when they are wanted.
type cursor struct {
	time   int64
	origin record.Origin
	index  uint32
	size   uint32 // of the line
	left   uint32 // lines from here on, this one too
	rows   uint32 // bytes of the table from row on
	places bool   // the table has the indexes
	row    wal.Pos
	line   wal.Pos
	end    wal.Pos // of the run
	run    wal.Pos
	buf    *windows
	of     *heldRun // of a run that is the reader's in part
}

// windows are parts of the run that are in memory.
type windows struct {
	row, line     []byte
	rowAt, lineAt wal.Pos
}

func (c *cursor) compare(d *cursor) int {
	if n := c.compareLines(d); n != 0 {
		return n
	}
	return cmp.Compare(c.run, d.run)
}

// compareLines is 0 for the same identity.
func (c *cursor) compareLines(d *cursor) int {
	if c.time != d.time {
		return cmp.Compare(c.time, d.time)
	}
	if n := bytes.Compare(c.origin[:], d.origin[:]); n != 0 {
		return n
	}
	return cmp.Compare(c.index, d.index)
}

// cursorAt stands before the first line of the run that is in [from, to); false
// when there is none.
func cursorAt(h *heldRun, from, to int64) (c cursor, ok bool) {
	if !(span{h.time0, h.last}).touches(from, to) {
		return c, false
	}
	d := decoder{h.table, true}
	c = cursor{
		time: h.time0, origin: h.origin, index: h.first, left: uint32(h.records), run: h.pos, places: h.places,
		end: h.pos + wal.Pos(h.len),
	}
	if h.lots != nil {
		c.of = &heldRun{lots: h.lots, want: h.want}
	}
	c.line = c.end - wal.Pos(len(h.lines))
	for {
		c.time += int64(d.uvarint())
		c.size = uint32(d.uvarint())
		if c.places {
			c.index = d.index(c.index)
		}
		if c.time >= from && c.given() {
			break
		}
		if c.left--; c.left == 0 {
			return c, false
		}
		c.index++
		c.line += wal.Pos(c.size)
	}
	c.rows = uint32(len(d.rest))
	c.row = c.end - wal.Pos(len(h.lines)) - wal.Pos(c.rows)
	return c, !beyond(c.time, to)
}

// given reports whether the line is the reader's.
func (c *cursor) given() bool { return c.of == nil || c.of.has(len(c.of.lots)-int(c.left)) }

// beyond reports whether a time is not before to.
func beyond(t, to int64) bool { return t >= to && to != math.MaxInt64 }

const (
	// wholeRun is up to which length the rest of a run is read at once.
	wholeRun = 256 << 10
	// lineWindow and rowWindow are how much is read of a longer one.
	lineWindow = 64 << 10
	rowWindow  = 4 << 10
	// fewRows is what is read of a table when memory is short.
	fewRows = 48
	// longestRow is varints of a time, a length and a place.
	longestRow = 3 * binary.MaxVarintLen64
)

// bytes reads the line that c stands before; valid until the next is read. While
// room lasts it reads ahead.
func (r *liveReader) bytes(c *cursor, room *int) ([]byte, error) {
	if c.left > 1 && c.buf == nil {
		c.buf = &windows{}
		if n := int(c.end - c.row); n <= wholeRun && n <= *room {
			*room -= n
			p := make([]byte, n)
			if err := r.b.log.ReadAt(p, c.row); err != nil {
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
			if err := r.b.log.ReadAt(w.line, c.line); err != nil {
				return nil, err
			}
			return w.line[:c.size], nil
		}
	}
	r.line = sized(r.line, int(c.size))[:c.size]
	return r.line, r.b.log.ReadAt(r.line, c.line)
}

func within(p []byte, at, pos wal.Pos, n int) bool {
	return pos >= at && int64(pos-at)+int64(n) <= int64(len(p))
}

// advance moves to the next line that is the reader's; false when there is none.
func (r *liveReader) advance(c *cursor, room *int) (bool, error) {
	for {
		if more, err := r.step(c, room); !more || err != nil || c.given() {
			return more, err
		}
	}
}

// step moves to the next line; false when there is none.
func (r *liveReader) step(c *cursor, room *int) (bool, error) {
	if c.left--; c.left == 0 {
		return false, nil
	}
	w := c.buf
	if n := min(longestRow, int(c.rows)); !within(w.row, w.rowAt, c.row, n) {
		// A window for rows is small and every run that is begun has one: it is not
		// counted when memory is short.
		n = min(fewRows, int(c.rows))
		if *room > rowWindow {
			n = min(rowWindow, int(c.rows))
		}
		w.row, w.rowAt = sized(w.row, n)[:n], c.row
		if err := r.b.log.ReadAt(w.row, c.row); err != nil {
			return false, err
		}
	}
	d := decoder{w.row[c.row-w.rowAt:], true}
	before := len(d.rest)
	c.line += wal.Pos(c.size)
	c.time += int64(d.uvarint())
	c.size = uint32(d.uvarint())
	c.index++
	if c.places {
		c.index = d.index(c.index)
	}
	if !d.ok || c.line+wal.Pos(c.size) > c.end {
		return false, fmt.Errorf("%w: its table changed", errRun)
	}
	c.row += wal.Pos(before - len(d.rest))
	c.rows -= uint32(before - len(d.rest))
	return !beyond(c.time, r.q.To), nil
}

// let gives back the memory of a run that is read.
func (c *cursor) let(room *int) {
	if c.buf != nil {
		*room += cap(c.buf.line)
		c.buf = nil
	}
}
