package buffer

import (
	"container/heap"
	"time"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
)

// index finds the unstored batches, open and cut, without a walk over all. Buffer.mu guards it.
//
// Its invariant: a batch is in it from its first run until it is stored, has expired or is taken
// apart, and under the place that it has.
type index struct {
	open     map[runlog.Bin]*Batch
	services map[string]*service
	entries  []entry // of the services in the order of their numbers; gone of them are no more
	gone     int
	number   uint64                         // of the newest service
	segments map[uint32]map[*Batch]struct{} // by the segment of the first run
	held     int64                          // bytes of all runs

	due      pile[*Batch] // open ones, by the time at which their age cuts them
	oldest   pile[*Batch] // by arrival
	earliest pile[*Batch] // by the time of the first record
}

// entry is a service that has or had unstored batches. Entries never change, so a reader can look
// at them without the lock.
type entry struct {
	name   string
	number uint64 // it only grows
	*service
}

// service is the unstored batches of one service.
type service struct {
	name    string
	open    []*Batch
	cut     []*Batch  // in the order of the queue
	taken   int       // those that the sink has
	slow    int       // of these, with a slow try
	last    time.Time // start of the last try
	trouble trouble

	pile *pile[*service] // of the queue; nil: it has no batch that may be tried
	slot int             // in pile
	next *Batch          // to be tried next, if that is possible now
	at   time.Time       // else the time at which one may be tried
}

// places are where a batch is in the lists of the index.
type places struct {
	open, due, oldest, earliest int
}

func newIndex(o *Options) index {
	slot := func(f func(p *places) *int) func(*Batch) *int {
		return func(b *Batch) *int { return f(&b.places) }
	}
	return index{
		open:     map[runlog.Bin]*Batch{},
		services: map[string]*service{},
		segments: map[uint32]map[*Batch]struct{}{},
		due: pile[*Batch]{
			before: func(x, y *Batch) bool { return o.due(x).Before(o.due(y)) },
			slot:   slot(func(p *places) *int { return &p.due }),
		},
		oldest: pile[*Batch]{
			before: func(x, y *Batch) bool { return x.since.Before(y.since) },
			slot:   slot(func(p *places) *int { return &p.oldest }),
		},
		earliest: pile[*Batch]{
			before: func(x, y *Batch) bool { return x.span.First < y.span.First },
			slot:   slot(func(p *places) *int { return &p.earliest }),
		},
	}
}

// of returns the service of a name.
func (x *index) of(name string) *service {
	s := x.services[name]
	if s == nil {
		s = &service{name: name}
		x.services[name] = s
		x.number++
		x.entries = append(x.entries, entry{name, x.number, s})
	}
	return s
}

// enter adds a batch, which is open or cut.
func (x *index) enter(b *Batch) {
	b.service = x.of(b.bin.Service)
	heap.Push(&x.oldest, b)
	heap.Push(&x.earliest, b)
	x.putAt(b)
}

// enterOpen adds a batch as the open one of its bin.
func (x *index) enterOpen(b *Batch) {
	x.enter(b)
	x.open[b.bin] = b
	b.places.open = len(b.service.open)
	b.service.open = append(b.service.open, b)
	heap.Push(&x.due, b)
}

// putAt adds a batch under its place in the log.
func (x *index) putAt(b *Batch) {
	n := b.named.First.Segment()
	if x.segments[n] == nil {
		x.segments[n] = map[*Batch]struct{}{}
	}
	x.segments[n][b] = struct{}{}
	x.held += b.named.Held
}

// takeFrom undoes putAt.
func (x *index) takeFrom(b *Batch) {
	n := b.named.First.Segment()
	if delete(x.segments[n], b); len(x.segments[n]) == 0 {
		delete(x.segments, n)
	}
	x.held -= b.named.Held
}

// close notes that a batch is no longer open. It stays unstored.
func (x *index) close(b *Batch) {
	delete(x.open, b.bin)
	s, last := b.service, len(b.service.open)-1
	s.open[b.places.open] = s.open[last]
	s.open[b.places.open].places.open = b.places.open
	s.open[last] = nil
	s.open = s.open[:last]
	heap.Remove(&x.due, b.places.due)
}

