package natssource

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Check connects and looks at the stream and the consumer, as [Open] does, but changes
// nothing and starts nothing. Its errors include the fix.
func Check(ctx context.Context, o Options) error {
	s := &Source{o: o, check: make(chan struct{}, 1)}
	s.ledger = newLedger(s.lookSoon)
	s.metrics = newMetrics(nil, s.ledger)
	s.ledger.metrics = s.metrics
	conn, err := s.connect()
	if err != nil {
		return fmt.Errorf("connect to NATS: %w; nats.url (--nats) names the server, nats.credentials the login", err)
	}
	defer conn.Close()
	s.conn = conn
	if err := s.awaitConnection(ctx, cmp.Or(o.wait, firstConnection)); err != nil {
		return err
	}
	if s.js, err = jetstream.New(conn); err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.wait, lookLimit))
	defer cancel()
	return s.fit(ctx)
}

// fit reports whether the stream and an existing consumer can be used as they are.
func (s *Source) fit(ctx context.Context) error {
	stream, err := s.js.Stream(ctx, s.o.Stream)
	if err != nil {
		return s.unfound(err)
	}
	info := stream.CachedInfo()
	if err := unfit(info); err != nil {
		return err
	}
	if err := loses(info); err != nil && !s.o.AllowLossy {
		return err
	}
	consumer, err := s.js.Consumer(ctx, s.o.Stream, s.o.Consumer)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		return nil // a start makes it
	case errors.Is(err, jetstream.ErrNotPullConsumer):
		return refuseConsumer(s.o.Stream, s.o.Consumer, "pushes messages")
	case err != nil:
		return fmt.Errorf("consumer %s of stream %s: %w", s.o.Consumer, s.o.Stream, err)
	}
	return unfitConsumer(info, consumer.CachedInfo().Config)
}
