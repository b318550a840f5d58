package natssource

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// A place is the contents of a reply subject about a delivery.
type place struct {
	seq       uint64 // in the stream
	delivery  uint64 // of the consumer; grows as long as it is the same consumer
	delivered uint64 // how many times
	sent      int64  // when the stream received the message, Unix nanoseconds
}

// placeOf parses a reply subject.
func placeOf(reply string) (p place, ok bool) {
	m := nats.Msg{Reply: reply, Sub: &nats.Subscription{}} // without one there are no metadata
	data, err := m.Metadata()
	if err != nil {
		return place{}, false
	}
	p = place{seq: data.Sequence.Stream, delivery: data.Sequence.Consumer, delivered: data.NumDelivered, sent: data.Timestamp.UnixNano()}
	return p, min(p.seq, p.delivery, p.delivered) > 0 && p.sent > 0
}

// consumerOf is the name of the consumer in a reply subject.
func consumerOf(reply string) string {
	m := nats.Msg{Reply: reply, Sub: &nats.Subscription{}}
	data, err := m.Metadata()
	if err != nil {
		return ""
	}
	return data.Consumer
}

// A ledger has the messages of the stream that were delivered to us and are not
// settled, each with its latest reply subject, and reports their outcome to the server.
// All are of one incarnation of the stream. A recreated stream counts from 1 again, and
// a late acknowledgement for the old one would remove a message of the new one that no ingester
// has stored.
//
// An acknowledgement is a request that the server confirms. Many are in flight, with one
// subscription for all answers. Those without an answer are sent again.
type ledger struct {
	conn    *nats.Conn
	metrics *metrics
	inbox   string // subject for answers, up to their number
	wake    chan struct{}
	look    func() // requests a check, which ends in open when all is well

	mu       sync.Mutex
	messages map[uint64]*delivery // by stream sequence
	created  time.Time            // of the stream; zero before it was seen
	isOpen   bool                 // the stream is known to be right, so messages may be pulled
	changed  chan struct{}        // closed when isOpen changes
	sure     time.Time            // when the stream was last known to be the same; zero: it may be another
	asserted chan struct{}        // closed when that ends
	queue    []settlement
	lanes    map[string]*lane // by consumer, of those with acknowledgements in flight
	onTheWay map[uint64]settlement
	next     uint64
}

type delivery struct {
	reply  string
	sent   int64
	alive  time.Time // when the server last got a sign of life
	stored bool      // acknowledged by an earlier reply
	reused bool      // another message had this sequence, and is not settled
}

// A lane has what waits for a consumer, so that one without answers holds up no other.
type lane struct {
	onTheWay int
	parked   []settlement // back in the queue when fewer are on the way
}

type settlement struct {
	id    uint64 // of the last attempt
	reply string
	nak   bool
	rest  time.Duration // before it is delivered again
	tries int
	sent  time.Time
}

func newLedger(look func()) *ledger {
	return &ledger{look: look, wake: make(chan struct{}, 1), changed: make(chan struct{}), asserted: make(chan struct{}),
		messages: make(map[uint64]*delivery), lanes: make(map[string]*lane), onTheWay: make(map[uint64]settlement)}
}

// delivered notes a message that was delivered, now with this reply. It reports
// whether another, unsettled message has the same sequence: a server with damaged
// files forgets messages and uses their numbers again. A message of another
// incarnation of the stream is not noted, so never acknowledged.
func (l *ledger) delivered(created time.Time, p place, reply string, now time.Time) (reused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !created.Equal(l.created) {
		return false
	}
	d := l.messages[p.seq]
	if d != nil && d.sent == p.sent {
		d.reply, d.alive = reply, now
		return d.reused
	}
	l.messages[p.seq] = &delivery{reply: reply, sent: p.sent, alive: now, reused: d != nil}
	return d != nil
}

// found notes a message from the log of an earlier process. The time of its last sign
// of life is unknown, so one is due at once.
func (l *ledger) found(reply string) {
	l.report(reply, func(p place, d *delivery) {
		if d == nil && p.sent >= l.created.UnixNano() {
			l.messages[p.seq] = &delivery{reply: reply, sent: p.sent}
		}
	})
}

