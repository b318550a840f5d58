package runlog

import (
	"encoding/binary"
	"fmt"

	"blobtail/record"
	"blobtail/storage"
)

// Flags of a runs record.
const (
	hasOrigin  = 1 << 0
	hasSum     = 1 << 1
	hasReply   = 1 << 2 // the request is a message
	hasOutcome = 1 << 3
	hasDefault = 1 << 4
	hasArrival = 1 << 5
)

// Head is the fixed part of a runs record.
type Head struct {
	Origin      record.Origin
	Sum         uint64
	Reply       string // of a message
	Outcome     record.Outcome
	DefaultTime int64 // Unix nanoseconds
	Arrived     int64 // Unix milliseconds
}

func appendHead(p []byte, h *Head) []byte {
	at := len(p)
	p = append(p, 0)
	if !h.Origin.IsZero() {
		p[at] |= hasOrigin
		p = append(p, h.Origin[:]...)
	}
	if h.Sum != 0 {
		p[at] |= hasSum
		p = binary.LittleEndian.AppendUint64(p, h.Sum)
	}
	if h.Reply != "" {
		p[at] |= hasReply
		p = binary.AppendUvarint(p, uint64(len(h.Reply)))
		p = append(p, h.Reply...)
	}
	if h.Outcome != (record.Outcome{}) {
		p[at] |= hasOutcome
		p = binary.AppendUvarint(p, uint64(h.Outcome.Accepted))
		p = binary.AppendUvarint(p, uint64(h.Outcome.Rejected))
		p = binary.LittleEndian.AppendUint64(p, h.Outcome.Sum)
	}
	if h.DefaultTime != 0 {
		p[at] |= hasDefault
		p = binary.AppendVarint(p, h.DefaultTime)
	}
	p[at] |= hasArrival
	return binary.AppendVarint(p, h.Arrived)
}

func (h *Head) parse(d *decoder) error {
	flags := d.byte()
	if flags&^(hasOrigin|hasSum|hasReply|hasOutcome|hasDefault|hasArrival) != 0 {
		return fmt.Errorf("a runs record with flags %#x: %w", flags, ErrNewer)
	}
	if d.ok && flags&hasArrival == 0 {
		return fmt.Errorf("a runs record without its arrival: %w", storage.ErrOlder)
	}
	if flags&hasOrigin != 0 {
		copy(h.Origin[:], d.bytes(16))
	}
	if flags&hasSum != 0 {
		if b := d.bytes(8); b != nil {
			h.Sum = binary.LittleEndian.Uint64(b)
		}
	}
	if flags&hasReply != 0 {
		h.Reply = string(d.bytes(d.uvarint()))
	}
	if flags&hasOutcome != 0 {
		h.Outcome.Accepted, h.Outcome.Rejected = uint32(d.uvarint()), uint32(d.uvarint())
		if b := d.bytes(8); b != nil {
			h.Outcome.Sum = binary.LittleEndian.Uint64(b)
		}
	}
	if flags&hasDefault != 0 {
		h.DefaultTime = d.varint()
	}
	h.Arrived = d.varint()
	return nil
}
