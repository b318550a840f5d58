package unflushed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed/live"
	"blobtail/storage/fanout"
)

// polls are the questions of a follower. Each ingester is asked for its own records, so that one
// that is slow or hangs delays no record of another. An ingester that the user named is asked for
// those of all. It goes by the id "".
type polls struct {
	asking map[string]*poll    // the question under way to each
	last   map[string]outcome  // of the last one to each that has ended
	heard  heard               // all of these together
	caught map[string]struct{} // ingesters that answered a question of after the last read
	reads  int                 // reads so far, for caught
	listed *roster             // has the ingesters to ask

	matching sync.Mutex // of the matcher and the services of the follower
}

// poll is a question to one ingester.
type poll struct {
	question live.Query
	begun    time.Time // by the store's clock
	reads    int
	done     chan struct{}

	// Once done.
	fault  *fanout.Panic
	answer *live.Answer // it is closed; nil: there is none, or it was cut off
	err    error        // that, or how the answer ended
	haul   *haul
	met    []string // ingesters whose positions are not known: the haul is empty
}

// outcome is the end of a poll.
type outcome struct {
	heard heard
	err   error
}

// meet asks for the ends of the logs.
func (f *follower) meet(ctx context.Context) error {
	_, err := f.poll(ctx, true, true)
	return err
}

// poll asks for records after the positions; false: no ingester answered. It waits for all
// answers, or else at most as long as the follower waits between polls: the others are taken by a
// later poll. With ends it asks for the ends of the logs alone.
//
// An ingester without a position that is new since the follower began is read from its
// beginning. It remembers newer records only. For an older one the right position is
// unknown, so its records are found by time.
func (f *follower) poll(ctx context.Context, all, ends bool) (answered bool, err error) {
	if k := f.company.wait(); f.listed == nil || k.err == nil && k.storeErr == nil {
		f.listed = k // while the tables are away, the ingesters of the last list are asked
	}
	k := f.listed
	rows := k.askable()
	if f.r.o.Live != nil {
		rows = []lease.Ingester{{}}
	}
	for i := range rows {
		if f.asking[rows[i].ID] == nil {
			f.ask(ctx, &rows[i], k, ends, haulMemory/len(rows))
		}
	}
	f.attend(all)
	for id, p := range f.asking {
		select {
		case <-p.done:
		default:
			continue
		}
		delete(f.asking, id)
		err := f.accept(ctx, id, p)
		p.haul.rest.Close()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return answered, err
		}
		answered = answered || p.answer != nil
	}
	f.sum(rows)
	f.sayLive(f.trouble(k, rows))
	return answered, nil
}

// ask begins a poll of the ingester of a row. room is for the lines of its answer in memory.
func (f *follower) ask(ctx context.Context, row *lease.Ingester, k *roster, ends bool, room int) {
	p := &poll{question: asked(&f.o.Query), begun: f.now(), reads: f.reads, done: make(chan struct{}), haul: &haul{room: room, rest: blobs.NewUnflushed("live records")}}
	q := &p.question
	q.From, q.To, q.Follow, q.Now = blobs.Oldest, blobs.Newest, true, ends
	if at, ok := f.positions[row.ID]; ok && !ends {
		q.After = live.Positions{row.ID: at}
	} else if row.ID == "" && !ends {
		q.After = maps.Clone(f.positions)
	}
	known, hidden := f.known, f.hidden
	f.asking[row.ID] = p
	go func() {
		defer close(p.done)
		p.fault = fanout.Keep(func() {
			if row.ID == "" {
				p.answer, p.err = f.r.o.Live.Ask(ctx, *q)
			} else {
				p.answer, p.err = f.r.alone(ctx, row, *q, k)
			}
			if p.err == nil {
				p.err = f.keep(ctx, p, known, hidden)
			}
		})
	}()
}

// keep reads the answer of a poll. It keeps records only together with the positions after them;
// otherwise they would come twice. So it discards an answer that was cut off, and one that came to
// its end when the follower was over: a matcher lets no record pass then.
func (f *follower) keep(ctx context.Context, p *poll, known map[string]bool, hidden hidden) error {
	defer p.answer.Close()
	for id := range p.answer.Positions() {
		// It may have accepted records before this follower began.
		if _, ok := p.question.After[id]; !ok && !p.question.Now && (known == nil || known[id]) {
			p.met = append(p.met, id)
		}
	}
	if len(p.met) > 0 {
		return nil // the ingester would send all records it remembers, old and new
	}
	_, end, err := hidden.collect(p.answer.Next, f.matches, p.haul.add)
	_, cut := errors.AsType[*live.CutError](end)
	if err == nil {
		err = cmp.Or(ctx.Err(), budget.Of(ctx).Err())
	}
	switch {
	case err != nil:
		p.answer = nil
		return err
	case end == io.EOF:
		return nil
	case cut:
		p.answer = nil
	}
	return end
}

