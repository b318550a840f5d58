package httpsource

import (
	"context"
	"errors"
	"time"
	"unsafe"

	"blobtail/record"
	"blobtail/source/body"
)

const (
	// partSize is the size at which a body is cut, at the end of the record that
	// reaches it. All ingesters must cut alike, so that a retry at another has the same
	// identity.
	partSize = 8 << 20
	// partRecords cuts a part earlier: the canonical line of a record of two bytes has
	// a hundred bytes.
	partRecords = 100_000
	maxErrors   = 100
)

// identity names a request and its origin. All of it is fixed before the body is
// decoded.
type identity struct {
	client string // "" as long as clients are not distinguished
	sender string // the address that the body came from, without the port
	path   string
	key    string
	dedupe Dedupe
}

// A builder is the sink that makes requests of a body: canonical lines, gathered
// until the part is full, then appended. It allocates no memory for a single record;
// the memory of one part serves the next.
type builder struct {
	*body.Gatherer // this part's
	identity
	ctx  context.Context
	s    *Source
	hold *hold
	held int // bytes of hold for the body
	own  int // bytes of hold for lines

	body []byte
	from int // offset of the part in body
	part int
	past int // places of the parts before it

	// Of the whole body.
	answer     answer
	syntax     int // rejected, not even well formed
	duplicates int // parts
	receipts   []record.Receipt
	patience   time.Time // when to give up on a full log
	err        error
}

func newBuilder() *builder { return &builder{Gatherer: body.NewGatherer()} }

// begin accepts a decoded body, which is counted in h already, and counts the memory
// that its lines are likely to need.
func (b *builder) begin(ctx context.Context, s *Source, h *hold, decoded []byte, id identity) error {
	b.identity, b.ctx, b.s, b.hold, b.body = id, ctx, s, h, decoded
	b.held = int(max(h.n, int64(len(decoded))))
	b.own = min(len(decoded), partSize)/4*5 + 4<<10
	return h.atLeast(int64(b.held + b.own))
}

// Object accepts the object scanned last.
func (b *builder) Object(raw []byte, end int) bool {
	if why, ok := b.Gatherer.Object(raw); !ok {
		return b.Reject(raw, why, end)
	}
	return b.cut(end)
}

// Record accepts the record begun last.
func (b *builder) Record(raw []byte, end int) bool {
	if why, ok := b.Gatherer.Record(raw); !ok {
		return b.Reject(raw, why, end)
	}
	return b.cut(end)
}

// Reject accepts an invalid record.
func (b *builder) Reject(raw []byte, why body.Rejection, end int) bool {
	index := b.past + b.Places
	if why.Syntax {
		b.syntax++
	}
	if len(b.answer.Errors) < maxErrors {
		b.answer.Errors = append(b.answer.Errors, lineError{Index: index, Reason: body.Short(why.Reason)})
	}
	b.Gatherer.Reject(body.Rejected{Raw: raw, Reason: why.Reason, Index: index, Line: why.Line})
	return b.cut(end)
}

// cut ends the part if it is full, and makes sure that its memory is counted.
func (b *builder) cut(end int) bool {
	if end-b.from >= partSize || b.Places >= partRecords {
		return b.flush(end)
	}
	return b.count(b.Accepted + len(b.Rejected))
}

// count counts lines that take more memory than estimated.
func (b *builder) count(records int) bool {
	const perLine = int(unsafe.Sizeof(record.Line{}))
	if need := len(b.Req.Data) + perLine*records; need > b.own {
		b.own = need / 4 * 5
		b.err = b.hold.atLeast(int64(b.held + b.own))
	}
	return b.err == nil
}

func (b *builder) countLines() error {
	b.count(len(b.Req.Lines))
	return b.err
}

// end flushes the last part. An empty body has none.
func (b *builder) end() error {
	if b.err == nil {
		b.flush(len(b.body))
	}
	if b.err != nil {
		return b.err
	}
	a := &b.answer
	a.Duplicate = b.part > 0 && b.duplicates == b.part
	if a.Accepted+a.Expired == 0 && a.Rejected > 0 && b.syntax == a.Rejected {
		a.Error = "nothing in the body could be read; its lines are kept in the service " + record.RejectedService
	}
	return nil
}

// flush appends the part of the body that ends before end.
func (b *builder) flush(end int) bool {
	if len(b.Req.Lines)+len(b.Rejected) == 0 {
		return true
	}
	part := b.body[b.from:end]
	b.origin(part)
	if b.err = b.AddRejected(b.countLines); b.err != nil {
		return false
	}
	receipt, err := b.append()
	if err != nil {
		b.err = err
		return false
	}
	if len(b.Rejected) > 0 {
		b.s.logRejects(b.Source, b.Rejected)
	}
	b.receipts = append(b.receipts, receipt)
	b.s.metrics.part(receipt.Duplicate, b.Accepted-receipt.Expired, len(b.Rejected))
	if receipt.Duplicate {
		b.duplicates++
	}
	b.answer.Accepted += b.Accepted - receipt.Expired
	b.answer.Expired += receipt.Expired
	b.answer.Rejected += len(b.Rejected)
	b.part++
	b.past += b.Places
	b.from = end
	b.Clear()
	return true
}

// origin gives the part its identity, for recognising copies. The identity does not
// depend on the number of accepted records.
func (b *builder) origin(part []byte) {
	b.Req.Origin, b.Req.Sum, b.Req.Outcome, b.Req.DefaultTime = record.Origin{}, 0, record.Outcome{}, 0
	timed := b.Owned == b.Accepted && b.Accepted > 0
	switch {
	case b.dedupe == DedupeOff:
	case b.key != "":
		b.Req.Origin = record.KeyOrigin(b.client, b.key, b.part, b.EarliestOwn, b.AnyOwn)
		b.Req.Sum = b.Sum(b.path, part)
		b.Req.DefaultTime = b.Defaults.Time
	case b.dedupe == DedupeBody && timed && (b.Found > 1 || b.EarliestOwn%int64(time.Second) != 0):
		b.Req.Origin = record.BodyOrigin(b.sender, b.path, b.part, part, b.EarliestOwn)
	}
	if !b.Req.Origin.IsZero() {
		b.Req.Outcome = b.Outcome()
	}
}

// asBefore gives the part the times and the origin that it had at the first attempt.
func (b *builder) asBefore(first *record.EarlierError) error {
	b.Retime(first.DefaultTime)
	b.Req.Origin, b.Req.DefaultTime, b.Req.Outcome = first.Origin, first.DefaultTime, b.Outcome()
	return b.AddRejected(b.countLines)
}

// append appends the part to the log. A full log slows the request down first: many
// clients drop records after an answer of 429.
func (b *builder) append() (record.Receipt, error) {
	const first, longest = 20 * time.Millisecond, 500 * time.Millisecond
	for wait := first; ; wait = min(2*wait, longest) {
		receipt, err := b.s.accept.Accept(b.ctx, &b.Req)
		if err == nil {
			return receipt, nil
		}
		if e := (*record.EarlierError)(nil); errors.As(err, &e) {
			if err = b.asBefore(e); err != nil {
				return receipt, err
			}
			continue
		}
		if !errors.Is(err, record.ErrFull) {
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

// forget makes the builder ready for another request and releases memory that few
// requests need.
func (b *builder) forget() {
	b.Gatherer.Forget(len(b.body) > maxKept)
	*b = builder{Gatherer: b.Gatherer}
}
