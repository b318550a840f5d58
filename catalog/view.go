package catalog

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/storage/fanout"
)

// A View holds one reader's knowledge of dropped days, for some services and the duration
// of a read. It hides them.
//
// Its first check of the horizons is concurrent with the first listing, so that no
// request waits for it. A later one, [View.Look], is concurrent with the read of the
// listed blobs. It explains a short listing, because retention hides a day before it deletes
// it. A listing that ended soon after the last check began needs none ([View.Settled]). Any
// number of goroutines may use a View.
type View struct {
	store    Store
	services []string
	parts    func() time.Time // nil: a range is one List; see [View.InParts]
	memory   *Memory          // see [View.Remember]

	start sync.Once
	known chan struct{} // closed after the first check
	err   error         // of the first check
	fault *fanout.Panic // of the first check
	first horizon.Horizons
	now   atomic.Pointer[horizon.Checked]
	turn  chan struct{} // held by a check, so that no older one replaces a newer one
}

// NewView makes the view of some services. A caller that has read the horizons itself,
// and omitted their days from its other records, passes them as known. If it has no days,
// not even an empty map, the view reads them. NewView sends the store no request.
func NewView(store Store, services []string, known horizon.Checked) *View {
	v := &View{store: store, services: services, known: make(chan struct{}), turn: make(chan struct{}, 1)}
	if known.Days != nil {
		v.now.Store(&known)
	}
	return v
}

// Begin starts the first check in the background, if it has not been started. Its caller
// has to call Wait.
func (v *View) Begin(ctx context.Context) {
	v.start.Do(func() {
		go func() {
			defer close(v.known)
			v.fault = fanout.Keep(func() {
				if v.now.Load() == nil {
					v.err = v.Look(ctx)
				}
				if h := v.now.Load(); h != nil {
					v.first = h.Days
				}
			})
		}()
	})
}

// Wait waits for the first check and returns its error.
func (v *View) Wait() error {
	<-v.known
	v.fault.Again()
	return v.err
}

// Look reads the horizons again. A hidden day stays hidden: a horizon only rises,
// and the mark of a single day is deleted only below one.
func (v *View) Look(ctx context.Context) error {
	if len(v.services) == 0 {
		return nil
	}
	select {
	case v.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-v.turn }()
	c, err := horizon.Check(ctx, v.store, v.services...)
	if err != nil {
		return err
	}
	if was := v.now.Load(); was != nil && was.Forbidden == nil && c.Forbidden != nil {
		return c.Forbidden // the right ended meanwhile
	}
	v.now.Store(&c)
	return nil
}

// Forbidden is the error if the reader has no right to read the horizons, and so hides no
// day.
func (v *View) Forbidden() error {
	if c := v.now.Load(); c != nil {
		return c.Forbidden
	}
	return nil
}

// Settled reports whether a listing that has just ended lacks no blob of a day that the last
// check found to be kept: that check began a short time ago, and any day that was hidden
// since is still whole. most is the longest such time, if less than the one of
// [horizon.Settle] is right.
func (v *View) Settled(most time.Duration) bool {
	h := v.now.Load()
	if h == nil {
		return false
	}
	most = min(most, horizon.Settle/2)
	// The monotonic clock stands still while the host sleeps, and the other one may be set.
	passed := time.Now().Round(0).Sub(h.Begun.Round(0))
	return time.Since(h.Begun) <= most && 0 <= passed && passed <= most
}

// Hides reports whether a day of a service has been dropped, as of the last check.
func (v *View) Hides(service string, d horizon.Day) bool {
	h := v.now.Load()
	return h != nil && h.Days.Hides(service, d)
}

// Dropped returns the dropped days of a service: as of the first check, and of the last.
func (v *View) Dropped(service string) (first, last horizon.Service) {
	if h := v.now.Load(); h != nil {
		last = h.Days[service]
	}
	return v.first[service], last
}

// A Walk finds the periods of a service from the newest back, and skips dropped days. It
// uses the names of directories and lists no more than it needs. Only one goroutine may
// use it.
type Walk struct {
	Service string
	// Seen reports that the service has a period, dropped or not, among those that the
	// walk has reached.
	Seen bool

	view *View
	tree tree
}

// Walk starts a walk over a service of the view.
func (v *View) Walk(service string) *Walk {
	return &Walk{Service: service, view: v, tree: tree{store: v.store, service: service, depth: len(layouts), back: true}}
}

// Bare are the days without a period that the walk has passed: the account of such a day may be left.
func (w *Walk) Bare() []horizon.Day { return w.tree.bare }

// Guess guesses the start of the newest period that begins before a time: it returns the
// newest one of the month of near, which must not be later than that time. It does not look
// at later months, and does not leave out dropped days. So a guess is a place to list from,
// and does not show which periods there are. Two requests at once find it if it is on the
// day of near; a third follows if not. The walk uses their answers, and sends the rest of its
// first requests at once.
func (w *Walk) Guess(ctx context.Context, near, before time.Time) (start time.Time, ok bool, err error) {
	t := &w.tree
	t.near = near
	t.request(ctx, monthLevels, len(layouts))
	month := *t
	month.left = make([][]string, monthLevels) // nothing but this month
	if err = month.load(ctx, pathOf(near, monthLevels)); err == nil {
		start, ok, err = month.next(ctx, before)
	}
	t.near = start
	return start, ok, err
}

// Before returns the start of the newest period that begins before a time and has not
// been dropped. Later calls must pass the same time or an earlier one. An error of the
// first check is returned unchanged.
func (w *Walk) Before(ctx context.Context, to time.Time) (start time.Time, ok bool, err error) {
	w.view.Begin(ctx)
	for {
		start, ok, err = w.tree.next(ctx, to)
		err = listError(w.Service, err)
		if unknown := w.view.Wait(); err == nil {
			err = unknown
		}
		if !ok || err != nil {
			return time.Time{}, false, err
		}
		w.Seen = true
		d := horizon.DayOf(start)
		if !w.view.Hides(w.Service, d) {
			return start, true, nil
		}
		if _, last := w.view.Dropped(w.Service); last.Set && d < last.First {
			return time.Time{}, false, nil // and so is all that is older
		}
		to = d.Start()
	}
}