// report calls do with the lock held, for a reply with a place, and its message if that
// was delivered.
func (l *ledger) report(reply string, do func(place, *delivery)) {
	if p, ok := placeOf(reply); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		do(p, l.messages[p.seq])
	}
}

// stored acknowledges a message. An earlier reply of a message does as well as its
// latest: the server accepts both.
func (l *ledger) stored(reply string) {
	l.report(reply, func(p place, d *delivery) {
		if d == nil || d.sent != p.sent {
			return
		}
		if d.reply == reply {
			delete(l.messages, p.seq)
		} else {
			d.stored = true
		}
		l.add(settlement{reply: reply})
	})
}

// dropped refuses a message if it has to be delivered again: after rest, or, if it is
// unknown here because it was delivered to an earlier process, at once.
func (l *ledger) dropped(reply string, rest time.Duration) {
	l.report(reply, func(p place, d *delivery) {
		switch {
		case d == nil && p.sent >= l.created.UnixNano():
			l.add(settlement{reply: reply, nak: true})
		case d != nil && d.reply == reply:
			delete(l.messages, p.seq)
			if !d.stored {
				l.add(settlement{reply: reply, nak: true, rest: rest})
			}
		}
	})
}

// current switches to an incarnation of the stream, and forgets the messages of
// another. It reports whether there was another before; then it shuts the ledger.
func (l *ledger) current(created time.Time) (another bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.created.Equal(created) {
		return false
	}
	another = !l.created.IsZero()
	l.created = created
	for seq, d := range l.messages {
		// Messages found before the first check may be of either.
		if another || d.sent < created.UnixNano() {
			delete(l.messages, seq)
		}
	}
	if another {
		l.close()
		l.queue = nil
	}
	return another
}

// confirm lets messages be settled: the stream is the one that they are of. How the consumers are
// does not matter, since a settlement names its message by its place in the stream.
func (l *ledger) confirm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sure.IsZero() {
		close(l.asserted)
		l.asserted = make(chan struct{})
	}
	l.sure = time.Now()
	signal(l.wake)
}

// open lets messages be pulled after confirm: the stream is right.
func (l *ledger) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(true)
}

// shut ends both until the next confirm and open.
func (l *ledger) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.close()
}

// doubt has nothing settled before the next confirm, and asks for that. Pulls go on.
func (l *ledger) doubt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sure = time.Time{}
	l.look()
}

// close is shut. l.mu is held.
func (l *ledger) close() {
	l.sure = time.Time{}
	l.set(false)
	for _, x := range l.onTheWay { // acknowledgements in flight are sent again later
		x.tries = 0
		l.queue = append(l.queue, x)
	}
	for _, lane := range l.lanes {
		l.queue = append(l.queue, lane.parked...)
	}
	clear(l.onTheWay)
	clear(l.lanes)
}

func (l *ledger) set(open bool) {
	if l.isOpen != open {
		l.isOpen = open
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// ready reports whether messages are pulled and settled now.
func (l *ledger) ready() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isOpen && !l.sure.IsZero()
}

// opened reports whether messages are pulled, or will be once the stream is confirmed.
func (l *ledger) opened() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isOpen
}

// pass waits until the ledger is open to the stream created then, and that is confirmed. shut is
// closed when it shuts.
func (l *ledger) pass(ctx context.Context) (created time.Time, shut chan struct{}, err error) {
	for {
		l.mu.Lock()
		pass, created, changed, asserted := l.isOpen && !l.sure.IsZero(), l.created, l.changed, l.asserted
		l.mu.Unlock()
		if pass {
			return created, changed, ctx.Err()
		}
		select {
		case <-changed:
		case <-asserted:
		case <-ctx.Done():
			return created, nil, ctx.Err()
		}
	}
}

// quiet returns up to most replies of messages without a sign of life since a time.
// It assumes that the caller sends one now.
func (l *ledger) quiet(since, now time.Time, most int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var replies []string
	for _, d := range l.messages {
		if len(replies) == most {
			break
		}
		if d.alive.Before(since) {
			d.alive = now
			replies = append(replies, d.reply)
		}
	}
	return replies
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.messages)
}
