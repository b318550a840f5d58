package natssource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"blobtail/record"
	"blobtail/record/origin"
	"blobtail/source/body"
)

const (
	// pullBytes and pullMessages limit a pull, and allBytes those of all queues: so the data
	// that the server has to send us at once.
	pullBytes    = 8 << 20
	allBytes     = 32 << 20
	pullMessages = 4096
	pullExpires  = 30 * time.Second
	pullBeat     = 5 * time.Second // how often the server confirms that it still knows a pull
	// readers is how many messages of all queues are decoded at once: one of a MiB may be a hundred
	// without its compression.
	readers = 4
)

// A puller pulls the messages of a queue. It belongs to Run.
type puller struct {
	s       *Source
	accept  body.Accepter
	readers chan *reader // those of all queues that are not in use
	reader  *reader      // in use here
	inbox   string       // subject for messages, up to the number of the pull
	pulls   uint64
	request string         // subject of pulls
	arrived chan *nats.Msg // never full: there is one pull at a time, or few
	waiting []*nats.Msg    // arrived and not handled yet
	created time.Time      // of the pulled stream
	last    uint64         // delivery number of the consumer
	anew    bool           // the waiting messages are from a consumer that began anew
	sure    bool           // the consumer was right when it was last looked at
	log     zerolog.Logger // logs the same message at most once a second
}

// Run pulls messages and passes them to accept until ctx ends. Messages that were
// pulled and not accepted go back to the server. accept must not wait for a blob. Messages wait
// in the stream while it has an error that may pass: [record.ErrFull], [record.ErrUnheld], or one
// of the operating system, as of a disk. Another error, as that of a closed log, ends Run.
func (s *Source) Run(ctx context.Context, accept body.Accepter) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s.pulling.Store(true)
	var pullers sync.WaitGroup
	free := make(chan *reader, readers)
	for range readers {
		free <- newReader(s.o.Fields, s.o.Allow)
	}
	begun := map[string]bool{} // a queue that is not taken any more gets no new messages
	for ctx.Err() == nil {
		for _, q := range s.queuesNow() {
			if begun[q.consumer] {
				continue
			}
			begun[q.consumer] = true
			pullers.Go(func() {
				if err := s.pullFrom(ctx, q, accept, free); err != nil {
					end(err)
				}
			})
		}
		select {
		case <-s.more:
		case <-ctx.Done():
		}
	}
	pullers.Wait()
	s.pulling.Store(false)
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// queuesNow are the queues that the last good look found.
func (s *Source) queuesNow() []queue {
	if q := s.taken.Load(); q != nil {
		return *q
	}
	return nil
}

