package buffer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"blobtail/record"
	"blobtail/wal"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The types of the log's records; docs/FORMAT.md, Log, has their bytes. 3 is
// reserved there.
const (
	typeRuns   byte = 1
	typeBatch  byte = 2
	typeCommit byte = 4
	typeParked byte = 5
)

// key names what becomes one blob: a service and a period of event time.
type key struct {
	service string
	period  int64 // its start, Unix minutes
}

// Flags of a run.
const (
	ownOrigin = 1 << 0 // else its place in the log is its origin
	hasPlaces = 1 << 1 // the indexes of its lines stand in its table, since they are not consecutive
)

// runInfo is what the buffer keeps of a run that it has just encoded.
type runInfo struct {
	key     key
	off     int // in the payload
	len     int
	records int
	bytes   int64 // of its lines
	span    span
	at      int // its first line in runsEncoder.order
}

// runsEncoder turns a request into the payload of one runs record. It is
// reused; one goroutine at a time. The lines of the runs, one run after the
// other, stand in order, with those that have expired between them.
type runsEncoder struct {
	expired func(service string, period time.Time) bool // nil: nothing has
	payload []byte
	runs    []runInfo
	leftOut leftOut
	order   []uint32
	starts  []uint32
	told    record.Run // what Tail sees
}

// leftOut is what a request had and its record has not, because it has expired.
type leftOut struct {
	records  int
	rejected int // of them, those of [record.RejectedService]
	bytes    int64
}

// encode groups the lines of r by service and period and sorts each group by time,
// equal times in the order of the input. A record's index is its place in the body,
// so neither the period nor what has expired, and is left out, changes it. The
// result is valid until the next call.
func (e *runsEncoder) encode(r *record.Request, period time.Duration, arrived time.Time) ([]byte, []runInfo) {
	e.payload = appendRunsHead(e.payload[:0], &runsHead{r.Origin, r.Sum, r.Reply, r.Outcome, r.DefaultTime, arrived.UnixMilli()})
	e.runs, e.leftOut = e.runs[:0], leftOut{}
	minutes := int64(period / time.Minute)
	e.sortByService(r)
	for s := range r.Services {
		group := e.order[e.starts[s]:e.starts[s+1]]
		if len(group) == 0 {
			continue
		}
		sortByTime(group, r.Lines)
		for at := int(e.starts[s]); len(group) > 0; {
			minute := floorDiv(r.Lines[group[0]].Time, int64(time.Minute))
			start := minute - mod(minute, minutes)
			end := (start + minutes) * int64(time.Minute)
			n, next, places := 1, r.Index(group[0]), false
			for n < len(group) && r.Lines[group[n]].Time < end {
				next++
				places = places || r.Index(group[n]) != next
				n++
			}
			if k := (key{r.Services[s], start}); e.expired != nil && e.expired(k.service, periodTime(start)) {
				e.leftOut.add(r, k, group[:n])
			} else {
				e.addRun(r, k, places, at, group[:n])
			}
			at += n
			group = group[n:]
		}
	}
	return e.payload, e.runs
}

// expired is how many of them an answer calls so.
func (l *leftOut) expired() int { return l.records - l.rejected }

func (l *leftOut) add(r *record.Request, k key, group []uint32) {
	l.records += len(group)
	if k.service == record.RejectedService {
		l.rejected += len(group)
	}
	for _, g := range group {
		l.bytes += int64(r.Lines[g].Len)
	}
}

// sortByService fills e.order with the numbers of the lines, those of each
// service together and in the order of the input (a counting sort), and
// e.starts with where each service begins.
func (e *runsEncoder) sortByService(r *record.Request) {
	e.starts = append(e.starts[:0], make([]uint32, len(r.Services)+1)...)
	for i := range r.Lines {
		e.starts[r.Lines[i].Service+1]++
	}
	for s := 1; s < len(e.starts); s++ {
		e.starts[s] += e.starts[s-1]
	}
	e.order = slices.Grow(e.order[:0], len(r.Lines))[:len(r.Lines)]
	if len(r.Services) == 1 {
		for i := range e.order {
			e.order[i] = uint32(i)
		}
		return
	}
	next := slices.Clone(e.starts)
	for i := range r.Lines {
		s := r.Lines[i].Service
		e.order[next[s]] = uint32(i)
		next[s]++
	}
}

