// Command ingest accepts log records over HTTP, from JetStream and from syslog, and writes
// them as numbered blobs.
//
//	shippers --HTTP--> source/httpsource -+-> buffer --> blobwriter --> blob store
//	devices    --TCP-> source/syslog -----+    |  ^
//	JetStream  <-----> source/natssource -+    |  |
//	                                           v  | replay on start
//	                                          wal (local disk)
//	nothing of days that were dropped <-- horizon <-- blob store
//	buffer --newest lines--> tailindex --> tables
//	buffer --unflushed records--> live --HTTP--> readers, other ingesters
//	tally: counts accepted records --> /metrics; rules: drop, sample and mask them before the log
//	gate: no record is accepted unless lease's row says so --> tables <-- readers
//	other ingesters <-- lease, clockskew --> tables, the store's clock
//	premises: log and store belong together --> storeid --> blob store
//	trial: not ready until the store takes objects --> blob store
//	operators --HTTP--> admin: /metrics /healthz /readyz /flush /drain /debug/pprof
//
// It starts in the reverse order of the flow, so that each accepted record has a place to
// go, and stops in the order of the flow: the sources accept no more, the buffer flushes
// within the grace period, stored messages are acknowledged, and the rest stays in the
// log for the next start.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"
	_ "time/tzdata" // the zones of places in times are the same on each host

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"blobtail/blobwriter"
	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/catalog/horizon"
	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/internal/count/proc"
	"blobtail/internal/door"
	"blobtail/internal/lease"
	"blobtail/internal/openstore"
	"blobtail/internal/storeid"
	"blobtail/internal/storeid/premises"
	"blobtail/internal/tally"
	"blobtail/storage/fsys"
)

