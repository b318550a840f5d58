package newest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"blobtail/live"
	"blobtail/query"
	"blobtail/record"
	"blobtail/tailindex"
)

// FollowOptions say what is followed, and who is told.
type FollowOptions struct {
	// Query says what is wanted. It begins with as many of the newest as Limit says,
	// or with all from Range.From on; with nothing if neither is there. Range.To must
	// be open.
	Query query.Query
	// After goes on where another follower ended; nothing of Query but Services and
	// Filter counts then.
	After *Cursor
	// Emit is given one or more whole lines.
	Emit func(lines []byte) error
	// Note is told, in words, what may be missing, and what changes; Gap where more
	// records are than were given out. nil: nobody is.
	Note func(text string)
	Gap  func(Gap)
	// Once ends when all that is there has been given out.
	Once bool
}

// How long records are held back so that they come out in order. They are to be
// seen within 2 s of their acknowledgement; a row of the tail is there after 1 s.
const (
	liveWait = 700 * time.Millisecond
	rowsWait = 400 * time.Millisecond
)

// Follow gives out records as they are acknowledged until ctx ends, each once, in
// order as far as they come within a moment of each other. Ingesters, the store and
// the network may go and come back. It returns how far it came, with the error of
// ctx or of Emit.
//
// With live records it misses nothing: it asks each ingester for what was appended
// behind a position of its log, and where an ingester does not remember that any
// more, blobs are read. Without them it shows what the tables of the tail have.
func (r *Reader) Follow(ctx context.Context, o FollowOptions) (Cursor, error) {
	match, err := o.Query.Filter.Matcher()
	if err != nil {
		return Cursor{}, err
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	if o.Gap == nil {
		o.Gap = func(Gap) {}
	}
	f := &follower{r: r, o: o, match: match, seen: newSeen(seenMost), said: map[string]string{}}
	f.order.wait = rowsWait
	if r.o.Live != nil {
		f.order.wait = liveWait
	}
	f.started = time.Now()
	f.good = f.started
	err = f.run(ctx)
	if ferr := f.release(true); ferr != nil {
		err = ferr
	}
	f.cursor.Positions = f.positions
	return f.cursor, err
}

// follower is one call of Follow.
type follower struct {
	r     *Reader
	o     FollowOptions
	match *query.Matcher

	started time.Time
	seen    *seen
	order   order
	gaps    []dueGap
	cursor  Cursor
	buf     []byte

	// Live: how far each log was read; nil until an ingester was reached.
	positions live.Positions
	good      time.Time // when all of them last answered
	floor     int64     // what is older was given out, or is not wanted

	// Without live records.
	watches   map[string]*tailindex.Watch
	refreshed time.Time

	said map[string]string // what was said last of each trouble
}

type dueGap struct {
	Gap
	due time.Time
}

func (f *follower) run(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	if f.o.Once {
		return nil
	}
	tick := time.NewTicker(f.r.o.Pace)
	defer tick.Stop()
	for {
		if err := f.look(ctx); err != nil {
			return err
		}
		if err := f.release(false); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// begin gives out what is there. Where the logs end is asked for first: what comes
// later than that is found by the first look, and what both find is known.
func (f *follower) begin(ctx context.Context) error {
	f.floor = query.Oldest
	if c := f.o.After; c != nil {
		f.cursor, f.floor = *c, c.Last.Time
		f.positions = c.Positions
		if f.positions != nil && f.r.o.Live != nil {
			return f.lookLive(ctx)
		}
	}
	if f.r.o.Live != nil {
		if err := f.meet(ctx); err != nil {
			return err
		}
	}
	if err := f.first(ctx); err != nil {
		return err
	}
	if f.cursor.Last.Time != 0 {
		f.floor = f.cursor.Last.Time
	} else {
		f.floor = f.started.UnixNano()
	}
	return nil
}

// first gives out what a follower begins with.
func (f *follower) first(ctx context.Context) error {
	q := f.o.Query
	if f.o.After != nil {
		q.Range, q.Limit = query.Range{From: f.floor, To: query.Newest}, 0
	}
	var report *Report
	var err error
	if f.o.After == nil && q.Limit == 0 && q.Range.From == query.Oldest {
		return nil
	}
	if q.Limit > 0 {
		_, report, err = f.r.Tail(ctx, q, f.pass)
	} else {
		report, err = f.r.read(ctx, q, f.pass)
	}
	if report != nil {
		f.tell(report)
	}
	var none *query.NoServiceError
	if errors.As(err, &none) && !f.o.Once {
		f.say("service", err)
		err = nil // it may come
	}
	if err != nil {
		return err
	}
	return f.write()
}

// pass gives out a record that was read in order.
func (f *follower) pass(e *record.Entry) error {
	if f.o.After != nil && e.Compare(&f.o.After.Last) <= 0 || !f.seen.add(e) {
		return nil
	}
	f.put(e)
	if len(f.buf) > 1<<20 {
		return f.write()
	}
	return nil
}

// put adds a record to what is given out next.
func (f *follower) put(e *record.Entry) {
	f.buf = append(f.buf, e.Line...)
	if last := &f.cursor.Last; last.Time == 0 || e.Compare(last) > 0 {
		*last = record.Entry{Time: e.Time, ID: e.ID}
	}
}

func (f *follower) write() error {
	if len(f.buf) == 0 {
		return nil
	}
	err := f.o.Emit(f.buf)
	f.buf = f.buf[:0]
	return err
}

// release gives out what has waited its time.
func (f *follower) release(all bool) error {
	now := time.Now()
	for _, e := range f.order.take(now, all) {
		f.put(&e.Entry)
	}
	if err := f.write(); err != nil {
		return err
	}
	left := f.gaps[:0]
	for _, g := range f.gaps {
		if all || !g.due.After(now) {
			f.o.Gap(g.Gap)
		} else {
			left = append(left, g)
		}
	}
	f.gaps = left
	return nil
}

// look finds what is new.
func (f *follower) look(ctx context.Context) error {
	if f.r.o.Live != nil {
		return f.lookLive(ctx)
	}
	return f.lookRows(ctx)
}

// meet asks where the logs end.
func (f *follower) meet(ctx context.Context) error {
	question := asked(&f.o.Query)
	question.Follow, question.Now = true, true
	positions, _, err := f.ask(ctx, question)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.say("live", err)
	if positions != nil {
		f.positions = positions
	}
	return nil
}

// ask asks a question of a follower. Entries are kept only with the positions
// behind them, or they would come twice.
func (f *follower) ask(ctx context.Context, question live.Query) (p live.Positions, behind []string, err error) {
	question.From, question.To = query.Oldest, query.Newest
	answer, err := f.r.o.Live.Ask(ctx, question)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Close()
	var staged []record.Entry
	for {
		e, nerr := answer.Next()
		if nerr == nil {
			if f.match.Line(e.Line) {
				e.Line = bytes.Clone(e.Line)
				staged = append(staged, e)
			}
			continue
		}
		if nerr != io.EOF {
			err = nerr
		}
		break
	}
	var cut *live.CutError
	if errors.As(err, &cut) || ctx.Err() != nil {
		return nil, nil, err
	}
	now := time.Now()
	for i := range staged {
		if f.seen.add(&staged[i]) {
			f.order.add(staged[i], now)
		}
	}
	return answer.Positions(), answer.Behind(), err
}

// lookLive asks the ingesters for what was appended since the last look.
func (f *follower) lookLive(ctx context.Context) error {
	if f.positions == nil {
		// Nobody was there until now: what came meanwhile is not behind any position.
		if err := f.meet(ctx); err != nil || f.positions == nil {
			return err
		}
		return f.catchUp(ctx)
	}
	begun := time.Now()
	question := asked(&f.o.Query)
	question.Follow, question.After = true, f.positions
	positions, behind, err := f.ask(ctx, question)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.say("live", err)
	if positions == nil {
		return nil
	}
	f.positions = positions
	if len(behind) > 0 {
		f.say("behind", fmt.Errorf("ingester %s does not remember all that came since the last look; blobs are read instead, and what came with times before %s may be missing",
			behind[0], utc(f.behindFrom())))
		err := f.catchUp(ctx)
		f.say("behind", nil)
		return err
	}
	if err == nil {
		f.good = begun
	}
	return nil
}

// slack is how much older than its arrival a record may be and be found by a
// catch-up.
const slack = time.Minute

// behindFrom is where a catch-up begins to read.
func (f *follower) behindFrom() time.Time {
	from := max(f.good.Add(-slack).UnixNano(), f.floor)
	if f.seen.forgotten != query.Oldest {
		from = max(from, f.seen.forgotten+1)
	}
	return time.Unix(0, from)
}

// catchUp reads what came since all ingesters last answered, from wherever it is.
func (f *follower) catchUp(ctx context.Context) error {
	begun := time.Now()
	if err := f.release(true); err != nil {
		return err
	}
	q := f.o.Query
	q.Limit, q.Range = 0, query.Range{From: f.behindFrom().UnixNano(), To: query.Newest}
	report, err := f.r.read(ctx, q, f.pass)
	if report != nil {
		f.tell(report)
	}
	var none *query.NoServiceError
	if errors.As(err, &none) {
		err = nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		f.say("catch up", err)
		return nil
	}
	if len(report.Problems) == 0 {
		f.good = begun
	}
	return f.write()
}

// lookRows asks the tables of the tail for rows that are new.
func (f *follower) lookRows(ctx context.Context) error {
	if f.r.o.Tail == nil {
		return errors.New("there is nothing to follow: no ingester can be asked, and the store has no tables")
	}
	if err := f.refresh(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*tablePatience)
	defer cancel()
	var failed error
	for service, w := range f.watches {
		rows, missed, err := w.Poll(ctx)
		if err != nil && failed == nil {
			failed = err
		}
		now := time.Now()
		for _, row := range rows {
			f.takeRow(serviceRow{service, row}, now)
		}
		for _, m := range missed {
			f.o.Note(fmt.Sprintf("%d writes of ingester process %s to the tail between %s and %s are not found; blobs will have them",
				m.Rows, m.Process, utc(m.From), utc(m.To)))
		}
	}
	if failed != nil {
		failed = fmt.Errorf("the tail is stale from %s on: %w", utc(f.good), failed)
	} else {
		f.good = time.Now()
	}
	f.say("tables", failed)
	return nil
}

// handover is how long before its start a follower looks for rows: what they have
// beside what it began with was written since.
const handover = 5 * time.Second

// refresh begins to watch services that a glob matches since a moment ago.
func (f *follower) refresh(ctx context.Context) error {
	if f.watches != nil && time.Since(f.refreshed) < 10*time.Second {
		return nil
	}
	services, err := f.r.o.Blobs.Services(ctx, f.o.Query.Services)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.say("services", err)
	after := f.started.Add(-handover)
	if f.watches == nil {
		f.watches = map[string]*tailindex.Watch{}
	}
	for _, s := range services {
		if f.watches[s] == nil {
			f.watches[s] = f.r.o.Tail.Watch(s, errorsOnly(&f.o.Query), after)
		}
	}
	f.refreshed = time.Now()
	return nil
}

func (f *follower) takeRow(row serviceRow, now time.Time) {
	early := row.Arrived.Before(f.started)
	for i := range row.Entries {
		e := &row.Entries[i]
		if early && e.Time <= f.floor || !f.match.Line(e.Line) || !f.seen.add(e) {
			continue
		}
		f.order.add(*e, now)
	}
	var r Report
	r.gap(row)
	for _, g := range r.Gaps {
		if !early {
			f.gaps = append(f.gaps, dueGap{g, now.Add(f.order.wait)})
		}
	}
}

// tell passes on what a read has to say.
func (f *follower) tell(report *Report) {
	for _, p := range report.Problems {
		f.o.Note(p.Error())
	}
	for _, n := range report.Notes {
		f.o.Note(n)
	}
	for _, g := range report.Gaps {
		f.o.Gap(g)
	}
}

// say tells of a trouble once, and once that it is over.
func (f *follower) say(what string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if f.said[what] == text {
		return
	}
	was := f.said[what]
	f.said[what] = text
	switch {
	case err != nil && was == "":
		f.o.Note(text)
	case err == nil && (what == "live" || what == "tables"):
		f.o.Note("all is well again")
	}
}
