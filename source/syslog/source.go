// Package syslog accepts messages of syslog over TCP, with TLS or without, and passes them
// on as [record.Request] values.
//
// [New] makes a [Source], [Source.Run] serves a listener until its context ends. A message
// runs through stages, one file each:
//
//	conn.go     bytes of a connection, within limits of memory and time
//	framer.go   messages: octet-counted or in lines (RFC 6587)
//	message.go  their parts: RFC 5424; rfc3164.go and stamp.go: the forms of devices
//	batch.go    records of all connections in one batch -> Accepter
//
// syslog has no answers, so a sender never learns how far the source has come. The package
// promises only this: it stops reading while the log accepts nothing, and it appends the
// messages that it has read before Run returns. If a connection breaks, its sender has to
// guess: messages on the way are lost, or come twice. Copies are not recognised, because
// equal messages may be two events.
//
// There is no UDP: it has neither back-pressure nor acknowledgements, so a datagram that does not
// fit into a buffer is lost, and no sender learns of it.
package syslog

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"blobtail/internal/count"
	"blobtail/record/meaning"
	"blobtail/source/body"
)

// DefaultMemory is how many bytes the buffers of all connections may have together, unless
// [Options] say something else.
const DefaultMemory = 64 << 20

// Options are the settings of a [Source]. Only Accept must be set.
type Options struct {
	// Accept appends the requests.
	Accept body.Accepter
	// TLS is the configuration of a listener with TLS. Nil: the listener has none.
	TLS *tls.Config
	// ClientCerts lets only senders in that have shown a certificate. TLS must ask for one,
	// and verify it.
	ClientCerts bool
	// Allow are the networks that may connect. Empty: all, if the listener is on loopback
	// or ClientCerts is set.
	Allow []netip.Prefix
	// Service is the folded service of all records. Empty: each has its own, from the
	// application's name.
	Service string
	// Services are names or globs of the services that may be written. A record of another
	// service is rejected. Empty: all.
	Services []string
	// AllowService returns the reason why records of a service are rejected for now, "" if they are
	// not. It is asked after Services. Nil: none are.
	AllowService func(service string) (reason string)
	// Watch is told of each record. Nil: nobody is.
	Watch body.Watch
	// Fields has names of fields that are tried before the known ones. Nil: there are none.
	Fields *meaning.Mapping
	// Zone is the zone of times without one. Nil: that of the host.
	Zone *time.Location
	// MaxConns is how many connections may be open. One more is closed at once. 0: 1,000.
	MaxConns int
	// Idle is how long a connection may be silent between messages. 0: 24 h.
	Idle time.Duration
	// First is how long a connection may take until its first bytes, with TLS until the
	// first bytes in it. 0: 30 s.
	First time.Duration
	// Slow is how long the rest of a message may take after its first bytes. 0: 60 s.
	Slow time.Duration
	// Memory is how many bytes the buffers of all connections may have together, without
	// 2 KiB for each. At least 4 MiB are taken. 0: DefaultMemory.
	Memory int64
	// Grace is how long the last messages are tried after the end of Run's context. 0: 3 s.
	Grace time.Duration
	// HTTP is the URL of the listener for records over HTTP, for senders that speak that here. "": it
	// is not known.
	HTTP string
	// Log is the ingester's own log. The zero value writes nothing.
	Log zerolog.Logger
	// Metrics registers the counters. Nil: they are not registered.
	Metrics *count.Registry
	// Now is the clock of arrival. Nil: time.Now.
	Now func() time.Time
}

// elsewhere names the listener for records over HTTP.
func (o *Options) elsewhere() string {
	if o.HTTP == "" {
		return " (--listen of the ingester)"
	}
	return ", " + o.HTTP + "/ingest/{service}"
}

// Source is the source of syslog.
type Source struct {
	o        Options
	metrics  *metrics
	memory   *semaphore.Weighted
	held     atomic.Int64 // bytes of memory that are taken
	large    sync.Pool    // of *[]byte with readSize bytes
	batch    *batch
	open     atomic.Int64   // connections
	refusals zerolog.Logger // the log, for events that senders cause
	failures zerolog.Logger
}