// sortByTime is stable. Shippers send nearly sorted lines, for which insertion
// takes a step or two each; when it takes many, the group goes to a real sort.
func sortByTime(group []uint32, lines []record.Line) {
	budget := 8*len(group) + 64
	for i := 1; i < len(group); i++ {
		g := group[i]
		t := lines[g].Time
		j := i
		for j > 0 && lines[group[j-1]].Time > t {
			group[j] = group[j-1]
			j--
		}
		group[j] = g
		if budget -= i - j; budget < 0 {
			slices.SortStableFunc(group, func(a, b uint32) int {
				switch d := lines[a].Time - lines[b].Time; {
				case lines[a].Time == lines[b].Time:
					return int(a) - int(b)
				case d < 0:
					return -1
				}
				return 1
			})
			return
		}
	}
}

// addRun appends one run: CRC, length, header, a table with a row for each line,
// lines.
func (e *runsEncoder) addRun(r *record.Request, k key, places bool, at int, group []uint32) {
	off := len(e.payload)
	t0, first := r.Lines[group[0]].Time, r.Index(group[0])
	p := append(e.payload, make([]byte, runHead)...)
	p = appendRunOrigin(p, r.Origin, off, places)
	p = appendRunKey(p, k, first, len(group), t0)
	bytes, last, next := int64(0), t0, first
	for _, g := range group {
		l := &r.Lines[g]
		p = appendRow(p, l.Time-last, int(l.Len))
		if places {
			index := r.Index(g)
			p = appendPlace(p, index, next)
			next = index + 1
		}
		last = l.Time
		bytes += int64(l.Len)
	}
	for _, g := range group {
		l := &r.Lines[g]
		p = append(p, r.Data[l.Off:l.Off+l.Len]...)
	}
	e.payload = sealRun(p, off)
	e.runs = append(e.runs, runInfo{k, off, len(p) - off, len(group), bytes, span{t0, last}, at})
}

// runHead is the length of a run's fixed part: CRC-32C of all that follows it,
// and the number of bytes that follow both.
const runHead = 8

// appendRunOrigin says where a run came from: its origin, or how far the run
// lies behind the start of its record, whose place is the origin then.
func appendRunOrigin(p []byte, origin record.Origin, off int, places bool) []byte {
	flags := byte(0)
	if places {
		flags = hasPlaces
	}
	if origin.IsZero() {
		p = append(p, flags)
		return binary.AppendUvarint(p, uint64(off))
	}
	p = append(p, flags|ownOrigin)
	return append(p, origin[:]...)
}

// appendRow says how much later than the one before a line is, and how long.
func appendRow(p []byte, after int64, n int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(p, uint64(after)), uint64(n))
}

// appendPlace says what index a line has, by the difference from that which would
// follow on.
func appendPlace(p []byte, index, next uint32) []byte {
	return binary.AppendVarint(p, int64(index)-int64(next))
}

// appendRunKey is the rest of a run's header.
func appendRunKey(p []byte, k key, first uint32, records int, t0 int64) []byte {
	p = binary.AppendUvarint(p, uint64(len(k.service)))
	p = append(p, k.service...)
	p = binary.AppendVarint(p, k.period)
	p = binary.AppendUvarint(p, uint64(first))
	p = binary.AppendUvarint(p, uint64(records))
	return binary.AppendVarint(p, t0)
}

// sealRun fills in the length and the checksum of the run that begins at off.
func sealRun(p []byte, off int) []byte {
	binary.LittleEndian.PutUint32(p[off+4:], uint32(len(p)-off-runHead))
	binary.LittleEndian.PutUint32(p[off:], crc32.Checksum(p[off+4:], castagnoli))
	return p
}

