package buffer

import (
	"encoding/binary"
	"fmt"

	"blobtail/record"
)

// Flags of a runs record.
const (
	hasOrigin = 1 << 0
	hasSum    = 1 << 1
	hasReply  = 1 << 2 // it is a message
	// These came later: a version that does not know them refuses the log.
	hasOutcome = 1 << 3
	hasDefault = 1 << 4
	hasArrival = 1 << 5
)

// runsHead is the fixed part of a runs record.
type runsHead struct {
	origin      record.Origin
	sum         uint64
	reply       string // of a message
	outcome     record.Outcome
	defaultTime int64 // Unix nanoseconds
	arrived     int64 // Unix milliseconds; 0: not said
}

func appendRunsHead(p []byte, h *runsHead) []byte {
	at := len(p)
	p = append(p, 0)
	if !h.origin.IsZero() {
		p[at] |= hasOrigin
		p = append(p, h.origin[:]...)
	}
	if h.sum != 0 {
		p[at] |= hasSum
		p = binary.LittleEndian.AppendUint64(p, h.sum)
	}
	if h.reply != "" {
		p[at] |= hasReply
		p = binary.AppendUvarint(p, uint64(len(h.reply)))
		p = append(p, h.reply...)
	}
	if h.outcome != (record.Outcome{}) {
		p[at] |= hasOutcome
		p = binary.AppendUvarint(p, uint64(h.outcome.Accepted))
		p = binary.AppendUvarint(p, uint64(h.outcome.Rejected))
		p = binary.LittleEndian.AppendUint64(p, h.outcome.Sum)
	}
	if h.defaultTime != 0 {
		p[at] |= hasDefault
		p = binary.AppendVarint(p, h.defaultTime)
	}
	if h.arrived != 0 {
		p[at] |= hasArrival
		p = binary.AppendVarint(p, h.arrived)
	}
	return p
}

// parse reads what appendRunsHead appended.
func (h *runsHead) parse(d *decoder) error {
	flags := d.byte()
	if flags&^(hasOrigin|hasSum|hasReply|hasOutcome|hasDefault|hasArrival) != 0 {
		return fmt.Errorf("a runs record with flags %#x: %w", flags, errNewer)
	}
	if flags&hasOrigin != 0 {
		copy(h.origin[:], d.bytes(16))
	}
	if flags&hasSum != 0 {
		if b := d.bytes(8); b != nil {
			h.sum = binary.LittleEndian.Uint64(b)
		}
	}
	if flags&hasReply != 0 {
		h.reply = string(d.bytes(d.uvarint()))
	}
	if flags&hasOutcome != 0 {
		h.outcome.Accepted, h.outcome.Rejected = uint32(d.uvarint()), uint32(d.uvarint())
		if b := d.bytes(8); b != nil {
			h.outcome.Sum = binary.LittleEndian.Uint64(b)
		}
	}
	if flags&hasDefault != 0 {
		h.defaultTime = d.varint()
	}
	if flags&hasArrival != 0 {
		h.arrived = d.varint()
	}
	return nil
}