// New makes a Source. It starts nothing.
func New(o Options) *Source {
	o.MaxConns = cmp.Or(o.MaxConns, 1000)
	o.Idle = cmp.Or(o.Idle, 24*time.Hour)
	o.First = cmp.Or(o.First, 30*time.Second)
	o.Slow = cmp.Or(o.Slow, time.Minute)
	o.Memory = max(cmp.Or(o.Memory, DefaultMemory), 4<<20)
	o.Grace = cmp.Or(o.Grace, 3*time.Second)
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.TLS != nil {
		o.TLS = withoutTickets(o.TLS)
	}
	s := &Source{
		o:        o,
		memory:   semaphore.NewWeighted(o.Memory),
		large:    sync.Pool{New: func() any { buf := make([]byte, readSize); return &buf }},
		refusals: o.Log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Second}),
		failures: o.Log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Second}),
	}
	s.metrics = newMetrics(o.Metrics, s)
	s.batch = newBatch(s)
	return s
}

// check returns an error if anybody may send. Syslog has no passwords.
func (s *Source) check(l net.Listener) error {
	at, ok := l.Addr().(*net.TCPAddr)
	if s.o.ClientCerts && s.o.TLS == nil {
		return errors.New("client certificates are required without TLS")
	}
	if !ok || at.IP.IsLoopback() || len(s.o.Allow) > 0 || s.o.ClientCerts {
		return nil
	}
	return fmt.Errorf("anybody who reaches %s could send; name the networks that may (0.0.0.0/0 and ::/0 are all), or require client certificates", at)
}

// allowed reports whether a peer may connect. One without an IP address is of this process.
func (s *Source) allowed(peer net.Addr) bool {
	at, ok := peer.(*net.TCPAddr)
	if !ok || len(s.o.Allow) == 0 {
		return true
	}
	ip := at.AddrPort().Addr().Unmap().WithZone("")
	return slices.ContainsFunc(s.o.Allow, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Run accepts connections from l until ctx ends, and closes l. Before it returns, the
// messages that were read are appended, or Options.Grace is over. It is called once. The
// error says that l failed, or that everybody could send.
func (s *Source) Run(ctx context.Context, l net.Listener) error {
	defer l.Close()
	if err := s.check(l); err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	// Messages are appended for a while after ctx has ended.
	lasting, give := context.WithCancel(context.WithoutCancel(ctx))
	defer give()
	defer context.AfterFunc(ctx, func() {
		l.Close()
		time.AfterFunc(s.o.Grace, give)
	})()
	s.batch.lasting = lasting
	var late, conns sync.WaitGroup
	late.Go(func() { s.batch.flushLate(ctx) })
	late.Go(s.batch.await)
	err := s.accept(ctx, l, &conns)
	end()
	conns.Wait()
	s.batch.close()
	late.Wait()
	return err
}

// accept starts a goroutine for each connection.
func (s *Source) accept(ctx context.Context, l net.Listener, conns *sync.WaitGroup) error {
	const first, most = 5 * time.Millisecond, time.Second
	wait := first
	for {
		nc, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				nc.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept connections of syslog: %w", err)
		case err != nil: // too many files are open, perhaps; it passes
			s.failures.Error().Err(err).Msg("cannot accept a connection")
			pause(ctx, wait)
			wait = min(2*wait, most)
			continue
		}
		wait = first
		if !s.admit(nc) {
			nc.Close()
			continue
		}
		conns.Go(func() {
			defer s.open.Add(-1)
			s.serve(ctx, nc)
		})
	}
}

// admit counts a connection, unless it may not be.
func (s *Source) admit(nc net.Conn) bool {
	if !s.allowed(nc.RemoteAddr()) {
		s.metrics.denied.Inc()
		s.refusals.Warn().Stringer("peer", nc.RemoteAddr()).Msg("a sender of syslog is in no network of syslog.allow; it was disconnected")
		return false
	}
	if s.open.Add(1) > int64(s.o.MaxConns) {
		s.open.Add(-1)
		s.metrics.tooMany.Inc()
		s.refusals.Warn().Stringer("peer", nc.RemoteAddr()).Int("connections", s.o.MaxConns).
			Msg("as many connections of syslog are open as may be; one more was closed")
		return false
	}
	return true
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
