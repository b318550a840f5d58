package tailindex

import (
	"slices"
	"time"
)

// shed frees memory until a quarter of the bound is free: first what is only kept
// for use, then the oldest lines of the services that hold the most. That costs
// a walk over all services, and is paid for by the quarter that has to fill again.
func (w *Writer) shed() {
	if !w.shedding.CompareAndSwap(false, true) {
		return // another is at it
	}
	defer w.shedding.Store(false)
	var sizes []int
	w.each(func(s *service) {
		w.dropSpare(s)
		if s.batch != nil {
			sizes = append(sizes, s.batch.size())
		}
	})
	target := w.o.Memory * 3 / 4
	over := w.bytes.Load() - target
	if over <= 0 {
		return
	}
	most := level(sizes, over)
	w.each(func(s *service) {
		if s.batch == nil {
			return
		}
		size := s.batch.size()
		if size <= most {
			return
		}
		errors := most * s.batch.errors.size() / size
		s.batch.all.shrink(most - errors)
		s.batch.errors.shrink(errors)
		w.bytes.Add(int64(s.batch.size() - size))
	})
}

// level is the size to which the largest have to be cut so that over bytes less
// are held.
func level(sizes []int, over int64) int {
	slices.Sort(sizes)
	for i := len(sizes) - 1; i >= 0; i-- {
		// All from i on are at least this large: cutting them to it frees the sum of
		// what they have more. Cut to the next, or to where it is enough.
		next := 0
		if i > 0 {
			next = sizes[i-1]
		}
		n := int64(len(sizes) - i)
		if frees := n * int64(sizes[i]-next); frees < over {
			over -= frees
			continue
		}
		return sizes[i] - int((over+n-1)/n)
	}
	return 0
}

// each calls f for every service, under the lock of its stripe.
func (w *Writer) each(f func(*service)) {
	for i := range w.stripes {
		st := &w.stripes[i]
		st.mu.Lock()
		for _, s := range st.services {
			f(s)
		}
		st.mu.Unlock()
	}
}

func (w *Writer) dropSpare(s *service) {
	if s.spare != nil {
		w.bytes.Add(-int64(s.spare.size()))
		s.spare = nil
	}
}

const (
	// quiet is after how long a service gives back the memory that it does not use.
	quiet = 10 * time.Second
	// forget is after how long it is forgotten. Its numbers begin again then, and
	// no key can be used twice: the day's table is another.
	forget = 49 * time.Hour
)

// sweep gives back what services hold that have gone quiet.
func (w *Writer) sweep(now time.Time) {
	w.each(func(s *service) {
		if s.busy || now.Sub(s.wrote) < quiet {
			return
		}
		w.dropSpare(s)
		if now.Sub(s.wrote) > forget {
			delete(s.stripe.services, s.name)
		}
	})
}
