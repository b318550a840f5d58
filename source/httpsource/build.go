package httpsource

import (
	"errors"
	"net"
	"net/http"
	"runtime"
	"time"
	"unsafe"

	"blobtail/record"
	"blobtail/record/origin"
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
	// partLines cuts a part earlier still: a protocol may have labels once for many records.
	partLines = 32 << 20
	// fairLines is how many times the bytes of its body the lines of a body may have, beyond
	// freeLines. The rest is charged to the sender.
	fairLines, freeLines = 8, 1 << 20
	// yieldEvery is after how many records a body lets others run. Go interrupts it every 10 ms
	// only, and a small request is handled in a hundredth of that.
	yieldEvery = 64
	maxErrors  = 100
)

// A builder makes requests of a body: canonical lines, gathered until the part is full,
// then appended. It allocates no memory for a single record; the memory of one part
// serves the next.
type builder struct {
	*body.Gatherer // this part's
	s              *Source
	request        *http.Request
	sender         string // that equal bodies are compared for
	key            string // "" if none is used
	scope          string // of the intake
	hold           *hold
	held           int // bytes of hold for the body

	// fits returns an error if the body has too many lines. It is asked before the first of several
	// parts is appended, because nothing of such a body may be kept. Nil: it has any number.
	fits func() error
	body []byte
	from int // offset of the part in body
	part int

	// Of the whole body.
	answer     Result
	broken     int // rejected, not even well formed
	denied     int // rejected, because the sender may not send them
	duplicates int // parts
	made       int // bytes of lines
	receipts   []record.Receipt
	patience   time.Time // when to give up on a full log
	err        error

	id *partID // of the part of a stream, nil for a body
}

// begin accepts a decoded body, which is counted in h already, and counts the memory
// that its lines are likely to need.
func (b *builder) begin(s *Source, r *http.Request, in Intake, who Sender, h *hold, decoded []byte) error {
	b.s, b.request, b.hold, b.body, b.scope, b.answer.asked = s, r, h, decoded, in.Scope, in.ack
	if s.o.Dedupe != DedupeOff {
		b.key = in.key
	}
	b.After, b.Watch = b.cut, s.o.Watch
	b.sender = senderOf(r)
	a := s.arrival(r, in, who, b.key)
	if who != nil {
		b.sender = a.Client + " " + b.sender
	}
	b.Arrive(a)
	b.held = int(max(h.n, int64(len(decoded))))
	return h.atLeast(int64(b.held + min(len(decoded), partSize)/4*5 + 4<<10))
}

// arrival is that of a request's body.
func (s *Source) arrival(r *http.Request, in Intake, who Sender, key string) body.Arrival {
	a := body.Arrival{
		Source: "http " + r.Method + " " + body.Short(r.URL.Path), Service: in.Service,
		Time: s.o.Now().UnixNano(), Clock: "this host's clock", Key: key, Fields: in.fields,
	}
	a.Allow = s.allow(who)
	if who != nil {
		a.Client = who.ID()
	}
	return a
}

// fits returns an error if a body has too many lines, and their bytes.
func (s *Source) fits(r *http.Request, in Intake, who Sender, text []byte) (made int, err error) {
	g := body.NewGatherer()
	g.Arrive(s.arrival(r, in, who, ""))
	return in.Form.Fits(text, g)
}

// cut ends the part if it is full, and makes sure that its memory is counted.
func (b *builder) cut(end int) bool {
	if end-b.from >= partSize || b.Places >= partRecords || b.Made >= partLines {
		return b.flush(end)
	}
	return b.count(b.Accepted + len(b.Rejected))
}

