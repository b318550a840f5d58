package buffer

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// queue orders the tries of the cut batches. Buffer.mu guards it.
//
// Its invariant: a batch is in the list of its service from the cut until it is stored, has
// expired or is taken apart. A batch that was set aside stays. A try that takes a batch has it alone
// until it gives it back. A service with a batch that may be tried, now or at a time, is in one of
// the piles.
type queue struct {
	workers int                 // tries at once that are not slow
	trying  map[*Batch]struct{} // the batches that the sink has
	slow    int                 // of these, with a slow try
	last    int64               // the greatest order

	well     *pile[*service] // may be tried now, the service of the oldest batch first
	troubled *pile[*service] // may be tried now, the service of the youngest batch first
	later    *pile[*service] // by the time of the next try
	hurried  *pile[*service] // those of later that no longer wait
	crowded  *pile[*service] // with their share of the workers, the one with the fewest tries first
	round    int             // how often batches were hurried: earlier pauses do not count
}

// tries is the part of a [Batch] that the queue manages. Buffer.mu guards it.
type tries struct {
	order     int64 // of the cuts
	taken     bool
	aside     bool // it cannot be rebuilt, and is never taken again
	failed    int  // since the start
	pause     wait
	lastErr   string
	parkAfter time.Time               // no copy before this time, because the last one failed
	begun     time.Time               // start of the current try
	breakOff  context.CancelCauseFunc // ends the current try; nil: the sink does not have the batch
	slow      bool                    // the current try lasts longer than slowTry
}

// wait is a time before which nothing is tried, unless the queue is hurried.
type wait struct {
	until time.Time
	round int
}

func newQueue(workers int) queue {
	by := func(before func(x, y *service) bool) *pile[*service] {
		return &pile[*service]{before: before, slot: func(s *service) *int { return &s.slot }}
	}
	at := func(x, y *service) bool { return x.at.Before(y.at) }
	return queue{
		workers:  workers,
		trying:   map[*Batch]struct{}{},
		well:     by(func(x, y *service) bool { return x.next.try.order < y.next.try.order }),
		troubled: by(func(x, y *service) bool { return x.next.try.order > y.next.try.order }),
		later:    by(at),
		hurried:  by(at),
		crowded:  by(func(x, y *service) bool { return x.taken < y.taken }),
	}
}

func byOrder(x, y *Batch) int { return cmp.Compare(x.try.order, y.try.order) }

// add adds a batch of the index: the youngest, or in front of all others that the log is replayed to.
func (q *queue) add(batch *Batch, order int64) {
	batch.try.order = order
	q.last = max(q.last, order)
	s := batch.service
	i, _ := slices.BinarySearchFunc(s.cut, batch, byOrder)
	s.cut = slices.Insert(s.cut, i, batch)
	q.place(s, time.Now())
}

// place puts a service into the pile where it belongs. It is called after each change of one.
func (q *queue) place(s *service, now time.Time) {
	if s.pile != nil {
		heap.Remove(s.pile, s.slot)
		s.pile = nil
	}
	if s.taken >= perService {
		return
	}
	if s.next, s.at = q.choose(s, now); s.next == nil && s.at.IsZero() {
		return
	}
	if s.inTrouble() {
		s.at = later(s.at, q.end(s.trouble.pause))
		if s.taken > 0 {
			s.at = later(s.at, s.last.Add(probeWait))
			if len(q.trying) >= mostTries/2 {
				s.at = later(s.at, now.Add(probeWait))
			}
		}
	}
	switch {
	case now.Before(s.at):
		s.pile = q.later
	case !q.shares(s):
		s.pile = q.crowded
	case s.inTrouble():
		s.pile = q.troubled
	default:
		s.pile = q.well
	}
	heap.Push(s.pile, s)
}

// free is how many tries may begin now.
func (q *queue) free() int {
	return min(q.workers+q.slow, mostTries) - len(q.trying)
}

// shares reports whether one more try leaves a service at most half of the workers that others
// leave. It always has one.
func (q *queue) shares(s *service) bool {
	return s.taken == 0 || s.taken+1 <= (q.free()+s.taken)/2
}

// choose returns the oldest batch of a service that may be tried. For a service in trouble it
// returns the youngest: the oldest ones hold the front of the log, and cannot be parked while
// they are tried. Without one it returns the time at which one may be tried, or zero.
func (q *queue) choose(s *service, now time.Time) (next *Batch, at time.Time) {
	for i := range s.cut {
		batch := s.cut[i]
		if s.inTrouble() {
			batch = s.cut[len(s.cut)-1-i]
		}
		if batch.try.taken || batch.try.aside {
			continue
		}
		end := q.end(batch.try.pause)
		if !now.Before(end) {
			return batch, time.Time{}
		}
		if at.IsZero() || end.Before(at) {
			at = end
		}
	}
	return nil, at
}

