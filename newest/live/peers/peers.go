// Package peers lists the peers that an ingester has to ask for live records. They are
// the other ingesters of the store, from the table where they announce themselves.
//
// Make a [Peers], run it, and pass its Roll to [live.Options]. While the table cannot
// be read the last list is used, and the roll has its age. Readers decide whether it is
// recent enough.
package peers

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"blobtail/internal/heartbeat"
	"blobtail/newest/live"
	"blobtail/storage"
)

const (
	// recent is how old the list of ingesters may be for a follower that polls.
	recent = 2 * time.Second
	// hasty is how long a follower waits for the table.
	hasty = 100 * time.Millisecond
	// lookEvery is how old the list may become without any question. So a question that
	// comes while the table is away still finds the peers.
	lookEvery = 5 * time.Second
	// listWait bounds one reading of the table.
	listWait = 2 * time.Second
	// listPause is how long the table is not read after it failed. The last list is
	// used, and no read waits for a store that is away.
	listPause = 5 * time.Second
)

// Options are the settings of a [Peers]. All of them must be set, except Process.
type Options struct {
	Self    func() string // id of this ingester
	Process string        // this start of it; "": its row is not compared with it
	// List reads the rows of the ingesters, as [heartbeat.List] does.
	List func(ctx context.Context) ([]heartbeat.Ingester, error)
	Now  func() time.Time // the store's clock
}

// Peers knows the other ingesters of a store. It is safe for concurrent use.
type Peers struct {
	o Options

	// A token that guards the fields below. Its holder reads the table, and the rest
	// use the result.
	turn   chan struct{}
	known  []heartbeat.Ingester
	rows   error     // of the last list: unreadable rows
	other  error     // of the last list: the own row is missing, or of another start
	asked  time.Time // when the last list was asked for; zero: none yet
	failed time.Time // when the table failed; zero: the last reading worked
	reason error     // likewise
	seen   time.Time // the store's time of the last list

	last atomic.Pointer[answered] // the last result of ask, without its error other; nil: there is none
}

// answered is the result of a question for the peers.
type answered struct {
	roll live.Roll
	err  error
}

// New returns a Peers. It starts nothing and reads nothing.
func New(o Options) *Peers { return &Peers{o: o, turn: make(chan struct{}, 1)} }

// Roll is for [live.Options]. With fresh it reads the table now.
func (o *Peers) Roll(ctx context.Context, fresh bool) (live.Roll, error) {
	if !fresh {
		return o.lastKnown(ctx)
	}
	return o.ask(ctx, time.Now(), true)
}

// Run keeps the list fresh until ctx ends.
func (o *Peers) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		_, _ = o.ask(ctx, time.Now().Add(-lookEvery/2), false) // callers of Roll get the error
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// lastKnown is for a follower, which asks again and again. It does not wait for a slow
// table. A follower that learns late of a new ingester misses nothing, as it has no
// position in that log.
func (o *Peers) lastKnown(ctx context.Context) (live.Roll, error) {
	found := make(chan answered, 1)
	go func() {
		// It goes on if the follower does not wait, for the next question.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*listWait)
		defer cancel()
		roll, err := o.ask(ctx, time.Now().Add(-recent), false)
		found <- answered{roll, err}
	}()
	hurry := time.NewTimer(hasty)
	defer hurry.Stop()
	for {
		select {
		case a := <-found:
			return a.roll, a.err
		case <-ctx.Done():
			return live.Roll{}, ctx.Err()
		case <-hurry.C:
			if last := o.last.Load(); last != nil {
				return last.roll, last.err
			}
		}
	}
}

// ask returns the peers of the wanted time, or the last ones known before it. Only
// strict reports that the own row is of another start. Just after a start it is that of
// the last start, and a follower need not know this.
func (o *Peers) ask(ctx context.Context, wanted time.Time, strict bool) (live.Roll, error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return live.Roll{}, ctx.Err()
	}
	err := o.reason
	if o.asked.Before(wanted) && (o.failed.IsZero() || time.Since(o.failed) > listPause) {
		err = o.look(ctx)
	}
	if o.asked.IsZero() {
		return live.Roll{}, err
	}
	last := answered{live.Roll{Peers: o.choose(), Listed: o.asked}, o.rows}
	o.last.Store(&last)
	if strict {
		return last.roll, errors.Join(last.err, o.other)
	}
	return last.roll, last.err
}

// errUnlisted says that rows are missing.
var errUnlisted = errors.New("the row of the ingester that was asked is not among them, so those of others may lack too")

// errAnother says that another start has the row of this ingester.
var errAnother = errors.New("the row of the ingester that was asked is of another start, which may hold records: it has just started, or cannot write its row (see its log), or two run on copies of one log")

// look reads the table. The caller has its turn.
func (o *Peers) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	begun := time.Now()
	found, err := o.o.List(ctx)
	unread, err := heartbeat.Unread(err)
	if err != nil {
		// A cancelled read says nothing about the table. An absent table answers at
		// once, and it exists as soon as an ingester of a new store has announced
		// itself.
		if !errors.Is(err, context.Canceled) && !errors.Is(err, storage.ErrNotExist) {
			o.failed, o.reason = time.Now(), err
		}
		return err
	}
	self := o.o.Self()
	o.other = nil
	if unread == nil && !slices.ContainsFunc(found, func(i heartbeat.Ingester) bool { return i.ID == self }) {
		o.other = errUnlisted
	}
	for _, i := range found {
		if i.ID == self && i.State == heartbeat.Holding && o.o.Process != "" && i.Process != o.o.Process {
			o.other = errAnother
		}
	}
	o.known, o.rows, o.asked, o.seen = found, unread, begun, o.o.Now()
	o.failed, o.reason = time.Time{}, nil
	return nil
}

// choose leaves out this ingester, and silent ones that hold no records. Silence is
// judged by the time of the list: no ingester becomes silent because the table is away.
func (o *Peers) choose() []live.Peer {
	self := o.o.Self()
	var peers []live.Peer
	for _, i := range o.known {
		alive, holding := i.Live(o.seen), i.State == heartbeat.Holding
		if i.ID == self || !alive && !holding {
			continue
		}
		peers = append(peers, live.Peer{
			ID: i.ID, Process: i.Process, Address: i.Address, Host: i.Host, Oldest: i.Oldest, Holding: holding, Silent: !alive,
		})
	}
	return peers
}