// count counts lines that take more memory than estimated.
func (b *builder) count(records int) bool {
	if records%yieldEvery == 0 {
		runtime.Gosched()
	}
	const perLine = int(unsafe.Sizeof(record.Line{}))
	if need := len(b.Req.Data) + perLine*records; int64(b.held+need) > b.hold.n {
		b.err = b.hold.atLeast(int64(b.held + need/4*5))
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
	a.forbidden = b.forbidden()
	a.Duplicate = b.part > 0 && b.duplicates == b.part
	if a.Accepted+a.Expired == 0 && a.Rejected > 0 && b.broken == a.Rejected {
		a.Error = "nothing in the body could be read; its lines are kept in the service " + record.RejectedService
	}
	return nil
}

// flush appends the part of the body that ends before end.
func (b *builder) flush(end int) bool {
	if len(b.Req.Lines)+len(b.Rejected) == 0 {
		return true
	}
	if b.part == 0 && end < len(b.body) && b.fits != nil {
		if b.err = b.fits(); b.err != nil {
			return false
		}
	}
	b.origin(b.body[b.from:end])
	if b.err = b.AddRejected(b.countLines); b.err != nil {
		return false
	}
	if b.err = b.s.o.Away(b.Req.Services, b.answer.asked); b.err != nil {
		return false
	}
	receipt, err := b.append()
	if err != nil {
		b.err = err
		return false
	}
	b.receipts = append(b.receipts, receipt)
	b.report(receipt)
	b.part++
	b.made += b.Made
	b.Past += b.Places
	b.from = end
	b.Clear()
	return true
}

// report reports a part that was appended to the client, the operator and the log.
func (b *builder) report(r record.Receipt) {
	accepted, rejected, mt := b.Accepted-r.Expired, len(b.Rejected), b.s.metrics
	if r.Duplicate {
		b.duplicates++
		mt.duplicates.Add(int64(accepted + rejected))
	} else {
		mt.accepted.Add(int64(accepted))
		mt.rejected.Add(int64(rejected))
	}
	b.answer.Accepted += accepted
	b.answer.Expired += r.Expired
	b.answer.Rejected += rejected
	b.answer.lines += b.Accepted
	b.answer.lacks.Add(b.Lacks)
	b.broken += b.Broken
	b.denied += b.Forbidden
	for i := 0; i < rejected && len(b.answer.Errors) < maxErrors; i++ {
		bad := &b.Rejected[i]
		b.answer.Errors = append(b.answer.Errors, LineError{Index: bad.Index, Reason: body.Short(bad.Reason)})
	}
	if rejected > 0 {
		bad := &b.Rejected[0]
		b.s.rejects.Warn().Str("source", b.Source()).Int("rejected", rejected).Int("index", bad.Index).
			Str("reason", body.Short(bad.Reason)).Msg("records rejected")
	}
}

// origin gives the part its identity, for recognising copies. The identity does not
// depend on the number of accepted records.
func (b *builder) origin(part []byte) {
	path := b.request.URL.Path
	if b.scope != "" {
		path += "?" + b.scope
	}
	timed := b.Owned == b.Accepted && b.Accepted > 0
	b.Identify(record.Origin{})
	switch {
	case b.id != nil:
		if timed && b.s.o.Dedupe == DedupeBody {
			b.Req.Origin = origin.OfBody(b.sender, path, 0, b.id.record, b.id.time)
			b.Req.Outcome = b.OutcomeOfLines()
		}
	case b.key != "":
		b.IdentifyByKey(path, b.part, part)
	case b.s.o.Dedupe == DedupeBody && timed && (b.Found > 1 || b.EarliestOwn%int64(time.Second) != 0):
		b.Req.Origin = origin.OfBody(b.sender, path, b.part, part, b.EarliestOwn)
		b.Req.Outcome = b.Outcome()
	}
}

// append appends the part to the log. A full log slows the request down first: many
// clients drop records after an answer of 429.
func (b *builder) append() (record.Receipt, error) {
	const first, longest = 20 * time.Millisecond, 500 * time.Millisecond
	ctx := b.request.Context()
	for wait := first; ; wait = min(2*wait, longest) {
		receipt, err := b.Append(ctx, b.s.o.Accept, b.countLines)
		if err == nil || !errors.Is(err, record.ErrFull) {
			return receipt, err
		}
		now := time.Now()
		if b.patience.IsZero() {
			b.patience = now.Add(b.s.o.Patience)
			if b.id != nil {
				b.patience = now.Add(streamPatience)
			}
		}
		if !now.Before(b.patience) {
			return receipt, err
		}
		select {
		case <-time.After(min(wait, b.patience.Sub(now))):
		case <-ctx.Done():
			return receipt, ctx.Err()
		}
	}
}

// forget makes the builder ready for another request and releases memory that few
// requests need.
func (b *builder) forget() {
	b.Gatherer.Forget(len(b.body) > maxKept)
	*b = builder{Gatherer: b.Gatherer}
}

// senderOf is the address that a request came from, without the port.
func senderOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
