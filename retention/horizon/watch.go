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

// ErrExpired says that a record or blob is of a dropped day. It must not be stored any
// more: dropping the day asked for that.
var ErrExpired = errors.New("expired")

// WatchOptions tune a Watch. The zero value works.
type WatchOptions struct {
	Every   time.Duration    // how often Run reads; 0: 1 min
	MaxAge  time.Duration    // the greatest age of a copy that Fresh returns; 0: 2 min
	Timeout time.Duration    // of one reading; 0: MaxAge, which is also the most
	Now     func() time.Time // nil: time.Now
	Log     zerolog.Logger
}

// Watch knows the horizons of all services, for processes that write all the time. Run
// reads them every minute. [Watch.Hides] is for the answer to a sender, and uses the
// last reading. [Watch.Guard] is for a writer that is about to store a blob, and
// insists on a fresh reading. The methods may be called concurrently, and work without
// Run too.
type Watch struct {
	o     WatchOptions
	store Lister
	known atomic.Pointer[reading] // the last reading that worked; never changed
	reads atomic.Uint64
	fails atomic.Uint64
	first chan struct{}

	mu         sync.Mutex
	under      *reading // the reading under way, which all callers wait for
	failing    bool
	impossible string // the last service that was logged
}

// reading is one reading of all horizons.
type reading struct {
	begun time.Time // marks published later may be missing
	done  chan struct{}

	// For callers that wait for done.
	h    Horizons
	err  error
	left bool // the caller that read gave up: that says nothing about the store
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
	// 100,000 services have 40 pages of marks, one after another. If a reading took too
	// long every time, nothing could be stored any more.
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

// present is a store that must exist. For a writer a missing store means nothing: its
// disk may be back the next moment, with all horizons.
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

// First is closed after the first reading of Run, even if that fails.
func (w *Watch) First() <-chan struct{} { return w.first }

// Run reads the horizons until ctx ends. It is called once.
func (w *Watch) Run(ctx context.Context) {
	t := time.NewTicker(w.o.Every)
	defer t.Stop()
	for n := 0; ; n++ {
		w.read(ctx, true) // it logs an error, and the last reading stays in force
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

// Hides reports whether a day of a service has been dropped, by the last reading. It
// sends no request and never waits. It may show a day that has just been dropped, but
// never the other way, since horizons only rise.
func (w *Watch) Hides(service string, d Day) bool { return w.known.Load().h.Hides(service, d) }

// Fresh returns the horizons as of at most MaxAge ago. If the last reading is older it
// reads now, once for all callers that wait, and returns that reading's error. The map
// is shared, and must not be changed.
func (w *Watch) Fresh(ctx context.Context) (Horizons, error) {
	if r := w.known.Load(); w.fresh(r) {
		return r.h, nil
	}
	return w.read(ctx, false)
}

// fresh uses both clocks: one does not count while the machine sleeps, the other may be
// set back.
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

// withoutImpossible removes horizons that hide today, and returns the first service
// that has one. No policy hides records less than a day old. Such a horizon comes from
// a wrong clock, or was made by hand, and the job deletes nothing by it. A writer that
// respected it would lose the records that are logged now.
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

// tellImpossible logs the result of withoutImpossible, once. w.mu is held.
func (w *Watch) tellImpossible(service string) {
	if service != "" && service != w.impossible {
		w.o.Log.Error().Str("service", service).
			Msg("a horizon hides today, which no policy does: records are stored as if it were not there, but readers show nothing below it; see docs/OPERATING.md, Retention")
	}
	w.impossible = service
}

// Readings returns how many readings worked and how many failed.
func (w *Watch) Readings() (worked, failed uint64) { return w.reads.Load(), w.fails.Load() }

// Guard returns a store that accepts no blob of a dropped day. Such a Create fails with
// [ErrExpired]. If the dropped days are not known it fails with the error of
// [Watch.Fresh], and nothing is sent. Otherwise a blob could appear in a day that the
// retention job has finished.
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
