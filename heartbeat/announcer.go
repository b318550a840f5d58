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
	// Lane is the lane that is announced; with Auto one is found instead.
	Lane int
	Auto bool
	// Moved is called by Run with the lane that was found, and with the next when
	// another ingester turns out to have it too; nil: nobody minds.
	Moved func(lane int)

	Store   string // the container, where several share one table
	Address string
	Host    string
	Version string
	// Oldest gives the arrival of the oldest record that is in no blob, by this
	// host's clock; nil: there is none.
	Oldest func() (time.Time, bool)
	// Replayed tells whether Oldest knows of what the start found in the log. Until
	// that is stored, what the last row of the id said stands; nil: from the start.
	Replayed func() bool
	// Now is the store's clock as far as it is known; nil: time.Now.
	Now func() time.Time
	// Every is the pause between two writes; 0: 10 s.
	Every time.Duration
	Log   zerolog.Logger
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

// Announcer keeps one ingester's row up to date.
type Announcer struct {
	o       Options
	tables  storage.TableStore
	process string
	started time.Time
	first   chan struct{} // closed after the first attempt
	ended   chan struct{} // closed when Run has returned
	written atomic.Uint64
	missed  atomic.Uint64

	mu sync.Mutex
	me Identity // the lane is that in force

	// What follows belongs to Run, and then to Stop.
	left   time.Time // what the row said was unflushed before this start, until it is stored
	known  time.Time // from when on Oldest knows all
	found  bool      // a lane that nobody had was looked for with the others in sight
	wrote  bool      // our row has been written
	empty  bool      // it says that all is in blobs
	shared int       // how often running our row was another's
	kept   Identity
	told   int    // the lane that the log tells of; -1: none
	failed string // the failure that the log tells of
	rival  string // likewise
}

// New returns an announcer. It starts nothing and asks the store nothing.
func New(tables storage.TableStore, o Options) *Announcer {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Every == 0 {
		o.Every = 10 * time.Second
	}
	if o.Oldest == nil {
		o.Oldest = func() (time.Time, bool) { return time.Time{}, false }
	}
	if o.Replayed == nil {
		o.Replayed = func() bool { return true }
	}
	if o.Keep == nil {
		o.Keep = func(Identity) error { return nil }
	}
	if o.Moved == nil {
		o.Moved = func(int) {}
	}
	if o.Identity.ID == "" {
		o.Identity = Identity{ID: newID(), Lane: -1}
	}
	a := &Announcer{
		o: o, tables: tables, process: newID(),
		first: make(chan struct{}), ended: make(chan struct{}),
		me: Identity{ID: o.Identity.ID, Lane: o.Lane}, kept: o.Identity, told: -1,
	}
	if o.Auto {
		a.me.Lane = min(max(o.Identity.Lane, 0), Lanes-1)
	}
	return a
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

// Run announces the ingester until ctx ends. It is called once.
func (a *Announcer) Run(ctx context.Context) {
	defer close(a.ended)
	a.started = a.o.Now()
	a.settle() // before there is a row of a new id, which would be left behind
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

// soon is how often it is looked whether there is something in no blob, of which
// the row does not tell: who is killed then is missed only if the row says so.
const soon = 500 * time.Millisecond

// wait returns true when it is time to announce again, false when ctx has ended.
func (a *Announcer) wait(ctx context.Context, tick <-chan time.Time) bool {
	look := time.NewTicker(min(soon, a.o.Every))
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick:
			return true
		case <-look.C:
			if _, some := a.o.Oldest(); some && a.empty {
				return true
			}
		}
	}
}

// Stop writes the last row once Run has returned, which its caller sees to:
// stopped, if all is in blobs.
func (a *Announcer) Stop(ctx context.Context, empty bool) error {
	select {
	case <-a.ended:
	case <-ctx.Done():
		return fmt.Errorf("announce the end: %w", ctx.Err())
	}
	return a.write(ctx, empty)
}

// beat looks who is there and writes the row. While the lane is new it looks
// again afterwards: of two that write first and look then, at least one sees the
// other. The other may have looked before, and not look again until its next beat:
// so who need not move waits a little, and moves if that does not.
func (a *Announcer) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var unlisted error
	settled := a.wrote
	for round, waits := 0, 0; round <= rounds; round++ {
		others, err := List(ctx, a.tables, a.o.Store)
		var unread *RowError // of a newer version, whose lane is not known
		if err != nil && !errors.As(err, &unread) {
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
		if err := a.write(ctx, false); err != nil {
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

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (a *Announcer) write(ctx context.Context, stopped bool) error {
	a.mu.Lock()
	me := a.me
	a.mu.Unlock()
	now := a.o.Now()
	i := Ingester{
		ID: me.ID, Process: a.process, Store: a.o.Store, Lane: me.Lane,
		Address: text(a.o.Address), Host: text(a.o.Host), Version: text(a.o.Version),
		Oldest: a.oldest(now), Started: a.started, At: now,
	}
	i.Stopped = stopped && i.Oldest.IsZero()
	err := a.tables.Upsert(ctx, Table, Partition, []storage.Row{i.row()})
	if err != nil {
		return fmt.Errorf("announce this ingester: %w", err)
	}
	a.empty = i.Oldest.IsZero()
	return nil
}

// oldest is the arrival of the oldest record in no blob, by the store's clock. As
// long as something waits that the start found in the log, the row says what it said
// before: a reader relies on that.
func (a *Announcer) oldest(now time.Time) time.Time {
	if replayed := a.o.Replayed(); replayed && a.known.IsZero() {
		a.known = time.Now()
	}
	since, ok := a.o.Oldest()
	if !a.known.IsZero() && (!ok || since.After(a.known)) {
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

// text is what of a string any table store takes.
func text(s string) string { return strings.ToValidUTF8(s[:min(len(s), 1024)], "?") }

// report counts, and speaks once for each change of error and once when it is
// over.
func (a *Announcer) report(err error) {
	if err == nil {
		a.written.Add(1)
		if a.failed != "" {
			a.o.Log.Info().Msg("the table of ingesters works again")
		}
		a.failed = ""
		return
	}
	a.missed.Add(1)
	if k := kind(err); a.failed != k {
		a.failed = k
		a.o.Log.Warn().Err(err).Msg("the table of ingesters fails; records are taken and stored as before")
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
