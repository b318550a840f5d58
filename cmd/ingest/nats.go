package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"blobtail/buffer"
	"blobtail/config"
	"blobtail/source/natssource"
)

// closeWait is how long the last acknowledgements may take. What is not
// acknowledged is delivered, stored and found to be a copy another time.
const closeWait = time.Second

// A stream is the JetStream source and what it takes to end it. Where none is
// configured it is nil, and its methods do nothing.
type stream struct {
	source  *natssource.Source
	pulling context.Context
	end     context.CancelFunc // of pulling
	ended   chan struct{}      // closed when nothing more is handed to the buffer
}

func openStream(ctx context.Context, c config.NATS, log zerolog.Logger, reg prometheus.Registerer) (*stream, error) {
	if c.URL == "" {
		return nil, nil
	}
	source, err := natssource.Open(ctx, natssource.Options{
		URL:         c.URL,
		Stream:      c.Stream,
		Consumer:    c.Consumer,
		AckWait:     time.Duration(c.AckWait),
		AllowLossy:  c.AllowLossy,
		Credentials: c.Credentials,
		CA:          c.CA,
		Cert:        c.Cert,
		Key:         c.Key,
		Log:         log,
		Metrics:     reg,
	})
	if err != nil {
		return nil, fmt.Errorf("take from NATS: %w", err)
	}
	s := &stream{source: source, ended: make(chan struct{})}
	s.pulling, s.end = context.WithCancel(context.WithoutCancel(ctx))
	return s, nil
}

// tell lets the buffer tell the stream what becomes of messages.
func (s *stream) tell(o buffer.Options) buffer.Options {
	if s != nil {
		o.Messages = s.source
	}
	return o
}

// run takes messages until stop is called or ctx ends.
func (s *stream) run(ctx context.Context, accept natssource.Accepter) error {
	if s == nil {
		return nil
	}
	defer close(s.ended)
	defer context.AfterFunc(ctx, s.end)()
	return s.source.Run(s.pulling, accept)
}

// stop ends run, and waits until it has returned, or ctx ends.
func (s *stream) stop(ctx context.Context) {
	if s == nil {
		return
	}
	s.end()
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
}

// close sends what is to be acknowledged, and closes the connection.
func (s *stream) close() {
	if s == nil {
		return
	}
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	s.source.Close(ctx)
}
