package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"blobtail/record"
	"blobtail/record/origin"
)

// stream is a JetStream stream with one durable consumer, or some more for its partitions. It
// delivers a message to any process that asks and takes its partition, and again if it was not
// acknowledged in time. An acknowledgement of any delivery counts.
type stream struct {
	w     *world
	parts *parts // nil: there are no partitions

	mu       sync.Mutex
	messages []*message
	unacked  int
}

type message struct {
	*request
	deliveries int
	acked      bool
	ready      time.Time // when it may be delivered again
	partition  int       // -1: none
	forgotten  int       // deliveries by a consumer that is removed
}

func newStream(w *world, n int) *stream {
	s := &stream{w: w, unacked: n}
	if rng := rand.New(rand.NewPCG(w.seed, 17)); rng.IntN(3) == 0 && n > 0 {
		s.inParts(n, rng)
		return s
	}
	for i := range n {
		m := &message{request: w.compose(fmt.Sprintf("m%d", i), w.fate("message")), partition: -1}
		m.r.Origin = origin.OfStream(epoch, "logs", uint64(i))
		// Published over the first minute.
		m.ready = time.Now().Add(time.Duration(w.rng.IntN(60)) * time.Second)
		s.messages = append(s.messages, m)
	}
	w.totals.messages = n
	return s
}

func reply(i, delivery int) string { return fmt.Sprintf("%d.%d", i, delivery) }

// deliver returns a message that is due, and that the ingester takes.
func (s *stream) deliver(ingester int, rng *rand.Rand) (request, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	var due []int
	for i, m := range s.messages {
		if !m.acked && s.parts.takes(ingester, m) && !time.Now().Before(m.ready) {
			due = append(due, i)
		}
	}
	if len(due) == 0 {
		return request{}, false
	}
	i := due[rng.IntN(min(len(due), 3))]
	m := s.messages[i]
	m.deliveries++
	m.ready = time.Now().Add(s.w.p.AckWait)
	s.w.count(&s.w.totals.deliveries)
	r := *m.request
	r.r.Reply = reply(i, m.deliveries)
	return r, true
}

// of finds the message of a reply, and reports whether that is its last delivery.
func (s *stream) of(to string) (m *message, last bool) {
	var i, n int
	if _, err := fmt.Sscanf(to, "%d.%d", &i, &n); err != nil || i < 0 || i >= len(s.messages) {
		s.w.violation("the stream was told of %q, which is no reply of its messages", to)
		return nil, false
	}
	return s.messages[i], n == s.messages[i].deliveries
}

func (s *stream) ids(to string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, _ := s.of(to); m != nil {
		return m.ids
	}
	return nil
}

func (s *stream) ack(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, _ := s.of(to)
	if m == nil || m.acked || m.forgotten > 0 && s.delivery(to) <= m.forgotten {
		return
	}
	m.acked = true
	if !s.w.isQuiet() {
		s.w.count(&s.w.totals.acks)
	}
	s.unacked--
	s.w.acknowledged(m.ids)
}

// extend gives the holder of the last delivery more time, or none.
func (s *stream) extend(to string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, last := s.of(to); last {
		m.ready = time.Now().Add(d)
	}
}

func (s *stream) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unacked
}

// told carries an ingester's replies to the stream, through a network that loses some
// of them and brings some late.
type told struct {
	s        *stream
	ingester int
}

func (t *told) Found(to string) { t.s.extend(to, t.s.w.p.AckWait) }

func (t *told) Dropped(to string) { t.s.extend(to, time.Second) }

func (t *told) Stored(to string) {
	w := t.s.w
	w.store.mustHold("a message told to be stored", t.s.ids(to))
	rng := w.fate("ack", t.ingester)
	if !w.isQuiet() && rng.IntN(100) < w.p.LostAcks {
		w.count(&w.totals.acksLost)
		if rng.IntN(2) == 0 {
			w.store.later(time.Duration(rng.IntN(300))*time.Second, func() { t.s.ack(to) })
		}
		return
	}
	t.s.ack(to)
}

// puller hands messages over until the process is gone, or its log accepts none.
func (w *world) puller(p *process, rng *rand.Rand) {
	for {
		select {
		case <-p.dead:
			return
		case <-p.ended:
			return
		case <-time.After(time.Duration(rng.IntN(2*w.p.Gap)) * time.Millisecond):
		}
		for range 1 + rng.IntN(3) {
			w.pull(p, rng)
		}
	}
}

func (w *world) pull(p *process, rng *rand.Rand) {
	s, ok := w.stream.deliver(p.number, rng)
	if !ok {
		return
	}
	if _, err := w.accept(context.Background(), p, &s); errors.Is(err, record.ErrFull) {
		w.stream.extend(s.r.Reply, time.Second)
	}
}
