package blobs

import (
	"context"
	"reflect"
	"slices"
	"time"

	"blobtail/catalog"
	"blobtail/catalog/horizon"
	"blobtail/storage/fanout"
)

// mostScouted is the greatest number of services with a guess of their newest hour. A guess is
// followed by the listing of each service, and if that has too few records, by a walk. The walk of
// many services costs fewer requests, because it leads to those with records.
const mostScouted = 16

// manyServices is the number of services from which on the newest hour is guessed to be the present
// one, without a request: a walk takes four requests for each service, and some of so many services
// log all the time. If the guess fails it has cost one request for each.
const manyServices = 1000

// youngHour is how long an hour has few records yet. A read that begins there lists the hour
// before it too, which costs no further request.
const youngHour = 15 * time.Minute

// A Scout looks at a store for a query, while its caller still gathers unflushed records. A read
// must not miss records that were stored since, so a Scout only guesses:
//
//   - the hour of the newest records. A read with a limit begins to list at that hour. It
//     lists to the end of its range, and looks again for anything older.
//   - the services that globs mean. A plan lists their blobs, and meanwhile the services
//     again. If these differ, it is made anew.
//   - the blobs, if all of them will be read. It requests the first of them. The read lists
//     them again, and goes on with these requests if the blobs are still there. Blobs never
//     change, so it may have any number of further ones.
type Scout struct {
	stop     context.CancelFunc
	done     chan struct{}
	services []string  // all of the store; nil: unknown
	guess    time.Time // zero: none

	fault *fanout.Panic // of the look at the services
	began chan struct{} // closed when pass is set, or will not be
	pass  *pass         // nil: there is none, or a read has taken it
}

// Scout starts a Scout in the background. Its caller has to close it. expired returns the
// horizons that the caller reads meanwhile, once it has them; nil: there are none.
func (r *Reader) Scout(ctx context.Context, q Query, expired func() horizon.Checked) *Scout {
	ctx, stop := context.WithCancel(ctx)
	s := &Scout{stop: stop, done: make(chan struct{}), began: make(chan struct{})}
	go func() {
		defer close(s.began)
		var services []string
		var err error
		s.fault = fanout.Keep(func() { services, err = s.look(ctx, r, q) })
		close(s.done)
		// Whether two functions are the same cannot be told, so no read could take the pass.
		if s.fault == nil && err == nil && q.Ahead && q.Limit == 0 && q.Filter.Accept == nil && len(services) > 0 {
			s.pass = r.beginPass(ctx, q, services, expired)
		}
	}()
	return s
}

// look finds the services, and guesses the newest hour.
func (s *Scout) look(ctx context.Context, r *Reader, q Query) (services []string, err error) {
	services, _, err = resolve(ctx, &q, func(ctx context.Context) (all []string, err error) {
		s.services, err = catalog.Services(ctx, r.store)
		return s.services, err
	})
	if err == nil && q.Limit > 0 {
		s.guess = r.recent(ctx, walks(catalog.NewView(r.store, services, horizon.Checked{}), services), q.Range.To)
	}
	return services, err
}

// beginPass lists the blobs of a query and begins the pass of a read; nil: it failed.
func (r *Reader) beginPass(ctx context.Context, q Query, services []string, expired func() horizon.Checked) *pass {
	quiet := *r
	quiet.opt.Progress = nil // the read counts the blobs
	q.Services, q.Unflushed, q.Stored, q.Scout, q.Expired.Days = services, nil, nil, nil, horizon.Horizons{}
	a, err := quiet.prepare(ctx, q, services)
	if err != nil {
		return nil
	}
	p := &Plan{asked: a, rng: q.Range}
	if err := p.list(ctx, func(int) bool { return true }); err != nil {
		return nil
	}
	if expired != nil {
		days := expired().Days
		p.blobs = slices.DeleteFunc(p.blobs, func(b blob) bool { return days.Hides(b.Name.Service, b.Day()) })
	}
	pass := a.newPass(ctx, p.task())
	pass.work.Requests, pass.work.Fetched = p.listed.Requests, p.listed.Fetched // of compacted blobs' indexes
	pass.ahead.startNext()
	return pass
}

