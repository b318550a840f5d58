// Package retention deletes logs by the day, as a policy says, and never by
// mistake. Make a [Job] with [New]. A day is deleted in two steps, at least a grace apart
// and in different runs. First it is hidden: a horizon is published (package horizon).
// From then on readers do not show the days below it and ingesters do not store them.
// When the horizon is a grace old, no earlier read or PUT is still under way, and the
// next run deletes the blobs. So no run ever waits for a grace, the next run repairs a run
// that was killed anywhere, and two concurrent runs only do the same twice.
//
// Guards against mistakes:
//
//   - Without an age for all services nothing is deleted, and no age is below a day.
//   - The host's clock has to agree with the store's, by which a grace is measured. If the
//     store has none, a gap in the times of storing has to be explained by a person
//     (clock.go).
//   - A policy that was not applied before and hides more than a little has to be
//     confirmed by the hash of the plan (guard.go).
//   - A blob is deleted by its parsed name, in the very version that was listed, and
//     only after the horizon above it was read again. Foreign objects stay.
//
// All state is in the store: horizons, dropped days, the policies that were applied, and the
// time of the last run that trusted the clock.
//
// # Why in two steps
//
// Deleting cannot be undone. It frees a name, so that an old PUT may succeed late. It may take
// records from a reader that does not notice. So one job alone may delete. It deletes days,
// never single records.
//
//   - A grace (1 h) is far longer than any PUT that was started before, and a read stops at half
//     of it. The age of a horizon is told by the store's clock.
//   - The name decides. A blob's day is that of its period, and a period never crosses a day.
//     Nothing is opened. Names are listed by the whole prefix service/yyyy/mm/dd/, parsed, and
//     deleted 256 at a time, until a listing is empty.
//   - A policy is compared with the one applied last, not with a state kept somewhere. Only a
//     change that hides much has to be confirmed: if the guard asked at every backlog, operators
//     would answer it by scripts. A clock in doubt is the one exception.
//   - A gap is the sign of a clock that was set ahead (clock.go). A host with a wrong year would
//     delete all logs in two runs. No blob proves that its clock is right, since the ingester of
//     the host stores by the same clock. But a clock that jumps leaves a gap in the times of
//     storing, and nothing that is stored later fills it. While runs come every day, their marks
//     are proof enough, and no blob is listed for this. A horizon is such a mark too, left by a
//     version that leaves no other: under the policy applied last its day tells the time of its
//     run. In doubt a run raises no horizon even if that hides nothing: the next days would be
//     hidden by the same clock, one by one.
//   - A leaked secret does not wait. A single day of a service can be dropped without a grace, 5
//     s after it was hidden ([horizon.Settle]). Readers and ingesters treat it as if it were
//     below the horizon, and a later run deletes late records.
//
// There is no lease and no list of deleted blobs. Deleting a missing blob is harmless.
package retention

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/clockskew"
	"blobtail/internal/progress"
	"blobtail/retention/closing"
	"blobtail/storage"
)

// maxSkew is the largest allowed difference of the host's clock and the store's.
const maxSkew = 5 * time.Minute

// Tables are the operations that a job needs of a table store.
type Tables interface {
	Tables(ctx context.Context, prefix string) iter.Seq2[string, error]
	Drop(ctx context.Context, table string) error
}

// Options tune a Job.
type Options struct {
	Policy Policy
	// Grace is the minimum age of a horizon before the blobs below it are deleted; 0:
	// any age. It has to be longer than any read and any PUT.
	Grace time.Duration
	// Prefix is the prefix of the tail's tables; "" leaves tables alone.
	Prefix string
	// At is the time that ages count back from, not later than now; zero: now, by the
	// store's clock.
	At time.Time
	// AtByClock says that At was reckoned from the host's clock, as yesterday is. Then a clock
	// in doubt makes At doubtful too; otherwise At is the word of a person.
	AtByClock bool
	// Closing has a run close the days that are over, after all else; nil: it closes none.
	Closing *closing.Options
	// Clock is the host's clock; nil is time.Now.
	Clock func() time.Time
	// Progress counts the blobs that are listed and those that are deleted; nil: nobody waits.
	Progress *progress.Counter
	Log      zerolog.Logger // records everything that is hidden or deleted
}

// Job deletes expired logs from one store. It may be used for several calls, one
// after another.
type Job struct {
	o      Options
	blobs  storage.BlobStore
	tables Tables
}

// New returns a job. It sends the store no request.
func New(blobs storage.BlobStore, tables Tables, o Options) *Job {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Job{o: o, blobs: blobs, tables: tables}
}

// RefusedError is the reason that nothing was planned or done.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

func refusef(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// clocks returns the time that ages count back from, and the time by the store's
// clock. A grace is always measured by the latter: it protects current readers and
// writers.
func (j *Job) clocks(ctx context.Context) (at, now time.Time, err error) {
	here := j.o.Clock()
	if now, err = storage.Now(ctx, j.blobs, here); err != nil {
		return at, now, err
	}
	if _, ok := j.blobs.(storage.Clock); ok {
		// The store read its clock about half way between the question and the answer.
		here = here.Add(j.o.Clock().Sub(here) / 2)
		if skew := here.Sub(now); skew.Abs() > maxSkew {
			return at, now, refusef("%v; nothing is deleted by a clock that may be wrong", clockskew.TooFar(skew, maxSkew))
		}
	}
	if j.o.At.IsZero() {
		return now.UTC(), now, nil
	}
	if j.o.At.After(now) && j.o.At.After(here) {
		return at, now, refusef("the time %s is yet to come; ages count back from now or from an earlier time", j.o.At.UTC().Format(time.RFC3339))
	}
	return j.o.At.UTC(), now, nil
}
