package natssource

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// window is the most acknowledgements in flight, of all consumers; but leastWindow of each.
	window, leastWindow = 4096, 256
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

// attach subscribes to the answers, before run.
func (l *ledger) attach(conn *nats.Conn) error {
	l.conn, l.inbox = conn, conn.NewInbox()+"."
	sub, err := conn.Subscribe(l.inbox+"*", l.answered)
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

// add queues a settlement. l.mu is held.
func (l *ledger) add(x settlement) {
	l.queue = append(l.queue, x)
	signal(l.wake)
}

// room is how many acknowledgements of a lane may be in flight. l.mu is held.
func (l *ledger) room() int { return max(leastWindow, window/max(1, len(l.lanes))) }

// run sends until ctx ends.
func (l *ledger) run(ctx context.Context) {
	ticks := time.NewTicker(answerWait / 10)
	defer ticks.Stop()
	for {
		for l.send() {
		}
		select {
		case <-l.wake:
		case now := <-ticks.C:
			l.sendAgain(now)
		case <-ctx.Done():
			return
		}
	}
}

// send sends some of what is queued, and reports whether there may be more.
func (l *ledger) send() bool {
	const most = 256
	var batch []settlement
	l.mu.Lock()
	now := time.Now()
	switch {
	case len(l.queue) == 0 || l.sure.IsZero():
	case now.Sub(l.sure) > sureFor:
		l.look()
	default:
		n := 0
		for ; n < len(l.queue) && len(batch) < most; n++ {
			if x := l.queue[n]; x.nak || l.depart(&x, now) {
				batch = append(batch, x)
			}
		}
		if l.queue = l.queue[n:]; len(l.queue) == 0 {
			l.queue = nil // do not keep the memory of sent ones
		}
	}
	l.mu.Unlock()
	for _, x := range batch {
		// An error means that the connection was just lost: nothing was sent, and no
		// answer comes.
		if x.nak {
			_ = l.conn.Publish(x.reply, fmt.Appendf(nil, `-NAK {"delay": %d}`, x.rest.Nanoseconds()))
			l.metrics.naks.Inc()
			continue
		}
		_ = l.conn.PublishRequest(x.reply, l.inbox+strconv.FormatUint(x.id, 10), []byte("+ACK"))
	}
	return len(batch) > 0
}

// depart notes an acknowledgement that is sent now, or parks it if its lane is full. l.mu is held.
func (l *ledger) depart(x *settlement, now time.Time) bool {
	consumer := consumerOf(x.reply)
	to := l.lanes[consumer]
	if to == nil {
		to = new(lane)
		l.lanes[consumer] = to
	}
	if to.onTheWay >= l.room() {
		to.parked = append(to.parked, *x)
		return false
	}
	l.next++
	x.id, x.sent = l.next, now
	x.tries++
	l.onTheWay[x.id] = *x
	to.onTheWay++
	return true
}

// arrive ends an attempt, and has parked ones follow. l.mu is held.
func (l *ledger) arrive(x settlement) {
	delete(l.onTheWay, x.id)
	consumer := consumerOf(x.reply)
	from, room := l.lanes[consumer], l.room()
	from.onTheWay--
	if n := min(len(from.parked), room-from.onTheWay); n > 0 && from.onTheWay <= room/2 {
		l.queue = append(l.queue, from.parked[:n]...)
		from.parked = from.parked[n:]
		signal(l.wake)
	}
	if from.onTheWay == 0 && len(from.parked) == 0 {
		delete(l.lanes, consumer)
	}
}

// answered handles the server's confirmation.
func (l *ledger) answered(m *nats.Msg) {
	id, err := strconv.ParseUint(m.Subject[len(l.inbox):], 10, 64)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	x, ok := l.onTheWay[id]
	if !ok {
		return
	}
	if len(m.Data) == 0 && m.Header.Get("Status") != "" {
		// The server has no receiver for it: the consumer is just moving, or was deleted.
		// It is sent again a little later.
		x.sent = x.sent.Add(time.Second - answerWait)
		l.onTheWay[id] = x
		return
	}
	l.arrive(x)
	l.metrics.acks.Inc()
}

// sendAgain queues acknowledgements that have waited too long for an answer.
func (l *ledger) sendAgain(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.onTheWay {
		if now.Sub(x.sent) < answerWait {
			continue
		}
		l.arrive(x)
		if x.tries < maxTries {
			l.queue = append(l.queue, x)
		} else {
			l.metrics.lost.Inc()
		}
	}
}

func (l *ledger) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.queue) + len(l.onTheWay)
	for _, lane := range l.lanes {
		n += len(lane.parked)
	}
	return n
}

// drain waits until everything was sent and confirmed, or ctx ends.
func (l *ledger) drain(ctx context.Context) {
	for l.waiting() > 0 && ctx.Err() == nil {
		pause(ctx, 5*time.Millisecond)
	}
	// NAKs are not confirmed; they have at least been sent.
	_ = l.conn.FlushWithContext(ctx)
}
