package retention

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"blobtail/catalog"
	"blobtail/retention/horizon"
	"blobtail/storage"
)

const (
	// batch is how many blobs are deleted at once: the most that Azure accepts in a
	// request.
	batch = 256
	// rounds is how often a day is listed again because it was not empty. Two suffice,
	// since ingesters store nothing below a horizon.
	rounds = 8
	// fewErrors is how many blobs of a day are named if they could not be deleted.
	fewErrors = 10
)

// deleteDays deletes the due days of the plan. It works on several services at once,
// and on the days of each in turn.
func (r *run) deleteDays(ctx context.Context) error {
	var services [][]Day
	for _, d := range r.Plan.Days {
		n := len(services)
		switch {
		case d.Step != Delete:
		case n > 0 && services[n-1][0].Service == d.Service:
			services[n-1] = append(services[n-1], d)
		default:
			services = append(services, []Day{d})
		}
	}
	parts := make([]Result, len(services))
	err := each(len(services), func(i int) error { return r.deleteService(ctx, services[i], &parts[i]) })
	for _, part := range parts {
		r.Deleted = append(r.Deleted, part.Deleted...)
		r.Problems = append(r.Problems, part.Problems...)
		r.emptied = append(r.emptied, part.emptied...)
	}
	return err
}

// deleteService deletes days of one service.
func (r *run) deleteService(ctx context.Context, days []Day, p *Result) error {
	s := service{name: days[0].Service}
	// A horizon never sinks, but an operator may have removed it to save the days below
	// it.
	marks, err := horizon.Marks(ctx, r.job.blobs, s.name)
	if err != nil {
		return err
	}
	s.know(marks, r.Plan.now, r.job.o.Grace)
	for _, d := range days {
		if s.step(d.Day) != Delete {
			p.Problems = append(p.Problems, fmt.Errorf("%s of %s: it is not hidden any more, so it stays", d.Day, s.name))
			continue
		}
		if err := r.deleteDay(ctx, s.name, d.Day, p); err != nil {
			return err
		}
	}
	return nil
}

// remover deletes the blobs of one day.
type remover struct {
	blobs    storage.BlobStore
	done     Day
	problems []error
	round    int
	next     []*blob
	left     map[string]*blob // could not be deleted
}

// blob is one to be deleted.
type blob struct {
	catalog.Entry
	failed error // why it could not be deleted
	seen   int   // the last round that listed it
}

// deleteDay deletes the blobs of a service and day, until a listing has only blobs
// that cannot be deleted. It lists the whole prefix of service and day, which no
// other service shares, and checks the parsed names.
func (r *run) deleteDay(ctx context.Context, service string, day horizon.Day, to *Result) error {
	m := &remover{blobs: r.job.blobs, left: map[string]*blob{}, done: Day{Service: service, Day: day, Step: Delete}}
	found, err := true, error(nil)
	for m.round < rounds && found && err == nil {
		m.round++
		found, err = m.list(ctx)
	}
	if found && err == nil {
		m.problems = append(m.problems, fmt.Errorf("%s of %s: after %d listings there are still blobs; is someone writing them?", day, service, rounds))
	}
	m.settle(err == nil)
	to.Problems = append(to.Problems, m.problems...)
	if !found && err == nil && m.done.Failed == 0 {
		to.emptied = append(to.emptied, serviceDay{service, day})
	}
	if m.done.Blobs > 0 || m.done.Failed > 0 {
		to.Deleted = append(to.Deleted, m.done)
		r.mu.Lock()
		r.log.Info().Str("service", service).Stringer("day", day).Int("blobs", m.done.Blobs).Int64("records", m.done.Records).
			Int64("bytes", m.done.Bytes).Int("failed", m.done.Failed).Msg("deleted")
		r.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("delete %s of %s: %w", day, service, err)
	}
	return nil
}

// list lists the day once and deletes the listed blobs. found says that another listing
// is needed.
func (m *remover) list(ctx context.Context) (found bool, err error) {
	service, day := m.done.Service, m.done.Day
	for e, err := range catalog.Blobs(ctx, m.blobs, service, catalog.DayRange(day)) {
		if err != nil {
			return found, err
		}
		b := &blob{Entry: e, failed: e.Err, seen: m.round}
		switch tried := m.left[e.Key]; {
		case tried != nil:
			tried.seen = m.round
		case e.State == catalog.Unknown:
			m.left[e.Key] = b
		case e.Blob() && e.Name.Service == service && e.Day() == day:
			// Only the name decides. The range already limits the listing to the day;
			// this makes sure.
			found = true
			if m.next = append(m.next, b); len(m.next) == batch {
				m.delete(ctx)
			}
		}
	}
	m.delete(ctx)
	return found, ctx.Err()
}

// delete deletes the batch, in the versions that were listed.
func (m *remover) delete(ctx context.Context) {
	list := make([]storage.Blob, len(m.next))
	for i, b := range m.next {
		list[i] = b.Object()
	}
	failed := map[string]error{}
	for _, e := range storage.KeyErrors(m.blobs.Delete(ctx, list...)) {
		failed[e.Key] = e
	}
	for _, b := range m.next {
		if b.failed = cmp.Or(failed[b.Key], failed[""]); b.failed != nil {
			m.left[b.Key] = b
		} else {
			m.done.add(&b.Entry)
		}
	}
	m.next = m.next[:0]
}

// settle reports the blobs that could not be deleted, except those that are gone
// anyway, as after a lost answer. listed says that the last round listed everything.
func (m *remover) settle(listed bool) {
	var last error
	for _, key := range slices.Sorted(maps.Keys(m.left)) {
		b := m.left[key]
		if listed && b.seen < m.round {
			m.done.add(&b.Entry)
			continue
		}
		if m.done.Failed++; m.done.Failed <= fewErrors {
			m.problems = append(m.problems, b.failed)
		}
		last = b.failed
	}
	if more := m.done.Failed - fewErrors; more > 0 {
		m.problems = append(m.problems, fmt.Errorf("%s of %s: %d more blobs could not be deleted, the last: %w", m.done.Day, m.done.Service, more, last))
	}
}