// run is a decoded run. lines holds its lines one after another; times and
// ends are per line.
type run struct {
	origin  record.Origin // zero: the record at pos-back is its origin
	back    int
	key     key
	first   uint32 // index of the first line
	places  bool   // the table has the indexes; else they follow on
	records int
	table   []byte
	time0   int64
	last    int64 // time of the last line
	lines   []byte
}

var (
	errRun   = errors.New("not a run")
	errNewer = errors.New("the log was written by a newer version; use that one")
)

// parseRun reads the run at the start of p and says how long it is. It checks
// the CRC and that the table fits the lines.
func parseRun(p []byte) (r run, n int, err error) {
	if len(p) < runHead {
		return r, 0, fmt.Errorf("%w: %d bytes", errRun, len(p))
	}
	n = runHead + int(binary.LittleEndian.Uint32(p[4:]))
	if n > len(p) {
		return r, 0, fmt.Errorf("%w: wants %d bytes of %d", errRun, n, len(p))
	}
	if crc32.Checksum(p[4:n], castagnoli) != binary.LittleEndian.Uint32(p) {
		return r, n, fmt.Errorf("%w: checksum differs", errRun)
	}
	d := decoder{p[runHead:n], true}
	flags := d.byte()
	if flags&^(ownOrigin|hasPlaces) != 0 {
		return r, n, fmt.Errorf("a run with flags %#x: %w", flags, errNewer)
	}
	r.places = flags&hasPlaces != 0
	if flags&ownOrigin != 0 {
		copy(r.origin[:], d.bytes(16))
	} else {
		r.back = int(d.uvarint())
	}
	r.key.service = string(d.bytes(d.uvarint()))
	r.key.period = d.varint()
	r.first = uint32(d.uvarint())
	count := d.uvarint()
	r.time0 = d.varint()
	if !d.ok || count > uint64(len(d.rest)) {
		return r, n, fmt.Errorf("%w: bad header", errRun)
	}
	r.records = int(count)
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
		return r, n, fmt.Errorf("%w: table and lines differ", errRun)
	}
	r.table, r.lines = table[:len(table)-len(d.rest)], d.rest
	return r, n, nil
}

// identity is the run's origin, given where it lies in the log.
func (r *run) identity(pos wal.Pos, segment wal.Segment) record.Origin {
	if !r.origin.IsZero() {
		return r.origin
	}
	return placeOf(pos-wal.Pos(r.back), segment)
}

// placeOf is the origin that a place in the log gives.
func placeOf(pos wal.Pos, segment wal.Segment) record.Origin {
	return record.LogOrigin(segment.Created.UnixMilli(), [5]byte(segment.Random[:5]), uint64(pos.Offset()))
}

// parseRuns splits the payload of a runs record into its head and runs.
func parseRuns(p []byte, each func(h *runsHead, off int, r run, n int)) (runsHead, error) {
	var h runsHead
	d := decoder{p, true}
	if err := h.parse(&d); err != nil {
		return h, err
	}
	if !d.ok {
		return h, fmt.Errorf("%w: short record", errRun)
	}
	for off := len(p) - len(d.rest); off < len(p); {
		r, n, err := parseRun(p[off:])
		if err != nil {
			return h, err
		}
		each(&h, off, r, n)
		off += n
	}
	return h, nil
}

// decoder reads varints off a byte slice; ok turns false at the first that is
// not there, and everything after reads as zero.
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

// index is that of the next line of a table that has them; next is the one that
// would follow on.
func (d *decoder) index(next uint32) uint32 {
	// Where services are mixed the next record is seldom far.
	if len(d.rest) > 0 && d.rest[0] < 0x80 {
		v := uint32(d.rest[0])
		d.rest = d.rest[1:]
		return next + (v>>1 ^ -(v & 1))
	}
	return next + uint32(d.varint())
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.rest, d.ok = nil, false
		return 0
	}
	d.rest = d.rest[n:]
	return v
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

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func mod(a, b int64) int64 { return a - floorDiv(a, b)*b }
