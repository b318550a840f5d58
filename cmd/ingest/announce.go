package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/cli"
	"blobtail/internal/clockskew"
	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/internal/lease"
	"blobtail/internal/loopback"
	"blobtail/internal/openstore"
	"blobtail/internal/storeid/premises"
	"blobtail/internal/trial"
	"blobtail/reading/unflushed/live"
	"blobtail/reading/unflushed/live/peers"
	"blobtail/record/ack"
	"blobtail/storage"
)

// company is the place of this ingester among its peers on the store: its lane, its
// announcements, and the difference of the clocks. None of them delays a record.
type company struct {
	announcer *lease.Announcer
	clock     *clockskew.Checker
	tables    storage.TableStore
	premises  *premises.Premises
	trial     *trial.Trial // whether the store takes anything
	peers     *peers.Peers // other ingesters: readers need their records too
	sent      *shipment
	least     ack.Level // of acknowledgement
	explained func(error) error
	log       zerolog.Logger
	quit      context.CancelFunc
}

const (
	// companyWait is the age of the process from which it accepts records even without
	// being announced: a store that hangs must not delay it longer.
	companyWait = 1500 * time.Millisecond
	// clockWait is how long the search for a lane waits for the store's time.
	clockWait = 500 * time.Millisecond
	// lastWords bounds the announcement that the ingester ends. Without that announcement
	// reads name the ingester until it starts again.
	lastWords = 2 * time.Second
	// noteWait bounds noting a loss.
	noteWait = 3 * time.Second
)

// own is the URL of the listener for readers that find it in the row. The address of a
// listener for all of a network is of no use to other hosts, and those read a remote store. One
// on loopback serves the readers of this host, and the others do not mistake it for theirs: an
// answer names its ingester.
func own(c config.Config, l net.Listener) string {
	if c.Store.Remote() && !loopback.Listener(l) {
		return ""
	}
	return scheme(c) + "://" + l.Addr().String()
}

// newCompany makes the parts that run starts. The log's directory and the files in it are
// locked already. newCompany calls setLane with each lane that is found. address is the URL of
// the listener, "" if readers cannot use it.
func newCompany(c config.Config, store *openstore.Store, premises *premises.Premises, journal *wal.Log, buf *buffer.Buffer, setLane func(int) error, address string, log zerolog.Logger, reg *count.Registry) (*company, error) {
	log = part(log, "company")
	clock, _ := store.Blobs.(storage.Clock) // nil: a store on this host
	p := &company{clock: clockskew.New(clock, log), premises: premises, explained: store.Explained, least: c.Ingest.Ack, log: log}
	p.trial = trial.New(trial.Options{Blobs: store.Blobs, Remote: c.Store.Remote(), Storing: premises.Storing, Explained: store.Explained, Log: log})
	tables := premises.Tables(store.Tables)
	p.tables = tables
	host, _ := os.Hostname()
	lane, settled := c.LaneNumber(host)
	if c.Ingest.Advertise != "" {
		address = c.Ingest.Advertise
	}
	var err error
	p.announcer, err = lease.New(tables, lease.Options{
		Dir: c.WALDir(), StoreID: premises.StoreID, BestEffort: c.Ingest.Announce == "best-effort",
		Lost: func() lease.Loss {
			l, _ := buf.Lost()
			return lease.Loss{Since: l.Since, Until: l.Until}
		},
		Position: func() uint64 { return uint64(journal.Durable()) }, Found: uint64(journal.Found()),
		Lane: lane, Auto: !settled,
		Moved: func(lane int) {
			if err := setLane(lane); err != nil {
				log.Error().Err(err).Msg("the lane cannot be taken")
			}
		},
		Store: c.Store.Name(), Address: strings.TrimRight(address, "/"), Host: host, Version: cli.Version(),
		Oldest: buf.Oldest, Earliest: buf.Earliest, Replayed: buf.Replayed, Now: p.clock.Now, Log: log,
	})
	if err != nil {
		log.Warn().Err(err).Msg("nothing is taken before this ingester is announced anew")
	}
	showCompany(p.announcer, p.clock, reg)
	p.peers = peers.New(peers.Options{Self: p.announcer.ID, Process: p.announcer.Process(), Now: p.clock.Now, List: func(ctx context.Context) ([]lease.Ingester, error) {
		return lease.List(ctx, tables, c.Store.Name())
	}})
	// Until the peers are known: the lane of the last time.
	if err := setLane(p.announcer.Lane()); err != nil {
		return nil, err
	}
	return p, nil
}

