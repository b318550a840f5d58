// Package ship keeps a copy of an ingester's log in the store, so that an acknowledgement survives the
// machine. If that is gone, another ingester takes the copy into its own log.
//
//	buffer -> wal --Range--> Shipper --Create--> _wal/ID/00000001, 00000002, ...
//	  | Shipped                | Wait                   |
//	waiting requests <---------+                  Shipper.Adopt of another ingester -> gate -> buffer
//
// A [Shipper] follows the durable end of the log. Each object has the records of all services since the
// one before. An object is made only under a name that nothing has, and only after the one before it is
// there. So whoever makes the next object stops the shipper for good: an adopter does, and an ingester
// that was thought dead acknowledges nothing as shipped from then on, whatever its clock says.
//
// Objects are deleted when all of their records are in blobs. The last one has none then, and stays: the
// next start and an adopter need its number.
package ship

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
	"blobtail/record"
	"blobtail/record/ack"
	"blobtail/storage"
)

// Options are the parts around a shipper. All but Disk, Strict and Logger must be given.
type Options struct {
	Log   *wal.Log
	Blobs storage.BlobStore
	// ID is the id of the ingester's row, under which the objects are.
	ID func() string
	// StoreID is the id of the store; an error says why nothing may be stored now.
	StoreID func() (string, error)
	// Needed is that of the buffer.
	Needed func() (first, copied wal.Pos, err error)
	Every  time.Duration // an object is begun at most so often
	Wait   time.Duration // for so long requests wait for a store that does not answer
	Disk   bool          // then they are told ack.ErrDisk, and not record.ErrUnheld
	Strict bool          // nothing is acknowledged before it is shipped, or in a blob
	Logger zerolog.Logger
}

// A Shipper ships one log. Its methods may be called concurrently while Run runs.
type Shipper struct {
	o    Options
	wake chan struct{} // a request waits

	shipments, failures atomic.Uint64
	bytes               atomic.Uint64

	reaping sync.Mutex // one deletion at a time; taken before mu
	mu      sync.Mutex
	shipped wal.Pos       // what is before it is in objects, or was not needed
	changed chan struct{} // closed when shipped or fenced changes
	fenced  error
	failed  error // the last attempt; nil: it succeeded
	since   time.Time
	kept    []kept // parts that are in the store: in an outage of a day there are 345,600
	id      string // their ingester's; "": those of earlier starts are not known. Only Run changes it
	spent   bool   // the last part has records, and all are in blobs

	// The fields below belong to Run.
	next    int
	pending *object // the outcome of its creation is not known
	last    time.Time
	raw     []byte // of the object in the making
	body    []byte // of pending
}

// kept is a part of the log in the store.
type kept struct {
	number int
	to     wal.Pos
	empty  bool
}

// New returns a shipper, which does nothing before Run.
func New(o Options) *Shipper {
	return &Shipper{o: o, wake: make(chan struct{}, 1), changed: make(chan struct{})}
}

// attempt bounds one attempt to make an object, opening one to learn which are there.
const (
	attempt = 15 * time.Second
	opening = 5 * time.Minute
)

