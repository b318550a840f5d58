package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"blobtail/storage"
	"blobtail/storage/fsys"
)

// Options describe the ingester that is announced. The zero value works.
type Options struct {
	// Dir is the directory of the log, where the announcer keeps its notes; "": in
	// memory only. FS is its file system; nil: that of the host.
	Dir string
	FS  fsys.FS
	// ID is the id of the row if there are no notes, 8 hex digits; "": one is drawn.
	ID string
	// Lane is the lane that is announced. With Auto the announcer finds one, and tries
	// that of the notes first, or else this one.
	Lane int
	Auto bool
	// Moved is called by Run with the lane that it found, and with the next one if
	// another ingester has the lane too; nil: there is no call.
	Moved func(lane int)

	Store string // the container, where several share one table
	// StoreID returns the id of the store. An error says why it is not known, or that
	// the store is another one now. Then nothing is announced. It is called before and
	// after each write of the row. nil: "".
	StoreID func() (string, error)
	Address string
	Host    string
	Version string
	// BestEffort accepts records also while the row cannot be written.
	BestEffort bool
	// Oldest returns the arrival of the oldest unflushed record, by this host's clock;
	// nil: there is none.
	Oldest func() (time.Time, bool)
	// Earliest returns the least time of the unflushed records, in Unix nanoseconds. It
	// is asked while no request is between [Announcer.Enter] and leave. nil: the row has
	// no floor.
	Earliest func() (int64, bool)
	// Replayed reports whether Oldest and Earliest know of the records that the start
	// found in the log. Until then the row says that the ingester holds records; nil:
	// from the start.
	Replayed func() bool
	// Position returns the durable end of the log, in the form of [Ingester]. Found is
	// the end when this start opened it. nil: nothing is compared with the row.
	Position func() uint64
	Found    uint64
	// Lost returns the loss that was found since the start; nil: there never is one.
	Lost func() Loss
	// Now is the store's clock as far as it is known; nil: time.Now.
	Now func() time.Time
	// Every is the pause between two writes; 0: 10 s.
	Every time.Duration
	// IdleAfter is for how long the log must have held nothing before the row says
	// Idle; 0: 10 min.
	IdleAfter time.Duration
	Log       zerolog.Logger
}