// remove removes an open batch.
func (x *index) remove(b *Batch) {
	x.close(b)
	x.leave(b)
}

// leave removes a batch that is not open.
func (x *index) leave(b *Batch) {
	heap.Remove(&x.oldest, b.places.oldest)
	heap.Remove(&x.earliest, b.places.earliest)
	x.takeFrom(b)
	x.forget(b.service)
}

// forget removes a service without batches.
func (x *index) forget(s *service) {
	if len(s.open)+len(s.cut)+s.taken > 0 || x.services[s.name] != s {
		return
	}
	delete(x.services, s.name)
	if x.gone++; x.gone < 1000 || x.gone < len(x.entries)/2 {
		return
	}
	left := make([]entry, 0, len(x.services))
	for _, e := range x.entries {
		if x.services[e.name] == e.service {
			left = append(left, e)
		}
	}
	x.entries, x.gone = left, 0
}

// grow adds a run to an open batch.
func (x *index) grow(o *Options, b *Batch, e runlog.Extent, span runlog.Span, records int, bytes int64) {
	first, small := b.span.First, b.named.Bytes < o.Min
	b.add(e, span, records, bytes)
	x.held += int64(e.Len)
	if b.span.First < first {
		heap.Fix(&x.earliest, b.places.earliest)
	}
	if small && b.named.Bytes >= o.Min {
		heap.Fix(&x.due, b.places.due)
	}
}

// date notes that an open batch has records that came at a time: those of another ingester may be older.
func (x *index) date(b *Batch, came time.Time) {
	if came.Before(b.since) {
		b.since = came
		heap.Fix(&x.due, b.places.due)
		heap.Fix(&x.oldest, b.places.oldest)
	}
}

// since returns the services with a greater number, which have come last.
func (x *index) since(number uint64) []entry {
	n := len(x.entries)
	for n > 0 && x.entries[n-1].number > number {
		n--
	}
	return x.entries[n:]
}

// unstored returns all batches. It takes milliseconds if they are many.
func (x *index) unstored() (all []*Batch) {
	for _, s := range x.services {
		all = append(append(all, s.open...), s.cut...)
	}
	return all
}

// holding returns the unstored batches of a request: its record is at positions from first to end,
// and a repeat of it has these runs.
func (x *index) holding(runs []repeatedRun, first, end wal.Pos) (found []*Batch) {
	for i, r := range runs {
		s := x.services[r.service]
		if s == nil || i > 0 && runs[i-1].service == r.service {
			continue
		}
		for _, batches := range [2][]*Batch{s.open, s.cut} {
			for _, batch := range batches {
				if batch.holds(first, end) && batch.mayHave(runs[i:]) {
					found = append(found, batch)
				}
			}
		}
	}
	return found
}

// pile is a heap of things that know their place in it.
type pile[T any] struct {
	all    []T
	before func(x, y T) bool
	slot   func(x T) *int
}

// Len is the number of things.
func (p *pile[T]) Len() int { return len(p.all) }

// Less reports the order of two things.
func (p *pile[T]) Less(i, j int) bool { return p.before(p.all[i], p.all[j]) }

// Swap swaps two things.
func (p *pile[T]) Swap(i, j int) {
	p.all[i], p.all[j] = p.all[j], p.all[i]
	*p.slot(p.all[i]), *p.slot(p.all[j]) = i, j
}

// Push is for package heap.
func (p *pile[T]) Push(x any) {
	*p.slot(x.(T)) = len(p.all)
	p.all = append(p.all, x.(T))
}

// Pop is for package heap.
func (p *pile[T]) Pop() any {
	n := len(p.all) - 1
	last := p.all[n]
	clear(p.all[n:])
	p.all = p.all[:n]
	return last
}

// while returns the things for which ok holds. ok must hold for all before one of them.
func (p *pile[T]) while(ok func(T) bool) (found []T) {
	for next := []int{0}; len(next) > 0; {
		i := next[len(next)-1]
		next = next[:len(next)-1]
		if i < len(p.all) && ok(p.all[i]) {
			found = append(found, p.all[i])
			next = append(next, 2*i+1, 2*i+2)
		}
	}
	return found
}
