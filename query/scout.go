package query

import (
	"context"
	"slices"
	"sync"
	"time"

	"blobtail/catalog"
	"blobtail/retention/horizon"
)

// mostScouted is the greatest number of services whose newest hour is guessed. A guess is
// followed by the listing of each service, and if that has too few records, by a walk. The
// walk of many services costs fewer requests, because it leads to those with records.
const mostScouted = 16

// A Scout looks at a store for a query, while its caller still gathers unflushed records. A
// read must not miss what was stored since, so a Scout only guesses:
//
//   - the hour of the newest records. A read with a limit begins to list at that hour. It
//     lists to the end of its range, and looks again for anything older.
//   - the services that globs mean. A plan lists their blobs, and meanwhile the services
//     again. If these differ, it is made anew.
type Scout struct {
	stop     context.CancelFunc
	done     chan struct{}
	services []string  // all of the store; nil: unknown
	guess    time.Time // zero: none
}

// Scout starts a Scout in the background. Its caller has to close it.
func (r *Reader) Scout(ctx context.Context, q Query) *Scout {
	ctx, stop := context.WithCancel(ctx)
	s := &Scout{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		services, _, err := resolve(ctx, q.Services, func(ctx context.Context) (all []string, err error) {
			s.services, err = catalog.Services(ctx, r.store)
			return s.services, err
		})
		if err == nil && q.Limit > 0 {
			s.guess = r.recent(ctx, walks(catalog.NewView(r.store, services, horizon.Checked{}), services), q.Range.To)
		}
	}()
	return s
}

// Close ends the Scout and waits for its requests.
func (s *Scout) Close() {
	s.stop()
	<-s.done
}

// scouted makes a plan for the services that a Scout found, and lists the services again at
// the same time. It returns nil if they differ, or if anything failed.
func (r *Reader) scouted(ctx context.Context, q Query) *Plan {
	if q.Scout == nil {
		return nil
	}
	<-q.Scout.done
	if q.Scout.services == nil {
		return nil
	}
	var stored []string
	var failed error
	var listing sync.WaitGroup
	listing.Go(func() { stored, failed = catalog.Services(ctx, r.store) })
	p, err := r.plan(ctx, q, q.Scout.services)
	listing.Wait()
	if err != nil || failed != nil || !slices.Equal(stored, q.Scout.services) {
		return nil
	}
	return p
}

// recent guesses the hour of the newest records before a time, and tells it the walks of
// the services; zero: there is no guess. It ignores errors, which a read finds again.
func (r *Reader) recent(ctx context.Context, walks []*catalog.Walk, to int64) time.Time {
	if len(walks) > mostScouted {
		return time.Time{}
	}
	before := time.Unix(0, to)
	near := r.opt.Now()
	if last := before.Add(-1); last.Before(near) {
		near = last
	}
	hours := make([]time.Time, len(walks))
	_ = atOnce(len(walks), func(i int) error {
		start, ok, err := walks[i].Guess(ctx, near, before)
		if ok && err == nil {
			hours[i] = start.Truncate(time.Hour)
		}
		return nil
	})
	return slices.MaxFunc(append(hours, time.Time{}), time.Time.Compare)
}

// walks starts a walk over each of some services of a view.
func walks(view *catalog.View, services []string) (out []*catalog.Walk) {
	for _, service := range services {
		out = append(out, view.Walk(service))
	}
	return out
}