// matches reports whether the follower wants a line of an answer.
func (f *follower) matches(line []byte) bool {
	f.matching.Lock()
	defer f.matching.Unlock()
	return f.asked.has(line) && f.match.Line(line)
}

// attend waits for the questions under way, and with all for their ends.
func (f *follower) attend(all bool) {
	patience := time.NewTimer(f.r.o.Pace)
	defer patience.Stop()
	for _, p := range f.asking {
		if all {
			<-p.done
			continue
		}
		select {
		case <-p.done:
		case <-patience.C:
			return
		}
	}
}

// accept takes the records of a poll that is done.
func (f *follower) accept(ctx context.Context, id string, p *poll) error {
	p.fault.Again()
	f.tellUnjudged()
	if p.answer != nil && id == "" {
		if err := f.r.ours(ctx, p.answer.Self, f.company.wait()); err != nil {
			p.answer, p.err = nil, err
		}
	}
	if p.answer == nil {
		f.last[id] = outcome{err: p.err}
		return nil
	}
	positions := p.answer.Positions()
	if len(p.met) > 0 {
		for _, id := range p.met {
			f.positions[id], f.good[id] = positions[id], p.begun
			f.owe(time.Unix(0, f.floor), fmt.Sprintf("ingester %s answers for the first time", id))
		}
		return nil
	}
	h := hear(p.answer, p.err)
	f.last[id] = outcome{h, p.err}
	for _, id := range p.answer.Behind {
		f.owe(f.lastGood(id).Add(-slack), fmt.Sprintf("ingester %s does not remember all that came since the last look", id))
	}
	f.catch(p, &h)
	if len(p.answer.Behind) > 0 {
		if err := f.pay(ctx); err != nil { // first, because blobs have the older records
			return err
		}
	}
	exact := f.exact && !h.partly
	f.exact = false // no other follower can go on from half an answer
	if err := f.take(ctx, p.haul); err != nil {
		return err
	}
	maps.Copy(f.positions, positions)
	f.exact = exact
	f.tellNarrowed(&h)
	for id := range h.snapshots {
		if !h.told[id] {
			f.good[id] = p.begun
		}
	}
	return nil
}

// catch notes the logs that an answer has read to their ends.
func (f *follower) catch(p *poll, h *heard) {
	for id := range h.snapshots {
		if p.reads == f.reads && !h.told[id] {
			f.caught[id] = struct{}{}
		}
	}
	f.exact = f.exact || f.reached(h)
}

// reached reports whether answers since the last read reached the end of each log that the read
// may have had records of, except those of ended ingesters: an ingester that a read finds in blobs
// may not have answered yet. h is the last answer; nil: there is none.
func (f *follower) reached(h *heard) bool {
	k := f.company.wait()
	for _, i := range k.rows {
		if _, caught := f.caught[i.ID]; !caught && i.MayHold(k.now) {
			return false
		}
	}
	for id := range f.positions {
		_, over := f.ended[id]
		if _, caught := f.caught[id]; !over && !caught {
			return false
		}
	}
	return h == nil || len(h.told) == 0 // a missing one has started again
}

// sum sums up the last answers of the ingesters that are asked now.
func (f *follower) sum(rows []lease.Ingester) {
	f.heard = heard{errs: map[string]error{}}
	for i := range rows {
		switch last, ok := f.last[rows[i].ID]; {
		case ok && last.heard.any:
			f.heard.add(last.heard)
		case ok && rows[i].ID == "":
			f.heard.err = last.err
		case ok:
			f.heard.errs[rows[i].ID] = last.err
		}
	}
}

// trouble is the reason for which records of ingesters may be missing; nil: there is none.
func (f *follower) trouble(k *roster, rows []lease.Ingester) error {
	if f.r.o.Live != nil {
		return f.last[""].err
	}
	switch {
	case k.unlisted() != nil && len(rows) == 0:
		return fmt.Errorf("no ingester to ask is known: %w", k.err)
	case len(rows) == 0:
		return ErrNobody
	}
	var all, idle []error
	for i := range rows {
		row := &rows[i]
		switch last := f.last[row.ID]; {
		case last.err == nil:
		case last.heard.any:
			all = append(all, last.err)
		case !row.Live(k.now):
			all = append(all, k.missing(row, &f.heard))
		case row.State == lease.Holding || row.BestEffort:
			all = append(all, fmt.Errorf("ingester %s on %s may hold records that are in no blob, and could not be asked: %w", row.ID, row.Host, last.err))
		default:
			idle = append(idle, last.err)
		}
	}
	if len(all) == 0 && !f.heard.any && len(idle) > 0 {
		return idle[0] // nobody answers
	}
	return joined(all)
}

// joined joins errors to one line.
func joined(all []error) (err error) {
	for _, next := range all {
		if err == nil {
			err = next
		} else {
			err = fmt.Errorf("%w; %w", err, next)
		}
	}
	return err
}
