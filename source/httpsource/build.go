package httpsource

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/zeebo/xxh3"

	"blobtail/record"
)

const (
	// partSize is where a body is cut, at the end of the record that reaches it.
	// Every ingester must cut alike, so that a retry at another has the same
	// identity.
	partSize = 8 << 20
	// partRecords cuts a part earlier: the canonical line of a record of two bytes
	// has a hundred.
	partRecords = 100_000
	maxErrors   = 100
)

// identity is what names a request and its records. All of it is fixed before
// the body is decoded.
type identity struct {
	client   string // "" as long as clients are not told apart
	path     string
	key      string
	dedupe   Dedupe
	defaults record.Defaults
	latest   int64  // records may not be later
	source   string // for rejected lines; nothing that differs on a retry
}

// A builder is the sink that makes requests of a body: lines in their canonical
// form, gathered until the part is full, then appended. Nothing is allocated
// for a record; the memory of one part serves the next.
type builder struct {
	identity
	ctx  context.Context
	s    *Source
	hold *hold
	held int // bytes of hold that the body has
	own  int // bytes of hold for lines

	parser   *record.Parser
	hash     *xxh3.Hasher
	body     []byte
	longest  int // bytes of a record, as it came
	services map[string]uint32
	last     uint32 // service of the line before

	// Of this part.
	req      record.Request
	from     int // where it begins in body
	part     int
	rejected []reject
	accepted int
	owned    int // accepted records that carry their own time

	earliest, earliestOwn int64 // times; the second among the owned

	// Of the whole body.
	answer     answer
	syntax     int // rejected, not even well formed
	duplicates int // parts
	receipts   []record.Receipt
	patience   time.Time // when to give up on a full log
	err        error
}

// A reject waits for the end of its part, whose earliest record gives it its time.
type reject struct {
	raw    []byte
	reason string
	index  int
}

func newBuilder() *builder {
	return &builder{parser: record.NewParser(), services: make(map[string]uint32), hash: xxh3.New()}
}

// begin takes a decoded body, counted in h already, and counts what its lines
// are likely to need.
func (b *builder) begin(ctx context.Context, s *Source, h *hold, body []byte, id identity) error {
	b.identity, b.ctx, b.s, b.hold, b.body = id, ctx, s, h, body
	b.held = int(max(h.n, int64(len(body))))
	b.own = min(len(body), partSize)/4*5 + 4<<10
	return h.atLeast(int64(b.held + b.own))
}

func (b *builder) scan(src []byte) (int, error) { return b.parser.Scan(src) }

func (b *builder) object(raw []byte, end int) bool {
	data, stamp := b.parser.AppendLine(b.req.Data, b.defaults)
	return b.line(data, &stamp, raw, end)
}

func (b *builder) text(raw []byte, end int) bool {
	data, stamp := b.parser.AppendText(b.req.Data, raw, b.defaults)
	return b.line(data, &stamp, raw, end)
}

// line takes the canonical line that data has more than b.req.Data.
func (b *builder) line(data []byte, stamp *record.Stamp, raw []byte, end int) bool {
	b.longest = max(b.longest, len(raw))
	if stamp.Time > b.latest {
		return b.reject(raw, rejection{reason: fmt.Sprintf("time %s is more than 24h ahead of this host's clock",
			record.AppendTime(nil, stamp.Time))}, end)
	}
	b.add(data, stamp.Time, stamp.Service)
	if stamp.OwnTime {
		if b.owned == 0 || stamp.Time < b.earliestOwn {
			b.earliestOwn = stamp.Time
		}
		b.owned++
	}
	if b.accepted == 0 || stamp.Time < b.earliest {
		b.earliest = stamp.Time
	}
	b.accepted++
	return b.cut(end)
}

func (b *builder) add(data []byte, t int64, service string) {
	off := len(b.req.Data)
	b.req.Data = data
	b.req.Lines = append(b.req.Lines, record.Line{
		Time: t, Off: uint32(off), Len: uint32(len(data) - off), Service: b.service(service)})
}

// service returns the number of a service in this part.
func (b *builder) service(name string) uint32 {
	if len(b.req.Services) > 0 && b.req.Services[b.last] == name {
		return b.last
	}
	// Most bodies have a few services, whose names are the same strings each time:
	// comparing those is quicker than hashing one.
	if len(b.req.Services) <= 16 {
		for i, s := range b.req.Services {
			if s == name {
				b.last = uint32(i)
				return b.last
			}
		}
	}
	n, ok := b.services[name]
	if !ok {
		n = uint32(len(b.req.Services))
		b.req.Services = append(b.req.Services, name)
		b.services[name] = n
	}
	b.last = n
	return n
}

func (b *builder) reject(raw []byte, why rejection, end int) bool {
	index := b.answer.Accepted + b.accepted + b.answer.Rejected + len(b.rejected)
	if why.syntax {
		b.syntax++
	}
	if len(b.answer.Errors) < maxErrors {
		b.answer.Errors = append(b.answer.Errors, lineError{Index: index, Reason: short(why.reason)})
	}
	b.longest = max(b.longest, len(raw))
	b.rejected = append(b.rejected, reject{raw: raw, reason: why.reason, index: index})
	return b.cut(end)
}

// cut ends the part where it is full, and sees that its memory is counted.
func (b *builder) cut(end int) bool {
	records := b.accepted + len(b.rejected)
	if end-b.from >= partSize || records >= partRecords {
		return b.flush(end)
	}
	return b.count(records)
}

