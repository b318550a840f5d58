package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"blobtail/horizon"
	"blobtail/storage"
)

// Result is what a run did. What it could not do is in Problems, and the next run
// tries it again.
type Result struct {
	Plan    *Plan
	Deleted []Deleted // in order of service and day
	Tables  []string  // dropped
	Raised  []Horizon
	// Oldest is, of each service that expires and has blobs, when the oldest day
	// begins that is still stored.
	Oldest map[string]time.Time
	// Overdue is by how much the one of them that is most so is past its age. With a
	// run a day it is less than two: the day that was not over when it was a day
	// younger, and the time between hiding and deleting.
	Overdue  time.Duration
	Problems []error
	// NewPolicy says that the policy was not the one applied last, and is now.
	NewPolicy bool
}

// Deleted is what a run deleted of a day.
type Deleted struct {
	Day
	Failed int // blobs that stayed
}

// Total adds up what was deleted.
func (r *Result) Total() Deleted {
	var sum Deleted
	for _, d := range r.Deleted {
		sum.Blobs += d.Blobs
		sum.Records += d.Records
		sum.Bytes += d.Bytes
		sum.Failed += d.Failed
	}
	return sum
}

// serviceDay is a day of a service.
type serviceDay struct {
	service string
	day     horizon.Day
}

// run is one run as it goes.
type run struct {
	*Result
	job     *Job
	log     zerolog.Logger
	emptied map[serviceDay]bool
	logging sync.Mutex // what the log is written to may not stand two lines at once
}

func (j *Job) newRun(p *Plan) *run {
	return &run{Result: &Result{Plan: p, Problems: slices.Clone(p.Problems)}, job: j, emptied: map[serviceDay]bool{}, log: j.o.Log.With().Str("plan", p.Hash).Logger()}
}

// Apply does one run: it deletes what has been hidden for a grace and the tables of
// the tail that are past their age, hides what is past its age now, and takes away
// horizons that greater ones have made superfluous. A plan that has to be confirmed
// is, by its hash; else that is not looked at. The error is a *[ConfirmError] or a
// *[RefusedError] when nothing was done, or that of a store that cannot be read or
// written. The result says what was done, with an error too.
func (j *Job) Apply(ctx context.Context, confirm string) (*Result, error) {
	p, err := j.Plan(ctx)
	if err != nil {
		return nil, err
	}
	r := j.newRun(p)
	if err := confirmed(p.Confirm, p.Hash, confirm); err != nil {
		return r.Result, err
	}
	if err := r.apply(ctx); err != nil {
		return r.Result, err
	}
	r.Oldest = p.oldest(r.emptied)
	for service, start := range r.Oldest {
		r.Overdue = max(r.Overdue, p.At.Sub(start)-j.o.Policy.Age(service))
	}
	return r.Result, ctx.Err()
}

// apply goes through the steps. Their order is what makes a run that was killed
// harmless: what goes was hidden by an earlier one, and the policy that hides is
// noted before it does.
func (r *run) apply(ctx context.Context) error {
	recordErr := r.job.recordPolicy(ctx, r.Plan)
	r.tidy(ctx)
	if err := r.deleteDays(ctx); err != nil {
		return err
	}
	r.dropTables(ctx, r.Plan.Tables)
	if recordErr != nil { // perhaps there was no room, and now there is
		recordErr = r.job.recordPolicy(ctx, r.Plan)
	}
	if recordErr != nil {
		return recordErr
	}
	r.NewPolicy = r.Plan.recorded.hash != r.Plan.policy
	return r.raise(ctx)
}

// raise publishes new horizons. A few that cannot be published keep no other from
// being raised.
func (r *run) raise(ctx context.Context) error {
	raised := make([]bool, len(r.Plan.Raise))
	errs := make([]error, len(raised))
	var failed atomic.Int32
	err := each(len(raised), func(i int) error {
		h := r.Plan.Raise[i]
		if err := horizon.Publish(ctx, r.job.blobs, h.Service, h.First); err != nil {
			errs[i] = fmt.Errorf("raise the horizon of %s to %s: %w", h.Service, h.First, err)
			if failed.Add(1) > fewErrors || ctx.Err() != nil {
				return errs[i]
			}
			return nil
		}
		raised[i] = true
		r.logging.Lock()
		defer r.logging.Unlock()
		r.log.Info().Str("service", h.Service).Stringer("first", h.First).Msg("horizon raised")
		return nil
	})
	for i, h := range r.Plan.Raise {
		if raised[i] {
			r.Raised = append(r.Raised, h)
		}
	}
	if err == nil && len(r.Raised) == 0 {
		return cmp.Or(errs...) // no store answers so
	}
	for _, e := range errs {
		if e != nil && err == nil {
			r.Problems = append(r.Problems, e)
		}
	}
	return err
}

// tidy deletes the marks that lie below a horizon that is a grace old: it hides all
// that they hide.
func (r *run) tidy(ctx context.Context) {
	var gone []storage.Blob
	for i := range r.Plan.services {
		s := &r.Plan.services[i]
		for _, m := range s.marks {
			if s.settled.Set && !s.refused && m.Day < s.settled.First {
				gone = append(gone, m.Blob)
			}
		}
	}
	for chunk := range slices.Chunk(gone, batch) {
		for _, e := range keyErrors(r.job.blobs.Delete(ctx, chunk...)) {
			r.Problems = append(r.Problems, e)
		}
	}
}

// oldest is what is left of each service that expires.
func (p *Plan) oldest(gone map[serviceDay]bool) map[string]time.Time {
	oldest := map[string]time.Time{}
	for _, d := range p.Days {
		if _, seen := oldest[d.Service]; !seen && !gone[serviceDay{d.Service, d.Day}] {
			oldest[d.Service] = d.Day.Start()
		}
	}
	for _, s := range p.services {
		if _, seen := oldest[s.name]; !seen && s.expires && !s.oldest.IsZero() {
			oldest[s.name] = s.oldest
		}
		if !s.expires {
			delete(oldest, s.name)
		}
	}
	return oldest
}

// keyErrors takes the error of a Delete apart.
func keyErrors(err error) (list []*storage.KeyError) {
	var one *storage.KeyError
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
	case ok:
		for _, e := range joined.Unwrap() {
			list = append(list, keyErrors(e)...)
		}
	case errors.As(err, &one):
		list = append(list, one)
	default:
		list = append(list, &storage.KeyError{Op: "delete", Err: err})
	}
	return list
}
