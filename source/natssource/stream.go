package natssource

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// lookEvery is the interval of checks of the stream when nothing seems wrong.
	lookEvery = 10 * time.Second
	// lookAgain is the interval after a failed check.
	lookAgain = time.Second
	// lookLimit is the longest duration of a check.
	lookLimit = 5 * time.Second
	// subjects are the subjects of a stream that are ingested.
	subjects = "logs.>"
)

// lookSoon requests a check of the stream.
func (s *Source) lookSoon() { signal(s.check) }

// doubt stops everything that depends on knowing the current stream, until the next
// check.
func (s *Source) doubt() {
	s.ledger.shut()
	s.lookSoon()
}

// keepLooking checks the stream on request, and at intervals. It logs a bad result at
// once when it is new, each minute while it lasts, and when it is over.
func (s *Source) keepLooking(ctx context.Context) {
	wrong, logged := "", time.Time{}
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.check:
		case <-timer.C:
		}
		if s.conn.IsConnected() {
			limited, cancel := context.WithTimeout(ctx, lookLimit)
			err := s.look(limited)
			cancel()
			switch {
			case ctx.Err() != nil:
				return
			case err == nil && wrong != "":
				s.o.Log.Info().Msg("the stream is in order")
				wrong = ""
			case err != nil && (err.Error() != wrong || time.Since(logged) >= time.Minute):
				s.o.Log.Error().Err(err).Msg("the stream is not in order")
				wrong, logged = err.Error(), time.Now()
			}
		}
		every := lookEvery
		if !s.ledger.ready() {
			every = lookAgain
		}
		timer.Reset(every)
	}
}

// look finds the stream and the consumer, and opens the gate when all is well. An
// open gate stays open after any change of the stream's settings: to stop pulling would
// only lose more.
func (s *Source) look(ctx context.Context) error {
	stream, err := s.js.Stream(ctx, s.o.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s.ledger.shut()
	}
	if err != nil {
		return s.unfound(err)
	}
	info := stream.CachedInfo()
	if s.ledger.current(info.Created) {
		s.o.Log.Warn().Str("stream", s.o.Stream).Time("created", info.Created).
			Msg("the stream was made anew; what was delivered of the old one is not acknowledged any more")
	}
	if err := unfit(info); err != nil {
		return err
	}
	lossy := loses(info)
	if !s.ledger.ready() {
		if lossy != nil && !s.o.AllowLossy {
			return lossy
		}
		if lossy != nil {
			s.o.Log.Warn().Err(lossy).Msg("taking from a stream that loses messages, as is allowed")
		}
		if info.Config.Storage == jetstream.MemoryStorage {
			s.o.Log.Warn().Str("stream", s.o.Stream).Msg("the stream is kept in memory: what is not stored yet is lost when its servers end")
		}
	}
	consumer, err := s.ensureConsumer(ctx, info)
	if err != nil {
		return err
	}
	s.metrics.streamPending.Set(float64(consumer.NumPending))
	s.metrics.streamUnacknowledged.Set(float64(consumer.NumAckPending))
	s.ledger.open()
	if s.o.AllowLossy {
		return nil
	}
	return lossy
}

// ensureConsumer creates the consumer, or fixes its settings as far as the server
// allows. All ingesters do the same.
func (s *Source) ensureConsumer(ctx context.Context, stream *jetstream.StreamInfo) (*jetstream.ConsumerInfo, error) {
	consumer, err := s.js.Consumer(ctx, s.o.Stream, s.o.Consumer)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		consumer, err = s.js.CreateConsumer(ctx, s.o.Stream, s.wanted(jetstream.ConsumerConfig{
			Durable:       s.o.Consumer,
			Description:   "blobtail: shared by all ingesters",
			DeliverPolicy: jetstream.DeliverAllPolicy,
			AckPolicy:     jetstream.AckExplicitPolicy,
			FilterSubject: filter(stream.Config.Subjects),
		}))
	case errors.Is(err, jetstream.ErrNotPullConsumer):
		return nil, refuseConsumer(s.o.Stream, s.o.Consumer, "pushes messages")
	case err == nil:
		have := consumer.CachedInfo().Config
		if err := unfitConsumer(stream, have); err != nil {
			return nil, err
		}
		if want := s.wanted(have); !reflect.DeepEqual(have, want) {
			s.o.Log.Warn().Str("consumer", s.o.Consumer).Msg("the consumer has other settings than it needs; they are changed")
			consumer, err = s.js.UpdateConsumer(ctx, s.o.Stream, want)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("consumer %s of stream %s: %w", s.o.Consumer, s.o.Stream, err)
	}
	return consumer.CachedInfo(), nil
}

// wanted is c with settings that neither lose messages nor hold them up.
func (s *Source) wanted(c jetstream.ConsumerConfig) jetstream.ConsumerConfig {
	c.AckWait = s.o.AckWait
	c.BackOff = c.BackOff[:0:0]
	c.MaxDeliver = -1
	c.MaxAckPending = max(c.MaxAckPending, maxAckPending)
	c.MaxRequestBatch, c.MaxRequestExpires, c.MaxRequestMaxBytes = 0, 0, 0
	c.InactiveThreshold = 0
	c.HeadersOnly = false
	return c
}

// filter is the filter of the consumer for a stream with these subjects, "" for all.
func filter(of []string) string {
	if slices.ContainsFunc(of, func(s string) bool { return !strings.HasPrefix(s, "logs.") }) {
		return subjects
	}
	return ""
}

// keepAlive sends signs of life for messages that were delivered long ago and will be
// stored. Most messages are stored long before.
func (s *Source) keepAlive(ctx context.Context) {
	const share = maxAckPending / 10 // at a time, so that it takes a quarter of AckWait for all
	ticks := time.NewTicker(max(s.o.AckWait/40, time.Millisecond))
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			if !s.ledger.ready() {
				continue
			}
			for _, reply := range s.ledger.quiet(now.Add(-s.o.AckWait/2), now, share) {
				_ = s.conn.Publish(reply, []byte("+WPI")) // the next is due soon enough
			}
		}
	}
}
