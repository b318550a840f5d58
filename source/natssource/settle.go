package natssource

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// window is the most acknowledgements in flight.
	window = 4096
	// answerWait is the time without an answer before an acknowledgement is sent again.
	answerWait = 5 * time.Second
	// sureFor is how long after a check acknowledgements are sent without another. A
	// process that was stopped, or does not pull because its log is full, can only find
	// out by a check that the stream was recreated. Its old replies would remove
	// messages of the new stream that another ingester has not stored.
	sureFor = time.Second
	// maxTries is how often one is sent; then the server delivers the message again.
	maxTries = 6
	// dropRest is the delay before a dropped message is delivered again, while messages
	// are pulled: its publisher sent it twice, and the other copy has to be stored
	// first.
	dropRest = 5 * time.Second
)

// A settler reports the outcome of messages to the server. An acknowledgement is a
// request that the server confirms. Many are in flight, with one subscription for all
// answers. Those without an answer are sent again.
type settler struct {
	conn    *nats.Conn
	metrics *metrics
	inbox   string // subject for answers, up to their number
	wake    chan struct{}
	look    func() // requests a check, which ends in resume when all is well

	mu       sync.Mutex
	held     bool      // nothing may be sent: the current stream is not known
	sure     time.Time // when it was last known
	queue    []settlement
	onTheWay map[uint64]settlement
	next     uint64
}

type settlement struct {
	reply string
	nak   bool
	rest  time.Duration // before it is delivered again
	tries int
	sent  time.Time
}

func newSettler(m *metrics, look func()) *settler {
	return &settler{metrics: m, held: true, look: look,
		wake: make(chan struct{}, 1), onTheWay: make(map[uint64]settlement)}
}

// attach subscribes to the answers, before run.
func (s *settler) attach(conn *nats.Conn) error {
	s.conn, s.inbox = conn, conn.NewInbox()+"."
	sub, err := conn.Subscribe(s.inbox+"*", s.answered)
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(-1, -1)
}

// signal wakes the goroutine that waits for c.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *settler) acknowledge(reply string) { s.add(settlement{reply: reply}) }

func (s *settler) refuse(reply string, rest time.Duration) {
	s.add(settlement{reply: reply, nak: true, rest: rest})
}

func (s *settler) add(x settlement) {
	s.mu.Lock()
	s.queue = append(s.queue, x)
	s.mu.Unlock()
	signal(s.wake)
}

// hold stops sending. Acknowledgements in flight are sent again later.
func (s *settler) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = true
	for id, x := range s.onTheWay {
		x.tries = 0
		s.queue = append(s.queue, x)
		delete(s.onTheWay, id)
	}
}

// forget discards the waiting ones: they are of another stream.
func (s *settler) forget() {
	s.mu.Lock()
	s.queue = nil
	clear(s.onTheWay)
	s.mu.Unlock()
}

// resume starts sending again.
func (s *settler) resume() {
	s.mu.Lock()
	s.held, s.sure = false, time.Now()
	s.mu.Unlock()
	signal(s.wake)
}

// run sends until ctx ends.
func (s *settler) run(ctx context.Context) {
	ticks := time.NewTicker(answerWait / 10)
	defer ticks.Stop()
	for {
		for s.send() {
		}
		select {
		case <-s.wake:
		case now := <-ticks.C:
			s.sendAgain(now)
		case <-ctx.Done():
			return
		}
	}
}

// send sends some of the queue, and reports whether there may be more.
func (s *settler) send() bool {
	const most = 256
	var ids [most]uint64
	var batch [most]settlement
	n := 0
	s.mu.Lock()
	now := time.Now()
	old := now.Sub(s.sure) > sureFor
	if old && !s.held && len(s.queue) > 0 {
		s.look()
	}
	for !s.held && !old && n < most && n < len(s.queue) && len(s.onTheWay) < window {
		x := s.queue[n]
		x.sent = now
		x.tries++
		s.next++
		if !x.nak {
			s.onTheWay[s.next] = x
		}
		ids[n], batch[n] = s.next, x
		n++
	}
	if s.queue = s.queue[n:]; len(s.queue) == 0 {
		s.queue = nil // do not keep the memory of sent ones
	}
	s.mu.Unlock()
	for i, x := range batch[:n] {
		// An error means that the connection was just lost: nothing was sent, and no
		// answer comes.
		if x.nak {
			_ = s.conn.Publish(x.reply, fmt.Appendf(nil, `-NAK {"delay": %d}`, x.rest.Nanoseconds()))
			s.metrics.naks.Inc()
			continue
		}
		_ = s.conn.PublishRequest(x.reply, s.inbox+strconv.FormatUint(ids[i], 10), []byte("+ACK"))
	}
	return n > 0
}

// answered handles the server's confirmation.
func (s *settler) answered(m *nats.Msg) {
	id, err := strconv.ParseUint(m.Subject[len(s.inbox):], 10, 64)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.onTheWay[id]
	if !ok {
		return
	}
	if len(m.Data) == 0 && m.Header.Get("Status") != "" {
		// The server has no receiver for it: the consumer is just moving, or was deleted.
		// It is sent again a little later.
		x.sent = x.sent.Add(time.Second - answerWait)
		s.onTheWay[id] = x
		return
	}
	delete(s.onTheWay, id)
	s.metrics.acks.Inc()
	if len(s.onTheWay) == window/2 {
		signal(s.wake)
	}
}

// sendAgain queues acknowledgements that have waited too long for an answer.
func (s *settler) sendAgain(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, x := range s.onTheWay {
		if now.Sub(x.sent) < answerWait {
			continue
		}
		delete(s.onTheWay, id)
		if x.tries < maxTries {
			s.queue = append(s.queue, x)
		} else {
			s.metrics.lost.Inc()
		}
	}
}

func (s *settler) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) + len(s.onTheWay)
}

// drain waits until everything was sent and confirmed, or ctx ends.
func (s *settler) drain(ctx context.Context) {
	for s.waiting() > 0 && ctx.Err() == nil {
		pause(ctx, 5*time.Millisecond)
	}
	// NAKs are not confirmed; they have at least been sent.
	_ = s.conn.FlushWithContext(ctx)
}
