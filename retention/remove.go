package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"blobtail/catalog"
	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/internal/progress"
	"blobtail/internal/units"
	"blobtail/retention/closing"
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

// deleteDays works on several services at once, and on the days of each in turn.
func (r *run) deleteDays(ctx context.Context) error {
	parts := make([]Result, len(r.Plan.services))
	err := each(len(parts), func(i int) error { return r.deleteService(ctx, &r.Plan.services[i], &parts[i]) })
	for _, part := range parts {
		r.Deleted = append(r.Deleted, part.Deleted...)
		r.Problems = append(r.Problems, part.Problems...)
	}
	return err
}

func (r *run) deleteService(ctx context.Context, s *service, to *Result) error {
	if !slices.ContainsFunc(s.due, func(d Day) bool { return d.Step == Delete }) {
		return nil
	}
	// A horizon never sinks, but an operator may have removed it to save the days below
	// it.
	marks, err := horizon.Marks(ctx, r.job.blobs, s.name)
	if err != nil {
		return err
	}
	s.know(marks, s.holds, r.Plan.now, r.job.o.Grace)
	for i := range s.due {
		d := &s.due[i]
		if d.Step != Delete {
			continue
		}
		if s.step(d.Day) != Delete {
			to.Problems = append(to.Problems, fmt.Errorf("%s of %s: it is not hidden any more, so it stays", d.Day, s.name))
			continue
		}
		if slices.Contains(s.hidden.Dropped, d.Day) { // by a run that may have been killed before it said so
			if err := closing.NewCloser(r.job.blobs, r.Plan.now).Drop(ctx, s.name, d.Day); err != nil {
				return fmt.Errorf("drop %s of %s: %w", d.Day, d.Service, err)
			}
		}
		if err := r.deleteDay(ctx, d, to); err != nil {
			return err
		}
	}
	return nil
}

type remover struct {
	blobs storage.BlobStore
	count *progress.Counter
	done  Day
	next  []catalog.Entry
	left  map[string]undeleted
}

// undeleted is a blob that could not be deleted.
type undeleted struct {
	catalog.Entry
	reason error
}

// deleteDay deletes the blobs of a service and day, until a listing has only blobs
// that cannot be deleted. A day that is held stays. It lists the whole prefix of service and day, which no
// other service shares, and checks the parsed names.
func (r *run) deleteDay(ctx context.Context, d *Day, to *Result) error {
	holds, err := hold.List(ctx, r.job.blobs)
	if err != nil {
		return err
	}
	if h := holds.Of(d.Service, d.Day); h != nil {
		r.mu.Lock()
		r.log.Info().Str("service", d.Service).Stringer("day", d.Day).Str("hold", h.Name).Msg("held, so it stays")
		r.mu.Unlock()
		return nil
	}
	m := &remover{blobs: r.job.blobs, count: r.job.o.Progress, left: map[string]undeleted{}, done: Day{Service: d.Service, Day: d.Day, Step: Delete}}
	found := true
	for n := 0; n < rounds && found && err == nil; n++ {
		found, err = m.list(ctx)
	}
	if found && err == nil {
		to.Problems = append(to.Problems, fmt.Errorf("%s of %s: after %d listings there are still blobs; is someone writing them?", d.Day, d.Service, rounds))
	}
	all := len(m.left)
	maps.DeleteFunc(m.left, func(_ string, u undeleted) bool { return errors.Is(u.reason, storage.ErrHeld) })
	keys := slices.Sorted(maps.Keys(m.left))
	m.done.Failed, m.done.Held = len(keys), all-len(keys)
	for _, key := range keys[:min(len(keys), fewErrors)] {
		to.Problems = append(to.Problems, m.left[key].reason)
	}
	if more := len(keys) - fewErrors; more > 0 {
		last := m.left[keys[len(keys)-1]].reason
		to.Problems = append(to.Problems, fmt.Errorf("%s of %s: %s could not be deleted, the last: %w", d.Day, d.Service, units.Count(more, "more blob"), last))
	}
	d.emptied = !found && err == nil && all == 0
	if m.done.Blobs+all > 0 {
		to.Deleted = append(to.Deleted, m.done)
		r.mu.Lock()
		line := r.log.Info().Str("service", d.Service).Stringer("day", d.Day).Int("blobs", m.done.Blobs).Int64("records", m.done.Records).
			Int64("bytes", m.done.Bytes).Int("failed", m.done.Failed)
		if m.done.Held > 0 {
			line.Int("held", m.done.Held)
		}
		line.Msg("deleted")
		r.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("delete %s of %s: %w", d.Day, d.Service, err)
	}
	return nil
}

// list lists the day once and deletes the listed blobs. found says that another listing
// is needed.
func (m *remover) list(ctx context.Context) (found bool, err error) {
	service, day := m.done.Service, m.done.Day
	gone := maps.Clone(m.left)
	for e, err := range catalog.Blobs(ctx, m.blobs, service, catalog.DayRange(day)) {
		if err != nil {
			return found, err
		}
		switch _, tried := m.left[e.Key]; {
		case tried:
			delete(gone, e.Key)
		case e.State == catalog.Unknown:
			m.left[e.Key] = undeleted{e, e.Err}
		case e.Blob() && e.Name.Service == service && e.Day() == day:
			// Only the name decides. The range already limits the listing to the day;
			// this makes sure.
			found = true
			if m.next = append(m.next, e); len(m.next) == batch {
				m.delete(ctx)
			}
		}
	}
	m.delete(ctx)
	if err := ctx.Err(); err != nil {
		return found, err
	}
	for key, b := range gone { // anyway, as after a lost answer
		m.done.add(&b.Entry)
		delete(m.left, key)
	}
	return found, nil
}

// delete deletes the batch, in the versions that were listed.
func (m *remover) delete(ctx context.Context) {
	list := make([]storage.Blob, len(m.next))
	for i := range m.next {
		list[i] = m.next[i].Object()
	}
	failed := map[string]error{}
	for _, e := range storage.KeyErrors(m.blobs.Delete(ctx, list...)) {
		failed[e.Key] = e
	}
	for _, b := range m.next {
		if reason := cmp.Or(failed[b.Key], failed[""]); reason != nil {
			m.left[b.Key] = undeleted{b, reason}
		} else {
			m.done.add(&b)
			m.count.Finish(1, b.Size)
		}
	}
	m.next = m.next[:0]
}