// Run ships until ctx ends. It returns an error if another ingester has adopted this log: the process
// must end then, and may start again.
func (s *Shipper) Run(ctx context.Context) error {
	for failures := 0; ; {
		more, err := s.step(ctx)
		if err := s.Fenced(); err != nil {
			return err
		}
		wake, pause := s.wake, s.o.Every
		switch s.note(ctx, err); {
		case err != nil:
			wake, pause = nil, min(5*time.Second, s.o.Every<<min(failures, 8))
			failures++
		case more:
			pause, failures = 0, 0
		default:
			failures = 0
		}
		select {
		case <-time.After(pause):
		case <-wake: // a request waits
			_ = wait(ctx, time.Until(s.last.Add(s.o.Every)))
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// wait waits, unless ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// step makes one object, if there is something to ship. more says that there is more.
func (s *Shipper) step(ctx context.Context) (more bool, err error) {
	store, err := s.o.StoreID()
	if err != nil {
		return false, err
	}
	if id := s.o.ID(); id != s.id {
		if err := s.open(ctx, id, store); err != nil {
			return false, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	if s.pending == nil {
		if more, err = s.gather(store); err != nil || s.pending == nil {
			return more, err
		}
		s.last = time.Now()
	}
	taken, err := s.pending.create(ctx, s.o.Blobs, s.id)
	if err != nil {
		return false, fmt.Errorf("ship the log: %w", err)
	}
	if taken != nil {
		s.fence(taken)
		return false, nil
	}
	s.shipments.Add(1)
	s.bytes.Add(uint64(len(s.pending.body)))
	s.next++
	s.advance(s.pending.to, s.pending)
	s.pending = nil
	return more, nil
}

// open learns what earlier starts have shipped.
func (s *Shipper) open(ctx context.Context, id, store string) error {
	ctx, cancel := context.WithTimeout(ctx, opening)
	defer cancel()
	all, err := list(ctx, s.o.Blobs, id)
	if err != nil {
		return err
	}
	s.next, s.pending = 1, nil
	var parts []kept
	for _, o := range all {
		s.next = o.number + 1
		if o.adopter == "" && o.store == store {
			parts = append(parts, kept{o.number, o.to, o.from == o.to})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id, s.kept, s.shipped = id, parts, 0
	for _, o := range parts {
		s.shipped = max(s.shipped, o.to)
	}
	if s.shipped > s.o.Log.Found() {
		s.shipped = 0 // an old copy of the log is in its place
	}
	return nil
}

// gather makes the next object of the records that are durable and not shipped. more says that they do
// not fit. The records of messages are left out: their server has them. Without any an object is made
// if the last one is spent: that has the greatest number then, and can be deleted.
func (s *Shipper) gather(store string) (more bool, err error) {
	now := time.Now()
	to := s.o.Log.Durable()
	s.mu.Lock()
	from, spent := s.shipped, s.spent
	s.mu.Unlock()
	if to = max(to, from); to == from && !spent {
		return false, nil
	}
	s.raw = s.raw[:0]
	for r, err := range s.o.Log.Range(from, to) {
		if gap, ok := errors.AsType[*wal.CorruptError](err); ok && gap.To <= s.o.Log.Found() {
			more, to = gap.To < to, gap.To // the start has told, and nobody waits for it
			break
		}
		if err != nil {
			return false, fmt.Errorf("read the log to ship it: %w", err)
		}
		if runlog.Ships(r.Type, r.Payload) {
			s.raw = appendRecord(s.raw, &r)
		}
		if len(s.raw) >= mostRaw {
			more, to = r.End < to, r.End
			break
		}
	}
	if len(s.raw) == 0 {
		if s.advance(to, nil); !spent || more {
			return more, nil
		}
		from = to
	}
	s.pending = newObject(s.next, store)
	s.pending.from, s.pending.to, s.pending.until = from, to, now
	s.body = appendBody(s.body[:0], s.raw)
	s.pending.body = s.body
	if cap(s.raw) > 2*mostRaw {
		s.raw, s.body = nil, nil // of one long record
	}
	return more, nil
}

// advance notes that the log is shipped up to a position, in o if that is not nil.
func (s *Shipper) advance(to wal.Pos, o *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shipped = to
	if o != nil {
		s.kept, s.spent = append(s.kept, kept{o.number, to, o.from == to}), false
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// fence ends the shipper: the next object is not its own.
func (s *Shipper) fence(taken *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fenced = fmt.Errorf("ingester %s has adopted %s, which is this one and was silent for long; it must start again", taken.adopter, s.id)
	if taken.adopter == "" {
		s.fenced = fmt.Errorf("another process ships a log as ingester %s too: was its directory copied? This one must start again", s.id)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// note keeps the result of an attempt, and logs each change.
func (s *Shipper) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch was := s.failed; {
	case err == nil && was != nil:
		s.o.Logger.Info().Msg("the log is shipped again")
	case err != nil && (was == nil || storage.Gist(err) != storage.Gist(was)):
		s.o.Logger.Warn().Err(err).Msg("the log is not shipped; requests that ask for that wait, and are told so")
	}
	if err != nil {
		s.failures.Add(1)
		if s.failed == nil {
			s.since = time.Now()
		}
	}
	s.failed = err
}

// Fenced is the reason why this process may accept no record any more, nil if there is none.
func (s *Shipper) Fenced() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fenced
}

// Ships is the word of the row: the least level of any acknowledgement. The row may say was now. Earlier
// starts may have acknowledged less: the word is not raised before their records are shipped.
func (s *Shipper) Ships(was string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, strict := s.o.Log.Found(), ack.Shipped.String()
	if s.o.Strict && (was == strict || found == 0 || s.id != "" && s.shipped >= found) {
		return strict
	}
	return ack.Disk.String()
}

// Stats are how many objects were made, how many attempts failed, and the bytes of the objects.
func (s *Shipper) Stats() (made, failed, bytes uint64) {
	return s.shipments.Load(), s.failures.Load(), s.bytes.Load()
}

// Wait returns nil once a durable record of the log is in the store. If the store does not answer, the
// error is [ack.ErrDisk] or [record.ErrUnheld].
func (s *Shipper) Wait(ctx context.Context, pos wal.Pos) error {
	select {
	case s.wake <- struct{}{}:
	default:
	}
	patience := time.NewTimer(s.o.Wait)
	defer patience.Stop()
	for {
		s.mu.Lock()
		done, changed, fenced := s.id != "" && pos < s.shipped, s.changed, s.fenced
		failing := s.failed != nil && time.Since(s.since) >= s.o.Wait
		s.mu.Unlock()
		switch {
		case done:
			return nil
		case fenced != nil:
			return fmt.Errorf("%w: %w", record.ErrUnheld, fenced)
		case failing:
			return s.unshipped()
		}
		select {
		case <-changed:
		case <-patience.C:
			return s.unshipped()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Away is the reason why [Shipper.Wait] would fail at once: a request should be refused with it before it
// is in the log, or each time that it is sent again the log gets it once more. nil: it may wait.
func (s *Shipper) Away() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Disk || s.failed == nil || time.Since(s.since) < s.o.Wait {
		return nil
	}
	return fmt.Errorf("%w: the log is not shipped: %w", record.ErrUnheld, s.failed)
}

// unshipped is the error of a wait that was too long.
func (s *Shipper) unshipped() error {
	if s.o.Disk {
		return ack.ErrDisk
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("%w: the records are on the disk of this ingester, and were not shipped within %s: %w",
		record.ErrUnheld, s.o.Wait, cmp.Or(s.failed, errors.New("it is slow")))
}

const (
	// reapEvery is the pause between two looks for objects that are not needed any more.
	reapEvery = time.Second
	// mostReaped bounds the objects that are deleted at once.
	mostReaped = 256
)

// Reap deletes objects again and again until ctx ends.
func (s *Shipper) Reap(ctx context.Context) {
	for pause := reapEvery; wait(ctx, pause) == nil; {
		pause = reapEvery
		if err := s.Tidy(ctx); err != nil && ctx.Err() == nil {
			pause = time.Minute
			s.o.Logger.Warn().Err(err).Msg("parts of the log that are in blobs stay in the store; they are tried again")
		}
	}
}

// Tidy deletes the objects with records that are all in blobs. A batch may have been copied from an old
// part of the log to its end: then the copy is shipped first.
func (s *Shipper) Tidy(ctx context.Context) error {
	first, copied, err := s.o.Needed()
	for err == nil && !s.covers(copied) {
		err = wait(ctx, s.o.Every)
	}
	for more := true; err == nil && more; {
		more, err = s.reap(ctx, first)
	}
	return err
}

// Clear is Tidy until the store has no record that is in a blob. It is for the end of an ingester, while
// Run runs.
func (s *Shipper) Clear(ctx context.Context) error {
	for {
		if err := s.Tidy(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		spent, changed := s.spent, s.changed
		s.mu.Unlock()
		if !spent {
			return nil
		}
		select {
		case s.wake <- struct{}{}:
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Shipper) covers(pos wal.Pos) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return pos == 0 || s.id != "" && pos < s.shipped
}

// reap deletes some objects with nothing behind a position. more says that it did.
func (s *Shipper) reap(ctx context.Context, first wal.Pos) (more bool, err error) {
	s.reaping.Lock()
	defer s.reaping.Unlock()
	s.mu.Lock()
	n, id, fenced := 0, s.id, s.fenced
	var gone []storage.Blob
	for n < len(s.kept)-1 && n < mostReaped && s.kept[n].to <= first {
		gone = append(gone, storage.Blob{Key: key(id, s.kept[n].number)})
		n++
	}
	if last := len(s.kept) - 1; last >= 0 {
		s.spent = fenced == nil && !s.kept[last].empty && s.kept[last].to <= first
	}
	s.mu.Unlock()
	if n == 0 || fenced != nil {
		return false, nil
	}
	if err := s.o.Blobs.Delete(ctx, gone...); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == id {
		s.kept = s.kept[n:]
	}
	return true, nil
}
