package natssource

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"blobtail/storage/fanout"
)

const (
	// lookEvery is the interval of checks of the stream when nothing seems wrong.
	lookEvery = 10 * time.Second
	// lookAgain is the interval after a failed check.
	lookAgain = time.Second
	// lookLimit is the longest duration of a check.
	lookLimit = 5 * time.Second
	// lookAtOnce is how many consumers of partitions are looked at at once.
	lookAtOnce = 16
	// surveyEvery is the interval of looks for partitions that no ingester takes.
	surveyEvery = time.Minute
	// crowdedAt and watchedFrom are percents of maxAckPending: from the first on messages should
	// be stored soon, and from the second on the number is looked at each second.
	crowdedAt, watchedFrom = 75, 50
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

// keepLooking checks the stream on request, and at intervals.
func (s *Source) keepLooking(ctx context.Context) {
	t := trouble{log: s.o.Log}
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
			if ctx.Err() != nil {
				return
			}
			t.note(err)
		}
		every := lookEvery
		if !s.ledger.ready() {
			every = lookAgain
		}
		timer.Reset(every)
	}
}

// keepMeeting looks at the consumers on request, and at intervals. One without a leader takes as
// long as it may, and the checks of the stream, by which all acknowledgements go on, do not wait
// for that.
func (s *Source) keepMeeting(ctx context.Context) {
	t := trouble{log: s.o.Log}
	surveyed := time.Now()
	delivered := map[int]uint64{} // of the partitions of others
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.meeting:
		case <-timer.C:
		}
		every := min(lookEvery, cmp.Or(s.o.survey, surveyEvery))
		if !s.ledger.ready() {
			timer.Reset(lookAgain)
			continue
		}
		err := s.meet(ctx)
		if ctx.Err() != nil {
			return
		}
		t.note(err)
		if time.Since(surveyed) >= cmp.Or(s.o.survey, surveyEvery) {
			s.survey(ctx, delivered)
			surveyed = time.Now()
		}
		if err != nil || s.crowd.Load() >= watchedFrom {
			every = lookAgain
		}
		timer.Reset(every)
	}
}

// A trouble logs a bad result at once when it is new, each minute while it lasts, and when it is
// over.
type trouble struct {
	log    zerolog.Logger
	wrong  string
	logged time.Time
}

func (t *trouble) note(err error) {
	switch {
	case err == nil && t.wrong != "":
		t.log.Info().Msg("the stream is in order")
		t.wrong = ""
	case err != nil && (err.Error() != t.wrong || time.Since(t.logged) >= time.Minute):
		t.log.Error().Err(err).Msg("the stream is not in order")
		t.wrong, t.logged = err.Error(), time.Now()
	}
}

// look finds the stream, and opens the ledger when all is well. An
// open one stays open after any change of the stream's settings: to stop pulling would
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
	s.ledger.confirm()
	if err := unfit(info); err != nil {
		return err
	}
	lossy := loses(info)
	if !s.ledger.opened() {
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
	queues, err := s.queues(info)
	if err != nil {
		return err
	}
	s.stream.Store(info)
	if had := s.taken.Swap(&queues); had == nil || !slices.Equal(*had, queues) {
		s.o.Log.Info().Str("stream", s.o.Stream).Ints("partitions", numbersOf(queues)).Msg("taking messages")
		signal(s.more)
		signal(s.meeting)
	}
	s.ledger.open()
	if s.o.AllowLossy {
		return nil
	}
	return lossy
}

// meet looks at the consumers of the queues, each by itself, after a good look at the stream. Of
// one that does not answer the last known numbers count. The error is the first one.
func (s *Source) meet(ctx context.Context) error {
	info, queues := s.stream.Load(), s.queuesNow()
	consumers := make([]*jetstream.ConsumerInfo, len(queues))
	ensure := func(i int) (err error) {
		limited, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		consumers[i], err = s.ensureConsumer(limited, info, queues[i])
		return err
	}
	errs := []error{ensure(0)} // the shared one first: it may have to make room
	errs = append(errs, fanout.All(len(queues)-1, lookAtOnce, func(i int) error { return ensure(i + 1) })...)
	pending, unacknowledged, crowd, unmet := uint64(0), 0, 0, int64(0)
	for i, q := range queues {
		if consumers[i] != nil {
			s.met[q.consumer] = consumers[i]
		}
		if errs[i] != nil {
			unmet++
		}
		if c := s.met[q.consumer]; c != nil {
			pending += c.NumPending
			unacknowledged += c.NumAckPending
			crowd = max(crowd, 100*c.NumAckPending/max(1, c.Config.MaxAckPending))
		}
	}
	s.metrics.streamPending.Set(float64(pending))
	s.metrics.streamUnacknowledged.Set(float64(unacknowledged))
	s.crowd.Store(int64(crowd))
	s.unmet.Store(unmet)
	return cmp.Or(errs...)
}

// ensureConsumer creates the consumer of a queue, or fixes its settings as far as the server
// allows. All ingesters that take the queue do the same.
func (s *Source) ensureConsumer(ctx context.Context, stream *jetstream.StreamInfo, q queue) (*jetstream.ConsumerInfo, error) {
	consumer, err := s.js.Consumer(ctx, s.o.Stream, q.consumer)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		want := s.wanted(jetstream.ConsumerConfig{
			Durable:       q.consumer,
			Description:   "blobtail: shared by all ingesters that take its messages",
			DeliverPolicy: jetstream.DeliverAllPolicy,
			AckPolicy:     jetstream.AckExplicitPolicy,
		})
		setFilters(&want, q.filter, stream.Config.Subjects)
		consumer, err = s.js.CreateConsumer(ctx, s.o.Stream, want)
	case errors.Is(err, jetstream.ErrNotPullConsumer):
		return nil, refuseConsumer(s.o.Stream, q.consumer, "pushes messages")
	case err == nil:
		have := consumer.CachedInfo().Config
		if err := q.unfit(stream, have); err != nil {
			return nil, err
		}
		want := s.wanted(have)
		if q.apart {
			if want, err = s.narrow(stream, want); err != nil {
				return nil, err
			}
		}
		if !reflect.DeepEqual(have, want) {
			s.o.Log.Warn().Str("consumer", q.consumer).Msg("the consumer has other settings than it needs; they are changed")
			consumer, err = s.js.UpdateConsumer(ctx, s.o.Stream, want)
		}
	}
	if err != nil {
		return nil, s.overlapping(ctx, q, err)
	}
	return consumer.CachedInfo(), nil
}

// wanted is c with settings that neither lose messages nor hold them up.
func (s *Source) wanted(c jetstream.ConsumerConfig) jetstream.ConsumerConfig {
	c.AckWait = s.o.AckWait
	c.BackOff = c.BackOff[:0:0]
	c.MaxDeliver = -1
	c.MaxAckPending = max(c.MaxAckPending, cmp.Or(s.o.pending, maxAckPending))
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
