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

// part is the work of a run on the days of one service.
type part struct {
	deleted  []Deleted
	problems []error
	emptied  []serviceDay // no blobs of ours are left
}

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
	parts := make([]part, len(services))
	err := each(len(services), func(i int) error { return r.deleteService(ctx, services[i], &parts[i]) })
	for i := range parts {
		r.add(&parts[i])
	}
	return err
}

func (r *run) add(p *part) {
	r.Deleted = append(r.Deleted, p.deleted...)
	r.Problems = append(r.Problems, p.problems...)
	for _, d := range p.emptied {
		r.emptied[d] = true
	}
}

// deleteService deletes days of one service.
func (r *run) deleteService(ctx context.Context, days []Day, p *part) error {
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
			p.problems = append(p.problems, fmt.Errorf("%s of %s: it is not hidden any more, so it stays", d.Day, s.name))
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
	job  *Job
	part *part
	done Deleted
	next []blob
	left map[string]*blob // could not be deleted
}

// blob is one to be deleted.
type blob struct {
	catalog.Entry
	failed error // why it could not be deleted
	there  bool  // the last listing had it again
}

// deleteDay deletes the blobs of a service and day, until a listing has only blobs
// that cannot be deleted. It lists the whole prefix of service and day, which no
// other service shares, and checks the parsed names.
func (r *run) deleteDay(ctx context.Context, service string, day horizon.Day, p *part) error {
	m := &remover{job: r.job, part: p, left: map[string]*blob{}}
	m.done.Service, m.done.Day.Day, m.done.Step = service, day, Delete
	empty, err := m.empty(ctx)
	m.settle(err == nil)
	if empty && m.done.Failed == 0 {
		p.emptied = append(p.emptied, serviceDay{service, day})
	}
	if m.done.Blobs > 0 || m.done.Failed > 0 {
		p.deleted = append(p.deleted, m.done)
		r.logging.Lock()
		r.log.Info().Str("service", service).Stringer("day", day).Int("blobs", m.done.Blobs).Int64("records", m.done.Records).
			Int64("bytes", m.done.Bytes).Int("failed", m.done.Failed).Msg("deleted")
		r.logging.Unlock()
	}
	if err != nil {
		return fmt.Errorf("delete %s of %s: %w", day, service, err)
	}
	return nil
}

// empty reports whether the last listing had nothing worth another try.
func (m *remover) empty(ctx context.Context) (bool, error) {
	for range rounds {
		found, err := m.round(ctx)
		if err != nil || !found {
			return err == nil, err
		}
	}
	m.part.problems = append(m.part.problems, fmt.Errorf("%s of %s: after %d listings there are still blobs; is someone writing them?", m.done.Day.Day, m.done.Service, rounds))
	return false, nil
}

// round lists the day once and deletes the listed blobs.
func (m *remover) round(ctx context.Context) (found bool, err error) {
	service, day := m.done.Service, m.done.Day.Day
	for _, b := range m.left {
		b.there = false
	}
	for e, err := range catalog.Blobs(ctx, m.job.blobs, service, catalog.DayRange(day)) {
		if err != nil {
			return found, err
		}
		if tried := m.left[e.Key]; tried != nil {
			tried.there = true
			continue
		}
		if e.State == catalog.Unknown {
			m.left[e.Key] = &blob{Entry: e, failed: e.Err, there: true}
			continue
		}
		// Only the name decides. The range already limits the listing to the day; this
		// makes sure.
		if !e.Blob() || e.Name.Service != service || e.Day() != day {
			continue
		}
		found = true
		if m.next = append(m.next, blob{Entry: e}); len(m.next) == batch {
			m.delete(ctx)
		}
	}
	m.delete(ctx)
	return found, ctx.Err()
}

// delete deletes the batch, in the versions that were listed.
func (m *remover) delete(ctx context.Context) {
	if len(m.next) == 0 {
		return
	}
	list := make([]storage.Blob, len(m.next))
	for i := range m.next {
		list[i] = m.next[i].Object()
	}
	failed := map[string]error{}
	for _, e := range keyErrors(m.job.blobs.Delete(ctx, list...)) {
		failed[e.Key] = e
	}
	for _, b := range m.next {
		if b.failed = cmp.Or(failed[b.Key], failed[""]); b.failed != nil {
			b.there = true
			m.left[b.Key] = &b
			continue
		}
		m.done.add(&b)
	}
	m.next = m.next[:0]
}

// settle reports the blobs that could not be deleted, except those that are gone
// anyway, as after a lost answer. listed says that the last round listed everything.
func (m *remover) settle(listed bool) {
	var last error
	for _, key := range slices.Sorted(maps.Keys(m.left)) {
		b := m.left[key]
		if listed && !b.there {
			m.done.add(b)
			continue
		}
		if m.done.Failed++; m.done.Failed <= fewErrors {
			m.part.problems = append(m.part.problems, b.failed)
		}
		last = b.failed
	}
	if more := m.done.Failed - fewErrors; more > 0 {
		m.part.problems = append(m.part.problems, fmt.Errorf("%s of %s: %d more blobs could not be deleted, the last: %w", m.done.Day.Day, m.done.Service, more, last))
	}
}

func (d *Deleted) add(b *blob) {
	d.Blobs++
	d.Records += b.Meta.Records
	d.Bytes += b.Size
}
