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
	o.Metrics = nil
	s := newSource(o)
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
	queues, err := s.queues(info)
	if err != nil {
		return err
	}
	for _, q := range queues {
		if err := s.fits(ctx, info, q); err != nil {
			return err
		}
	}
	return nil
}

// fits reports whether a start could take the messages of a queue.
func (s *Source) fits(ctx context.Context, stream *jetstream.StreamInfo, q queue) error {
	consumer, err := s.js.Consumer(ctx, s.o.Stream, q.consumer)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound): // a start makes it
		if other := s.inTheWay(ctx, q); other != nil && stream.Config.Retention == jetstream.WorkQueuePolicy {
			return s.refuseBeside(q, other)
		}
		return nil
	case errors.Is(err, jetstream.ErrNotPullConsumer):
		return refuseConsumer(s.o.Stream, q.consumer, "pushes messages")
	case err != nil:
		return fmt.Errorf("consumer %s of stream %s: %w", q.consumer, s.o.Stream, err)
	}
	have := consumer.CachedInfo().Config
	if err := q.unfit(stream, have); err != nil || !q.apart {
		return err
	}
	_, err = s.narrow(stream, have)
	return err
}
