package runlog

import "encoding/binary"

// decoder reads varints off a byte slice. At the first that is missing ok turns
// false, and everything after it reads as zero.
type decoder struct {
	rest []byte
	ok   bool
}

func (d *decoder) uvarint() uint64 {
	// Lengths of lines have two bytes, and there is one for every record.
	if len(d.rest) > 1 {
		if d.rest[0] < 0x80 {
			v := uint64(d.rest[0])
			d.rest = d.rest[1:]
			return v
		}
		if d.rest[1] < 0x80 && d.rest[1] > 0 {
			v := uint64(d.rest[0]&0x7f) | uint64(d.rest[1])<<7
			d.rest = d.rest[2:]
			return v
		}
	}
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.rest, d.ok = nil, false
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// index is the index of the next line of a table that has them; next is the
// consecutive one.
func (d *decoder) index(next uint32) uint32 {
	// If services are mixed, the next record is usually near.
	if len(d.rest) > 0 && d.rest[0] < 0x80 {
		v := uint32(d.rest[0])
		d.rest = d.rest[1:]
		return next + (v>>1 ^ -(v & 1))
	}
	return next + uint32(d.varint())
}

func (d *decoder) varint() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.rest, d.ok = nil, false
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); b != nil {
		return b[0]
	}
	return 0
}
