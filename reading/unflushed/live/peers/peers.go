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
	"sync/atomic"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
	"blobtail/storage"
)

const (
	// recent is how old the list may be for a follower before it is read again.
	recent = 2 * time.Second
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
	// List reads the rows of the ingesters, as [lease.List] does.
	List func(ctx context.Context) ([]lease.Ingester, error)
	Now  func() time.Time // the store's clock
}

// Peers knows the other ingesters of a store. It is safe for concurrent use.
type Peers struct {
	o Options

	// A token to read the table and to change the fields below. Its holder reads, and
	// the rest use the result.
	turn   chan struct{}
	last   atomic.Pointer[list] // nil: none yet
	failed time.Time            // when the table failed; zero: the last reading worked
	reason error                // likewise
}

// list is a reading of the table.
type list struct {
	roll   live.Roll
	unread error // unreadable rows
	other  error // the own row is missing, or of another start
}

// New returns a Peers. It starts nothing and reads nothing.
func New(o Options) *Peers { return &Peers{o: o, turn: make(chan struct{}, 1)} }

// Roll is for [live.Options]. With fresh it reads the table now. A follower does not wait
// long for a slow table, as it asks again and again: it gets the last list, which is then
// read again. If it learns late of a new ingester, it misses nothing, as it has no
// position in that log.
func (o *Peers) Roll(ctx context.Context, fresh bool) (live.Roll, error) {
	if fresh {
		return o.ask(ctx, time.Now(), true)
	}
	last, wanted := o.last.Load(), time.Now().Add(-recent)
	if last == nil {
		return o.ask(ctx, wanted, false)
	}
	if last.roll.Listed.Before(wanted) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*listWait)
			defer cancel()
			_, _ = o.ask(ctx, wanted, false)
		}()
		select {
		case <-done:
			last = o.last.Load()
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return last.roll, last.unread
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
	last, err := o.last.Load(), o.reason
	if (last == nil || last.roll.Listed.Before(wanted)) && (o.failed.IsZero() || time.Since(o.failed) > listPause) {
		err = o.look(ctx)
		last = o.last.Load()
	}
	switch {
	case last == nil:
		return live.Roll{}, err
	case strict:
		return last.roll, errors.Join(last.unread, last.other)
	}
	return last.roll, last.unread
}

// errUnlisted says that rows are missing.
var errUnlisted = errors.New("the row of the ingester that was asked is not in the table, so rows of others may be missing too")

// errAnother says that another start has the row of this ingester.
var errAnother = errors.New("the row of the ingester that was asked is of another start, which may hold records or have lost some: it has just started, or cannot write its row (see its log), or two run on copies of one log")

// look reads the table. It leaves out silent ingesters that hold no records and lost none.
// The caller has its turn.
func (o *Peers) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	begun := time.Now()
	found, err := o.o.List(ctx)
	unread, err := lease.Unread(err)
	if err != nil {
		// A cancelled read says nothing about the table. An absent table answers at
		// once, and it exists as soon as an ingester of a new store has announced
		// itself.
		if !errors.Is(err, context.Canceled) && !errors.Is(err, storage.ErrNotExist) {
			o.failed, o.reason = time.Now(), err
		}
		return err
	}
	o.failed, o.reason = time.Time{}, nil
	// Silence is judged by the time of the list: no ingester becomes silent because the
	// table is away.
	self, l := o.o.Self(), &list{roll: live.Roll{Listed: begun, Now: o.o.Now()}, unread: unread}
	if unread == nil {
		l.other = errUnlisted
	}
	for _, i := range found {
		switch {
		case i.ID == self:
			l.other = nil
			if o.o.Process != "" && i.Process != o.o.Process && (i.State == lease.Holding || i.Lost.Any()) {
				l.other = errAnother
			}
		case i.MayHold(l.roll.Now) || i.Lost.Any():
			l.roll.Peers = append(l.roll.Peers, i)
		}
	}
	o.last.Store(l)
	return nil
}
