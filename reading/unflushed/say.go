package unflushed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"blobtail/reading/blobs"
)

const (
	// quiet is for how long the same message is not repeated.
	quiet = time.Minute
	// settled is how long a trouble must be absent to be over.
	settled = 3 * time.Second
)

// kind is a text without its numbers, which differ each time.
func kind(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, text)
}

// fresh reports whether no message of this kind was reported lately.
func (f *follower) fresh(text string) bool {
	if len(f.told) > 1000 {
		clear(f.told)
	}
	now, k := time.Now(), kind(text)
	if at, ok := f.told[k]; ok && now.Sub(at) < quiet {
		return false
	}
	f.told[k] = now
	return true
}

// tellUnjudged reports that the filter could not judge some records since the last time.
func (f *follower) tellUnjudged() {
	if n, problem := f.match.Unjudged(); n > f.unjudged {
		f.unjudged = n
		f.problem(problem)
	}
}

func (f *follower) problem(err error) { f.tell(&Report{Problems: []error{err}}) }

func (f *follower) note(text string) { f.tell(&Report{Notes: []string{text}}) }

// lacks reports that records may be missing. A follower that asks ingesters and ends now claims to
// have shown all, so for it that is a problem.
func (f *follower) lacks(text string) {
	if f.o.Once && f.asks {
		f.problem(errors.New(text))
		return
	}
	f.note(text)
}

// read passes the records of a query on, and then the report.
func (f *follower) read(ctx context.Context, q blobs.Query) error {
	f.reads++
	clear(f.caught) // it may have gone beyond the positions
	sum, report, known, err := f.r.tail(ctx, q, f.pass)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if known != nil && known.wait().storeErr == nil {
		f.company = known // records of all of these may have been passed on
	}
	report.Problems, report.Absent = append(report.Problems, sum.Problems...), sum.Absent
	for _, w := range sum.Warnings {
		report.note("%v", w)
	}
	f.tell(report)
	return err
}

// tell passes on a report, without messages of a kind that was reported lately.
func (f *follower) tell(report *Report) {
	report.Problems = slices.DeleteFunc(report.Problems, func(err error) bool { return !f.fresh(err.Error()) })
	report.Warnings = slices.DeleteFunc(report.Warnings, func(err error) bool { return !f.fresh(err.Error()) })
	report.Notes = slices.DeleteFunc(report.Notes, func(text string) bool { return !f.fresh(text) })
	f.o.Report(report)
}

// The ends of troubles. Each names its trouble too.
const (
	liveOver     = "the ingesters answer again; what they took meanwhile is shown"
	tablesOver   = "the tables of the tail can be read again"
	blobsOver    = "the blobs can be read again"
	expiredOver  = "what has expired is known again"
	servicesOver = "the store can be listed again"
)

// TroubleError is a problem of a follower that may pass: when it is over, the records come that
// were not shown meanwhile. A report says then that all is well.
type TroubleError struct{ Err error }

func (e *TroubleError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *TroubleError) Unwrap() error { return e.Err }

// Passing reports whether all problems of a report may pass.
func (r *Report) Passing() bool {
	return !slices.ContainsFunc(r.Problems, func(err error) bool {
		_, passing := errors.AsType[*TroubleError](err)
		return !passing
	})
}

// say reports a trouble when it begins, when it changes its kind, and once when it is
// over.
func (f *follower) say(over string, err error) {
	now := time.Now()
	well, troubled := f.troubles[over]
	switch {
	case err != nil:
		f.troubles[over] = time.Time{}
		report := &Report{Problems: []error{&TroubleError{err}}}
		if errors.Is(err, ErrNobody) {
			report = &Report{Notes: []string{err.Error()}}
		}
		text := over + ": " + err.Error()
		if f.fresh(text) {
			f.o.Report(report)
		}
		f.told[kind(text)] = now // while it lasts it is not repeated
	case !troubled:
	case well.IsZero() && over != blobsOver:
		f.troubles[over] = now
	case now.Sub(well) >= settled: // blobs are read only if needed, so one success is enough
		delete(f.troubles, over)
		maps.DeleteFunc(f.told, func(kind string, _ time.Time) bool { return strings.HasPrefix(kind, over) })
		f.o.Report(&Report{Notes: []string{over}, Well: len(f.troubles) == 0})
	}
}

// sayLive is say for the answers of ingesters.
func (f *follower) sayLive(err error) {
	switch {
	case errors.Is(err, ErrNobody):
		err = fmt.Errorf("%w; records are shown when one is", err)
	case err != nil && !f.o.Once:
		err = fmt.Errorf("%w (asked again until it answers)", err)
	}
	f.say(liveOver, err)
}
