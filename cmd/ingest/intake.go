package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/buffer"
	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/internal/door"
	"blobtail/internal/lease"
	"blobtail/internal/storeid/premises"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
	"blobtail/record/ack"
	"blobtail/record/meaning"
	"blobtail/source/httpsource"
	"blobtail/source/otlp"
	"blobtail/source/shippers"
	"blobtail/storage/fsys"
)

// An intake accepts the incoming records. Once it has ended it accepts none.
type intake struct {
	http   *http.Server
	stream *stream
	syslog *syslogs
	sent   *shipment
	log    zerolog.Logger

	ended context.Context
	end   context.CancelFunc // ends ended
	// serving is locked for reading by each request from before the end.
	serving sync.RWMutex
}

// newIntake makes the HTTP source next to the stream, with the answers to readers, and
// listens for syslog. The sources hand requests to accept. ready is the reason why records
// cannot be accepted, stored or announced.
func newIntake(c config.Config, fields *meaning.Mapping, accept accepter, buf *buffer.Buffer, newest *live.Newest, company *company, stream *stream, secure *security, guard *door.Guard, log zerolog.Logger, reg *count.Registry) (in *intake, ready func() error, err error) {
	in = &intake{stream: stream, sent: company.sent, log: part(log, "intake")}
	in.ended, in.end = context.WithCancel(context.Background())
	ready = func() error { return errors.Join(in.err(), company.ready(buf)) }
	options := httpsource.Options{
		Accept:    accept,
		Ready:     func() error { return errors.Join(in.err(), company.taking(buf)) },
		Probed:    func() error { return errors.Join(in.err(), company.answering(buf)) },
		Protocols: shippers.Protocols(shipping(c)),
		Allow:     secure.newcomers.allow(),
		Ships:     secure.levels.asks(ack.Shipped),
		Away: func(services []string, asked ack.Level) error {
			return company.sent.away(max(asked, secure.levels.of(services)))
		},
		Fields:      fields,
		Admin:       c.Ingest.Admin,
		Dedupe:      httpsource.Dedupe(c.Ingest.Dedupe),
		MaxInFlight: int64(c.Limits.InFlight),
		Log:         part(log, "http"),
		Metrics:     reg,
	}
	asked := live.Options{
		Self: company.self, Journal: journal{buf, company.announcer}, Newest: newest, Peers: company.peers.Roll, Trust: secure.trust, Token: secure.peer, PlainHTTP: c.Access.Open, Log: part(log, "live"),
	}
	if secure.tokens != nil {
		options.Guard, asked.Guard = senders{guard}, readerOf
	}
	answers := live.NewHandler(asked)
	showLive(answers, reg)
	all := withLive(in.counted(httpsource.New(options)), answers)
	// A stranger makes a line with each handshake that fails.
	quiet := part(log, "http").Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Second})
	in.http = httpsource.NewServer(secure.addressed(guard.Wrap(kindOf, all)), quiet)
	in.http.RegisterOnShutdown(answers.Stop) // or slow readers would use up the grace
	in.syslog, err = openSyslog(c, fields, accept, secure.newcomers.allow(), part(log, "syslog"), reg)
	return in, ready, err
}

// shipping are the settings of the protocols of stock shippers.
func shipping(c config.Config) shippers.Options {
	return shippers.Options{Elasticsearch: c.Protocols.Elasticsearch, OTLP: otlp.Options{ServiceFrom: c.OTLP.ServiceFrom}}
}

var errDrained = errors.New("this ingester takes no more: it was drained")

// err returns the reason why records are not accepted, nil if they are.
func (i *intake) err() error {
	if i.ended.Err() != nil {
		return errDrained
	}
	return nil
}

// counted lets drain know when all requests from before it are answered. The source
// refuses later requests by itself.
func (i *intake) counted(source http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.serving.TryRLock() { // fails only while drain waits
			defer i.serving.RUnlock()
		}
		source.ServeHTTP(w, r)
	})
}

// drain accepts no more records, and returns when the requests under way are answered, or
// ctx ends. It goes on listening: until all records are in blobs, readers ask here for
// the rest.
func (i *intake) drain(ctx context.Context) {
	i.end()
	i.stream.stop(ctx)
	i.syslog.stop(ctx)
	idle := make(chan struct{})
	go func() {
		i.serving.Lock()
		defer i.serving.Unlock()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// close accepts no more records, answers the requests under way until ctx ends, and
// stops listening.
func (i *intake) close(ctx context.Context) {
	i.end()
	i.stream.stop(ctx)
	i.syslog.stop(ctx)
	if err := i.http.Shutdown(ctx); err != nil {
		i.log.Warn().Err(err).Msg("requests were cut off; they were not acknowledged")
	}
}

// stop accepts no more requests, answers those under way, and flushes. Half of the grace
// is for the requests, so that slow clients do not cost the flush. It reports whether all
// records are in blobs.
func stop(log zerolog.Logger, buf *buffer.Buffer, in *intake, grace time.Duration) bool {
	log.Info().Float64("grace_seconds", grace.Seconds()).Msg("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	answering, done := context.WithTimeout(ctx, grace/2)
	defer done()
	in.end()
	go func() { _, _ = buf.Flush(answering) }() // for requests that wait until they are stored
	in.close(answering)
	left, err := buf.Flush(ctx)
	if err != nil {
		log.Warn().Err(err).Int("batches", left.Batches).Int("records", left.Records).
			Msg("not all is in blobs; the rest stays in the log for the next start")
		return false
	}
	log.Info().Msg("all is in blobs")
	return true
}

// gate lets requests into the buffer while the log may belong to the store, and readers
// can know that this ingester holds records.
type gate struct {
	buf       *buffer.Buffer
	announcer *lease.Announcer
	premises  *premises.Premises
	levels    *levels
	sent      *shipment
}

// Accept implements the Accepter of the sources. It waits while the row of the ingester
// is being written. If that fails the error is [record.ErrFull] on a full disk, as that of the log,
// and else [record.ErrUnheld].
func (g gate) Accept(ctx context.Context, r *record.Request) (record.Receipt, error) {
	if err := errors.Join(g.premises.Ready(), g.sent.err()); err != nil {
		return record.Receipt{}, fmt.Errorf("%w: %w", record.ErrUnheld, err)
	}
	leave, err := g.announcer.Enter(ctx, r.Earliest())
	if err != nil {
		if ctx.Err() != nil {
			return record.Receipt{}, ctx.Err()
		}
		reason := record.ErrUnheld
		if fsys.IsFull(err) {
			reason = record.ErrFull
		}
		return record.Receipt{}, fmt.Errorf("%w: %w", reason, err)
	}
	defer leave()
	receipt, err := g.buf.Accept(ctx, r)
	receipt.Ack = g.levels.of(r.Services)
	return receipt, err
}
