package unflushed

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/blobs"
)

const (
	// slack is how much older than its arrival a record may be for a catch-up to find it.
	slack = time.Minute
	// retry is the pause after a catch-up that failed.
	retry = 2 * time.Second
	// endsEvery is how often a follower checks for new and ended ingesters, and aloneEvery while
	// none answers.
	endsEvery  = 5 * time.Second
	aloneEvery = time.Second
	// manyPositions is the limit above which positions of gone ingesters are dropped.
	manyPositions = 256
)

// debt is the time since when blobs have to be read, because positions do not suffice.
type debt struct {
	from time.Time // zero: no debt
	next time.Time // no attempt before this time of the local clock
	err  error     // of the last attempt: why a follower that ends could not emit all records
}

// owe makes a catch-up read from a time on. It reports why, unless that is "".
func (f *follower) owe(from time.Time, why string) {
	if floor := time.Unix(0, f.floor); from.Before(floor) {
		from = floor
	}
	if f.debt.from.IsZero() || from.Before(f.debt.from) {
		f.debt.from = from
	}
	if why != "" {
		f.lacks(fmt.Sprintf("%s; blobs are read instead, and what came with times before %s "+mayBeMissing, why, utc(f.debt.from)))
	}
}

// pay reads the owed records, from blobs and ingesters.
func (f *follower) pay(ctx context.Context) error {
	if f.debt.from.IsZero() || time.Now().Before(f.debt.next) {
		return nil
	}
	if err := f.release(true); err != nil {
		return err
	}
	from := f.debt.from.UnixNano()
	if f.seen.forgotten >= from {
		from = f.seen.forgotten + 1 // or older records would be emitted twice
		f.lacks(fmt.Sprintf("blobs are read from %s on only, because what was shown before is not remembered; what else came with times from %s to then "+mayBeMissing,
			utc(time.Unix(0, from)), utc(f.debt.from)))
	}
	q := f.o.Query
	q.Limit, q.Range, q.Sure = 0, blobs.Range{From: from, To: blobs.Newest}, true
	err := f.read(ctx, q)
	f.exact = f.reached(nil) // it may have gone beyond the positions; the logs of ended ingesters are empty
	if werr := f.write(); werr != nil {
		return werr
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.debt.err = err
	if err != nil {
		f.debt.next = time.Now().Add(retry)
		err = fmt.Errorf("what is in blobs since %s cannot be read and is tried again: %w", utc(time.Unix(0, from)), err)
	} else {
		f.debt = debt{}
	}
	f.say(blobsOver, err)
	return nil
}

// check reads the ingesters and the expired days when they are due. It uses them once they
// are there, because slow tables delay no record.
func (f *follower) check(ctx context.Context) {
	var services []string
	if time.Since(f.looked) >= expiredEvery {
		services = f.o.Query.Services
	}
	every := endsEvery
	if f.asks && !f.heard.any {
		every = aloneEvery
	}
	if f.checking == nil && time.Since(f.checked) >= every && (f.asks || services != nil) {
		ctx, cancel := context.WithTimeout(ctx, surveyPatience) // a hung list must not end the checks
		f.checking, f.checked = f.r.survey(ctx, services), time.Now()
		go func(s *survey) { <-s.done; cancel() }(f.checking)
	}
	if f.checking == nil {
		return
	}
	select {
	case <-f.checking.done:
		f.judgeEnds(f.checking)
		f.knowExpired(f.checking.wait())
		f.checking = nil
	default:
	}
}

// tellNarrowed reports once that answers lack services.
func (f *follower) tellNarrowed(h *heard) {
	if err := h.lessThan(f.o.Query.Services); err != nil && h.narrowed != f.narrowed {
		f.narrowed = h.narrowed
		f.problem(err)
	}
}

// lastGood is when an ingester last answered.
func (f *follower) lastGood(id string) time.Time { return cmp.Or(f.good[id], f.started) }

// judgeEnds finds the ingesters that have ended. An ended ingester is not asked any more,
// and the records it accepted since its last answer are in blobs.
func (f *follower) judgeEnds(s *survey) {
	k := s.wait()
	if k.storeErr == nil {
		f.company = s
	}
	if k.err != nil || len(k.rows) == 0 {
		return
	}
	f.tellUnasked(k)
	running := map[string]bool{}
	for _, i := range k.rows {
		_, ours := f.positions[i.ID]
		switch {
		case i.State != lease.Stopped:
			running[i.ID] = true
			delete(f.ended, i.ID)
		case ours && !f.ended[i.ID].Equal(i.At):
			f.ended[i.ID] = i.At
			from := f.lastGood(i.ID)
			// An ingester that ended before it was met has no new records.
			if i.At.After(from.Add(-endsEvery - slack)) {
				f.owe(from.Add(-slack), fmt.Sprintf("ingester %s has ended", i.ID))
			}
		}
	}
	if len(f.positions) > manyPositions {
		for id := range f.positions {
			if !running[id] && f.debt.from.IsZero() {
				delete(f.positions, id)
			}
		}
	}
}

// tellUnasked reports ingesters that may hold records and that no answer is of: the ingester that
// the user named may be cut off from their table. It reports them only at the second check, since
// by then that one knows an ingester that has just started.
func (f *follower) tellUnasked(k *roster) {
	unasked := map[string]string{}
	if f.heard.any {
		for _, i := range k.lacking(&f.heard) {
			if f.heard.told[i.ID] || f.heard.errs[i.ID] != nil || f.asking[i.ID] != nil {
				continue // it is known
			}
			unasked[i.ID] = i.Process
			if f.unasked[i.ID] == i.Process {
				f.problem(k.missing(&i, &f.heard))
			}
		}
	}
	f.unasked = unasked
}
