package runlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"blobtail/buffer/wal"
	"blobtail/record"
)

// Run is one run in the reader's memory: the lines of one request for one bin, in the
// order of time. The reader soon reuses its bytes.
type Run struct {
	Extent
	Bin
	Origin  record.Origin // of its lines
	Place   record.Origin // the origin made from its place in the log
	Records int

	own    bool   // the origin is written out; else it is the place of its record
	places bool   // the table has the indexes; else they are consecutive
	back   uint32 // its distance from its record, if the origin is not its own
	first  uint32 // index of the first line
	time0  int64
	last   int64  // time of the last line
	table  []byte // a row for each line
	lines  []byte // one after another
	at     int    // start of these in the reader's memory
}

// Size is the length of its lines.
func (r *Run) Size() int { return len(r.lines) }

// Span is from its first line to its last.
func (r *Run) Span() Span { return Span{r.time0, r.last} }

// parse reads the run at the start of p; n is its length. It checks the CRC and
// that the table fits the lines. A run of a service shares its string.
func (r *Run) parse(p []byte, service string) (n int, err error) {
	if len(p) < runHead {
		return 0, fmt.Errorf("%w: %d bytes", errRun, len(p))
	}
	n = runHead + int(binary.LittleEndian.Uint32(p[4:]))
	if n > len(p) {
		return 0, fmt.Errorf("%w: wants %d bytes of %d", errRun, n, len(p))
	}
	if crc32.Checksum(p[4:n], castagnoli) != binary.LittleEndian.Uint32(p) {
		return n, fmt.Errorf("%w: checksum differs", errRun)
	}
	d := decoder{p[runHead:n], true}
	flags := d.byte()
	if flags&^(ownOrigin|hasPlaces) != 0 {
		return n, fmt.Errorf("a run with flags %#x: %w", flags, ErrNewer)
	}
	r.places, r.own = flags&hasPlaces != 0, flags&ownOrigin != 0
	if r.own {
		copy(r.Origin[:], d.bytes(16))
	} else {
		r.back = uint32(d.uvarint())
	}
	r.Service = service
	if own := d.bytes(d.uvarint()); string(own) != service {
		r.Service = string(own)
	}
	r.Period = d.varint()
	r.first = uint32(d.uvarint())
	count := d.uvarint()
	r.time0 = d.varint()
	if !d.ok || count > uint64(len(d.rest)) {
		return n, fmt.Errorf("%w: bad header", errRun)
	}
	r.Records = int(count)
	table, total := d.rest, uint64(0)
	r.last = r.time0
	for range count {
		r.last += int64(d.uvarint())
		total += d.uvarint()
		if r.places {
			d.index(0)
		}
	}
	if !d.ok || total != uint64(len(d.rest)) {
		return n, fmt.Errorf("%w: table and lines differ", errRun)
	}
	r.table, r.lines = table[:len(table)-len(d.rest)], d.rest
	return n, nil
}

// identify sets the origin and place of the run, from its extent.
func (r *Run) identify(segment wal.Segment) {
	r.Place = PlaceOrigin(r.Pos, segment)
	if !r.own {
		r.Origin = PlaceOrigin(r.Pos-wal.Pos(r.back), segment)
	}
}

// isCopyOf reports whether two runs of one origin have the same lines.
func (r *Run) isCopyOf(f *Run) bool {
	return f.first == r.first && f.places == r.places && f.Records == r.Records && f.time0 == r.time0 &&
		bytes.Equal(f.table, r.table) && bytes.Equal(f.lines, r.lines)
}

// ParseRuns splits the payload of a runs record, which is at pos, into its head and runs.
// A run's Origin is zero if it is not written out.
func ParseRuns(p []byte, pos wal.Pos, each func(h *Head, r *Run)) (Head, error) {
	var h Head
	d := decoder{p, true}
	if err := h.parse(&d); err != nil {
		return h, err
	}
	if !d.ok {
		return h, fmt.Errorf("%w: short record", errRun)
	}
	for off := len(p) - len(d.rest); off < len(p); {
		var r Run
		n, err := r.parse(p[off:], "")
		if err != nil {
			return h, err
		}
		r.Extent = Extent{pos + wal.Pos(off), uint32(n)}
		each(&h, &r)
		off += n
	}
	return h, nil
}

// rows iterates over the lines of a run.
type rows struct {
	d      decoder
	places bool
	left   int // lines that follow
	time   int64
	index  uint32
	line   []byte
	lines  []byte // from the next one on
}

func (r *Run) rows() rows {
	return rows{d: decoder{r.table, true}, places: r.places, left: r.Records, time: r.time0, index: r.first - 1, lines: r.lines}
}

// next moves to the next line; it returns false if there is none.
func (w *rows) next() bool {
	if w.left == 0 {
		return false
	}
	w.left--
	w.time += int64(w.d.uvarint())
	size := w.d.uvarint()
	w.line, w.lines = w.lines[:size], w.lines[size:]
	w.index++
	if w.places {
		w.index = w.d.index(w.index)
	}
	return true
}
