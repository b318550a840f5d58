package newest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"blobtail/internal/heartbeat"
	"blobtail/newest/live"
	"blobtail/query"
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
	err  error     // of the last attempt
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
		f.note(fmt.Sprintf("%s; blobs are read instead, and what came with times before %s may be missing", why, utc(f.debt.from)))
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
		f.note(fmt.Sprintf("blobs are read from %s on only, because what was shown before is not remembered; what else came with times from %s to then may be missing",
			utc(time.Unix(0, from)), utc(f.debt.from)))
	}
	q := f.o.Query
	q.Limit, q.Range = 0, query.Range{From: from, To: query.Newest}
	report, err := f.r.read(ctx, q, f.pass)
	f.passedBy()
	if werr := f.write(); werr != nil {
		return werr
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.tell(report)
	var none *query.NoServiceError
	if errors.As(err, &none) {
		err = nil
	}
	f.debt.err = err
	if err != nil {
		f.debt.next = time.Now().Add(retry)
		err = fmt.Errorf("what is in blobs since %s cannot be read and is tried again: %w", utc(time.Unix(0, from)), err)
	} else {
		f.debt = debt{}
	}
	f.say("blobs", err)
	return nil
}

// passedBy marks the ingesters, since a read may have gone beyond their positions. It
// leaves out ended ones: their logs are empty.
func (f *follower) passedBy() {
	f.beyond = map[string]bool{}
	for id := range f.positions {
		if _, over := f.ended[id]; !over {
			f.beyond[id] = true
		}
	}
}

// unpaid is the reason why a follower that ends could not emit all records.
func (f *follower) unpaid() error { return f.debt.err }

// lookLive asks the ingesters for records appended since the last poll.
func (f *follower) lookLive(ctx context.Context) error {
	if f.positions == nil {
		if err := f.meetLate(ctx); err != nil || f.positions == nil {
			return err
		}
	} else if _, err := f.poll(ctx); err != nil {
		return err
	}
	f.watchEnds(ctx)
	return f.pay(ctx)
}

// meet asks for the ends of the logs.
func (f *follower) meet(ctx context.Context) error {
	question := asked(&f.o.Query)
	question.Follow, question.Now = true, true
	answer, _, err := f.ask(ctx, question, nil)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.sayLive(err)
	if answer != nil {
		f.positions = answer.Positions()
		f.answered(answer, err, f.now())
	}
	return nil
}

// meetLate meets ingesters after none was there before. An ingester that is new since the
// follower began remembers only newer records, and is read from its beginning. For an
// older one the right position is unknown, so its records are found by time.
func (f *follower) meetLate(ctx context.Context) error {
	if err := f.meet(ctx); err != nil || f.positions == nil {
		return err
	}
	old := ""
	for id := range f.positions {
		if f.stranger(id) {
			old = id
		} else {
			delete(f.positions, id)
		}
	}
	if old != "" {
		f.owe(time.Unix(0, f.floor), fmt.Sprintf("ingester %s is back", old))
	}
	return nil
}

// stranger reports whether an ingester that was not met yet may have accepted records
// before this follower began.
func (f *follower) stranger(id string) bool { return f.known == nil || f.known[id] }

// poll asks for records after the positions; false: no ingester answered.
func (f *follower) poll(ctx context.Context) (bool, error) {
	begun := f.now()
	question := asked(&f.o.Query)
	question.Follow, question.After = true, f.positions
	var met []string
	answer, h, err := f.ask(ctx, question, func(p live.Positions) bool {
		for id := range p {
			if _, ok := f.positions[id]; !ok && f.stranger(id) {
				met = append(met, id)
			}
		}
		return len(met) == 0
	})
	defer h.close()
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
	f.heard = hear(answer)
	f.heard.told = missingOf(err)
	for _, id := range answer.Behind() {
		f.owe(f.lastGood(id).Add(-slack), fmt.Sprintf("ingester %s does not remember all that came since the last look", id))
	}
	f.arrived(answer, err)
	if len(answer.Behind()) > 0 {
		if err := f.pay(ctx); err != nil { // first, because blobs have the older records
			return true, err
		}
	}
	f.exact = false // no other follower can go on from half an answer
	if err := f.take(ctx, h); err != nil {
		return true, err
	}
	f.exact = true
	f.positions = answer.Positions()
	f.brokenOff(err)
	f.answered(answer, err, begun)
	return true, nil
}

