package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobwriter"
	"blobtail/buffer"
	"blobtail/catalog/horizon"
	"blobtail/internal/count"
	"blobtail/internal/openstore"
	"blobtail/internal/storeid/premises"
	"blobtail/reading/unflushed/live"
)

// sink joins the buffer to the writer and to the dropped days. Buffer and writer do not
// know each other.
type sink struct {
	*blobwriter.Writer
	watch     *horizon.Watch
	premises  *premises.Premises
	explained func(error) error // adds a remedy to an error of the store
	newest    *live.Newest      // knows each blob before the buffer forgets its records
}

func newSink(store *openstore.Store, o blobwriter.Options, premises *premises.Premises, log zerolog.Logger, reg *count.Registry) sink {
	watch := horizon.NewWatch(store.Blobs, horizon.WatchOptions{Log: log})
	c := counters{reg}
	c.results("blobtail_horizon_readings_total", "Readings of the dropped days, by result. While they fail nothing is stored.", "worked", watch.Readings)
	return sink{blobwriter.New(watch.Guard(store.Blobs), o, reg), watch, premises, store.Explained, &live.Newest{}}
}

// expired reports whether the day of a period has been dropped.
func (s sink) expired(service string, period time.Time) bool {
	return s.watch.Hides(service, horizon.DayOf(period))
}

// Write implements [buffer.Sink]. It does not even read a batch that is known to have
// expired, because horizons only rise; the writer's store checks the rest. Nothing goes
// to a store before the store is known to be the log's.
func (s sink) Write(ctx context.Context, b *buffer.Batch) error {
	if err := s.premises.Storing(); err != nil {
		return s.explained(err)
	}
	if s.expired(b.Service(), b.Period()) {
		return fmt.Errorf("%w: %s of %s", buffer.ErrExpired, horizon.DayOf(b.Period()), b.Service())
	}
	err := s.Writer.Write(ctx, b)
	if ctx.Err() == nil {
		s.premises.Stored(err)
	}
	switch {
	case err == nil:
		s.newest.Note(b.Service(), blobwriter.Key(b), b.ID())
	case errors.Is(err, horizon.ErrExpired):
		return fmt.Errorf("%w: %w", buffer.ErrExpired, err)
	case errors.Is(err, blobwriter.ErrIDReused):
		return fmt.Errorf("%w: %w", buffer.ErrAside, err)
	}
	return s.explained(err)
}