// pullFrom pulls the messages of a queue until ctx ends.
func (s *Source) pullFrom(ctx context.Context, q queue, accept body.Accepter, free chan *reader) error {
	p := &puller{
		s: s, accept: accept, readers: free,
		inbox:   s.conn.NewInbox() + ".",
		request: fmt.Sprintf("$JS.API.CONSUMER.MSG.NEXT.%s.%s", s.o.Stream, q.consumer),
		arrived: make(chan *nats.Msg, 4*pullMessages),
		log:     s.o.Log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Second}),
	}
	sub, err := s.conn.ChanSubscribe(p.inbox+"*", p.arrived)
	if err != nil {
		return fmt.Errorf("subscribe to messages: %w", err)
	}
	defer p.giveBack(sub)
	whole := true
	for {
		created, shut, err := s.ledger.pass(ctx)
		if err != nil {
			return nil
		}
		if s.ledger.len() >= cmp.Or(s.o.most, maxAckPending) {
			p.gather()
			pause(ctx, min(p.longest(), 100*time.Millisecond))
			continue
		}
		if !p.sure && !p.meet(ctx, q) {
			continue
		}
		if err = p.leave(ctx, created); err == nil {
			whole, err = p.pull(ctx, shut, whole)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// meet looks at the consumer of the queue, before its first pull and after a doubt, and reports
// whether it can be pulled from. Other queues do not wait for it.
func (p *puller) meet(ctx context.Context, q queue) bool {
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	_, err := p.s.ensureConsumer(limited, p.s.stream.Load(), q)
	if p.sure = err == nil; !p.sure { // the log has it from the next look at all consumers
		p.gather()
		pause(ctx, lookAgain)
	}
	return p.sure
}

// doubt has the stream and the consumer looked at before the next pull of this queue.
func (p *puller) doubt() {
	p.sure = false
	p.s.ledger.doubt()
}

// leave switches to the stream created then. Messages of the previous one that arrived while the
// log was full are stored under their old identity; no other process has them.
func (p *puller) leave(ctx context.Context, created time.Time) error {
	anew := p.anew
	p.anew = false
	if p.created.Equal(created) {
		return nil
	}
	p.gather()
	for !anew && len(p.waiting) > 0 {
		m := p.waiting[0]
		pl, ok := placeOf(m.Reply)
		if ok && pl.delivery <= p.last {
			break // of the new one's consumer
		}
		p.waiting = p.waiting[1:]
		if !ok {
			continue
		}
		p.last = pl.delivery
		if err := p.take(ctx, m, pl); err != nil {
			p.putBack(m)
			return err
		}
	}
	p.created, p.last = created, 0
	return nil
}

// pull requests messages and handles them. With bounded unset it requests a single
// message of any size; again is the value for the next call.
func (p *puller) pull(ctx context.Context, shut chan struct{}, bounded bool) (again bool, err error) {
	p.pulls++
	inbox := p.inbox + strconv.FormatUint(p.pulls, 10)
	left, bytes := 1, 0
	if bounded {
		left, bytes = pullMessages, min(pullBytes, allBytes/max(1, len(p.s.queuesNow())))
	}
	ask := fmt.Appendf(nil, `{"batch":%d,"max_bytes":%d,"expires":%d,"idle_heartbeat":%d}`, left, bytes, pullExpires, pullBeat)
	if p.s.conn.PublishRequest(p.request, inbox, ask) != nil {
		p.s.doubt() // the connection was just lost
		return bounded, nil
	}
	for first := true; left > 0 && (!bounded || bytes > 0); {
		m, err := p.next(ctx, shut)
		if err != nil || m == nil {
			return true, err
		}
		if pl, ok := placeOf(m.Reply); ok {
			if pl.delivery <= p.last {
				// The consumer has changed, so the stream may have changed too: check first.
				p.last, p.anew = 0, true
				p.putBack(m)
				p.doubt()
				return true, nil
			}
			p.last = pl.delivery
			first = false
			left--
			bytes -= m.Size()
			if err := p.take(ctx, m, pl); err != nil {
				p.putBack(m)
				return true, err
			}
			continue
		}
		if m.Subject != inbox || m.Header.Get("Status") == "100" {
			continue // of an earlier pull, or a sign of life
		}
		tooLarge := strings.Contains(m.Header.Get("Description"), "Exceeds MaxBytes")
		p.ended(ctx, m)
		return !(tooLarge && first), nil
	}
	return true, nil
}

// next waits for a message, or for the server's status of the pull. It returns nil
// when waiting longer is useless.
func (p *puller) next(ctx context.Context, shut chan struct{}) (*nats.Msg, error) {
	if len(p.waiting) > 0 {
		m := p.waiting[0]
		p.waiting[0] = nil
		p.waiting = p.waiting[1:]
		return m, nil
	}
	select {
	case m := <-p.arrived:
		return m, nil
	case <-time.After(2*pullBeat + time.Second): // the server is silent
		return nil, nil
	case <-shut:
		p.sure = false
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *puller) putBack(m *nats.Msg) { p.waiting = append([]*nats.Msg{m}, p.waiting...) }

// ended examines the server's reason for ending a pull.
func (p *puller) ended(ctx context.Context, m *nats.Msg) {
	status, text := m.Header.Get("Status"), m.Header.Get("Description")
	switch {
	case status == "503", strings.Contains(text, "Consumer Deleted"), strings.Contains(text, "Consumer is push"):
		p.doubt()
		pause(ctx, 100*time.Millisecond) // a new leader may have answered that does not take pulls yet
	case status == "404", status == "408", strings.Contains(text, "Exceeds MaxBytes"), strings.Contains(text, "Batch Completed"):
	default:
		p.log.Warn().Str("status", status).Str("text", text).Msg("the server ended a pull")
		pause(ctx, 100*time.Millisecond)
	}
}

// take makes a request of a message and passes it on, however long that takes.
func (p *puller) take(ctx context.Context, m *nats.Msg, pl place) error {
	mt := p.s.metrics
	if pl.delivered > 1 {
		mt.redelivered.Inc()
	}
	mt.bytes.Add(int64(len(m.Data)))
	stream := origin.OfStream(p.created, p.s.o.Stream, pl.seq)
	if p.s.ledger.delivered(p.created, pl, m.Reply, time.Now()) {
		stream = record.Origin{} // the origin is then its place in the log
	}
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, p.longest()) {
		taken, err := p.try(ctx, m, pl, stream)
		if taken || err != nil {
			return err
		}
		p.gather()
		pause(ctx, wait)
	}
}

// try makes a request of a message with a reader, and passes it on. An error ends the puller.
func (p *puller) try(ctx context.Context, m *nats.Msg, pl place, stream record.Origin) (taken bool, err error) {
	mt := p.s.metrics
	if err := p.turn(ctx); err != nil {
		return false, err
	}
	defer func() { p.readers <- p.reader }()
	req, unreadable := p.reader.request(m, pl, stream)
	if len(req.Lines) == 0 {
		mt.empty.Inc()
		p.s.Stored(m.Reply)
		return true, nil
	}
	expired, taken, err := p.hand(ctx, req, stream)
	if !taken || err != nil {
		return false, err
	}
	rejected := len(p.reader.Rejected)
	mt.accepted.Add(int64(p.reader.Accepted - expired))
	mt.rejected.Add(int64(rejected))
	if unreadable != nil {
		mt.poison.Inc()
	} else {
		mt.taken.Inc()
	}
	if rejected > 0 {
		p.log.Warn().Str("source", p.reader.Source()).Int("rejected", rejected).
			Str("reason", body.Short(p.reader.Rejected[0].Reason)).Msg("records rejected")
	}
	return true, nil
}

// turn waits for a reader. Others have them for long while the log is full.
func (p *puller) turn(ctx context.Context) error {
	for {
		select {
		case p.reader = <-p.readers:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(p.longest()):
			p.gather()
		}
	}
}

// longest is how long arrived messages may wait before they are noted.
func (p *puller) longest() time.Duration { return min(time.Second, p.s.o.AckWait/10) }

// hand passes a request to the accepter. Until that takes it, no more messages are pulled, and the
// server gets signs of life for the pulled ones. A full log is full for all, so the reader is kept
// meanwhile. Any other error may be of this message alone: then taken is unset, and other queues
// have the reader until the next try. expired is how many of the request's records are not kept.
func (p *puller) hand(ctx context.Context, req *record.Request, stream record.Origin) (expired int, taken bool, err error) {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, p.longest()) {
		receipt, err := p.reader.Append(ctx, p.accept, nil)
		switch {
		case err == nil:
			return receipt.Expired, true, nil
		case ctx.Err() != nil:
			return 0, false, ctx.Err()
		case errors.Is(err, record.ErrKeyReused) && req.Sum != 0:
			p.log.Warn().Str("source", p.reader.Source()).Msg("a Nats-Msg-Id was used for two different messages; both are kept")
			p.reader.Identify(stream)
			continue
		case !mayPass(err):
			return 0, false, fmt.Errorf("append a message of %s: %w", p.s.o.Stream, err)
		}
		p.s.metrics.full.Inc()
		p.log.Warn().Err(err).Msg("messages wait in the stream")
		if !errors.Is(err, record.ErrFull) {
			return 0, false, nil
		}
		p.gather()
		pause(ctx, wait)
	}
}

// mayPass reports whether a message may be accepted later, after an error. The owner of a log that
// has failed for good ends the process itself.
func mayPass(err error) bool {
	_, system := errors.AsType[syscall.Errno](err)
	return system || errors.Is(err, record.ErrFull) || errors.Is(err, record.ErrUnheld)
}

// gather notes the arrived messages, so that the server gets signs of life for them.
func (p *puller) gather() {
	for {
		select {
		case m := <-p.arrived:
			if pl, ok := placeOf(m.Reply); ok {
				p.s.ledger.delivered(p.created, pl, m.Reply, time.Now())
			}
			p.waiting = append(p.waiting, m)
		default:
			return
		}
	}
}

// giveBack lets the server deliver unaccepted messages to another ingester.
func (p *puller) giveBack(sub *nats.Subscription) {
	p.s.pulling.Store(false)
	// Messages that the server sends before this reaches it still arrive.
	if sub.Drain() == nil && p.s.conn.IsConnected() {
		_ = p.s.conn.FlushTimeout(2 * time.Second)
	}
	p.gather()
	for _, m := range p.waiting {
		p.s.Dropped(m.Reply)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
