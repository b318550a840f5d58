package buffer

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// queue is the cut batches that are not done with, oldest first. Buffer.mu guards it.
//
// Its invariant: a batch is in it from the cut until it is stored, has expired or is
// taken apart. A batch that was set aside stays. A worker that takes a batch has it alone
// until the worker gives it back.
type queue struct {
	batches  []*Batch
	services services
}

// tries is the part of a [Batch] that the queue manages. Buffer.mu guards it.
type tries struct {
	taken     bool
	aside     bool // it cannot be rebuilt, and is never taken again
	failed    int  // since the start
	notBefore time.Time
	lastErr   string
	parkAfter time.Time               // no copy before this time, because the last one failed
	begun     time.Time               // start of the current try
	breakOff  context.CancelCauseFunc // ends the current try
}

// take returns the oldest batch that may be tried. For a service in trouble it returns
// the youngest: the oldest ones hold the front of the log, and cannot be parked while
// they are tried. It returns nil if no batch is due.
func (q *queue) take(now time.Time) *Batch {
	may := func(batch *Batch, inTrouble bool) bool {
		return !batch.try.taken && !batch.try.aside && !now.Before(batch.try.notBefore) &&
			q.services.inTrouble(batch.bin.Service) == inTrouble && q.services.take(batch.bin.Service, now)
	}
	for _, batch := range q.batches {
		if may(batch, false) {
			batch.try.taken = true
			return batch
		}
	}
	for _, batch := range slices.Backward(q.batches) {
		if may(batch, true) {
			batch.try.taken = true
			return batch
		}
	}
	return nil
}

// giveBack ends a try.
func (q *queue) giveBack(batch *Batch) {
	batch.try.taken = false
	q.services.giveBack(batch.bin.Service)
}

func (q *queue) remove(batch *Batch) {
	if i := slices.Index(q.batches, batch); i >= 0 {
		q.batches = slices.Delete(q.batches, i, i+1)
	}
}

// hurry makes all batches due.
func (q *queue) hurry() {
	for _, batch := range q.batches {
		batch.try.notBefore = time.Time{}
	}
	for _, t := range q.services.trouble {
		t.notBefore = time.Time{}
	}
}

// perService bounds the batches of one service that the sink has at once. One service
// also gets at most half of the workers. So a service with uploads that hang leaves room
// for others.
const perService = 4

// A service is in trouble after inTrouble failures in a row: fewer are normal in a
// network. From then on one batch at a time is tried. Each probeWait one more is tried
// while the earlier ones hang.
const (
	inTrouble = 3
	probeWait = 5 * time.Second
)

// services separates the services that can be stored from the others. So a long outage
// costs little. A service that the store refuses, or with uploads that hang, delays no
// other.
type services struct {
	most    int            // of one, at once
	taken   map[string]int // number of batches that the sink has
	trouble map[string]*trouble
}

// trouble is the state of a service after failed attempts.
type trouble struct {
	failures  int // in a row
	probed    time.Time
	notBefore time.Time
}

// take reports whether a batch of a service may be tried now, and notes it.
func (s *services) take(service string, now time.Time) bool {
	n := s.taken[service]
	if n >= s.most {
		return false
	}
	if s.inTrouble(service) {
		t := s.trouble[service]
		if now.Before(t.notBefore) || (n > 0 && now.Sub(t.probed) < probeWait) {
			return false
		}
		t.probed = now
	}
	s.taken[service] = n + 1
	return true
}

func (s *services) inTrouble(service string) bool {
	t := s.trouble[service]
	return t != nil && t.failures >= inTrouble
}

func (s *services) giveBack(service string) {
	if s.taken[service]--; s.taken[service] == 0 {
		delete(s.taken, service)
	}
}

// failed notes a failed attempt; one that hung counts for several.
func (s *services) failed(service string, hung bool, now time.Time) {
	t := s.trouble[service]
	if t == nil {
		t = &trouble{}
		s.trouble[service] = t
	}
	t.failures++
	if hung {
		t.failures = max(t.failures, inTrouble)
	}
	if t.failures >= inTrouble {
		t.notBefore = now.Add(pause(t.failures - inTrouble + 1))
	}
}

// pause is the wait after a number of failures in a row.
func pause(failures int) time.Duration {
	d := min(10*time.Second, 200*time.Millisecond<<min(failures-1, 16))
	return time.Duration(float64(d) * (0.5 + rand.Float64()))
}

// putBack schedules another try: the same batch under the same name, for ever, with a
// growing pause. b.mu is held.
func (b *Buffer) putBack(ctx context.Context, batch *Batch, err error) {
	if ctx.Err() != nil {
		return
	}
	b.m.failures.Inc()
	try := &batch.try
	try.failed++
	if hopeless(err) {
		b.setAside(batch, err)
		return
	}
	now := time.Now()
	b.queue.services.failed(batch.bin.Service, errors.Is(err, errHolds), now)
	wait := pause(try.failed)
	try.notBefore = now.Add(wait)
	if try.lastErr != err.Error() {
		try.lastErr = err.Error()
		b.o.Log.Warn().Err(err).Str("service", batch.Service()).Time("period", batch.Period()).
			Float64("pause_seconds", wait.Seconds()).Msg("a batch is not stored yet; it stays in the log")
	}
}

// setAside gives up a batch that no repeat can store. Its runs keep their segments,
// for an operator to inspect. b.mu is held.
func (b *Buffer) setAside(batch *Batch, err error) {
	b.abandon(batch, err)
	b.m.aside.Inc()
	b.o.Log.Error().Err(err).Str("service", batch.Service()).Time("period", batch.Period()).
		Msg("a batch is set aside; its segments are kept")
}

// abandon ends a batch that will not be stored. b.mu is held.
func (b *Buffer) abandon(batch *Batch, err error) {
	batch.try.aside, batch.err = true, err
	close(batch.done)
	b.messages.drop(batch.messages)
}