// run announces and compares in the group until ctx or stop ends it.
func (p *company) run(ctx context.Context, group *errgroup.Group) {
	ctx, p.quit = context.WithCancel(ctx)
	announce := func(ctx context.Context) {
		// With a wrong clock all peers would look dead.
		await(ctx, time.Now().Add(clockWait), p.clock.First())
		p.announcer.Run(ctx)
	}
	for _, run := range []func(context.Context){p.clock.Run, announce, p.peers.Run, p.premises.Run, p.trial.Run} {
		group.Go(func() error { run(ctx); return nil })
	}
	p.sent.run(ctx, group)
}

// await returns when all are closed, at until, or when ctx ends.
func await(ctx context.Context, until time.Time, all ...<-chan struct{}) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for _, first := range all {
		select {
		case <-first:
		case <-ctx.Done():
		}
	}
}

// self is the signature of answers to readers.
func (p *company) self() live.Self {
	return live.Self{ID: p.announcer.ID(), Process: p.announcer.Process(), Store: p.premises.ID()}
}

// taking returns the reason why records cannot be accepted now.
func (p *company) taking(buf *buffer.Buffer) error {
	if err := buf.Ready(); err != nil {
		return fmt.Errorf("the log takes no appends: %w", err)
	}
	return errors.Join(p.premises.Ready(), p.clock.Err(), p.sent.err())
}

// answering returns the reason why records would not be accepted now, for senders that ask before
// they send any. A request itself may change that: it has the row written.
func (p *company) answering(buf *buffer.Buffer) error {
	return cmp.Or(p.taking(buf), p.announcer.Denied())
}

// ready returns the reason why records cannot be accepted, stored or announced now, with
// the fix if the store is the reason.
func (p *company) ready(buf *buffer.Buffer) error {
	if err := p.taking(buf); err != nil {
		return err
	}
	return cmp.Or(p.trial.Err(), p.explained(errors.Join(p.announcer.Err(), p.premises.Stalled(), p.sent.away(p.least))))
}

// noteLoss notes the loss of records for the next start.
func (p *company) noteLoss() {
	ctx, cancel := context.WithTimeout(context.Background(), noteWait)
	defer cancel()
	if err := p.announcer.NoteLoss(ctx); err != nil {
		p.log.Error().Err(err).Msg("that the log lost records is not kept for the next start")
	}
}

// readyEvery is how often an ingester that was not ready at its start checks whether it
// is.
const readyEvery = 250 * time.Millisecond

// started logs the result of the start. If the ingester was not ready, it logs later that
// it has become ready.
func (p *company) started(ctx context.Context, group *errgroup.Group, log zerolog.Logger, ready func() error, c config.Config, ingest, admin net.Listener) {
	tell := func(event *zerolog.Event, state string) {
		if c.NATS.URL != "" {
			event = event.Str("stream", c.NATS.Stream)
		}
		event.Str("send", scheme(c)+"://"+ingest.Addr().String()+"/ingest/SERVICE").Str("listen", ingest.Addr().String()).Str("admin", admin.Addr().String()).
			Stringer("store", c.Store).Str("wal", c.WALDir()).Int("lane", p.announcer.Lane()).Str("version", cli.Version()).Msg(state)
	}
	err := ready()
	if err == nil {
		tell(log.Info(), "ready")
		return
	}
	tell(log.Warn().Err(err), "listening, not ready")
	group.Go(func() error {
		for ready() != nil {
			select {
			case <-time.After(readyEvery):
			case <-ctx.Done():
				return nil
			}
		}
		tell(log.Info(), "ready")
		return nil
	})
}

// stop tells the peers that this ingester ends, and whether all records are in blobs.
func (p *company) stop(empty bool) {
	if p.sent != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lastWords)
		_ = p.sent.Clear(ctx) // the next start tries again
		cancel()
	}
	p.quit()
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	if err := p.announcer.Stop(ctx, empty); err != nil {
		p.log.Warn().Err(err).Msg("the others are not told that this ingester ends")
	}
}
