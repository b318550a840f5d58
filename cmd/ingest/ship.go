package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"blobtail/buffer"
	"blobtail/buffer/ship"
	"blobtail/buffer/wal"
	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/internal/openstore"
	"blobtail/record/ack"
)

// shipment is the log of this ingester on its way to the store, and the logs of others that it
// adopts. nil: the log is not shipped.
type shipment struct {
	*ship.Shipper
	after    time.Duration // of silence; 0: others are adopted on demand alone
	adoption ship.Adoption
	levels   *levels
	log      zerolog.Logger
}

// shipped has the buffer wait for the shipper, if anybody may ask for that.
func shipped(c config.Config, l *levels, log zerolog.Logger, o buffer.Options) (buffer.Options, *shipment) {
	if !l.asks(ack.Shipped) {
		return o, nil
	}
	s := &shipment{after: c.AdoptAfter(), levels: l, log: part(log, "ship")}
	o.Shipped = func(ctx context.Context, pos wal.Pos) error { return s.Wait(ctx, pos) } // it exists before a request comes
	return o, s
}

// join makes the shipper, a part of a company.
func (s *shipment) join(c config.Config, p *company, store *openstore.Store, log *wal.Log, buf *buffer.Buffer, reg *count.Registry) error {
	if p.sent = s; s == nil {
		return nil
	}
	s.Shipper = ship.New(ship.Options{
		Log: log, Blobs: store.Blobs, ID: p.announcer.ID, StoreID: p.premises.StoreID, Needed: buf.Needed,
		Every: time.Duration(c.Ship.Every), Wait: time.Duration(c.Ship.Wait), Logger: s.log,
		Disk: c.Ship.Fallback == "disk", Strict: s.levels.least >= ack.Shipped && c.Ship.Fallback == "refuse",
	})
	p.announcer.Ship(s.Ships)
	showShip(s.Shipper, reg)
	q, err := newQuestion(c)
	accept := gate{buf, p.announcer, p.premises, s.levels, s}.Accept
	s.adoption = ship.Adoption{Tables: p.tables, Store: c.Store.Name(), Accept: accept, Ask: q.ask, Now: p.clock.Now}
	return err
}

// err is the reason why this process may accept nothing any more.
func (s *shipment) err() error {
	if s == nil {
		return nil
	}
	return s.Fenced()
}

// away is the reason why no request can reach a level now; nil: it may.
func (s *shipment) away(level ack.Level) error {
	if s == nil || level != ack.Shipped {
		return nil
	}
	return s.Away()
}

// run ships until ctx ends, and adopts.
func (s *shipment) run(ctx context.Context, group *errgroup.Group) {
	if s == nil {
		return
	}
	group.Go(func() error { return s.Run(ctx) })
	group.Go(func() error { s.Reap(ctx); return nil })
	if s.after > 0 {
		group.Go(func() error { s.AdoptSilent(ctx, s.after, s.adoption); return nil })
	}
}

// adopt answers when the shipped log of a silent ingester is adopted.
func adopt(in *intake) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := errors.New("this ingester ships no log, and can adopt none: see ingest.ack")
		if in.sent != nil {
			err = in.sent.Adopt(r.Context(), r.PathValue("id"), in.sent.adoption)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		fmt.Fprintln(w, "adopted")
	})
}

// askAdopt has a running ingester adopt another.
func askAdopt(c config.Config, id string, stdout io.Writer) error {
	_, _, err := askAdmin(c, "adopt/"+id, "not adopted", 0)
	if err == nil {
		fmt.Fprintf(stdout, "ingester %s is adopted: reads have what it shipped, and are whole without it unless they say what is lost\n", id)
	}
	return err
}
