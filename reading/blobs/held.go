package blobs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"blobtail/internal/spill"
	"blobtail/internal/units"
	"blobtail/record"
)

const (
	// heldChunk is how much of the file is read back at once.
	heldChunk = 1 << 20
	// idSize is the bytes of an identity in the file.
	idSize = 16 + 4
)

// held are the lines of a result that come in the other order, and wait for its end. Some are in
// memory, as far as the budget of the query allows it, and the others in an unnamed temporary
// file. So the memory of a read grows neither with its limit nor with the length of lines.
type held struct {
	aside spill.Space
	most  int64 // bytes in all; 0: any number
	back  bool  // the oldest come first, and the newest are wanted first
	ids   bool  // the identities are wanted too

	pieces []piece // in memory
	all    int64
	parts  []part // in the file
}

// A part is lines in the file, in ascending order, and the identities behind them.
type part struct {
	at    int64
	lines int64 // bytes
	ids   int   // records, if identities are wanted
}

// entrySize is the memory of an entry beside its line.
const entrySize = 64

// add takes a piece, and keeps its memory.
func (h *held) add(p piece) error {
	n := int64(len(p.lines) + entrySize*len(p.entries))
	if h.all += int64(len(p.lines)); h.most > 0 && h.all > h.most {
		found := "the newest first"
		if h.back {
			found = "the oldest first"
		}
		return badQuery("the records have more than %s together; ask for fewer of them, or for %s", units.Size(h.most), found)
	}
	h.pieces = append(h.pieces, p)
	if h.aside.Fits(n) {
		return nil
	}
	if err := h.spill(); err != nil {
		return fmt.Errorf("put records aside: %w", err)
	}
	return nil
}

// spill moves the pieces to the file.
func (h *held) spill() error {
	if !h.back { // the oldest piece came last
		slices.Reverse(h.pieces)
	}
	var p part
	var ids []byte
	texts := make([][]byte, 0, len(h.pieces)+1)
	for i := range h.pieces {
		texts = append(texts, h.pieces[i].lines)
		p.lines += int64(len(h.pieces[i].lines))
		for j := range h.pieces[i].entries {
			id := &h.pieces[i].entries[j].ID
			ids = binary.LittleEndian.AppendUint32(append(ids, id.Origin[:]...), id.Index)
			p.ids++
		}
	}
	var err error
	if p.at, err = h.aside.Write(append(texts, ids)...); err != nil {
		return err
	}
	h.parts = append(h.parts, p)
	clear(h.pieces)
	h.pieces = h.pieces[:0]
	h.aside.Moved()
	return nil
}

// give gives all lines to a receiver, those that came last first. The pieces are in ascending
// order within.
func (h *held) give(to func(piece) error) error {
	for _, p := range slices.Backward(h.pieces) {
		if err := to(p); err != nil {
			return err
		}
	}
	for _, p := range slices.Backward(h.parts) {
		if err := h.giveBack(p, to); err != nil {
			return err
		}
	}
	return nil
}

// giveBack reads a part of the file, and gives its lines.
func (h *held) giveBack(p part, to func(piece) error) error {
	ids, err := h.aside.Read(nil, p.at+p.lines, int64(p.ids)*idSize)
	if err != nil {
		return err
	}
	for from, until := int64(0), p.lines; from < until; {
		size := min(heldChunk, until-from)
		at := p.at + from
		if h.back {
			at = p.at + until - size
		}
		lines, err := h.whole(at, size, p)
		if err != nil {
			return err
		}
		if h.back {
			until -= int64(len(lines))
		} else {
			from += int64(len(lines))
		}
		out := piece{lines: lines}
		if h.ids {
			out.entries, ids = h.entries(lines, ids)
		}
		if err := to(out); err != nil {
			return err
		}
	}
	return nil
}

// whole reads about size bytes of the lines of a part: whole lines that begin at a place, or
// backwards those that end size bytes behind it.
func (h *held) whole(at, size int64, p part) ([]byte, error) {
	for {
		b, err := h.aside.Read(nil, at, size)
		if err != nil {
			return nil, err
		}
		switch {
		case !h.back:
			if n := bytes.LastIndexByte(b, '\n') + 1; n > 0 {
				return b[:n], nil
			}
			size = min(2*size, p.at+p.lines-at) // a long line
			continue
		case at == p.at:
			return b, nil
		}
		if n := bytes.IndexByte(b, '\n') + 1; n < len(b) {
			return b[n:], nil
		}
		more := min(size, at-p.at)
		at, size = at-more, size+more
	}
}

// entries are the entries of lines, with the first of some identities, or backwards the last. It
// returns the other identities too.
func (h *held) entries(lines, ids []byte) ([]record.Entry, []byte) {
	n := bytes.Count(lines, newline)
	own, rest := ids[:n*idSize], ids[n*idSize:]
	if h.back {
		rest, own = ids[:len(ids)-n*idSize], ids[len(ids)-n*idSize:]
	}
	out := make([]record.Entry, 0, n)
	for line := range bytes.Lines(lines) {
		e := record.Entry{Line: line}
		e.Time, _ = record.LineTime(line)
		copy(e.ID.Origin[:], own)
		e.ID.Index = binary.LittleEndian.Uint32(own[16:])
		out, own = append(out, e), own[idSize:]
	}
	return out, rest
}

// close releases everything.
func (h *held) close() {
	h.pieces = nil
	h.aside.Close()
}
