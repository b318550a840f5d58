package lease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"blobtail/storage"
)

// lease is the state of an announcer's row, as far as it is known.
type lease struct {
	// A request holds entering for reading from its check of holding until its records
	// are in the log. Giving up the state Holding holds it for writing.
	entering sync.RWMutex
	holding  atomic.Bool  // the row is known to say Holding
	floor    atomic.Int64 // then the row has this floor, or a lower one
	busy     atomic.Int64 // when a record was last on its way, Unix nanoseconds
	need     atomic.Int64 // the oldest time of records that wait for a lower floor
	late     atomic.Int64 // when such a record last came, Unix nanoseconds

	asking singleflight.Group // attempts to enter Holding, which use the next two fields
	denied error              // of the last attempt
	asked  time.Time          // when it ended

	// turn is for the one that reads and writes the row. It guards the fields below.
	turn  *semaphore.Weighted
	known bool     // the version of row is that of the table
	row   Ingester // as last read or written
	notes notes
	wrote bool // this process has written the row
	// left is the arrival of the oldest unflushed record that the row named before
	// this start, until it is stored. replayed is the time from which Oldest is right.
	left, replayed time.Time
	wide           time.Time // until then the floor keeps a distance of an hour
	lost           Loss      // that this process found in the table
	gone           bool      // the table is gone and that is logged, and the row is not back

	shown atomic.Pointer[notes] // their ID and losses, for readers without the turn
}

