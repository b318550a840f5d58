package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/fsys"
	"blobtail/storage"
)

// Options say who is announced. The zero value works.
type Options struct {
	// Identity is what [LoadIdentity] returned; a zero ID draws one. Its lane is
	// where a search for one begins.
	Identity Identity
	// Keep is called by Run when the identity has changed, to save it; nil: it is
	// not kept.
	Keep func(Identity) error
	// Dir is the directory of the log, where the announcer keeps what it announced;
	// "": in memory only. FS is its file system; nil: that of the host.
	Dir string
	FS  fsys.FS
	// Lane is the lane that is announced; with Auto one is found instead.
	Lane int
	Auto bool
	// Moved is called by Run with the lane that was found, and with the next when
	// another ingester turns out to have it too; nil: nobody minds.
	Moved func(lane int)

	Store string // the container, where several share one table
	// StoreID gives the id of the store. An error says why it is not known, or that
	// the store is another one now: nothing is announced then. It is asked before and
	// after each write of the row. nil: "".
	StoreID func() (string, error)
	Address string
	Host    string
	Version string
	// BestEffort takes records also while the row cannot be written.
	BestEffort bool
	// Oldest gives the arrival of the oldest record that is in no blob, by this
	// host's clock; nil: there is none.
	Oldest func() (time.Time, bool)
	// Replayed tells whether Oldest knows of what the start found in the log. Until
	// then the row says that the ingester holds records; nil: from the start.
	Replayed func() bool
	// Position gives up to where the log is durable, Found where it ended when this
	// start opened it, as [Ingester] says. A log that ends before what its row says has
	// lost its end: an old copy was put in its place. nil: that is not looked at.
	Position func() uint64
	Found    uint64
	// Lost gives what was found to be lost since the start; nil: nothing ever is.
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
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Every == 0 {
		o.Every = 10 * time.Second
	}
	if o.IdleAfter == 0 {
		o.IdleAfter = 10 * time.Minute
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
	if o.StoreID == nil {
		o.StoreID = func() (string, error) { return "", nil }
	}
	if o.Keep == nil {
		o.Keep = func(Identity) error { return nil }
	}
	if o.Moved == nil {
		o.Moved = func(int) {}
	}
	return o
}

// patience bounds one write with what is read for it.
const patience = 5 * time.Second

const (
	// rounds bounds how often a lane is looked for in one beat. The next goes on.
	rounds = 12
	// maxWaits times wait is how long another may take to leave a lane.
	maxWaits = 3
	wait     = 50 * time.Millisecond
)

// Announcer keeps one ingester's row true. Its methods may be called by any number
// of goroutines while Run runs.
type Announcer struct {
	o       Options
	tables  storage.TableStore
	process string
	first   chan struct{} // closed after the first attempt
	ended   chan struct{} // closed when Run has returned
	written atomic.Uint64
	missed  atomic.Uint64
	lease   lease

	mu     sync.Mutex
	begun  time.Time // by the store's clock: when Run, or Enter, began
	me     Identity  // the lane is that in force
	failed error     // of the last write; nil: it succeeded
	good   time.Time // when one last succeeded, or this was made

	// What follows belongs to Run, and then to Stop.
	found bool // a lane that nobody had was looked for with the others in sight
	kept  Identity
	told  int    // the lane that the log tells of; -1: none
	said  string // the failure that the log tells of
	rival string // likewise
	wrote bool   // a beat has written the row
}

// New returns an announcer. It starts nothing and asks the store nothing, but it
// reads what an earlier one kept in the directory of the log.
func New(tables storage.TableStore, o Options) (*Announcer, error) {
	o = o.withDefaults()
	if o.Identity.ID == "" {
		o.Identity = Identity{ID: newID(), Lane: -1}
	}
	notes, err := loadNotes(o.FS, o.Dir, o.Identity.ID)
	a := &Announcer{
		o: o, tables: tables, process: newID(),
		first: make(chan struct{}), ended: make(chan struct{}),
		me: Identity{ID: notes.ID, Lane: o.Lane}, kept: o.Identity, told: -1,
	}
	a.failed, a.good = errUnannounced, time.Now()
	a.lease.turn = make(chan struct{}, 1)
	a.lease.notes = notes
	a.lease.upgraded = !notes.Announced && err == nil
	a.lease.holding.Store(notes.State == Holding)
	a.lease.busy.Store(time.Now().UnixNano())
	a.lease.kept.Store(&keptLoss{notes.loss(), notes.Acked})
	if o.Auto {
		a.me.Lane = min(max(o.Identity.Lane, 0), Lanes-1)
	}
	return a, err
}

// Beats is how many announcements were written, and how many failed.
func (a *Announcer) Beats() (written, failed uint64) { return a.written.Load(), a.missed.Load() }

// Lane is the lane in force.
func (a *Announcer) Lane() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.me.Lane
}

// ID is the id in force. It changes when another turns out to go by it.
func (a *Announcer) ID() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.me.ID
}

// Process tells this start of the ingester from others of the same log directory.
func (a *Announcer) Process() string { return a.process }

// First is closed when Run has tried for the first time, whatever came of it:
// from then on the lane is as good as can be had now.
func (a *Announcer) First() <-chan struct{} { return a.first }