// lastGood is when an ingester last answered.
func (f *follower) lastGood(id string) time.Time {
	if t, ok := f.good[id]; ok {
		return t
	}
	return f.started
}

// answered notes the ingesters that did.
func (f *follower) answered(answer *live.Answer, err error, at time.Time) {
	missing := missingOf(err)
	for id := range answer.Positions() {
		if !missing[id] {
			f.good[id] = at
		}
	}
}

// arrived unmarks ingesters whose positions have reached the records read.
func (f *follower) arrived(answer *live.Answer, err error) {
	missing := missingOf(err)
	for id := range f.beyond {
		if _, ok := answer.Positions()[id]; ok && !missing[id] {
			delete(f.beyond, id)
		}
	}
}

// brokenOff marks ingesters that sent some records but no position after them.
func (f *follower) brokenOff(err error) {
	var lacks *live.IncompleteError
	if !errors.As(err, &lacks) {
		return
	}
	for _, m := range lacks.Missing {
		if m.Partly {
			if f.beyond == nil {
				f.beyond = map[string]bool{}
			}
			f.beyond[m.ID] = true
		}
	}
}

// missingOf are the ingesters missing from an answer.
func missingOf(err error) map[string]bool {
	var lacks *live.IncompleteError
	missing := map[string]bool{}
	if errors.As(err, &lacks) {
		for _, m := range lacks.Missing {
			missing[m.ID] = true
		}
	}
	return missing
}

// ask asks a question of a follower. It keeps entries only together with the positions
// after them; otherwise they would come twice. It returns no answer if the answer was cut
// off. If look returns false, ask stops after the header.
func (f *follower) ask(ctx context.Context, question live.Query, look func(live.Positions) bool) (*live.Answer, *haul, error) {
	h := &haul{}
	question.From, question.To = query.Oldest, query.Newest
	answer, err := f.r.ask(ctx, question, f.company)
	if err != nil {
		return nil, h, err
	}
	defer answer.Close()
	if look != nil && !look(answer.Positions()) {
		return answer, h, nil
	}
	for {
		e, err := answer.Next()
		if err == nil {
			if !f.match.Line(e.Line) || f.hidden.entry(&e) {
				continue
			}
			if err = h.add(&e); err == nil {
				continue
			}
			return nil, h, err
		}
		var cut *live.CutError
		switch {
		case err == io.EOF:
			return answer, h, nil
		case errors.As(err, &cut) || ctx.Err() != nil:
			return nil, h, err
		}
		return answer, h, err
	}
}

// watchEnds checks for ended ingesters. An ended ingester is not asked any more, and the
// records it accepted since its last answer are in blobs.
func (f *follower) watchEnds(ctx context.Context) {
	if f.checking == nil && !time.Now().Before(f.nextCheck) {
		f.nextCheck = time.Now().Add(endsEvery)
		f.checking = f.askRows(ctx)
	}
	select {
	case c := <-f.checking:
		f.checking = nil
		f.judgeEnds(c)
	default: // slow tables do not delay records
	}
}

// roll is the rows of the ingesters, as of a time.
type roll struct {
	survey *survey
	begun  time.Time
}

// askRows reads the rows of the ingesters in the background.
func (f *follower) askRows(ctx context.Context) chan roll {
	done := make(chan roll, 1)
	begun := f.now()
	f.besides.Go(func() {
		s := f.r.survey(ctx)
		s.wait()
		done <- roll{s, begun}
	})
	return done
}

func (f *follower) judgeEnds(c roll) {
	k := c.survey.wait()
	if k.storeErr == nil {
		f.company = c.survey
	}
	rows, begun := k.rows, c.begun
	if k.err != nil || len(rows) == 0 {
		return
	}
	f.tellUnasked(k)
	running := map[string]bool{}
	for _, i := range rows {
		_, ours := f.positions[i.ID]
		switch {
		case i.State != heartbeat.Stopped:
			running[i.ID] = true
			delete(f.ended, i.ID)
		case ours && !f.ended[i.ID].Equal(i.At):
			f.ended[i.ID] = i.At
			from := f.checked
			if good := f.lastGood(i.ID); good.Before(from) {
				from = good
			}
			// An ingester that ended before it was met has no new records.
			if i.At.After(from.Add(-endsEvery - slack)) {
				f.owe(from.Add(-slack), fmt.Sprintf("ingester %s has ended", i.ID))
			}
		}
	}
	f.checked = begun
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
		for _, i := range f.r.lacking(k, &f.heard) {
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