// Close ends the Scout and waits for its requests.
func (s *Scout) Close() {
	s.stop()
	<-s.began
	if s.pass != nil {
		s.pass.close(new(Summary))
	}
}

// take returns the pass that the Scout has begun, if it can go on as the pass of a read.
// Otherwise it ends that pass, adds its requests to a summary, and returns nil.
func (s *Scout) take(t task, f Filter, sum *Summary) *pass {
	if s == nil {
		return nil
	}
	overtaken := false
	select {
	case <-s.began:
	default:
		overtaken = true // a pass that begins after the stop can read nothing
		s.stop()
		<-s.began
	}
	p := s.pass
	if p == nil {
		return nil
	}
	s.pass = nil
	if !overtaken && p.suits(t, f) {
		return p
	}
	var work Summary
	p.close(&work)
	sum.Join(&Summary{Requests: work.Requests, Fetched: work.Fetched})
	return nil
}

// suits reports whether a pass that has begun is one of the same task and filter, and all its
// blobs are among those of the task. It notes the further ones.
func (p *pass) suits(t task, f Filter) bool {
	if p.rng != t.rng || p.desc != t.desc || p.limit != t.limit || !reflect.DeepEqual(p.asked.query.Filter, f) {
		return false
	}
	begun := make(map[string]*catalog.Entry, len(p.blobs))
	for i := range p.blobs {
		begun[p.blobs[i].Key] = p.blobs[i].Entry
	}
	p.further = nil
	for i := range t.blobs {
		b := &t.blobs[i]
		if e := begun[b.Key]; b.body != nil || e == nil || !sameBlob(e, b.Entry) {
			p.further = append(p.further, b)
		}
	}
	return len(t.blobs)-len(p.further) == len(p.blobs)
}

// sameBlob reports whether two listings of a key found the same blob.
func sameBlob(a, b *catalog.Entry) bool {
	return a.Size == b.Size && a.Version == b.Version && a.State == b.State && a.Meta == b.Meta
}

// scouted makes a plan for the services that a Scout found, and lists the services again at
// the same time. It returns nil if they differ, or if anything failed.
func (r *Reader) scouted(ctx context.Context, q Query) *Plan {
	if q.Scout == nil {
		return nil
	}
	<-q.Scout.done
	q.Scout.fault.Again()
	if q.Scout.services == nil {
		return nil
	}
	var stored []string
	var failed error
	var listing fanout.Crew
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
	if len(walks) > mostScouted && len(walks) < manyServices {
		return time.Time{}
	}
	before := time.Unix(0, to)
	near := r.opt.Now()
	if last := before.Add(-1); last.Before(near) {
		near = last
	}
	if len(walks) >= manyServices {
		return sinceHour(near, near.UTC().Truncate(time.Hour))
	}
	hours := make([]time.Time, len(walks))
	_ = fanout.All(len(walks), listers, func(i int) error {
		start, ok, err := walks[i].Guess(ctx, near, before)
		if ok && err == nil {
			hours[i] = start.Truncate(time.Hour)
		}
		return nil
	})
	return sinceHour(near, slices.MaxFunc(append(hours, time.Time{}), time.Time.Compare))
}

// sinceHour is the hour that a read begins with whose newest records are probably of an hour.
func sinceHour(near, newest time.Time) time.Time {
	if age := near.Sub(newest); age >= 0 && age < youngHour {
		return newest.Add(-time.Hour)
	}
	return newest
}

// walks starts a walk over each of some services of a view.
func walks(view *catalog.View, services []string) (out []*catalog.Walk) {
	for _, service := range services {
		out = append(out, view.Walk(service))
	}
	return out
}
