package unflushed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"blobtail/internal/budget"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
	"blobtail/tailindex"
)

// FollowOptions say which records to follow, and name the callbacks.
type FollowOptions struct {
	// Query selects the records. Follow begins with the newest Limit records, or with all
	// from Range.From on; without both it begins with none. Range.To must be open.
	Query blobs.Query
	// After goes on where another follower ended. Then only Services and Filter of Query
	// count.
	After *Cursor
	// Emit gets one or more whole lines.
	Emit func(lines []byte) error
	// Visit gets each record with its identity, in place of Emit. The entry is valid during the
	// call.
	Visit func(*record.Entry) error
	// Mark gets a cursor now and then, at most once a second, for another follower to go on
	// with if this one does not come to its end. It is called behind the records up to the
	// cursor and before the others. While positions are not exact it is not called; nil: no
	// callback.
	Mark func(Cursor) error
	// Report is told of missing or late records, and of hints, as they become known; nil: no
	// callback.
	Report func(*Report)
	// Once ends as soon as all existing records have been emitted. With a Mark, the cursor of its
	// end has the positions, if ingesters are asked.
	Once bool
}

// How long records are held back so that they come out in order. A record of an ingester that
// can be asked is to be seen within 2 s of its acknowledgement. Another one is in a row of the
// tail after the interval of its ingester, which the wait does not depend on: ingesters with one
// interval write a service at one phase.
const (
	liveWait = 500 * time.Millisecond
	rowsWait = 400 * time.Millisecond
)

// Follow emits records as they are acknowledged until ctx ends, each once. Records that
// arrive within a moment of each other come in order. Ingesters, the store and the
// network may go and come back once it has begun. It returns how far it came, with the
// error of ctx or of Emit.
//
// With live records it misses nothing. If an ingester has forgotten a position of its log,
// or has ended, Follow reads blobs from a minute earlier on. Without live records it emits
// the records of the tail's tables.
func (r *Reader) Follow(ctx context.Context, o FollowOptions) (Cursor, error) {
	match, err := o.Query.Filter.Matcher(budget.Of(ctx))
	if err != nil {
		return Cursor{}, err
	}
	if o.Report == nil {
		o.Report = func(*Report) {}
	}
	f := newFollower(r, o)
	f.match = match
	if o.After != nil {
		f.cursor.Last = o.After.Last
		maps.Copy(f.positions, o.After.Positions)
	}
	running, cancel := context.WithCancel(ctx)
	err = f.run(running)
	cancel()
	if f.checking != nil {
		f.checking.wait()
	}
	f.attend(true)
	for _, p := range f.asking {
		p.haul.rest.Close()
	}
	if ferr := f.release(true); ferr != nil {
		err = ferr
	}
	return f.end(), err
}

// follower is one call of Follow. Its times are the store's, if known: the clocks of
// hosts differ.
type follower struct {
	r     *Reader
	o     FollowOptions
	match *blobs.Matcher
	// unjudged are the records that match could not judge, as far as they are reported.
	unjudged int64
	asked    *sift // the services of the query

	told map[string]time.Time // when a message of each kind was last due
	// troubles are failures that last over several polls, by the message of their end:
	// since when all polls succeeded; zero: the last one failed.
	troubles map[string]time.Time

	ahead   time.Duration // the least that the store's clock is ahead of the local one
	late    time.Duration // how much more it may be ahead: the store's time was read so late
	started time.Time
	exact   bool // the emitted records are those up to the positions, except the debt
	seen    *seen
	order   order
	mark    mark
	gaps    map[string]Gap // by service
	gapsDue time.Time
	cursor  Cursor
	buf     []byte
	floor   int64 // older records were emitted already, or are not wanted

	// asks says that the follower asks ingesters, and does not go by the tables of the tail.
	asks bool

	// Live.
	positions live.Positions       // how far each log was read
	good      map[string]time.Time // when each ingester last answered
	known     map[string]bool      // ingesters present at the start; nil: not known
	company   *survey              // the last one read
	polls
	narrowed string               // the services of the token, as last reported
	unasked  map[string]string    // those that held records and were left out at the last check, with their process
	ended    map[string]time.Time // ended ingesters, with the times of their rows
	checking *survey              // the one being read; nil: none
	checked  time.Time            // when the last one began
	hidden   hidden
	looked   time.Time // the last time the expired days were known
	debt     debt

	// Without live records.
	watches   map[string]*tailindex.Watch
	refreshed time.Time
	goodRows  time.Time
}

