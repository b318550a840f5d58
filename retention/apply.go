package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/retention/closing"
	"blobtail/storage"
)

// Result is the outcome of a run. Problems lists the failures, and the next run
// retries them.
type Result struct {
	Plan    *Plan
	Deleted []Day          // sums of the deleted blobs, in order of service and day
	Tables  []string       // dropped
	Raised  []horizon.Mark // published
	// Oldest is the start of the oldest stored day of each service that expires and has
	// blobs.
	Oldest map[string]time.Time
	// Overdue is the largest excess of a stored day over its age. With daily runs it is
	// below two days: a day expires only when all of it is past its age, and deletion
	// follows a run after hiding.
	Overdue  time.Duration
	Problems []error
	// Closed is what the run has closed; its Root is nil if the run came to no end of that.
	Closed closing.Result
	// NewPolicy says that this run applied another policy than the last run.
	NewPolicy bool
}

// Total adds up all deleted blobs.
func (r *Result) Total() Day { return (&Plan{Days: r.Deleted}).Total() }

// run is the state of one run.
type run struct {
	*Result
	job *Job
	log zerolog.Logger
	mu  sync.Mutex // also keeps log lines whole: the log's writer may not allow concurrent writes
}

func (j *Job) newRun(p *Plan) *run {
	return &run{Result: &Result{Plan: p, Problems: slices.Clone(p.Problems)}, job: j, log: j.o.Log.With().Str("plan", p.Hash).Logger()}
}

// Apply does one run of the scheduled job. It deletes days that have been hidden for a
// grace, and expired tables of the tail, and hides the days that are past their age now. It
// hides nothing by a clock in doubt, unless confirm says that the clock is right.
// confirm is the hash of the plan, or "" if that needs no confirmation. If nothing was done,
// the error is a *[ConfirmError] or a *[RefusedError]; otherwise it is
// the error of a store that could not be read or written. The result reports the work
// done, also with an error.
func (j *Job) Apply(ctx context.Context, confirm string) (*Result, error) {
	p, err := j.Plan(ctx)
	if err != nil {
		return nil, err
	}
	r := j.newRun(p)
	if err := Confirmed(p.Confirm, p.Hash, confirm); err != nil {
		return r.Result, err
	}
	// This order makes a killed run harmless: an earlier run has hidden the blobs that this
	// one deletes, and the policy is recorded before it hides anything.
	due := p.Total(Delete)
	j.o.Progress.Expect(due.Blobs, due.Bytes)
	recordErr := j.recordPolicy(ctx, p)
	r.tidy(ctx)
	if err := r.deleteDays(ctx); err != nil {
		return r.Result, err
	}
	r.dropTables(ctx, p.Tables)
	if recordErr != nil { // perhaps the store was full, and now has room
		recordErr = j.recordPolicy(ctx, p)
	}
	if recordErr != nil {
		return r.Result, recordErr
	}
	r.NewPolicy = p.recorded.hash != p.policy
	if p.Doubt == "" || confirm != "" {
		if err := j.trustClock(ctx, p, confirm != ""); err != nil {
			r.Problems = append(r.Problems, err)
		}
		err := r.raise(ctx)
		if err == nil {
			err = r.close(ctx)
		}
		if err != nil {
			return r.Result, err
		}
	}
	r.Oldest = map[string]time.Time{}
	for _, s := range p.services {
		start := s.oldest
		if i := slices.IndexFunc(s.due, func(d Day) bool { return !d.emptied }); i >= 0 {
			start = s.due[i].Day.Start()
		}
		if s.expires && !start.IsZero() {
			r.Oldest[s.name] = start
			r.Overdue = max(r.Overdue, p.At.Sub(start)-j.o.Policy.Age(s.name))
		}
	}
	return r.Result, ctx.Err()
}

func (r *run) raise(ctx context.Context) error {
	if len(r.Plan.Raise) == 0 {
		return nil
	}
	holds, err := hold.List(ctx, r.job.blobs) // there may be one since the plan
	if err != nil {
		return err
	}
	raise := slices.DeleteFunc(r.Plan.Raise, func(m horizon.Mark) bool { return hides(&m, holds) })
	var errs []error
	err = each(len(raise), func(i int) error {
		h := raise[i]
		err := h.Publish(ctx, r.job.blobs)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err == nil {
			r.Raised = append(r.Raised, h)
			if h.Single {
				r.log.Info().Str("service", h.Service).Stringer("day", h.Day).Msg("day hidden, beside a hold")
				return nil
			}
			r.log.Info().Str("service", h.Service).Stringer("first", h.Day).Msg("horizon raised")
			return nil
		}
		err = fmt.Errorf("raise the horizon of %s to %s: %w", h.Service, h.Day, err)
		if errs = append(errs, err); len(errs) > fewErrors || ctx.Err() != nil {
			return err
		}
		return nil
	})
	slices.SortFunc(r.Raised, func(a, b horizon.Mark) int { return cmp.Compare(a.Service, b.Service) })
	_, held := r.job.withdraw(ctx, r.Raised)
	if err == nil && len(r.Raised) == 0 {
		return cmp.Or(errs...) // all have failed, so the store itself must have failed
	}
	if err == nil {
		r.Problems = append(r.Problems, errs...)
	}
	return cmp.Or(err, held)
}

// tidy deletes the marks that a hold has come before, and those below a horizon that is a grace old:
// the horizon hides everything that they hide.
func (r *run) tidy(ctx context.Context) {
	var gone []storage.Blob
	for i := range r.Plan.services {
		s := &r.Plan.services[i]
		gone = append(gone, s.late...)
		for _, m := range s.marks {
			if s.settled.Set && s.refused == 0 && m.Day < s.settled.First {
				gone = append(gone, m.Blob)
			}
		}
	}
	r.delete(ctx, gone)
}

// delete deletes objects that are no blobs of records.
func (r *run) delete(ctx context.Context, gone []storage.Blob) {
	for _, e := range storage.KeyErrors(r.job.blobs.Delete(ctx, gone...)) {
		if !errors.Is(e, storage.ErrHeld) {
			r.Problems = append(r.Problems, e)
		}
	}
}
