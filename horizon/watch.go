package horizon

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/storage"
)

// ErrExpired says that something is of a day that has been dropped. It is not to be
// stored any more: that is what was asked for when the day was dropped.
var ErrExpired = errors.New("expired")

// WatchOptions tune a Watch. The zero value works.
type WatchOptions struct {
	Every   time.Duration    // how often Run reads; 0: 1 min
	MaxAge  time.Duration    // how old a copy Fresh gives; 0: 2 min
	Timeout time.Duration    // of one reading; 0: MaxAge, which is also the most
	Now     func() time.Time // nil: time.Now
	Log     zerolog.Logger
}

// Watch knows the horizons of all services, for who writes all the time. Run reads
// them every minute. Who answers a sender asks [Watch.Hides], which knows what was
// read last; who is about to store something goes through [Watch.Guard], which
// insists on knowing what is so now. Its methods may be called by any number of
// goroutines, and work without Run too.
type Watch struct {
	o     WatchOptions
	store Lister
	known atomic.Pointer[reading] // the last that worked; never changed
	reads atomic.Uint64
	fails atomic.Uint64
	first chan struct{}

	mu         sync.Mutex
	under      *reading // the one under way, which all wait for
	failing    bool
	impossible string // what was last told of
}

// reading is one look at all horizons.
type reading struct {
	begun time.Time // what was published later may not be in it
	done  chan struct{}

	// For who waits for done.
	h    Horizons
	err  error
	left bool // who read gave up: that says nothing of the store
}

// NewWatch returns a watch. It starts nothing and asks the store nothing: until the
// first reading nothing is hidden.
func NewWatch(store Lister, o WatchOptions) *Watch {
	if o.Every == 0 {
		o.Every = time.Minute
	}
	if o.MaxAge == 0 {
		o.MaxAge = 2 * time.Minute
	}
	// 100,000 services have 40 pages of marks, one after another: a reading that took
	// too long every time would have nothing stored any more.
	if o.Timeout == 0 {
		o.Timeout = o.MaxAge
	}
	o.Timeout = min(o.Timeout, o.MaxAge)
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Watch{o: o, store: present{store}, first: make(chan struct{})}
	w.known.Store(&reading{})
	return w
}

// present is a store that has to be there. For who is about to store something, one
// that is not tells nothing: its disk may be back the next moment, horizons and all.
type present struct{ Lister }

