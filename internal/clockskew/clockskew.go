// Package clockskew compares the clock of this host with the store's clock. Ingesters
// and readers share the store's clock.
//
// An ingester with a wrong clock loses nothing, since identity and order do not
// use it. But it dates records without a time, and refuses good ones as too far ahead,
// and its files say that they are from another day. So it is better that it accepts no records
// until an operator has fixed the clock.
//
// The package sets no clock, and it does not wait for a store: one that does not answer
// changes nothing. It is separate from lease because readiness depends on it, and
// nothing may depend on heartbeats.
package clockskew

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"blobtail/storage"
)

const (
	limit   = 5 * time.Minute // skew beyond which the clock is not believed
	every   = time.Minute     // pause between two questions; a sixth while the clock is wrong
	timeout = 5 * time.Second // of one question
)

// Checker knows how far the host's clock is from the store's. Its methods may be
// called by any number of goroutines.
type Checker struct {
	clock storage.Clock
	log   zerolog.Logger
	first chan struct{}

	skew   atomic.Int64 // host less store, in ns; 0 until the store has answered
	failed bool         // the last question was not answered; belongs to Run
}

// New returns a checker. It starts nothing and asks the store nothing. A nil
// clock, that of a store on this host, is never wrong.
func New(clock storage.Clock, log zerolog.Logger) *Checker {
	return &Checker{clock: clock, log: log, first: make(chan struct{})}
}

// First is closed after the first question of Run, even if that fails.
func (c *Checker) First() <-chan struct{} { return c.first }

// Run asks until ctx ends. It is called once.
func (c *Checker) Run(ctx context.Context) {
	if c.clock != nil {
		c.ask(ctx)
	}
	close(c.first)
	for c.clock != nil {
		pause := every
		if c.Err() != nil {
			pause /= 6 // an operator is fixing it, and the ingester refuses records meanwhile
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		c.ask(ctx)
	}
}

// ask compares the clocks once. The store read its clock between the question and the
// answer. The middle is wrong by half of that time at most.
func (c *Checker) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	begun := time.Now()
	there, err := c.clock.Now(ctx)
	took := time.Since(begun)
	failed, was := c.failed, c.Err()
	if c.failed = err != nil; err == nil {
		c.skew.Store(int64(begun.Add(took / 2).Sub(there).Round(time.Millisecond)))
	}
	switch is := c.Err(); {
	case err != nil && !failed && ctx.Err() != context.Canceled:
		c.log.Warn().Err(err).Msg("the store does not tell the time; what was known of the clock stands")
	case is != nil && was == nil:
		c.log.Error().Err(is).Msg("not ready")
	case is == nil && was != nil:
		c.log.Info().Float64("skew_seconds", c.Skew().Seconds()).Msg("the clock is right again")
	}
}

// Skew is how far the host's clock is ahead of the store's, by the last answer.
func (c *Checker) Skew() time.Duration { return time.Duration(c.skew.Load()) }

// Err says why the host's clock cannot be believed. It is nil when it can, and as long
// as nothing is known.
func (c *Checker) Err() error {
	if skew := c.Skew(); skew.Abs() > limit {
		return TooFar(skew, limit)
	}
	return nil
}

// Now is the time by the store's clock, as far as it is known.
func (c *Checker) Now() time.Time { return time.Now().Add(-c.Skew()) }

// TooFar is the error of clocks that are too far apart, with the remedy. skew is the
// host's clock less the store's.
func TooFar(skew, limit time.Duration) error {
	where := "ahead of"
	if skew < 0 {
		where = "behind"
	}
	return fmt.Errorf("the clock of this host is %v %s the store's, and %v is allowed: set it (NTP)",
		skew.Abs().Round(time.Second), where, limit)
}
