package buffer

import (
	"encoding/binary"
	"fmt"
)

// cuttingRules is the version of the rules by which batches are cut, kept in
// each batch record; withSince is the same, of a record that also says since when the
// batch waits.
const (
	cuttingRules = 1
	withSince    = 2
)

// batchRecord is the payload of a batch record: which runs become one blob, and
// the first name that the sink will give it. It is durable before the first PUT.
type batchRecord struct {
	id      [16]byte
	key     key
	records int
	bytes   int64
	pin     []byte
	since   int64 // Unix milliseconds: arrival of its oldest record; 0: not said
	runs    extents
}

func (r *batchRecord) append(p []byte) []byte {
	if r.since != 0 {
		p = binary.AppendVarint(append(p, withSince), r.since)
	} else {
		p = append(p, cuttingRules)
	}
	p = append(p, r.id[:]...)
	p = binary.AppendUvarint(p, uint64(len(r.key.service)))
	p = append(p, r.key.service...)
	p = binary.AppendVarint(p, r.key.period)
	p = binary.AppendUvarint(p, uint64(r.records))
	p = binary.AppendUvarint(p, uint64(r.bytes))
	p = binary.AppendUvarint(p, uint64(len(r.pin)))
	p = append(p, r.pin...)
	p = binary.AppendUvarint(p, uint64(r.runs.n))
	return append(p, r.runs.enc...)
}

// parseBatch reads a batch record. What it returns shares p's memory.
func parseBatch(p []byte) (r batchRecord, err error) {
	d := decoder{p, true}
	switch v := d.byte(); {
	case v == withSince:
		r.since = d.varint()
	case d.ok && v != cuttingRules:
		return r, fmt.Errorf("a batch cut by rules %d: %w", v, errNewer)
	}
	copy(r.id[:], d.bytes(16))
	r.key.service = string(d.bytes(d.uvarint()))
	r.key.period = d.varint()
	r.records = int(d.uvarint())
	r.bytes = int64(d.uvarint())
	r.pin = d.bytes(d.uvarint())
	n := d.uvarint()
	if !d.ok {
		return r, fmt.Errorf("batch record of %d bytes is cut short", len(p))
	}
	var ok bool
	if r.runs, ok = parseExtents(d.rest, n); !ok {
		return r, fmt.Errorf("batch record %x has no valid list of %d runs", r.id, n)
	}
	return r, nil
}

// commitExpired says in a commit record that the batch is not stored, because its
// day was dropped before it could be.
const commitExpired = 1 << 0

// A commit record names a batch by its id.
func appendCommit(p []byte, id [16]byte, flags byte) []byte {
	return append(append(p, id[:]...), flags)
}

func parseCommit(p []byte) (id [16]byte, flags byte, err error) {
	if len(p) != 17 {
		return id, 0, fmt.Errorf("commit record of %d bytes", len(p))
	}
	if p[16]&^commitExpired != 0 {
		return id, 0, fmt.Errorf("a commit record with flags %#x: %w", p[16], errNewer)
	}
	return [16]byte(p), p[16], nil
}
