package unflushed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
)

const (
	// slack is how much older than its arrival a record may be for a catch-up to find it.
	slack = time.Minute
	// retry is the pause after a catch-up that failed.
	retry = 2 * time.Second
	// endsEvery is how often a follower checks for ended ingesters.
	endsEvery = 5 * time.Second
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
	if f.checking == nil && time.Since(f.checked) >= endsEvery && (f.asks || services != nil) {
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

// meet asks for the ends of the logs.
func (f *follower) meet(ctx context.Context) error {
	question := asked(&f.o.Query)
	question.Follow, question.Now = true, true
	answer, err := f.ask(ctx, question, nil, func(*record.Entry) error { return nil })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.sayLive(err)
	if answer != nil {
		f.positions = answer.Positions()
		h := hear(answer, err)
		f.tellNarrowed(&h)
		f.answered(h, f.now())
	}
	return nil
}

// poll asks for records after the positions; false: no ingester answered.
//
// An ingester without a position that is new since the follower began is read from its
// beginning. It remembers newer records only. For an older one the right position is
// unknown, so its records are found by time.
func (f *follower) poll(ctx context.Context) (bool, error) {
	begun := f.now()
	question := asked(&f.o.Query)
	question.Follow, question.After = true, f.positions
	h := &haul{rest: blobs.NewUnflushed("live records")}
	defer h.rest.Close()
	var met []string
	answer, err := f.ask(ctx, question, func(p live.Positions) bool {
		for id := range p {
			// It may have accepted records before this follower began.
			if _, ok := f.positions[id]; !ok && (f.known == nil || f.known[id]) {
				met = append(met, id)
			}
		}
		return len(met) == 0
	}, h.add)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if len(met) > 0 {
		// The ingester would send all records it remembers, old and new.
		p := answer.Positions()
		for _, id := range met {
			f.positions[id], f.good[id] = p[id], begun
			f.owe(time.Unix(0, f.floor), fmt.Sprintf("ingester %s answers for the first time", id))
		}
		return true, nil
	}
	f.sayLive(err)
	f.heard = heard{err: err}
	if answer == nil {
		return false, nil
	}
	f.heard = hear(answer, err)
	for _, id := range answer.Behind {
		f.owe(f.lastGood(id).Add(-slack), fmt.Sprintf("ingester %s does not remember all that came since the last look", id))
	}
	f.exact = f.exact || f.reached(answer.Positions())
	if len(answer.Behind) > 0 {
		if err := f.pay(ctx); err != nil { // first, because blobs have the older records
			return true, err
		}
	}
	exact := f.exact && !f.heard.partly
	f.exact = false // no other follower can go on from half an answer
	if err := f.take(ctx, h); err != nil {
		return true, err
	}
	f.positions, f.exact = answer.Positions(), exact
	f.tellNarrowed(&f.heard)
	f.answered(f.heard, begun)
	return true, nil
}

// reached reports whether an answer reached the end of each log that a read may have had
// records of, except those of ended ingesters: an ingester that a read finds in blobs may
// not have answered yet. after are the answer's positions; none: there is no answer.
func (f *follower) reached(after live.Positions) bool {
	k := f.company.wait()
	for _, i := range k.rows {
		_, there := after[i.ID]
		if !there && i.MayHold(k.now) {
			return false
		}
	}
	for _, i := range k.holders() { // a read asks these, and an answer without them keeps their positions
		if _, answered := f.heard.snapshots[i.ID]; !answered {
			return false
		}
	}
	for id := range f.positions {
		_, over := f.ended[id]
		if _, there := after[id]; !over && !there {
			return false
		}
	}
	return len(f.heard.told) == 0 // a missing one has started again
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

// answered notes the ingesters that did.
func (f *follower) answered(h heard, at time.Time) {
	for id := range h.snapshots {
		if !h.told[id] {
			f.good[id] = at
		}
	}
}

// ask asks a question of a follower. It keeps records only together with the positions
// after them; otherwise they would come twice. It returns no answer if the answer was cut
// off. If look returns false, ask stops after the header.
func (f *follower) ask(ctx context.Context, question live.Query, look func(live.Positions) bool, add func(*record.Entry) error) (*live.Answer, error) {
	question.From, question.To = blobs.Oldest, blobs.Newest
	answer, err := f.r.ask(ctx, question, f.company)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	if look != nil && !look(answer.Positions()) {
		return answer, nil
	}
	_, end, err := f.hidden.collect(answer.Next, func(line []byte) bool { return f.asked.has(line) && f.match.Line(line) }, add)
	f.tellUnjudged()
	var cut *live.CutError
	switch {
	case err != nil:
		return nil, err
	case end == io.EOF:
		return answer, nil
	case errors.As(end, &cut) || ctx.Err() != nil:
		return nil, end
	}
	return answer, end
}

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

// tellUnasked reports ingesters that may hold records and that the asked ingester does
// not know: it may be cut off from their table. It reports them only at the second check,
// since by then the asked one knows an ingester that has just started.
func (f *follower) tellUnasked(k *roster) {
	unasked := map[string]string{}
	if f.heard.any {
		for _, i := range k.lacking(&f.heard) {
			if f.heard.told[i.ID] {
				continue
			}
			unasked[i.ID] = i.Process
			if f.unasked[i.ID] == i.Process {
				f.problem(k.missing(&i, &f.heard))
			}
		}
	}
	f.unasked = unasked
}
