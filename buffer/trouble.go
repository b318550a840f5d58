package buffer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// perService is how many batches of one service are given to the sink at once,
// and at most half of what is given at all, so that a service whose uploads hang
// leaves room for the others.
const perService = 4

// A service is in trouble after inTrouble failures in a row: fewer are the daily
// weather of a network. From then on one batch at a time is tried, or one more
// each probeWait while those before hang.
const (
	inTrouble = 3
	probeWait = 5 * time.Second
)

// services keeps apart those that can be stored and those that cannot, so that a
// long outage costs little and a service that the store refuses, or whose uploads
// hang, holds up no other.
type services struct {
	most    int            // of one, at once
	taken   map[string]int // batches that the sink has
	trouble map[string]*trouble
}

// trouble is a service whose last attempts failed.
type trouble struct {
	failures  int // in a row
	probed    time.Time
	notBefore time.Time
}

func newServices(workers int) services {
	return services{most: max(1, min(perService, workers/2)), taken: map[string]int{}, trouble: map[string]*trouble{}}
}

// take reports whether a batch of a service may be tried now, and notes it.
func (s *services) take(service string, now time.Time) bool {
	n := s.taken[service]
	if n >= s.most {
		return false
	}
	if s.inTrouble(service) {
		t := s.trouble[service]
		if now.Before(t.notBefore) || (n > 0 && now.Sub(t.probed) < probeWait) {
			return false
		}
		t.probed = now
	}
	s.taken[service] = n + 1
	return true
}

func (s *services) inTrouble(service string) bool {
	t := s.trouble[service]
	return t != nil && t.failures >= inTrouble
}

func (s *services) giveBack(service string) {
	if s.taken[service]--; s.taken[service] == 0 {
		delete(s.taken, service)
	}
}

// failed notes a failed attempt; one that hung counts for several.
func (s *services) failed(service string, hung bool, now time.Time) {
	t := s.trouble[service]
	if t == nil {
		t = &trouble{}
		s.trouble[service] = t
	}
	t.failures++
	if hung {
		t.failures = max(t.failures, inTrouble)
	}
	if t.failures >= inTrouble {
		t.notBefore = now.Add(pause(t.failures - inTrouble + 1))
	}
}

func (s *services) worked(service string) { delete(s.trouble, service) }

// hurry has every service tried at once.
func (s *services) hurry() {
	for _, t := range s.trouble {
		t.notBefore = time.Time{}
	}
}

// pause is how long to wait after so many failures in a row.
func pause(failures int) time.Duration {
	d := min(10*time.Second, 200*time.Millisecond<<min(failures-1, 16))
	return time.Duration(float64(d) * (0.5 + rand.Float64()))
}

// putBack schedules another attempt: the same batch under the same name, for
// ever, with a growing pause. b.mu is held.
func (b *Buffer) putBack(ctx context.Context, batch *Batch, err error) {
	if ctx.Err() != nil {
		return
	}
	b.m.failures.Inc()
	batch.attempts++
	if hopeless(err) {
		b.setAside(batch, err)
		return
	}
	now := time.Now()
	b.services.failed(batch.bin.Service, errors.Is(err, errHolds), now)
	wait := pause(batch.attempts)
	batch.notBefore = now.Add(wait)
	if batch.lastErr != err.Error() {
		batch.lastErr = err.Error()
		b.o.Log.Warn().Err(err).Str("service", batch.Service()).Time("period", batch.Period()).
			Dur("pause", wait).Msg("a batch is not stored yet; it stays in the log")
	}
}

// setAside gives up a batch that no repeat can store. Its runs keep their
// segments, for people to look at. b.mu is held.
func (b *Buffer) setAside(batch *Batch, err error) {
	batch.aside, batch.fate.err = true, err
	close(batch.fate.done)
	b.dropMessages(batch.messages)
	b.m.aside.Inc()
	b.o.Log.Error().Err(err).Str("service", batch.Service()).Time("period", batch.Period()).
		Msg("a batch is set aside; its segments are kept")
}
