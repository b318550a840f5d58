package horizon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"blobtail/blobfmt"
	"blobtail/storage"
)

// ErrExpired says that a record or blob is of a dropped day. It must not be stored any
// more: dropping the day asked for that.
var ErrExpired = errors.New("expired")

const (
	every  = time.Minute
	maxAge = 2 * time.Minute // the greatest age of a copy that Fresh returns
	// timeout bounds one reading. 100,000 services have 40 pages of marks, one after
	// another.
	timeout = maxAge
)

// WatchOptions tune a Watch. The zero value works.
type WatchOptions struct {
	Now func() time.Time // nil: time.Now
	Log zerolog.Logger
}

// Watch knows the horizons of all services, for processes that write all the time. Its
// methods may be called concurrently, and work without Run too.
type Watch struct {
	o            WatchOptions
	store        Lister
	known        atomic.Pointer[reading] // the last reading that worked; never changed
	reads, fails atomic.Uint64
	first        chan struct{}
	alive        context.Context // of readings; ends with Run
	end          context.CancelFunc
	once         singleflight.Group // the reading in progress, for which all callers wait

	// Of the reading in progress:
	failing    bool
	impossible string // the last service that was logged
}

// reading is one reading of all horizons.
type reading struct {
	begun time.Time // marks published later may be missing
	h     Horizons
}

// NewWatch returns a watch. It starts nothing and asks the store nothing: until the
// first reading nothing is hidden.
func NewWatch(store Lister, o WatchOptions) *Watch {
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Watch{o: o, store: store, first: make(chan struct{})}
	w.alive, w.end = context.WithCancel(context.Background())
	w.known.Store(&reading{})
	return w
}

// First is closed after the first reading of Run, even if that fails.
func (w *Watch) First() <-chan struct{} { return w.first }

// Run reads the horizons every minute until ctx ends. It is called once.
func (w *Watch) Run(ctx context.Context) {
	t := time.NewTicker(every)
	defer t.Stop()
	defer w.end()
	w.read(ctx, true) // it logs an error, and the last reading stays in force
	close(w.first)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			w.read(ctx, true)
		}
	}
}

// Hides reports whether a day of a service has been dropped, by the last reading, for the
// answer to a sender. It never waits. It may show a day that has just been dropped, but
// never the other way, since horizons only rise.
func (w *Watch) Hides(service string, d Day) bool { return w.known.Load().h.Hides(service, d) }

// Fresh returns the horizons as of at most two minutes ago. If the last reading is older
// it reads now, once for all callers that wait, and returns that reading's error. The
// reading goes on if callers give up. The map is shared, and must not be changed.
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
	return age >= 0 && age <= maxAge
}

// read reads the horizons, or waits for a reading that has begun. Unless it must be
// anew, a fresh one that has just ended will do.
func (w *Watch) read(ctx context.Context, anew bool) (Horizons, error) {
	select {
	case done := <-w.once.DoChan("", func() (any, error) { return w.perform(anew) }):
		return done.Val.(Horizons), done.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// perform reads the horizons for all callers that wait, so it does not end with one of
// them.
func (w *Watch) perform(anew bool) (Horizons, error) {
	if r := w.known.Load(); !anew && w.fresh(r) {
		return r.h, nil
	}
	ctx, cancel := context.WithTimeout(w.alive, timeout)
	defer cancel()
	r := &reading{begun: w.o.Now()}
	marks, err := Marks(ctx, w.store)
	switch {
	case errors.Is(err, storage.ErrNotExist):
		// For a writer a missing store means nothing: its disk may be back the next
		// moment, with all horizons.
		err = fmt.Errorf("the store is away: %v", err)
	case err == nil && !w.fresh(r):
		err = fmt.Errorf("list what has been dropped: took longer than %s", maxAge)
	}
	if err != nil && w.alive.Err() != nil {
		return nil, err // the store may be closed
	}
	failed := w.failing
	if w.failing = err != nil; w.failing {
		w.fails.Add(1)
		if !failed {
			w.o.Log.Warn().Err(err).Msg("cannot see which days have been dropped: nothing is stored until that works again")
		}
		return nil, err
	}
	r.h = Of(Possible(marks, r.begun))
	w.tellImpossible(marks, r.begun)
	w.known.Store(r)
	w.reads.Add(1)
	if failed {
		w.o.Log.Info().Msg("it is known again which days have been dropped")
	}
	return r.h, nil
}

// tellImpossible logs the first service with an impossible horizon, once.
func (w *Watch) tellImpossible(marks []Mark, now time.Time) {
	first := ""
	for _, m := range marks {
		if m.Impossible(now) {
			first = min(cmp.Or(first, m.Service), m.Service)
		}
	}
	if first != "" && first != w.impossible {
		w.o.Log.Error().Str("service", first).
			Msg("a horizon hides today, or the day on which it was stored, which no policy does: records are stored as if it were not there, but readers show nothing below it, and nothing of the service is deleted; see docs/operate/retention.md")
	}
	w.impossible = first
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
	if name, err := blobfmt.ParseName(key); err == nil { // else it is no blob of a day
		h, err := g.w.Fresh(ctx)
		if err == nil && h.Hides(name.Service, DayOf(name.Period)) {
			err = ErrExpired
		}
		if err != nil {
			return storage.AtKey("create", key, err)
		}
	}
	return g.BlobStore.Create(ctx, key, body, attrs)
}