// end is the time at which a wait ends; zero if it has ended.
func (q *queue) end(w wait) time.Time {
	if w.round != q.round {
		return time.Time{}
	}
	return w.until
}

func later(x, y time.Time) time.Time {
	if x.Before(y) {
		return y
	}
	return x
}

// take returns the oldest batch that may be tried, and else one of a service in trouble. It
// returns nil if no batch is due, or no worker is free.
func (q *queue) take(now time.Time) *Batch {
	if q.free() <= 0 {
		return nil
	}
	for n := 0; q.hurried.Len() > 0 && (n < breath || q.well.Len()+q.troubled.Len() == 0); n++ {
		q.place(q.hurried.all[0], now)
	}
	for q.later.Len() > 0 && !now.Before(q.later.all[0].at) {
		q.place(q.later.all[0], now)
	}
	for q.crowded.Len() > 0 && q.shares(q.crowded.all[0]) {
		q.place(q.crowded.all[0], now)
	}
	for _, p := range []*pile[*service]{q.well, q.troubled} {
		for p.Len() > 0 {
			s := p.all[0]
			if q.place(s, now); s.pile == p { // since its last place others may have taken workers
				return q.takeOf(s, now)
			}
		}
	}
	return nil
}

// takeOf takes the next batch of a service.
func (q *queue) takeOf(s *service, now time.Time) *Batch {
	batch := s.next
	batch.try.taken = true
	q.trying[batch] = struct{}{}
	s.taken++
	s.last = now
	q.place(s, now)
	return batch
}

// ready reports whether a batch may be due.
func (q *queue) ready(now time.Time) bool {
	return q.well.Len()+q.troubled.Len()+q.hurried.Len()+q.crowded.Len() > 0 || q.later.Len() > 0 && !now.Before(q.later.all[0].at)
}

// noteSlow finds the tries that have become slow.
func (q *queue) noteSlow(now time.Time) {
	for batch := range q.trying {
		if try := &batch.try; try.breakOff != nil && !try.slow && now.Sub(try.begun) > slowTry {
			try.slow = true
			batch.service.slow++
			q.slow++
			q.place(batch.service, now)
		}
	}
}

// giveBack ends a try.
func (q *queue) giveBack(batch *Batch) {
	delete(q.trying, batch)
	batch.service.taken--
	if batch.try.slow {
		batch.service.slow--
		q.slow--
	}
	batch.try.taken, batch.try.slow, batch.try.breakOff = false, false, nil
}

// remove removes a batch.
func (q *queue) remove(batch *Batch) {
	s := batch.service
	if i, ok := slices.BinarySearchFunc(s.cut, batch, byOrder); ok {
		s.cut = slices.Delete(s.cut, i, i+1)
	}
	q.place(s, time.Now())
}

// hurry makes all batches due.
func (q *queue) hurry() {
	q.round++
	if q.hurried.Len() == 0 {
		q.hurried, q.later = q.later, q.hurried
	}
	for q.later.Len() > 0 { // few: those that failed since the last time
		s := heap.Pop(q.later).(*service)
		s.pile = q.hurried
		heap.Push(q.hurried, s)
	}
}

const (
	// perService bounds the batches of one service that the sink has at once.
	perService = 4
	// slowTry is the age from which on a try takes no worker from others: it waits for the store, as
	// its upload hangs, and an upload that hangs costs no CPU.
	slowTry = 2 * time.Second
	// mostTries bounds all tries at once, slow ones too. When there are half as many, a service in
	// trouble has one at most.
	mostTries = 512
)

// A service is in trouble after inTrouble failures in a row: fewer are normal in a
// network. It is in trouble while a try of it is slow, too. Then one batch at a time is tried. Each
// probeWait one more is tried while the earlier ones hang.
const (
	inTrouble = 3
	probeWait = 5 * time.Second
)

// trouble is the state of a service after failed attempts. It separates the services that can be
// stored from the others. So a long outage costs little. A service that the store refuses, or with
// uploads that hang, delays no other.
type trouble struct {
	failures int // in a row
	pause    wait
}

func (s *service) inTrouble() bool { return s.trouble.failures >= inTrouble || s.slow > 0 }

// failed notes a failed attempt; one that hung counts for several.
func (q *queue) failed(s *service, hung bool, now time.Time) {
	t := &s.trouble
	t.failures++
	if hung {
		t.failures = max(t.failures, inTrouble)
	}
	if t.failures >= inTrouble {
		t.pause = wait{now.Add(pause(t.failures - inTrouble + 1)), q.round}
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
	b.queue.failed(batch.service, errors.Is(err, errHolds), now)
	again := pause(try.failed)
	try.pause = wait{now.Add(again), b.queue.round}
	if try.lastErr != err.Error() {
		try.lastErr = err.Error()
		b.o.Log.Warn().Err(err).Str("service", batch.Service()).Time("period", batch.Period()).
			Float64("pause_seconds", again.Seconds()).Msg("a batch is not stored yet; it stays in the log")
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
