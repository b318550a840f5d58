package runlog

import (
	"encoding/binary"
	"fmt"

	"blobtail/buffer/wal"
)

// Versions of a batch record; withSince also has the arrival of its oldest record.
const (
	cuttingRules = 1
	withSince    = 2
)

// BatchRecord is the payload of a batch record: the runs that become one blob, and
// the first name that the sink will try. It is durable before the first PUT.
type BatchRecord struct {
	ID [16]byte
	Bin
	Records int
	Bytes   int64
	Pin     []byte
	Since   int64 // Unix milliseconds: arrival of its oldest record; 0: unknown
	Runs    Extents
}

// Append appends the payload to p.
func (r *BatchRecord) Append(p []byte) []byte {
	if r.Since != 0 {
		p = binary.AppendVarint(append(p, withSince), r.Since)
	} else {
		p = append(p, cuttingRules)
	}
	p = append(p, r.ID[:]...)
	p = binary.AppendUvarint(p, uint64(len(r.Service)))
	p = append(p, r.Service...)
	p = binary.AppendVarint(p, r.Period)
	p = binary.AppendUvarint(p, uint64(r.Records))
	p = binary.AppendUvarint(p, uint64(r.Bytes))
	p = binary.AppendUvarint(p, uint64(len(r.Pin)))
	p = append(p, r.Pin...)
	p = binary.AppendUvarint(p, uint64(r.Runs.n))
	return append(p, r.Runs.enc...)
}

// ParseBatch reads a batch record. The result shares p's memory.
func ParseBatch(p []byte) (r BatchRecord, err error) {
	d := decoder{p, true}
	switch v := d.byte(); {
	case v == withSince:
		r.Since = d.varint()
	case d.ok && v != cuttingRules:
		return r, fmt.Errorf("a batch cut by rules %d: %w", v, ErrNewer)
	}
	copy(r.ID[:], d.bytes(16))
	r.Service = string(d.bytes(d.uvarint()))
	r.Period = d.varint()
	r.Records = int(d.uvarint())
	r.Bytes = int64(d.uvarint())
	r.Pin = d.bytes(d.uvarint())
	n := d.uvarint()
	if !d.ok {
		return r, fmt.Errorf("batch record of %d bytes is cut short", len(p))
	}
	var ok bool
	if r.Runs, ok = parseExtents(d.rest, n); !ok {
		return r, fmt.Errorf("batch record %x has no valid list of %d runs", r.ID, n)
	}
	return r, nil
}

// CommitExpired is the flag of a commit record for a batch that is not stored,
// because its day was dropped before.
const CommitExpired = 1 << 0

// AppendCommit appends the payload of a commit record, which names a batch by its
// id.
func AppendCommit(p []byte, id [16]byte, flags byte) []byte {
	return append(append(p, id[:]...), flags)
}

// ParseCommit reads a commit record.
func ParseCommit(p []byte) (id [16]byte, flags byte, err error) {
	if len(p) != 17 {
		return id, 0, fmt.Errorf("commit record of %d bytes", len(p))
	}
	if p[16]&^CommitExpired != 0 {
		return id, 0, fmt.Errorf("a commit record with flags %#x: %w", p[16], ErrNewer)
	}
	return [16]byte(p), p[16], nil
}

// Parked gathers the runs of a parked record, which is a copy of a batch.
type Parked struct {
	BatchRecord // its positions count from the start of body
	body        []byte
}

// Add appends a run, with its origin written out: the run's place may have been its
// origin, and the copy has another place.
func (p *Parked) Add(r *Run) {
	off := len(p.body)
	p.body = append(p.body, make([]byte, runHead)...)
	p.body = appendRunOrigin(p.body, r.Origin, 0, r.places)
	p.body = appendRunBin(p.body, r.Bin, r.first, r.Records, r.time0)
	p.body = append(append(p.body, r.table...), r.lines...)
	sealRun(p.body, off)
	p.Runs.Add(Extent{wal.Pos(off), uint32(len(p.body) - off)})
	p.Records += r.Records
	p.Bytes += int64(len(r.lines))
}

// Payload is the payload of the parked record; head is the length of the part
// before the runs.
//
//	uint32 length | batch record, its positions counted from the runs | runs
func (p *Parked) Payload() (payload []byte, head int) {
	payload = p.Append(make([]byte, 4, 4+128+len(p.Service)+len(p.Runs.enc)+len(p.body)))
	binary.LittleEndian.PutUint32(payload, uint32(len(payload)-4))
	return append(payload, p.body...), len(payload)
}

// ParseParked reads the part of a parked record before its runs; head is the
// length of that part.
func ParseParked(p []byte) (r BatchRecord, head int, err error) {
	if len(p) < 4 {
		return r, 0, fmt.Errorf("parked record of %d bytes is cut short", len(p))
	}
	head = 4 + int(binary.LittleEndian.Uint32(p))
	if head > len(p) {
		return r, 0, fmt.Errorf("parked record of %d bytes says that its runs begin at %d", len(p), head)
	}
	r, err = ParseBatch(p[4:head])
	return r, head, err
}
