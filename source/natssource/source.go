package natssource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"blobtail/internal/count"
	"blobtail/record/meaning"
	"blobtail/storage/fsys"
)

// Options are the settings of a [Source]. URL, Stream and Consumer must be set.
type Options struct {
	// URL is the URL of a server, or of several with commas between them.
	URL string
	// Stream is the name of the stream, which must exist.
	Stream string
	// Consumer is the name of the durable consumer that all ingesters share. It is
	// created if it is missing.
	Consumer string
	// Partitions are the numbers of the partitions to take, besides the messages that are in
	// none. Nil: the stream has no partitions, or others take them.
	Partitions []int
	// Share has the partitions follow from this ingester's number among others. The zero value
	// leaves it to Partitions.
	Share Share
	// AckWait is the time without a sign of life after which a message is delivered
	// again. 0: 10 min.
	AckWait time.Duration
	// AllowLossy accepts a stream that may discard unflushed messages.
	AllowLossy bool
	// Credentials is the path of a .creds file; "" for none.
	Credentials string
	// CA is the path of the certificates for checking the server's; "" for the
	// system's. Cert and Key are the paths of our own; "" for none.
	CA, Cert, Key string
	// Fields has names of fields that are tried before the known ones. All ingesters need the
	// same: a message has to be the same records at each delivery. Nil: there are none.
	Fields *meaning.Mapping
	// Allow returns the reason why records of a service are rejected for now, "" if they are not. Nil:
	// none are.
	Allow func(service string) (reason string)
	// Log is the ingester's own log. The zero value writes nothing.
	Log zerolog.Logger
	// Metrics registers the counters. Nil: they are not registered.
	Metrics *count.Registry

	// wait is how long a start waits for a server, and for information about the stream; 0:
	// firstConnection and firstLook. Tests set it.
	wait time.Duration
	// survey is the interval of looks for partitions that no ingester takes; 0: surveyEvery.
	survey time.Duration
	// pending is how many messages of a consumer may be delivered and not acknowledged, and most how
	// many of all queues may be here and not settled before no more are asked for; 0: maxAckPending.
	pending, most int
}

const (
	defaultAckWait = 10 * time.Minute
	// maxAckPending is how many messages of a consumer may be delivered and not acknowledged. The
	// server keeps some 150 bytes for each. It is also the number for all queues of an ingester:
	// each message takes memory here, and a start needs that again.
	maxAckPending = 500_000
	// firstConnection is how long Open waits for a server, unless that refuses at once.
	// firstLook is how long it waits for information about the stream.
	firstConnection = time.Second
	firstLook       = 2 * time.Second
)

// Source is the JetStream source.
type Source struct {
	o       Options
	conn    *nats.Conn
	js      jetstream.JetStream
	ledger  *ledger
	metrics *metrics
	check   chan struct{}           // requests a check of the stream
	taken   atomic.Pointer[[]queue] // nil before the first good look
	stream  atomic.Pointer[jetstream.StreamInfo]
	more    chan struct{}                      // signals a change of taken
	meeting chan struct{}                      // requests a look at the consumers
	met     map[string]*jetstream.ConsumerInfo // the last good look at each consumer
	unmet   atomic.Int64                       // how many consumers are not in order
	crowd   atomic.Int64                       // percent of maxAckPending, of the fullest consumer
	pulling atomic.Bool
	refused atomic.Pointer[error] // reason of the last failed attempt to connect
	closing context.Context       // ended by Close
	end     context.CancelFunc
	parts   sync.WaitGroup
}