func main() {
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// run connects the parts, and lets them work until ctx ends.
func run(ctx context.Context, c config.Config, h handling, log zerolog.Logger) error {
	return runIn(ctx, surroundings{openstore.Open, listenAs}, c, h, log)
}

// surroundings are the ways to a store and to a network.
type surroundings struct {
	open   func(ctx context.Context, spec openstore.Spec, create bool) (*openstore.Store, error)
	listen func(flag, address string, c config.Config) (net.Listener, error)
}

// runIn is run with other surroundings than this host.
func runIn(ctx context.Context, around surroundings, c config.Config, h handling, log zerolog.Logger) error {
	begun := time.Now()
	limitMemory(c, log)
	reg := newRegistry()
	secure, err := openSecurity(c, log, reg)
	if err != nil {
		return err
	}
	records, err := around.listen("--listen", c.Ingest.Listen, c) // a start whose port is taken makes no store
	if err != nil {
		return fmt.Errorf("listen for records: %w", err)
	}
	defer records.Close()
	operators, err := around.listen("--admin", c.Ingest.Admin, c)
	if err != nil {
		return fmt.Errorf("listen for operators: %w", err)
	}
	defer operators.Close()
	store, err := around.open(ctx, c.Store, true)
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	defer store.Close()
	journal, err := openJournal(c, log)
	if err != nil {
		return err
	}
	defer journal.Close()
	premises, err := openPremises(ctx, c, store, journal, log)
	if err != nil {
		return err
	}
	out := newSink(store, blobwriter.Options{NoFilters: !c.Flush.Filters}, premises, part(log, "horizon"), reg)
	secure.newcomers = newNewcomers(c, store.Blobs, part(log, "access"))
	stream, err := openStream(ctx, c.NATS, h.fields, secure.newcomers.allow(), part(log, "nats"), reg)
	if err != nil {
		return err
	}
	defer stream.close()
	tail := newTail()
	var company *company
	options, sent := shipped(c, secure.levels, log, bufferOptions(c, part(log, "buffer"), reg))
	options.Expired, options.Tail, options.Messages, options.Crowded = out.expired, tail.of(c), stream.messages(), stream.crowded()
	options.LossFound = func() { company.noteLoss() } // company exists before the buffer runs
	buf := buffer.New(journal, out, options)
	secure.newcomers.buf = buf
	warn(log, c, secure.levels, records)
	if company, err = newCompany(c, store, premises, journal, buf, out.SetLane, own(c, records), log, reg); err != nil {
		return err
	}
	if err := sent.join(c, company, store, journal, buf, reg); err != nil {
		return err
	}
	tail.join(c, company, buf, log, reg)
	accept, counts := h.counted(gate{buf, company.announcer, company.premises, secure.levels, sent}, reg)
	in, ready, err := newIntake(c, h.fields, accept, buf, out.newest, company, stream, secure, secure.recordsDoor(c, records), log, reg)
	if err != nil {
		return err
	}
	defer in.syslog.close()
	admin := newAdmin(buf, in, ready, secure.operatorsDoor(c, operators), url.URL{Scheme: scheme(c), Host: records.Addr().String()}, reg)
	p := &parts{accept, counts, out.watch, buf, stream, company, tail, in, ready, admin, secure, records, operators}
	return p.run(ctx, c, log, begun.Add(companyWait))
}

// parts are the parts of a running ingester.
type parts struct {
	accept    accepter
	counts    *tally.Tally
	watch     *horizon.Watch
	buf       *buffer.Buffer
	stream    *stream
	company   *company
	tail      *tail
	in        *intake
	ready     func() error
	admin     *http.Server
	secure    *security
	records   net.Listener
	operators net.Listener
}

// run lets the parts work until ctx ends, or one of them fails. They outlive ctx,
// because they end in the order of the flow. From until on records are accepted even
// if little is known of the peers and of dropped days.
func (p *parts) run(ctx context.Context, c config.Config, log zerolog.Logger, until time.Time) error {
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, failed := errgroup.WithContext(working)
	group.Go(func() error { boundGarbage(working); return nil })
	group.Go(func() error { p.watch.Run(working); return nil })
	group.Go(func() error { p.counts.Run(working); return nil })
	group.Go(func() error { return p.buf.Run(working) })
	group.Go(func() error { return p.tail.run(working) })
	p.company.run(working, group)
	await(ctx, until, p.watch.First(), p.company.announcer.First(), p.company.clock.First(), p.company.trial.First())
	group.Go(func() error { return p.stream.run(working, p.accept) })
	group.Go(func() error { return p.in.syslog.run(working) })
	p.secure.run(working, group)
	sockets := door.NewSockets(0, log)
	records, operators := sockets.Watch(p.in.http, p.records), sockets.Watch(p.admin, p.operators)
	group.Go(func() error { return serve(p.in.http, p.secure.wrap(records)) })
	group.Go(func() error { return serve(p.admin, door.FirstBytes(operators, false, log)) })
	p.company.started(working, group, log, p.ready, c, p.records, p.operators)

	select {
	case <-ctx.Done():
		// No record is accepted in the second half of the grace period: see stop.
		time.AfterFunc(time.Duration(c.Ingest.Grace)/2, p.tail.end)
		p.company.stop(stop(log, p.buf, p.in, time.Duration(c.Ingest.Grace)))
	case <-failed.Done():
		// The log's disk failed: no record was acknowledged that is not durable. End at
		// once, and let the next start read the disk.
	}
	end()
	p.in.http.Close()
	p.admin.Close()
	return group.Wait()
}

// newRegistry returns a registry with the metrics of the process.
func newRegistry() *count.Registry {
	reg := new(count.Registry)
	proc.Show(reg)
	return reg
}

// openJournal opens the log. An error names the fix.
func openJournal(c config.Config, log zerolog.Logger) (*wal.Log, error) {
	journal, err := wal.Open(c.WALDir(), wal.Options{SegmentSize: int64(c.Log.Segment), Log: part(log, "wal")})
	if fix := (fsys.Place{Dir: c.WALDir()}).Remedy(err); fix != "" {
		err = fmt.Errorf("%w; %s", err, fix)
	}
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return journal, nil
}

// openPremises makes sure that the log and the store belong together, and that no older version has to
// go through another one first.
func openPremises(ctx context.Context, c config.Config, store *openstore.Store, journal *wal.Log, log zerolog.Logger) (*premises.Premises, error) {
	asking, cancel := context.WithTimeout(ctx, companyWait)
	defer cancel()
	if err := lease.Older(asking, store.Tables, c.Store.Name()); err != nil {
		return nil, err
	}
	log = part(log, "premises")
	return premises.Open(ctx, premises.Options{
		FS: fsys.OS(), Dir: c.WALDir(), Blobs: store.Blobs, Spec: c.Store.String(), Remote: c.Store.Remote(), Log: log,
		Unflushed: func(ctx context.Context) (int, error) { return buffer.Unflushed(ctx, journal) },
		Leave: func(was storeid.Binding) error {
			id, err := lease.Discard(fsys.OS(), c.WALDir())
			log.Warn().Str("was", was.Spec).Str("id", was.ID).Stringer("store", c.Store).
				Msg("the log is empty and goes over to another store, under a new id; if reads of the old store name ingester " + id + ", run ingest forget " + id + " there")
			return err
		},
	})
}

func bufferOptions(c config.Config, log zerolog.Logger, reg *count.Registry) buffer.Options {
	maxAge, _ := c.MaxAge()
	return buffer.Options{
		Period:      time.Duration(c.Ingest.Period),
		Size:        int64(c.Flush.Size),
		Age:         time.Duration(c.Flush.Age),
		Min:         int64(c.Flush.Min),
		MaxAge:      maxAge,
		StoredEvery: time.Duration(c.Flush.StoredEvery),
		Soft:        int64(c.Log.Soft),
		Max:         int64(c.Log.Max),
		Full:        func() bool { return diskFull(c.WALDir(), c.Log.DiskFull) },
		Log:         log,
		Metrics:     reg,
	}
}

func serve(s *http.Server, l net.Listener) error {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// roomy is enough free space for a disk of any size.
const roomy = 1 << 30

// diskFull reports whether the disk of dir is filled to percent or more. A large
// disk is not full while it has room for hours of log.
func diskFull(dir string, percent int) bool {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || fs.Blocks == 0 {
		return false
	}
	free := fs.Bavail * uint64(fs.Bsize)
	return free < roomy && 100-fs.Bavail*100/fs.Blocks >= uint64(percent)
}

// part names the part of the program that writes a line of our own log.
func part(log zerolog.Logger, name string) zerolog.Logger {
	return log.With().Str("part", name).Logger()
}
