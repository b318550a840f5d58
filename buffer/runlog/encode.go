package runlog

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"slices"
	"time"

	"blobtail/record"
)

// Flags of a run.
const (
	ownOrigin = 1 << 0 // else its place in the log is its origin
	hasPlaces = 1 << 1 // its table has the indexes of its lines, which are not consecutive
)

// Written is a run that was just encoded.
type Written struct {
	Bin
	Off     int // in the payload
	Len     int
	Records int
	Bytes   int64 // of its lines
	Span    Span
	at      int // its first line in Encoder.order
}

// Encoder turns a request into the payload of one runs record. Only one goroutine
// may use it at a time; it is reused. The fields hold the result of the last
// request, until the next one.
type Encoder struct {
	Payload []byte
	Runs    []Written
	LeftOut LeftOut

	period  time.Duration
	expired func(service string, period time.Time) bool
	order   []uint32 // numbers of lines: run after run, with the expired ones in between
	starts  []uint32 // the start of each service in order
}

// NewEncoder returns an encoder for a length of periods. expired reports whether the
// period of a service has been dropped; nil: none has.
func NewEncoder(period time.Duration, expired func(service string, period time.Time) bool) *Encoder {
	return &Encoder{period: period, expired: expired}
}

// LeftOut is the part of a request that its record omits, because it has expired.
type LeftOut struct {
	Records int
	Bytes   int64
	Expired int // the records that an answer reports: without [record.RejectedService]
}

func (l *LeftOut) add(r *record.Request, b Bin, group []uint32) {
	l.Records += len(group)
	if b.Service != record.RejectedService {
		l.Expired += len(group)
	}
	for _, g := range group {
		l.Bytes += int64(r.Lines[g].Len)
	}
}

// Lines returns the indexes of a run's lines in the request, in the run's order.
func (e *Encoder) Lines(w *Written) []uint32 { return e.order[w.at:][:w.Records:w.Records] }

// Encode groups the lines of r by service and period and sorts each group by time,
// equal times in the order of the input. The index of a record is its place in the
// body, so neither periods nor omitted records change it.
func (e *Encoder) Encode(r *record.Request, arrived time.Time) {
	e.Payload = appendHead(e.Payload[:0], &Head{r.Origin, r.Sum, r.Reply, r.Outcome, r.DefaultTime, arrived.UnixMilli()})
	e.Runs, e.LeftOut = e.Runs[:0], LeftOut{}
	minutes := int64(e.period / time.Minute)
	e.sortByService(r)
	for s := range r.Services {
		if s%64 == 63 {
			runtime.Gosched() // a request may have thousands, and others wait
		}
		group := e.order[e.starts[s]:e.starts[s+1]]
		if len(group) == 0 {
			continue
		}
		sortByTime(group, r.Lines)
		for at := int(e.starts[s]); len(group) > 0; {
			start := periodOf(r.Lines[group[0]].Time, e.period)
			end := (start + minutes) * int64(time.Minute)
			n, next, places := 1, r.Index(group[0]), false
			for n < len(group) && r.Lines[group[n]].Time < end {
				next++
				places = places || r.Index(group[n]) != next
				n++
			}
			if b := (Bin{r.Services[s], start}); e.expired != nil && e.expired(b.Service, b.Start()) {
				e.LeftOut.add(r, b, group[:n])
			} else {
				e.addRun(r, b, places, at, group[:n])
			}
			at += n
			group = group[n:]
		}
	}
}

// sortByService is a counting sort: it fills e.order with the numbers of the lines,
// each service together and in the order of the input.
func (e *Encoder) sortByService(r *record.Request) {
	e.starts = append(e.starts[:0], make([]uint32, len(r.Services)+1)...)
	for i := range r.Lines {
		e.starts[r.Lines[i].Service+1]++
	}
	for s := 1; s < len(e.starts); s++ {
		e.starts[s] += e.starts[s-1]
	}
	e.order = slices.Grow(e.order[:0], len(r.Lines))[:len(r.Lines)]
	next := slices.Clone(e.starts)
	for i := range r.Lines {
		s := r.Lines[i].Service
		e.order[next[s]] = uint32(i)
		next[s]++
	}
}

// sortByTime is stable. Shippers send nearly sorted lines, so insertion needs a step or
// two for each. If it needs many, a real sort takes over.
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
			slices.SortStableFunc(group, func(a, b uint32) int { return cmp.Compare(lines[a].Time, lines[b].Time) })
			return
		}
	}
}

// addRun appends one run: CRC, length, header, a table with a row for each line,
// lines.
func (e *Encoder) addRun(r *record.Request, b Bin, places bool, at int, group []uint32) {
	off := len(e.Payload)
	t0, first := r.Lines[group[0]].Time, r.Index(group[0])
	p := append(e.Payload, make([]byte, runHead)...)
	p = appendRunOrigin(p, r.Origin, off, places)
	p = appendRunBin(p, b, first, len(group), t0)
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
	e.Payload = sealRun(p, off)
	e.Runs = append(e.Runs, Written{b, off, len(p) - off, len(group), bytes, Span{t0, last}, at})
}

// runHead is the length of a run's fixed part: CRC-32C of all that follows it,
// and the number of bytes that follow both.
const runHead = 8

// appendRunOrigin appends the origin of a run. If the origin is the place of its record,
// it appends the distance of the run from the start of that record instead.
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

// appendRow appends a line's distance in time from the one before, and its length.
func appendRow(p []byte, after int64, n int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(p, uint64(after)), uint64(n))
}

// appendPlace appends a line's index, as its difference from the next in order.
func appendPlace(p []byte, index, next uint32) []byte {
	return binary.AppendVarint(p, int64(index)-int64(next))
}

// appendRunBin appends the rest of a run's header.
func appendRunBin(p []byte, b Bin, first uint32, records int, t0 int64) []byte {
	p = binary.AppendUvarint(p, uint64(len(b.Service)))
	p = append(p, b.Service...)
	p = binary.AppendVarint(p, b.Period)
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