func (o Options) withDefaults() Options {
	o.Every = cmp.Or(o.Every, 10*time.Second)
	o.IdleAfter = cmp.Or(o.IdleAfter, 10*time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Oldest == nil {
		o.Oldest = func() (time.Time, bool) { return time.Time{}, false }
	}
	if o.Replayed == nil {
		o.Replayed = func() bool { return true }
	}
	if o.Position == nil {
		o.Position = func() uint64 { return 0 }
	}
	if o.Lost == nil {
		o.Lost = func() Loss { return Loss{} }
	}
	if o.BestEffort {
		o.Earliest = nil // what it takes without the row may be of any time
	}
	if o.StoreID == nil {
		o.StoreID = func() (string, error) { return "", nil }
	}
	if o.Moved == nil {
		o.Moved = func(int) {}
	}
	return o
}

// patience bounds one write and the reads for it.
const patience = 5 * time.Second

const (
	// rounds bounds the searches for a lane in one beat. The next beat goes on.
	rounds = 12
	// maxWaits times wait is how long another ingester may take to leave a lane.
	maxWaits = 3
	wait     = 50 * time.Millisecond
)

// Announcer keeps one ingester's row current. Its methods may be called concurrently
// while Run runs.
type Announcer struct {
	o       Options
	tables  storage.TableStore
	process string
	// started is the time, by the store's clock, when Run, or an Enter before it, began.
	started func() time.Time
	first   chan struct{}           // closed after the first attempt
	ended   chan struct{}           // closed when Run has returned
	ships   func(was string) string // see Ship
	written atomic.Uint64
	missed  atomic.Uint64
	lease

	lane   atomic.Int64 // in force
	mu     sync.Mutex
	failed error     // of the last write; nil: it succeeded
	good   time.Time // when a write last succeeded, or the announcer was made

	// The fields below belong to Run.
	found  bool   // a free lane was searched for with the rows of peers at hand
	said   string // the last failure that was logged
	rival  string // the last rival for the lane that was logged
	beaten bool   // a beat has written the row
}

// New returns an announcer. It starts nothing and asks the store nothing. It only reads
// the notes that an earlier one left in the directory of the log.
func New(tables storage.TableStore, o Options) (*Announcer, error) {
	o = o.withDefaults()
	notes, err := loadNotes(o.FS, o.Dir, o.ID)
	a := &Announcer{
		o: o, tables: tables, process: newID(), started: sync.OnceValue(o.Now),
		first: make(chan struct{}), ended: make(chan struct{}),
		failed: errors.New("this ingester is not announced yet"), good: time.Now(),
		lease: lease{turn: semaphore.NewWeighted(1), notes: notes}, ships: func(string) string { return "" },
	}
	a.lane.Store(int64(o.Lane))
	if o.Auto && notes.Lane >= 0 {
		a.lane.Store(int64(min(notes.Lane, Lanes-1)))
	}
	a.holding.Store(notes.State == Holding)
	if notes.Ships != "" {
		a.holding.Store(false) // another may have adopted the log, and cleared the row
	}
	a.floor.Store(notes.floor())
	a.need.Store(math.MaxInt64)
	a.busy.Store(time.Now().UnixNano())
	a.shown.Store(&notes)
	return a, err
}

// Ship has the row say what the log's shipper says, which is told what the row may say now: see
// [Shipping]. It is called before Run and Enter, if at all.
func (a *Announcer) Ship(ships func(was string) string) { a.ships = ships }

// Beats is how many announcements were written, and how many failed.
func (a *Announcer) Beats() (written, failed uint64) { return a.written.Load(), a.missed.Load() }

// Lane is the lane in force.
func (a *Announcer) Lane() int { return int(a.lane.Load()) }

// ID is the id in force. It changes if another ingester has the same one.
func (a *Announcer) ID() string { return a.shown.Load().ID }

// Process distinguishes this start of the ingester from others of the same log
// directory.
func (a *Announcer) Process() string { return a.process }

// First is closed after the first attempt of Run, even if that fails. From then on the
// lane is as good as it can be now.
func (a *Announcer) First() <-chan struct{} { return a.first }

// deaf is how long announcements may fail before the ingester reports that it is not
// ready.
const deaf = 20 * time.Second

// Denied is the reason why [Announcer.Enter] fails now, as far as that is known without the
// tables. It asks for the store, because the last write of the row may be long ago.
func (a *Announcer) Denied() error {
	if a.holding.Load() || a.o.BestEffort {
		return nil
	}
	if _, err := a.o.StoreID(); err != nil {
		return fmt.Errorf("announce this ingester: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

// Err says why the ingester cannot be announced. It does so at once if the ingester
// accepts no records for that reason, else after 20 s. It is nil while all is well.
func (a *Announcer) Err() error {
	if err := a.Denied(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.good) < deaf {
		return nil
	}
	return a.failed
}

// Run announces the ingester until ctx ends. It is called once.
func (a *Announcer) Run(ctx context.Context) {
	defer close(a.ended)
	a.started()
	// A moment to read the log: before that the row would have to say that it holds records.
	for n := 0; n < 50 && !a.o.Replayed() && ctx.Err() == nil; n++ {
		pause(ctx, 10*time.Millisecond)
	}
	begun := time.Now()
	for n := 0; n == 0 || a.wait(ctx, begun); n++ {
		begun = time.Now()
		if err := a.beat(ctx); ctx.Err() == nil {
			a.report(err)
		}
		if n == 0 {
			close(a.first)
		}
	}
}

// soon is the pause between two checks whether the row lacks something: an unflushed
// record, or a loss.
const soon = 500 * time.Millisecond

// unwrittenPause is the pause after a failure while the row is that of an earlier
// start. Readers reject the answers of this start until then.
const unwrittenPause = time.Second

// wait returns true when it is time to announce again, false when ctx has ended.
func (a *Announcer) wait(ctx context.Context, begun time.Time) bool {
	for {
		pause(ctx, min(soon, a.o.Every))
		passed := time.Since(begun)
		if ctx.Err() != nil || passed >= a.o.Every || a.lacks(passed) {
			return ctx.Err() == nil
		}
	}
}

// Stop writes the last row once Run has returned. Its caller ends Run. The row says
// Stopped if all records are in blobs.
func (a *Announcer) Stop(ctx context.Context, empty bool) error {
	select {
	case <-a.ended:
	case <-ctx.Done():
		return fmt.Errorf("announce the end: %w", ctx.Err())
	}
	return a.write(ctx, func() claim {
		if empty && a.rest(0).state != Holding {
			return claim{Stopped, unknown}
		}
		return claim{Holding, a.under(math.MaxInt64)}
	})
}

// Absent writes a row that says Stopped, in place of Run and Stop. It is for a process that
// stores records, and acknowledges none before it has stored it: a store with blobs and
// without any row looks as if its table had been removed.
func (a *Announcer) Absent(ctx context.Context) error {
	return a.write(ctx, func() claim { return claim{Stopped, unknown} })
}

// beat lists the rows of peers and writes the own row. While the lane is new it lists
// them again afterwards: of two that write first and then list, at least one sees the
// other. The other may have listed before, and not do so again until its next beat. So
// the one that need not move waits a little, and moves if the other does not.
func (a *Announcer) beat(running context.Context) error {
	ctx, cancel := context.WithTimeout(running, patience)
	defer cancel()
	var unlisted error
	settled := a.beaten
	for round, waits := 0, 0; round <= rounds; round++ {
		peers, err := scan(ctx, a.tables, a.o.Store)
		switch {
		case err == nil:
			a.sawOthers(ctx, peers)
		case !errors.Is(err, storage.ErrNotExist):
			unlisted = err
		}
		var changed, contested bool
		// Without the rows of peers no lane is better than the one in force.
		if unlisted == nil {
			changed, contested = a.resolve(peers.rows, waits >= maxWaits)
		}
		if round > 0 && !changed {
			if !contested {
				break
			}
			waits++
			pause(ctx, wait)
			continue
		}
		// Rows of peers that cannot be listed make no ingester silent.
		writing, cancel := context.WithTimeout(running, patience)
		err = a.write(writing, func() claim { return a.rest(a.o.IdleAfter) })
		cancel()
		if err != nil {
			return err // and most likely reading fails for the same reason
		}
		a.beaten = true
		waits = 0
		if settled && !changed || unlisted != nil {
			break
		}
	}
	return unlisted
}

// resolve compares the own lane with the rows of peers, and gives way if two have the
// same one. It returns whether the own row has to change, and whether another ingester
// has our lane and ought to move on. With yield we move on.
//
// The ingester that started later moves on, because the first may not list the rows
// again for a while. At the same start time it is the one with the greater id. Blobs
// are right even if lanes are not: two on one lane meet at names and one steps aside.
func (a *Announcer) resolve(peers []Ingester, yield bool) (changed, contested bool) {
	now, started, id, lane := a.o.Now(), a.started(), a.ID(), a.Lane()
	var taken [Lanes]bool
	rival := ""
	for _, p := range peers {
		if p.ID == id || !p.Live(now) || p.Lane < 0 || p.Lane >= Lanes {
			continue
		}
		taken[p.Lane] = true
		switch {
		case p.Lane != lane:
		case !a.found || yield || cmp.Or(started.Compare(p.Started), cmp.Compare(id, p.ID)) > 0:
			rival = p.ID
		default:
			contested = a.o.Auto
		}
	}
	first := !a.found
	a.found = true
	if !a.o.Auto {
		if rival != "" && rival != a.rival {
			a.o.Log.Warn().Int("lane", lane).Str("other", rival).Msg("another ingester has this lane too; it costs requests, no data: see ingest.lane")
		}
		a.rival = rival
		return false, false
	}
	// If all lanes are taken there are conflicts.
	if free := slices.Index(taken[:], false); rival != "" && free >= 0 {
		changed, lane = true, free
	}
	if changed || first {
		a.lane.Store(int64(lane))
		a.o.Moved(lane)
		a.o.Log.Info().Int("lane", lane).Msg("lane taken")
	}
	return changed, contested && rival == ""
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// text is the part of a string that any table store accepts.
func text(s string) string { return strings.ToValidUTF8(s[:min(len(s), 1024)], "?") }

// report counts, and logs once for each change of the error and once when it is over.
func (a *Announcer) report(err error) {
	if err == nil {
		a.written.Add(1)
		if a.said != "" {
			a.o.Log.Info().Msg("the table of ingesters works again")
		}
		a.said = ""
		return
	}
	a.missed.Add(1)
	if k := storage.Gist(err); a.said != k {
		a.said = k
		effect := "nothing is taken until it works again"
		if a.holding.Load() || a.o.BestEffort {
			effect = "records are taken as before, except late ones; reads that cannot ask this ingester are incomplete"
		}
		a.o.Log.Warn().Err(err).Msg("this ingester cannot be announced; " + effect)
	}
}
