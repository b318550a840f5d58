package catalog

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"blobtail/horizon"
)

// A View holds one reader's knowledge of dropped days, for some services and the
// duration of a read. It hides them.
//
// Its first look at the horizons is concurrent with the first listing, so that no
// request waits for it. The second, [View.Look], is concurrent with the read of the
// listed blobs. Retention deletes a day only after it was hidden for a grace. So every
// day that was deleted before the listing ended was hidden before that, and the second
// look explains a short listing.
//
// Any number of goroutines may use a View.
type View struct {
	store    Store
	services []string

	start sync.Once
	known chan struct{} // closed after the first look
	err   error         // of the first look
	first horizon.Horizons
	now   atomic.Pointer[horizon.Horizons]
	turn  chan struct{} // held by a look, so that no older one replaces a newer one
}

// NewView makes the view of some services. The caller may have read the horizons
// itself, and left their days out of its other records: these are known. If nil, the
// view reads them. NewView asks the store nothing.
func NewView(store Store, services []string, known horizon.Horizons) *View {
	v := &View{store: store, services: services, known: make(chan struct{}), turn: make(chan struct{}, 1)}
	if known != nil {
		v.now.Store(&known)
	}
	return v
}

// Begin starts the first look in the background, if it has not been started. Its
// caller has to call Wait. A nil view knows of no dropped days.
func (v *View) Begin(ctx context.Context) {
	if v == nil {
		return
	}
	v.start.Do(func() {
		go func() {
			defer close(v.known)
			if v.now.Load() == nil {
				v.err = v.Look(ctx)
			}
			if h := v.now.Load(); h != nil {
				v.first = *h
			}
		}()
	})
}

// Wait waits for the first look and returns its error.
func (v *View) Wait() error {
	if v == nil {
		return nil
	}
	<-v.known
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
	h, err := horizon.Read(ctx, v.store, v.services...)
	if err == nil {
		v.now.Store(&h)
	}
	return err
}

// Hides reports whether a day of a service has been dropped, as of the last look.
func (v *View) Hides(service string, d horizon.Day) bool {
	h := v.now.Load()
	return h != nil && h.Hides(service, d)
}

// Dropped gives the dropped days of a service: as of the first look, and of the last.
func (v *View) Dropped(service string) (first, last horizon.Service) {
	if h := v.now.Load(); h != nil {
		last = (*h)[service]
	}
	return v.first[service], last
}

// Blobs lists like the function [Blobs] and marks the entries of dropped days. It
// begins the first look if need be, and yields its error.
func (v *View) Blobs(ctx context.Context, service string, r Range) iter.Seq2[Entry, error] {
	l := newListing(ctx, v.store, service, r)
	l.view = v
	return l.entries
}

// A Walk finds the periods of a service from the newest back, and passes over dropped
// days. It goes by the names of directories and lists no more than it needs. It is
// for one goroutine.
type Walk struct {
	Service string
	// Seen says that the service has a period, dropped or not, as far as the walk came.
	Seen bool

	view *View
	tree tree
}

// Walk starts a walk over a service of the view.
func (v *View) Walk(service string) *Walk {
	return &Walk{Service: service, view: v, tree: tree{store: v.store, service: service, depth: periodLevels, back: true}}
}

// Before gives the start of the newest period that begins before a time and has not
// been dropped. Later calls may only ask for the same time or an earlier one. An
// error of the first look comes as it is.
func (w *Walk) Before(ctx context.Context, to time.Time) (start time.Time, ok bool, err error) {
	w.view.Begin(ctx)
	for {
		start, ok, err = w.tree.next(ctx, to)
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
