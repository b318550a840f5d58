package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"

	"blobtail/buffer"
	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/record/meaning"
	"blobtail/source/natssource"
)

// closeWait bounds the last acknowledgements. A message without one is delivered again
// and recognized as a copy.
const closeWait = time.Second

// A stream is the JetStream source, and the means to end it. It is nil if none is
// configured, and its methods do nothing then.
type stream struct {
	source  *natssource.Source
	pulling context.Context
	end     context.CancelFunc // of pulling
	ended   chan struct{}      // closed when no more messages go to the buffer
}

func openStream(ctx context.Context, c config.NATS, fields *meaning.Mapping, allow func(string) string, log zerolog.Logger, reg *count.Registry) (*stream, error) {
	if c.URL == "" {
		return nil, nil
	}
	o, err := natsOptions(c)
	if err != nil {
		return nil, err
	}
	o.Fields, o.Allow, o.Log, o.Metrics = fields, allow, log, reg
	source, err := natssource.Open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("take from NATS: %w", err)
	}
	s := &stream{source: source, ended: make(chan struct{})}
	s.pulling, s.end = context.WithCancel(context.WithoutCancel(ctx))
	return s, nil
}

func natsOptions(c config.NATS) (o natssource.Options, err error) {
	numbers, ingesters := c.Taken()
	share := natssource.Share{Ingesters: ingesters}
	if ingesters > 0 {
		host, err := os.Hostname()
		ordinal, ok := config.Ordinal(host)
		if !ok {
			return o, errors.Join(err, fmt.Errorf("nats.partitions: auto/%d: the name of this host, %q, does not end in a number, such as ingest-3; "+
				"give the numbers of its partitions, or another name", ingesters, host))
		}
		share.Ordinal = ordinal
	}
	return natssource.Options{
		URL:         c.URL,
		Stream:      c.Stream,
		Consumer:    c.Consumer,
		Partitions:  numbers,
		Share:       share,
		AckWait:     time.Duration(c.AckWait),
		AllowLossy:  c.AllowLossy,
		Credentials: c.Credentials,
		CA:          c.CA,
		Cert:        c.Cert,
		Key:         c.Key,
	}, nil
}

// messages are told of the outcome of each message; nil if there are none.
func (s *stream) messages() buffer.Messages {
	if s == nil {
		return nil
	}
	return s.source
}

// crowded reports whether the stream soon delivers no more; nil if there is none.
func (s *stream) crowded() func() bool {
	if s == nil {
		return nil
	}
	return s.source.Crowded
}

// run accepts messages until stop is called or ctx ends.
func (s *stream) run(ctx context.Context, accept accepter) error {
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

// close sends the last acknowledgements, and closes the connection.
func (s *stream) close() {
	if s == nil {
		return
	}
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	s.source.Close(ctx)
}