// count counts lines that take more than was foreseen.
func (b *builder) count(records int) bool {
	const perLine = int(unsafe.Sizeof(record.Line{}))
	if need := len(b.req.Data) + perLine*records; need > b.own {
		b.own = need / 4 * 5
		b.err = b.hold.atLeast(int64(b.held + b.own))
	}
	return b.err == nil
}

// end takes the last part. Of an empty body there is none.
func (b *builder) end() error {
	if b.err == nil {
		b.flush(len(b.body))
	}
	if b.err != nil {
		return b.err
	}
	a := &b.answer
	a.Duplicate = b.part > 0 && b.duplicates == b.part
	if a.Accepted == 0 && a.Rejected > 0 && b.syntax == a.Rejected {
		a.Error = "nothing in the body could be read; its lines are kept in the service " + record.RejectedService
	}
	return nil
}

// flush appends the part of the body that ends before end.
func (b *builder) flush(end int) bool {
	if len(b.req.Lines)+len(b.rejected) == 0 {
		return true
	}
	part := b.body[b.from:end]
	b.origin(part)
	if !b.addRejected() {
		return false
	}
	receipt, err := b.append()
	if err != nil {
		b.err = err
		return false
	}
	if len(b.rejected) > 0 {
		b.s.logRejects(b.source, b.rejected)
	}
	b.receipts = append(b.receipts, receipt)
	b.s.metrics.part(receipt.Duplicate, b.accepted, len(b.rejected))
	if receipt.Duplicate {
		b.duplicates++
	}
	b.answer.Accepted += b.accepted
	b.answer.Rejected += len(b.rejected)
	b.part++
	b.from = end
	b.clearPart()
	return true
}

// origin gives the part its identity: see the page on the commit protocol.
func (b *builder) origin(part []byte) {
	b.req.Origin, b.req.Sum = record.Origin{}, 0
	timed := b.owned == b.accepted && b.accepted > 0
	switch {
	case b.dedupe == DedupeOff:
	case b.key != "":
		b.req.Origin = record.KeyOrigin(b.client, b.key, b.part, b.earliestOwn, b.owned > 0)
		b.req.Sum = b.sum(part)
	case b.dedupe == DedupeBody && timed && (b.accepted > 1 || b.earliest%int64(time.Second) != 0):
		b.req.Origin = record.BodyOrigin(b.client, b.path, b.part, part, b.earliest)
	}
}

// sum tells apart what came with the same key, by its path too: the same body sent
// to another service is not the same records.
func (b *builder) sum(part []byte) uint64 {
	b.hash.Reset()
	// A hash takes whatever it is given.
	_, _ = b.hash.WriteString(b.path)
	_, _ = b.hash.WriteString("\x00")
	_, _ = b.hash.Write(part)
	return max(b.hash.Sum64(), 1)
}

// addRejected adds the rejected lines, with the time of the earliest accepted one
// so that a retry gives the same.
func (b *builder) addRejected() bool {
	t := b.defaults.Time
	if b.accepted > 0 {
		t = b.earliest
	}
	for i := range b.rejected {
		r := &b.rejected[i]
		b.add(record.AppendRejected(b.req.Data, record.Rejected{
			Raw: r.raw, Reason: r.reason, Source: b.source, Line: r.index, Time: t, Service: b.defaults.Service,
		}), t, record.RejectedService)
		if !b.count(len(b.req.Lines)) {
			return false
		}
	}
	return true
}

// append hands the part over. A full log slows the request down first: many
// clients drop what is answered 429.
func (b *builder) append() (record.Receipt, error) {
	const first, longest = 20 * time.Millisecond, 500 * time.Millisecond
	for wait := first; ; wait = min(2*wait, longest) {
		receipt, err := b.s.accept.Accept(b.ctx, &b.req)
		if err == nil || !errors.Is(err, record.ErrFull) {
			return receipt, err
		}
		now := time.Now()
		if b.patience.IsZero() {
			b.patience = now.Add(b.s.patience)
		}
		if !now.Before(b.patience) {
			return receipt, err
		}
		select {
		case <-time.After(min(wait, b.patience.Sub(now))):
		case <-b.ctx.Done():
			return receipt, b.ctx.Err()
		}
	}
}

func (b *builder) clearPart() {
	b.req.Lines, b.req.Data = b.req.Lines[:0], b.req.Data[:0]
	clear(b.req.Services)
	b.req.Services = b.req.Services[:0]
	clear(b.services)
	clear(b.rejected)
	b.rejected = b.rejected[:0]
	b.last, b.accepted, b.owned, b.earliest, b.earliestOwn = 0, 0, 0, 0, 0
}

// forget makes the builder ready for another request and lets go of memory that
// few requests need.
func (b *builder) forget() {
	const keptLines, keptServices, usual = 32 << 10, 1 << 10, 64 << 10
	if len(b.body) > maxKept || b.longest > usual {
		// The parser holds on to what it scanned last, and to what that took.
		_, _ = b.parser.Scan(nil)
	}
	b.clearPart()
	*b = builder{parser: b.parser, hash: b.hash, services: b.services, req: b.req, rejected: b.rejected}
	if cap(b.req.Data) > maxKept {
		b.req.Data = nil
	}
	if cap(b.req.Lines) > keptLines {
		b.req.Lines = nil
	}
	if cap(b.rejected) > keptServices {
		b.rejected = nil
	}
	if cap(b.req.Services) > keptServices {
		b.req.Services = nil
		b.services = make(map[string]uint32)
	}
}