func newFollower(r *Reader, o FollowOptions) *follower {
	return &follower{
		r: r, o: o, asked: newSift(o.Query.Services), exact: true, seen: newSeen(seenMost), gaps: map[string]Gap{}, floor: blobs.Oldest,
		told: map[string]time.Time{}, troubles: map[string]time.Time{}, positions: live.Positions{},
		polls: polls{asking: map[string]*poll{}, last: map[string]outcome{}, caught: map[string]struct{}{}},
		good:  map[string]time.Time{}, ended: map[string]time.Time{}, watches: map[string]*tailindex.Watch{},
	}
}

func (f *follower) now() time.Time { return time.Now().Add(f.ahead) }

func (f *follower) run(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	if f.o.Once {
		return f.debt.err
	}
	tick := time.NewTicker(f.r.o.Pace)
	defer tick.Stop()
	for {
		if err := f.look(ctx); err != nil {
			return err
		}
		f.cut()
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

// begin emits the existing records. First it asks for the ends of the logs: the first
// poll finds all later records, and records found by both are recognized.
func (f *follower) begin(ctx context.Context) error {
	f.learn(ctx)
	f.choose(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f.o.After != nil {
		if resumed, err := f.resume(ctx); resumed || err != nil {
			return err
		}
	}
	positioned := f.asks && (!f.o.Once || f.o.Mark != nil)
	if positioned {
		if err := f.meet(ctx); err != nil {
			return err
		}
	}
	if err := f.first(ctx); err != nil {
		return err
	}
	if positioned && f.o.Once {
		f.exact = true // all wanted records from before the positions have been emitted
	}
	// A record that arrived meanwhile with an older time is late, and is emitted. A
	// record from a clock that is ahead makes no other record late.
	f.floor = f.started.UnixNano()
	if f.cursor.Last.Time != 0 {
		f.floor = f.cursor.Last.Time
	}
	return nil
}

// learn finds the store's time and its ingesters.
func (f *follower) learn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tablePatience)
	defer cancel()
	f.company = f.r.survey(ctx, f.o.Query.Services)
	k := f.company.wait()
	f.knowExpired(k)
	if k.err == nil && !k.now.IsZero() {
		f.ahead, f.late = k.now.Sub(k.came), k.came.Sub(f.company.begun)
	}
	f.started = f.now()
	f.goodRows = f.started
	if k.err != nil && !(absent(k.err) && k.store == "" && k.storeErr == nil) { // there never was an ingester
		return
	}
	f.known = map[string]bool{}
	for _, i := range k.rows {
		f.known[i.ID] = true
	}
}

// choose decides between ingesters and the tables of the tail.
func (f *follower) choose(ctx context.Context) {
	f.asks, f.order.wait = f.r.asks() && f.company.wait().copied == nil, liveWait
	if f.asks && f.r.o.Distant && f.r.o.Live == nil && !f.r.reach(ctx, f.company) && ctx.Err() == nil {
		f.asks = false
		f.tellOutOfReach()
	}
	if f.r.o.Off {
		report := &Report{}
		report.warnOfTables()
		f.tell(report)
	}
	if !f.asks {
		f.order.wait = rowsWait
	}
	f.mark.later.wait = f.order.wait
}

// tellOutOfReach reports that no ingester answers at the address in its row.
func (f *follower) tellOutOfReach() {
	if len(f.company.wait().askable()) == 0 {
		f.note(ErrNobody.Error() + "; new records come from the tables of the tail")
		return
	}
	f.problem(fmt.Errorf("no ingester can be reached at the address in its row, so new records come from the tables of the tail: at most the newest %d of each few seconds, and none that come late. Set BLOBTAIL_LIVE to the URL of an ingester", tailindex.MaxLines))
}

// first emits the records a follower begins with.
func (f *follower) first(ctx context.Context) error {
	q := f.o.Query
	switch {
	case f.o.After != nil:
		q.Range, q.Limit = blobs.Range{From: f.floor, To: blobs.Newest}, 0
	case q.Limit == 0 && q.Range.From == blobs.Oldest:
		return nil
	}
	f.exact = false // it may go beyond the positions
	err := f.read(ctx, q)
	if _, none := errors.AsType[*blobs.NoServiceError](err); none && !f.o.Once {
		f.note(fmt.Sprintf("%v yet; its records are shown when they come", err))
		err = nil
	}
	if err != nil {
		return err
	}
	return f.write()
}

// resume goes on after the positions of a cursor; false: the caller has to go on by the
// order of records.
func (f *follower) resume(ctx context.Context) (bool, error) {
	c := *f.o.After
	// A store may report its time in whole seconds, and the last record may be from just now.
	if now := f.now(); c.Last.Time > now.Add(3*aheadOfTime+f.late).UnixNano() {
		c.Last = record.Entry{Time: now.UnixNano()}
		f.o.After = &c
	}
	f.cursor.Last, f.floor = c.Last, c.Last.Time
	if !f.asks || len(c.Positions) == 0 || !f.oneKnown(c.Positions) {
		f.lacks(fmt.Sprintf("going on by the times of records: what came since with times before %s "+mayBeMissing, utc(time.Unix(0, f.floor))))
		clear(f.positions)
		return false, nil
	}
	f.known = map[string]bool{} // an ingester missing from the cursor came later
	for id := range f.positions {
		f.good[id] = time.Unix(0, f.floor)
	}
	answered, err := f.poll(ctx, true, false)
	if err != nil {
		return true, err
	}
	if !answered {
		f.owe(time.Unix(0, f.floor), "")
	}
	if f.o.Once {
		report, h := &Report{}, f.heard
		for id := range h.errs { // the poll has told it
			h.add(heard{told: map[string]bool{id: true}})
		}
		h.any = f.heard.any
		f.r.verify(ctx, &f.o.Query, f.company.wait(), &h, report)
		f.tell(report)
	}
	f.judgeEnds(f.r.survey(ctx, nil)) // at once: records in blobs come first
	return true, f.pay(ctx)
}

// oneKnown reports whether any ingester of a cursor is of this store, as far as the rows
// tell.
func (f *follower) oneKnown(p live.Positions) bool {
	for id := range p {
		if len(f.known) == 0 || f.known[id] {
			return true
		}
	}
	f.problem(errors.New("none of the ingesters of the cursor has ever written to this store; is it the store that the cursor is of?"))
	return false
}

// end is where another follower can go on. It leaves out the positions while records
// before them are still to be emitted: the other follower would skip those.
func (f *follower) end() Cursor {
	c := f.cursor
	if f.exact && f.debt.from.IsZero() && len(f.positions) > 0 {
		c.Positions = f.positions
	}
	if c.Last.Time == 0 && f.floor != blobs.Oldest { // it has begun
		c.Last.Time = f.floor
	}
	return c
}

// look polls for new records.
func (f *follower) look(ctx context.Context) error {
	var err error
	if f.asks {
		_, err = f.poll(ctx, f.o.Once, false)
	} else {
		err = f.lookRows(ctx)
	}
	if err != nil {
		return err
	}
	f.check(ctx)
	return f.pay(ctx)
}