// Open connects and checks the stream. A stream that is missing or loses messages,
// and an unusable consumer, are errors that include the fix. An unreachable server is
// no error: Open starts a source that tries for ever.
func Open(ctx context.Context, o Options) (*Source, error) {
	if o.AckWait == 0 {
		o.AckWait = defaultAckWait
	}
	s := newSource(o)
	begun := time.Now()
	s.closing, s.end = context.WithCancel(context.WithoutCancel(ctx))
	conn, err := s.connect()
	if err != nil {
		s.end()
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	s.conn = conn
	err = s.start(ctx, cmp.Or(o.wait, firstConnection)-time.Since(begun))
	if err != nil {
		s.end()
		s.parts.Wait()
		conn.Close()
		return nil, err
	}
	return s, nil
}

func newSource(o Options) *Source {
	s := &Source{o: o, check: make(chan struct{}, 1), more: make(chan struct{}, 1),
		meeting: make(chan struct{}, 1), met: map[string]*jetstream.ConsumerInfo{}}
	s.ledger = newLedger(s.lookSoon)
	s.metrics = newMetrics(o.Metrics, s.ledger, func() bool { return s.ledger.ready() && s.unmet.Load() == 0 })
	s.ledger.metrics = s.metrics
	return s
}

// start starts the goroutines that run until Close, unless the first check fails.
func (s *Source) start(ctx context.Context, wait time.Duration) error {
	var err error
	if s.js, err = jetstream.New(s.conn); err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	if err = s.ledger.attach(s.conn); err != nil {
		return fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	if err = s.awaitConnection(ctx, wait); err == nil {
		first, cancel := context.WithTimeout(ctx, cmp.Or(s.o.wait, firstLook))
		defer cancel()
		if err = s.look(first); err == nil {
			err = s.meet(first)
		}
	}
	var refused *RefusedError
	if errors.As(err, &refused) {
		return err
	}
	if err != nil {
		s.o.Log.Warn().Err(err).Msg("no stream yet; trying until there is one, and records over HTTP are taken")
	}
	s.parts.Go(func() { s.ledger.run(s.closing) })
	s.parts.Go(func() { s.keepLooking(s.closing) })
	s.parts.Go(func() { s.keepMeeting(s.closing) })
	s.parts.Go(func() { s.keepAlive(s.closing) })
	return nil
}

func (s *Source) connect() (*nats.Conn, error) {
	problems := s.o.Log.Sample(&zerolog.BurstSampler{Burst: 1, Period: 10 * time.Second})
	options := []nats.Option{
		nats.Name("blobtail ingest"),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(time.Second),
		nats.IgnoreAuthErrorAbort(), // credentials may be fixed while HTTP goes on
		nats.ReconnectBufSize(-1),   // senders must know that nothing was sent
		nats.ConnectHandler(func(*nats.Conn) { s.lookSoon() }),
		nats.ReconnectHandler(func(c *nats.Conn) {
			s.o.Log.Info().Str("server", c.ConnectedUrlRedacted()).Msg("connected to NATS again")
			s.lookSoon()
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				s.o.Log.Warn().Err(err).Msg("lost the connection to NATS")
			}
			s.doubt()
		}),
		nats.ReconnectErrHandler(func(c *nats.Conn, err error) {
			s.refused.Store(&err)
			problems.Warn().Err(unread(err)).Str("servers", hosts(c.Servers())).Msg("cannot connect to NATS; " + remedy(err))
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			problems.Warn().Err(err).Msg("NATS reports an error")
		}),
	}
	if s.o.Credentials != "" {
		options = append(options, nats.UserCredentials(s.o.Credentials))
	}
	if s.o.CA != "" {
		options = append(options, nats.RootCAs(s.o.CA))
	}
	if s.o.Cert != "" {
		options = append(options, nats.ClientCert(s.o.Cert, s.o.Key))
	}
	conn, err := nats.Connect(s.o.URL, options...)
	return conn, unread(err)
}

// unread adds the fix to an error of reading a file of credentials or certificates.
func unread(err error) error {
	return fsys.WhyUnread(err, "correct nats.credentials, nats.ca, nats.cert or nats.key")
}

// remedy is the advice to an operator if no connection can be made.
func remedy(err error) string {
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAccountAuthExpired):
		return "correct the user and password, or the token, of --nats (nats.url), or the file of nats.credentials"
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, syscall.ECONNREFUSED):
		return "no server answers there: start it, or correct --nats (nats.url)"
	}
	return "trying again; --nats (nats.url) has the servers, and nats.ca, nats.cert and nats.key are for TLS"
}

// hosts are servers without the users and passwords that their URLs may have.
func hosts(servers []string) string {
	known := make([]string, 0, len(servers))
	for _, server := range servers {
		if u, err := url.Parse(server); err == nil {
			known = append(known, u.Host)
		}
	}
	return strings.Join(known, ",")
}

// awaitConnection waits until there is a connection, but not for long.
func (s *Source) awaitConnection(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	status := s.conn.StatusChanged(nats.CONNECTED)
	defer s.conn.RemoveStatusListener(status)
	if s.conn.IsConnected() {
		return nil
	}
	select {
	case <-status:
		return nil
	case <-ctx.Done():
		reason := s.conn.LastError()
		if err := s.refused.Load(); err != nil {
			reason = *err
		}
		if reason == nil {
			reason = errors.New("no answer")
		}
		return fmt.Errorf("no connection to NATS at %s: %w; %s", hosts(s.conn.Servers()), reason, remedy(reason))
	}
}

// Close sends the waiting acknowledgements, until ctx ends, and closes the
// connection. Run must have returned, and no other method may be called any more.
func (s *Source) Close(ctx context.Context) {
	s.ledger.drain(ctx)
	s.end()
	s.parts.Wait()
	s.conn.Close()
}

// Crowded reports whether so many messages are not acknowledged that the server will soon deliver
// no more.
func (s *Source) Crowded() bool { return s.crowd.Load() >= crowdedAt }

// Found reports a message that a start found in the log and will store.
func (s *Source) Found(reply string) { s.ledger.found(reply) }

// Stored reports a message with all its records in blobs.
func (s *Source) Stored(reply string) { s.ledger.stored(reply) }

// Dropped reports a message that will not be stored: the server should deliver it
// again, unless it has done so.
func (s *Source) Dropped(reply string) {
	rest := time.Duration(0) // at the end another ingester may have it at once
	if s.pulling.Load() {
		rest = dropRest
	}
	s.ledger.dropped(reply, rest)
}
