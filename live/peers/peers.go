// Package peers tells an ingester whom else it has to ask for live records: the
// other ingesters of the store, from the table where they announce themselves.
//
// Make a [Peers], run it, and give its Roll to [live.Options]. While the table
// cannot be read the last list stands, and the roll says how old that is: readers
// decide whether it will do.
package peers

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"blobtail/heartbeat"
	"blobtail/live"
	"blobtail/storage"
)

const (
	// recent is how old the list of ingesters may be for a follower that polls.
	recent = 2 * time.Second
	// hasty is how long a follower waits for the table.
	hasty = 100 * time.Millisecond
	// lookEvery is how old the list may become without any question, so that one
	// that comes when the table is away finds who is there.
	lookEvery = 5 * time.Second
	// listWait bounds one look at the table.
	listWait = 2 * time.Second
	// listPause is how long the table is left alone after it failed: the last list
	// stands, and no read waits for a store that is away.
	listPause = 5 * time.Second
)

// Options are what a [Peers] works with. All of them must be set, but for Process.
type Options struct {
	Self    func() string // id of this ingester
	Process string        // this start of it; "": its row is not compared with that
	// List reads the rows of the ingesters, as [heartbeat.List] does.
	List func(ctx context.Context) ([]heartbeat.Ingester, error)
	Now  func() time.Time // the store's clock
}

// Peers knows the other ingesters of a store. It is safe for concurrent use.
type Peers struct {
	o Options

	// A token, taken to look at what follows, and while one asks the table: the rest
	// use its answer.
	turn   chan struct{}
	known  []heartbeat.Ingester
	rows   error     // of the last list: rows that cannot be read
	other  error     // of the last list: what the own row tells, or that it lacks
	asked  time.Time // when the last list was asked for; zero: none yet
	failed time.Time // when the table failed; zero: it did not, the last time
	reason error     // likewise
	seen   time.Time // the store's time of the last list

	last atomic.Pointer[answered] // who was there when that was asked the last time; nil: it is not known
}

// answered is what comes of a question who is there.
type answered struct {
	roll live.Roll
	err  error
}

// New returns a Peers. It starts nothing and reads nothing.
func New(o Options) *Peers { return &Peers{o: o, turn: make(chan struct{}, 1)} }

// Roll is for [live.Options]: with fresh it reads the table now.
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
		_, _ = o.ask(ctx, time.Now().Add(-lookEvery/2), false) // who asks is told what is wrong
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// lastKnown is for a follower, who asks again and again: it does not wait for a
// table that takes its time. What it is late to learn of it has not missed, as it
// has no position in the log of an ingester that is new to it.
func (o *Peers) lastKnown(ctx context.Context) (live.Roll, error) {
	found := make(chan answered, 1)
	go func() {
		// It goes on when the follower does not wait, for the next question.
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

// ask gives who was there at a time, or as late before as is known. Only strict tells
// that another ingester goes by this one's id: just after a start the row is that of
// the last one, which a follower need not hear of.
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

// errUnlisted says that rows lack.
var errUnlisted = errors.New("the row of the ingester that was asked is not among them, so those of others may lack too")

// errAnother says that the row of this ingester is another's.
var errAnother = errors.New("the row of the ingester that was asked is of another start, which may hold records: it has just started, or cannot write its row (see its log), or two run on copies of one log")

// look asks the table. The caller has its turn.
func (o *Peers) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	begun := time.Now()
	found, err := o.o.List(ctx)
	unread, err := heartbeat.Unread(err)
	if err != nil {
		// A reader that went away says nothing of the table. An absent table answers at
		// once, and is there as soon as an ingester of a new store has announced itself.
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

// choose leaves out those that have nothing to give. Who is silent is judged by the
// time of the list: nobody grows silent because the table is away.
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
