package buffer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// perService is how many batches of one service are given to the sink at once,
// so that a service whose uploads hang leaves room for the others.
const perService = 4

// services keeps apart those that can be stored and those that cannot. Of a
// service in trouble one batch at a time is tried, so that a long outage costs
// little and a service that the store refuses holds up no other.
type services struct {
	taken   map[string]int // batches that the sink has
	trouble map[string]*trouble
}

// trouble is a service whose last attempts failed.
type trouble struct {
	failures  int // in a row, of those tried one at a time
	notBefore time.Time
}

func newServices() services {
	return services{taken: map[string]int{}, trouble: map[string]*trouble{}}
}

// take reports whether a batch of a service may be tried now, and notes it.
func (s *services) take(service string, now time.Time) bool {
	n := s.taken[service]
	if t := s.trouble[service]; t != nil && (n > 0 || now.Before(t.notBefore)) || n >= perService {
		return false
	}
	s.taken[service] = n + 1
	return true
}

func (s *services) giveBack(service string) {
	if s.taken[service]--; s.taken[service] == 0 {
		delete(s.taken, service)
	}
}

// failed notes a failed attempt, after giveBack. Those that were under way
// together count as one.
func (s *services) failed(service string, now time.Time) {
	t := s.trouble[service]
	if t == nil {
		t = &trouble{}
		s.trouble[service] = t
	}
	if s.taken[service] == 0 {
		t.failures++
		t.notBefore = now.Add(pause(t.failures))
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
	if errors.Is(err, ErrAside) {
		b.setAside(batch, err)
		return
	}
	now := time.Now()
	b.services.failed(batch.key.service, now)
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