// Enter returns when the row says that the ingester holds records as old as oldest, in
// Unix nanoseconds. The caller then appends its records to the log and calls leave,
// soon. None of them may be older. After an error no record may be accepted. It is that
// of ctx, or says why the row cannot be written.
func (a *Announcer) Enter(ctx context.Context, oldest int64) (leave func(), err error) {
	for {
		a.entering.RLock()
		if a.holding.Load() && oldest >= a.floor.Load() {
			a.busy.Store(time.Now().UnixNano())
			return a.entering.RUnlock, nil
		}
		a.entering.RUnlock()
		// Or a beat might give up Holding, or lift the floor, before the loop is back here.
		a.busy.Store(time.Now().UnixNano())
		a.ask(oldest)
		try := a.hold()
		if a.o.BestEffort {
			return func() {}, nil
		}
		select {
		case got := <-try:
			if got.Err != nil {
				return nil, fmt.Errorf("this ingester cannot be announced, and readers would miss what it takes: %w", got.Err)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// again is how long a failed attempt to enter Holding answers for all callers.
const again = 500 * time.Millisecond

// hold begins to have the row say Holding, with a floor for the records that wait, unless
// an attempt is under way or failed just now.
func (a *Announcer) hold() <-chan singleflight.Result {
	return a.asking.DoChan("", func() (any, error) {
		switch {
		case a.denied != nil && time.Since(a.asked) < again:
		case a.holding.Load() && a.need.Load() >= a.floor.Load(): // an attempt has just ended
			a.denied = nil
		default:
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			a.denied = a.write(ctx, a.lowered())
			a.asked = time.Now()
		}
		return nil, a.denied
	})
}

// rest gives up the state Holding if the log has held nothing for so long, and lifts the floor
// otherwise. It returns the claim that the row may have.
func (a *Announcer) rest(after time.Duration) claim {
	a.entering.Lock()
	defer a.entering.Unlock()
	if !a.o.Replayed() {
		return claim{Holding, a.under(math.MaxInt64)}
	}
	now := time.Now()
	if _, some := a.o.Oldest(); some {
		a.busy.Store(now.UnixNano())
		return claim{Holding, a.lifted()}
	}
	if a.holding.Load() && now.Sub(time.Unix(0, a.busy.Load())) < after {
		return claim{Holding, a.lifted()}
	}
	a.holding.Store(false)
	return claim{Idle, unknown}
}

// lacks reports whether the row lacks an unflushed record or a loss, or is that of an
// earlier start and some time has passed since the last attempt.
func (a *Announcer) lacks(passed time.Duration) bool {
	_, some := a.o.Oldest()
	lost := a.o.Lost()
	if !a.turn.TryAcquire(1) {
		return false // the row is being written
	}
	defer a.turn.Release(1)
	if !a.wrote {
		return passed >= unwrittenPause
	}
	return some && a.row.Oldest.IsZero() || lost.after(a.notes.Acked).after(a.row.Lost.Until).Any()
}

// tries bounds how often a write is tried again because the row has changed.
const tries = 4

// write writes the row with a claim, and keeps the result for Err. It calls want when it
// has the turn.
func (a *Announcer) write(ctx context.Context, want func() claim) error {
	err := a.turn.Acquire(ctx, 1)
	if err == nil {
		defer a.turn.Release(1)
		err = storage.ErrChanged
		for n := 0; n < tries && errors.Is(err, storage.ErrChanged); n++ {
			err = a.tryWrite(ctx, want())
		}
		if errors.Is(err, storage.ErrChanged) {
			err = errors.New("the row changes again and again: do several processes write it?")
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed = nil; err != nil {
		a.failed = fmt.Errorf("announce this ingester: %w", err)
	} else {
		a.good = time.Now()
	}
	return a.failed
}

// tryWrite writes the row once. The caller has the turn.
func (a *Announcer) tryWrite(ctx context.Context, want claim) error {
	id, err := a.o.StoreID()
	if err != nil {
		return err
	}
	if err := a.notes.mayWrite(a.process); err != nil {
		return err
	}
	if !a.known {
		if err := a.readRow(ctx, id); err != nil {
			return err
		}
	}
	if err := a.keepLoss(); err != nil {
		return err
	}
	// Before the write of the row: a start that finds Holding believes it, and the floor.
	switch {
	case want.state != Holding:
		if err := a.notes.change(func(n *notes) { n.say(claim{"", unknown}) }); err != nil {
			return err
		}
	case a.notes.State == Holding && a.notes.floor() < want.floor:
		if err := a.notes.change(func(n *notes) { n.say(want) }); err != nil {
			return err
		}
	}
	next := a.compose(want, id)
	if next.Ships != "" { // before the row: a start on this file must not rely on a row that may be adopted
		if err := a.notes.change(func(n *notes) { n.Ships = next.Ships }); err != nil {
			return err
		}
	}
	version, err := a.tables.Swap(ctx, Table, Partition, next.row())
	if err != nil {
		a.known = false
		return err
	}
	next.version = version
	a.known, a.row, a.wrote, a.gone = true, next, true, false
	if _, err := a.o.StoreID(); err != nil {
		return err // the row may be in another store
	}
	err = a.notes.change(func(n *notes) {
		n.say(want)
		n.Announced, n.Writers, n.Lane, n.Ships = true, []string{a.process}, next.Lane, next.Ships
	})
	if err == nil && want.state == Holding {
		a.floor.Store(want.floor)
		a.holding.Store(true)
	}
	return err
}

// compose makes the row.
func (a *Announcer) compose(want claim, storeID string) Ingester {
	now := a.o.Now()
	return Ingester{
		ID: a.notes.ID, Process: a.process, Store: a.o.Store, StoreID: storeID, State: want.state, BestEffort: a.o.BestEffort, Lane: a.Lane(), Floor: want.time(),
		Address: text(a.o.Address), Host: text(a.o.Host), Version: text(a.o.Version),
		Position: a.o.Position(), Oldest: a.oldest(now), Started: a.started(), At: now,
		Lost: a.notes.Loss, Shipping: Shipping{Ships: a.ships(a.notes.Ships)}, acked: a.notes.Acked, version: a.row.version,
	}
}

// oldest is the arrival of the oldest unflushed record, by the store's clock. A start
// uses its own time as the arrival of the records in the log. A reader that relied on
// that would not search for the earlier ones.
func (a *Announcer) oldest(now time.Time) time.Time {
	if a.replayed.IsZero() && a.o.Replayed() {
		a.replayed = time.Now()
	}
	since, ok := a.o.Oldest()
	if !a.replayed.IsZero() && (!ok || since.After(a.replayed)) {
		a.left = time.Time{}
	}
	switch {
	case !a.left.IsZero():
		return a.left
	case ok:
		return now.Add(-max(0, time.Since(since)))
	}
	return time.Time{}
}

// readRow reads the row and checks that it is still this ingester's.
func (a *Announcer) readRow(ctx context.Context, storeID string) error {
	row, err := get(ctx, a.tables, a.notes.ID)
	if err != nil {
		return err
	}
	there := row.ID != ""
	if there && row.Store == a.o.Store && !a.wroteIt(&row) && len(a.notes.Others) > 0 {
		// The other one is on a copy of this log, may know of no peers, and may use a new
		// table.
		peers, err := scan(ctx, a.tables, a.o.Store)
		if err == nil {
			err = a.missPeers(peers)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case !there:
		if a.notes.Announced {
			if err := a.tableGone(); err != nil {
				return err
			}
		}
	case row.Store != a.o.Store || row.StoreID != "" && storeID != "" && row.StoreID != storeID:
		return a.takeNewID(true) // the row stays for the reads of the other store
	case !a.mine(&row):
		return a.takeNewID(false)
	case !a.wrote && row.Process != a.process: // the answer to a write may have been lost
		a.left = row.Oldest
		a.compareEnd(&row)
	}
	a.known, a.row = true, row
	return a.notes.change(func(n *notes) {
		n.Acked, n.Loss = later(n.Acked, row.acked), n.Loss.join(row.Lost)
	})
}

// compareEnd notes a loss where the log ends before its last known position.
func (a *Announcer) compareEnd(row *Ingester) {
	if row.State != Holding || row.Position <= a.o.Found || a.o.Position() == 0 {
		return
	}
	a.lost = a.lost.join(Loss{Since: row.Oldest, Until: time.Now()})
	a.o.Log.Error().Str("id", row.ID).Uint64("segment", row.Position>>32).Uint64("offset", row.Position&math.MaxUint32).
		Msg("the log ends before what was in it when its ingester announced itself last: was an old copy put in its place, were segments removed? Reads are incomplete until `ingest forget --lost` is run for this id")
}

// mine reports whether the row is this ingester's: one of its processes wrote it, or no
// other ingester needs it. The writer of a row that does not say Holding holds nothing, and
// notices when it enters Holding.
func (a *Announcer) mine(row *Ingester) bool {
	return a.wroteIt(row) || !a.wrote && row.State != Holding
}

// wroteIt reports whether a process on this log has written the row.
func (a *Announcer) wroteIt(row *Ingester) bool {
	return row.Process == a.process || slices.Contains(a.notes.Writers, row.Process)
}

// takeNewID gives way to another ingester on a copy of the log, which keeps the row.
// The records of this one are announced under the new id, and it accepts none before
// that. Its peers are the same as before, unless it uses another store.
func (a *Announcer) takeNewID(otherStore bool) error {
	a.entering.Lock()
	a.holding.Store(false)
	a.entering.Unlock()
	old, id := a.notes.ID, newID()
	err := a.notes.change(func(n *notes) {
		n.say(claim{"", unknown})
		n.ID, n.Announced, n.Writers, n.Ships = id, false, []string{a.process}, ""
		if otherStore {
			n.Others = nil
		}
	})
	if err != nil {
		return err
	}
	shown := a.notes
	a.shown.Store(&shown)
	a.o.Log.Warn().Str("id", old).Str("new", id).Msg("another ingester, or another store, has the row of this one's id; it takes a new one: was the log directory copied? was it used with another store?")
	a.known, a.row, a.wrote = true, Ingester{}, false
	return nil
}

// tableGone notes that the table lost rows, for this ingester's is missing. If rows of
// peers mattered to reads when they were listed last, these may be missing too. Then
// nobody knows the records of their ingesters.
func (a *Announcer) tableGone() error {
	a.wrote = false
	if !a.gone {
		a.o.Log.Warn().Str("id", a.notes.ID).Msg("the table of ingesters was removed: the row of this one is not there, and those of others may lack too")
	}
	a.gone = true
	return a.losePeers(func(string) bool { return true })
}

// missPeers notes a loss if the list lacks the row of a peer that mattered to reads. No
// row is ever deleted, so the table was removed and made anew. A row that cannot be read
// is there all the same.
func (a *Announcer) missPeers(l listing) error {
	return a.losePeers(func(id string) bool { return id != unreadable && !slices.Contains(l.ids, id) })
}

// losePeers notes a loss if the row of a peer that mattered to reads is gone. Each
// peer is lost once: an operator may have acknowledged it.
func (a *Announcer) losePeers(gone func(id string) bool) error {
	if !slices.ContainsFunc(a.notes.Others, gone) {
		return nil
	}
	a.o.Log.Error().Str("id", a.notes.ID).Strs("others", a.notes.Others).
		Str("todo", "reads are incomplete until `ingest forget --lost` is run for this id").
		Msg("the table of ingesters has lost rows of others that held records")
	now := time.Now()
	a.lost = a.lost.join(Loss{Since: now, Until: now})
	if err := a.keepLoss(); err != nil {
		return err
	}
	return a.notes.change(func(n *notes) { n.Others = slices.DeleteFunc(n.Others, gone) })
}

// unreadable stands for ingesters with rows that cannot be read.
const unreadable = "?"

// sawOthers notes the ingesters that matter to reads, for the case that their rows are
// lost.
func (a *Announcer) sawOthers(ctx context.Context, now listing) {
	if a.turn.Acquire(ctx, 1) != nil {
		return
	}
	defer a.turn.Release(1)
	if a.notes.Announced && !slices.Contains(now.ids, a.notes.ID) {
		return // the table was made anew: the rows seen before count
	}
	err := a.missPeers(now)
	if err == nil {
		err = a.notes.change(func(n *notes) { n.Others = n.matter(now) })
	}
	if err != nil {
		a.o.Log.Warn().Err(err).Msg("the ingesters that hold records are not noted")
	}
}

// matter are the ingesters that matter to reads. Any that cannot be read may: those
// noted before keep their ids, and [unreadable] stands for the rest.
func (n *notes) matter(now listing) []string {
	others := slices.DeleteFunc(slices.Clone(n.Others), func(id string) bool {
		return id == unreadable || slices.ContainsFunc(now.rows, func(i Ingester) bool { return i.ID == id })
	})
	for _, i := range now.rows {
		if i.ID != n.ID && (i.State == Holding || i.Lost.Any()) && len(others) < maxWriters {
			others = append(others, i.ID)
		}
	}
	if len(now.bad) > 0 {
		others = append(others, unreadable)
	}
	return others
}

// NoteLoss keeps the loss of Options.Lost durably, before the row can say it.
func (a *Announcer) NoteLoss(ctx context.Context) error {
	if err := a.turn.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("note a loss: %w", err)
	}
	defer a.turn.Release(1)
	return a.keepLoss()
}

// keepLoss notes a loss, until an operator has acknowledged it.
func (a *Announcer) keepLoss() error {
	err := a.notes.change(func(n *notes) {
		n.Loss = n.Loss.join(a.lost).join(a.o.Lost()).after(n.Acked)
	})
	shown := a.notes
	a.shown.Store(&shown)
	return err
}

// Loss is the loss that no operator has acknowledged, as far as this ingester knows.
func (a *Announcer) Loss() Loss {
	shown := a.shown.Load()
	return shown.Loss.join(a.o.Lost()).after(shown.Acked)
}