// List walks as the store does.
func (p present) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		for b, err := range p.Lister.List(ctx, prefix, startAfter) {
			if errors.Is(err, storage.ErrNotExist) {
				err = fmt.Errorf("the store is away: %v", err)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// First is closed when Run has read for the first time, whatever came of it.
func (w *Watch) First() <-chan struct{} { return w.first }

// Run reads the horizons until ctx ends. It is called once.
func (w *Watch) Run(ctx context.Context) {
	t := time.NewTicker(w.o.Every)
	defer t.Stop()
	for n := 0; ; n++ {
		w.read(ctx, true) // an error is told by it, and what is known stands
		if n == 0 {
			close(w.first)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Hides says whether a day of a service has been dropped, as far as is known. It
// asks nobody and never waits. It errs by showing what has just been dropped, never
// the other way, since horizons only rise.
func (w *Watch) Hides(service string, d Day) bool { return w.known.Load().h.Hides(service, d) }

// Fresh gives the horizons as they are, at most MaxAge ago. Where the last reading
// is older it reads now, once for all that wait, and gives that reading's error.
// The map is shared, and not to be changed.
func (w *Watch) Fresh(ctx context.Context) (Horizons, error) {
	if r := w.known.Load(); w.fresh(r) {
		return r.h, nil
	}
	return w.read(ctx, false)
}

// fresh goes by both clocks: one does not count while the machine sleeps, the other
// may be set back.
func (w *Watch) fresh(r *reading) bool {
	if r.begun.IsZero() {
		return false
	}
	now := w.o.Now()
	age := max(now.Sub(r.begun), now.Round(0).Sub(r.begun.Round(0)))
	return age >= 0 && age <= w.o.MaxAge
}

// read reads the horizons, or waits for a reading that has begun. Unless it must be
// anew, a fresh one that has just ended will do.
func (w *Watch) read(ctx context.Context, anew bool) (Horizons, error) {
	for {
		r, own := w.join(anew)
		if own {
			w.perform(ctx, r)
			return r.h, r.err
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !r.left {
			return r.h, r.err
		}
	}
}

// join returns the reading in progress, or a new one, which the caller performs.
func (w *Watch) join(anew bool) (r *reading, own bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.under != nil {
		return w.under, false
	}
	if r = w.known.Load(); !anew && w.fresh(r) {
		return r, false
	}
	w.under = &reading{begun: w.o.Now(), done: make(chan struct{})}
	return w.under, true
}

func (w *Watch) perform(ctx context.Context, r *reading) {
	limited, cancel := context.WithTimeout(ctx, w.o.Timeout)
	defer cancel()
	r.h, r.err = Read(limited, w.store)
	impossible := r.h.withoutImpossible(DayOf(r.begun))
	if r.err == nil && !w.fresh(r) {
		r.err = fmt.Errorf("list what has been dropped: took longer than %s", w.o.MaxAge)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.under = nil
	r.left = r.err != nil && ctx.Err() != nil
	switch {
	case r.left:
	case r.err != nil:
		r.h = nil
		w.fails.Add(1)
		if !w.failing {
			w.o.Log.Warn().Err(r.err).Msg("cannot see which days have been dropped: nothing is stored until that works again")
		}
		w.failing = true
	default:
		w.tellImpossible(impossible)
		w.known.Store(r)
		w.reads.Add(1)
		if w.failing {
			w.o.Log.Info().Msg("it is known again which days have been dropped")
		}
		w.failing = false
	}
	close(r.done)
}

// withoutImpossible takes out horizons that hide today, and gives the first service
// that has one. No policy hides what is not a day old: such a horizon is that of a
// wrong clock, or of somebody's hand, and the job deletes nothing by it. Who stored
// nothing by it would lose what is logged now.
func (h Horizons) withoutImpossible(today Day) (first string) {
	for name, s := range h {
		if !s.Set || s.First <= today {
			continue
		}
		if first == "" || name < first {
			first = name
		}
		s.First, s.Set = 0, false
		h[name] = s
	}
	return first
}

// tellImpossible warns of what withoutImpossible found, once. w.mu is held.
func (w *Watch) tellImpossible(service string) {
	if service != "" && service != w.impossible {
		w.o.Log.Error().Str("service", service).
			Msg("a horizon hides today, which no policy does: records are stored as if it were not there, but readers show nothing below it; see docs/OPERATING.md, Retention")
	}
	w.impossible = service
}

// Readings is how many readings worked and how many failed.
func (w *Watch) Readings() (worked, failed uint64) { return w.reads.Load(), w.fails.Load() }

// Guard returns a store that takes no blob of a day that has been dropped: such a
// Create fails with [ErrExpired], and with the error of [Watch.Fresh] where it is
// not known what has been dropped; nothing is sent then. Otherwise a blob could
// appear in a day that the retention job has done with.
func (w *Watch) Guard(store storage.BlobStore) storage.BlobStore { return guarded{store, w} }

type guarded struct {
	storage.BlobStore
	w *Watch
}

// Create implements [storage.BlobStore].
func (g guarded) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	name, err := blobfmt.ParseName(key)
	if err != nil {
		return g.BlobStore.Create(ctx, key, body, attrs) // no blob of a day
	}
	h, err := g.w.Fresh(ctx)
	if err == nil && h.Hides(name.Service, DayOf(name.Period)) {
		err = ErrExpired
	}
	if err != nil {
		return &storage.KeyError{Op: "create", Key: key, Err: err}
	}
	return g.BlobStore.Create(ctx, key, body, attrs)
}
