package natssource

import (
	"context"
	"fmt"
	"strconv"
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

// send sends some of the queue, and reports whether there may be more.
func (l *ledger) send() bool {
	const most = 256
	l.mu.Lock()
	now, n := time.Now(), 0
	switch {
	case !l.isOpen || len(l.queue) == 0:
	case now.Sub(l.sure) > sureFor:
		l.look()
	default:
		n = min(most, len(l.queue), window-len(l.onTheWay))
	}
	batch := l.queue[:n]
	for i := range batch {
		x := &batch[i]
		l.next++
		x.id, x.sent = l.next, now
		x.tries++
		if !x.nak {
			l.onTheWay[x.id] = *x
		}
	}
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil // do not keep the memory of sent ones
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
	return n > 0
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
	delete(l.onTheWay, id)
	l.metrics.acks.Inc()
	if len(l.onTheWay) == window/2 {
		signal(l.wake)
	}
}

// sendAgain queues acknowledgements that have waited too long for an answer.
func (l *ledger) sendAgain(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, x := range l.onTheWay {
		if now.Sub(x.sent) < answerWait {
			continue
		}
		delete(l.onTheWay, id)
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
	return len(l.queue) + len(l.onTheWay)
}

// drain waits until everything was sent and confirmed, or ctx ends.
func (l *ledger) drain(ctx context.Context) {
	for l.waiting() > 0 && ctx.Err() == nil {
		pause(ctx, 5*time.Millisecond)
	}
	// NAKs are not confirmed; they have at least been sent.
	_ = l.conn.FlushWithContext(ctx)
}