var errUnannounced = errors.New("this ingester is not announced yet")

// deaf is for how long announcements may fail before the ingester says that it is
// not ready.
const deaf = 20 * time.Second

// Err says why the ingester cannot be announced: at once where it takes no records
// for that reason, else when that has lasted for 20 s; nil while all is well.
func (a *Announcer) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed == nil || time.Since(a.good) < deaf && (a.lease.holding.Load() || a.o.BestEffort) {
		return nil
	}
	return a.failed
}

// outcome keeps how the last write went.
func (a *Announcer) outcome(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.good = time.Now()
	}
	a.failed = err
	return err
}

// Run announces the ingester until ctx ends. It is called once.
func (a *Announcer) Run(ctx context.Context) {
	defer close(a.ended)
	a.started()
	a.settle() // before there is a row of a new id, which would be left behind
	a.awaitReplay(ctx)
	tick := time.NewTicker(a.o.Every)
	defer tick.Stop()
	for n := 0; ; n++ {
		if err := a.beat(ctx); ctx.Err() == nil {
			a.report(err)
		}
		a.settle()
		if n == 0 {
			close(a.first)
		}
		if !a.wait(ctx, tick.C) {
			return
		}
	}
}

// started is when this began. A request may come before Run has.
func (a *Announcer) started() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begun.IsZero() {
		a.begun = a.o.Now()
	}
	return a.begun
}

// awaitReplay gives a start a moment to read its log: before that the row would
// have to say that it holds records.
func (a *Announcer) awaitReplay(ctx context.Context) {
	for n := 0; n < 50 && !a.o.Replayed() && ctx.Err() == nil; n++ {
		pause(ctx, 10*time.Millisecond)
	}
}

// soon is how often it is looked whether the row has to say something new: that
// there is a record in no blob, or that something was lost.
const soon = 500 * time.Millisecond

// unwrittenPause is the pause after a failure while the row is that of an earlier
// start, which no answer of this one fits.
const unwrittenPause = time.Second

// wait returns true when it is time to announce again, false when ctx has ended.
func (a *Announcer) wait(ctx context.Context, tick <-chan time.Time) bool {
	begun := time.Now()
	look := time.NewTicker(min(soon, a.o.Every))
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick:
			return true
		case <-look.C:
			if a.lease.untold(a.o) {
				return true
			}
			if tried := time.Since(begun) >= unwrittenPause; tried && !a.lease.written.Load() {
				return true
			}
		}
	}
}

// Stop writes the last row once Run has returned, which its caller sees to:
// Stopped, if all is in blobs.
func (a *Announcer) Stop(ctx context.Context, empty bool) error {
	select {
	case <-a.ended:
	case <-ctx.Done():
		return fmt.Errorf("announce the end: %w", ctx.Err())
	}
	return a.write(ctx, func() State {
		if empty && a.rest(0) != Holding {
			return Stopped
		}
		return Holding
	})
}

// beat looks who is there and writes the row. While the lane is new it looks
// again afterwards: of two that write first and look then, at least one sees the
// other. The other may have looked before, and not look again until its next beat:
// so who need not move waits a little, and moves if that does not.
func (a *Announcer) beat(running context.Context) error {
	ctx, cancel := context.WithTimeout(running, patience)
	defer cancel()
	var unlisted error
	settled := a.wrote
	for round, waits := 0, 0; round <= rounds; round++ {
		others, err := List(ctx, a.tables, a.o.Store)
		unread, err := Unread(err)
		switch {
		case err == nil:
			a.sawOthers(ctx, others, unread != nil)
		case !errors.Is(err, storage.ErrNotExist):
			unlisted = err
		}
		var changed, contested bool
		// Without the others in sight no lane is better than the one in force.
		if unlisted == nil {
			changed, contested = a.resolve(others, waits >= maxWaits)
		}
		if round > 0 && !changed {
			if !contested {
				break
			}
			waits++
			pause(ctx, wait)
			continue
		}
		if err := a.writeDue(running); err != nil {
			return err // and most likely what reading fails for too
		}
		a.wrote = true
		waits = 0
		if settled && !changed || unlisted != nil {
			break
		}
	}
	return unlisted
}

// writeDue writes the row of a beat. It has a time of its own: rows of others that
// cannot be listed make nobody silent.
func (a *Announcer) writeDue(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return a.write(ctx, a.due)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// text is what of a string any table store takes.
func text(s string) string { return strings.ToValidUTF8(s[:min(len(s), 1024)], "?") }

// report counts, and speaks once for each change of error and once when it is
// over.
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
	if k := kind(err); a.said != k {
		a.said = k
		effect := "nothing is taken until it works again"
		if a.lease.holding.Load() || a.o.BestEffort {
			effect = "records are taken as before; reads that cannot ask this ingester are incomplete"
		}
		a.o.Log.Warn().Err(err).Msg("this ingester cannot be announced; " + effect)
	}
}

// kind is the part of an error's text that does not differ from one time to the
// next: without ids of requests and numbers of ports.
func kind(err error) string {
	s, _, _ := strings.Cut(err.Error(), " (request ")
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, s)
}
