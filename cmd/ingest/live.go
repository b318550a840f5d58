package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"blobtail/buffer"
	"blobtail/heartbeat"
	"blobtail/live"
	"blobtail/record"
)

// newLive makes what answers readers with what is in no blob yet.
func newLive(buf *buffer.Buffer, company *company, log zerolog.Logger, reg prometheus.Registerer) *live.Handler {
	h := live.NewHandler(live.Options{
		Self: company.announcer.ID, Journal: journal{buf}, Peers: company.others.peers, Log: part(log, "live"),
	})
	showLive(h, reg)
	return h
}

// withLive answers what is below /live/ beside the source. The source has a mux of
// its own, because it minds how paths are written.
func withLive(source http.Handler, answers http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(live.Pattern, answers)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/live/") {
			mux.ServeHTTP(w, r)
			return
		}
		source.ServeHTTP(w, r)
	})
}

// journal joins the buffer to the handler, which do not know each other.
type journal struct{ buf *buffer.Buffer }

// Open implements [live.Log].
func (j journal) Open(ctx context.Context, q live.LogQuery) (live.Held, error) {
	b := buffer.LiveQuery{Match: q.Match, From: q.From, To: q.To, Keep: q.Keep, Newest: q.Newest, Follow: q.Follow, After: q.After}
	if q.Now { // a snapshot of nothing has a position as well
		b.Follow, b.Match = false, func(string) bool { return false }
	}
	snapshot, err := j.buf.Live(ctx, b)
	if err != nil {
		return nil, err
	}
	return held{snapshot}, nil
}

// held is a snapshot that tells damage as live does.
type held struct{ *buffer.Live }

// Each implements [live.Held].
func (h held) Each(ctx context.Context, emit func(*record.Entry) error) error {
	err := h.Live.Each(ctx, emit)
	var missing *buffer.MissingError
	if errors.As(err, &missing) {
		return &live.DamageError{Err: err}
	}
	return err
}

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
	// lately is for how long an ingester that is silent and had left nothing is asked
	// still, in case only its announcements fail.
	lately = time.Hour
)

// others knows the other ingesters that have to be asked, from the table. While
// that cannot be read it is those of the last time.
type others struct {
	self func() string
	list func(ctx context.Context) ([]heartbeat.Ingester, error)
	now  func() time.Time // the store's

	// A token, taken to look at what follows, and while one asks the table: the rest
	// use its answer.
	turn   chan struct{}
	known  []heartbeat.Ingester
	rows   error     // of the last list: rows that cannot be read
	asked  time.Time // when the last list was asked for; zero: none yet
	failed time.Time // when the table failed; zero: it did not, the last time
	reason error     // likewise
	seen   time.Time // the store's time of the last list

	last atomic.Pointer[answered] // who was there when that was asked the last time; nil: it is not known
}

// answered is what comes of a question who is there.
type answered struct {
	peers []live.Peer
	err   error
}

func newOthers(self func() string, list func(context.Context) ([]heartbeat.Ingester, error), now func() time.Time) *others {
	return &others{self: self, list: list, now: now, turn: make(chan struct{}, 1)}
}

// peers is for live.Options.
func (o *others) peers(ctx context.Context, fresh bool) ([]live.Peer, error) {
	if !fresh {
		return o.lastKnown(ctx)
	}
	return o.ask(ctx, time.Now())
}

// run keeps the list fresh until ctx ends.
func (o *others) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		_, _ = o.ask(ctx, time.Now().Add(-lookEvery/2)) // who asks is told what is wrong
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
func (o *others) lastKnown(ctx context.Context) ([]live.Peer, error) {
	found := make(chan answered, 1)
	go func() {
		// It goes on when the follower does not wait, for the next question.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*listWait)
		defer cancel()
		peers, err := o.ask(ctx, time.Now().Add(-recent))
		found <- answered{peers, err}
	}()
	hurry := time.NewTimer(hasty)
	defer hurry.Stop()
	for {
		select {
		case a := <-found:
			return a.peers, a.err
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-hurry.C:
			if last := o.last.Load(); last != nil {
				return last.peers, last.err
			}
		}
	}
}

// ask gives who was there at a time, or as late before as is known.
func (o *others) ask(ctx context.Context, wanted time.Time) ([]live.Peer, error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	err := o.reason
	if o.asked.Before(wanted) && (o.failed.IsZero() || time.Since(o.failed) > listPause) {
		err = o.look(ctx)
	}
	if o.asked.IsZero() {
		return nil, err
	}
	last := answered{o.choose(), o.rows}
	o.last.Store(&last)
	return last.peers, last.err
}

// look asks the table. The caller has its turn.
func (o *others) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	begun := time.Now()
	found, err := o.list(ctx)
	var unread *heartbeat.RowError
	if err != nil && !errors.As(err, &unread) {
		if !errors.Is(err, context.Canceled) { // the reader went away
			o.failed, o.reason = time.Now(), err
		}
		return err
	}
	o.known, o.rows, o.asked, o.seen = found, err, begun, o.now()
	o.failed, o.reason = time.Time{}, nil
	return nil
}

// choose leaves out who has nothing to give. Who is silent is judged by the time of
// the list: nobody grows silent because the table is away.
func (o *others) choose() []live.Peer {
	self := o.self()
	var peers []live.Peer
	for _, i := range o.known {
		alive := i.Live(o.seen)
		if i.ID == self || i.Stopped || !alive && i.Oldest.IsZero() && o.seen.Sub(i.At) > lately {
			continue
		}
		peers = append(peers, live.Peer{ID: i.ID, Address: i.Address, Host: i.Host, Oldest: i.Oldest, Silent: !alive})
	}
	return peers
}
