package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"blobtail/catalog"
	"blobtail/storage"
)

// A store without a clock of its own has the times of storing of its blobs, all by the clocks
// of its host. If that clock was set ahead, these times have a gap that is at least as long.
// A gap says nothing about the reason: a system that was switched off leaves one too. But
// without a gap the clock has not jumped.
//
// So a run looks for gaps since the last run that trusted the clock. Such a run leaves an
// object _clock/<yyyymmddThhmmssZ>, made by the conditional create, and deletes the others.
const (
	clockPrefix = "_clock/"
	clockTime   = "20060102T150405Z"
)

// A gap is suspicious if it is longer than half of the shortest age in force, within these
// bounds. The first is a day, and some hours for a scheduler that is late; the other is a long
// weekend.
const (
	minPause = 30 * time.Hour
	maxPause = 5 * 24 * time.Hour
)

// pauseFor is the longest gap that is not suspicious if logs expire at an age.
func pauseFor(age time.Duration) time.Duration { return min(max(age/2, minPause), maxPause) }

// pause is a span in which nothing was stored and no run trusted the clock.
type pause struct{ from, to time.Time }

func (p pause) length() time.Duration { return p.to.Sub(p.from) }

// clockState is a run's knowledge of the host's clock.
type clockState struct {
	// unknown says that the clock is to be judged: the store has none, and no person gave the
	// time.
	unknown bool
	marks   []storage.Blob // of the runs that trusted it
	doubt   pause          // the longest suspicious gap; zero: there is none
	// behind says that something was stored at a time to come: by this clock, which is behind
	// then, or by a wrong one before.
	behind bool
}

// judgeClock looks for a suspicious gap.
func (j *Job) judgeClock(ctx context.Context, p *Plan) error {
	if _, clock := j.blobs.(storage.Clock); clock || !j.o.At.IsZero() && !j.o.AtByClock {
		return nil
	}
	c := &p.clock
	c.unknown = true
	since, err := j.trusted(ctx, p)
	if err != nil {
		return err
	}
	most := maxPause
	for i := range p.services {
		if s := &p.services[i]; s.expires {
			most = min(most, pauseFor(j.o.Policy.Age(s.name)))
		}
	}
	if !since.IsZero() && p.now.Sub(since) <= most {
		return nil
	}
	times, err := j.stored(ctx, p, since)
	if err != nil {
		return err
	}
	times = append(times, p.now)
	if !since.IsZero() {
		times = append(times, since)
	}
	slices.SortFunc(times, time.Time.Compare)
	for i := 1; i < len(times); i++ {
		if gap := (pause{times[i-1], times[i]}); gap.length() > max(most, c.doubt.length()) {
			c.doubt = gap
		}
	}
	return nil
}

// trusted returns the time of the last run that trusted the clock; zero if there is none. The
// name of its mark tells the time, and outlives a copy of the store, which a wrong clock may have
// dated. The object may be older than its name says. So the earlier of the two counts. A time to
// come does not.
func (j *Job) trusted(ctx context.Context, p *Plan) (last time.Time, err error) {
	c, limit := &p.clock, p.now.Add(maxSkew)
	for b, err := range j.blobs.List(ctx, clockPrefix, "") {
		if err != nil {
			return last, fmt.Errorf("list the times of earlier runs: %w", err)
		}
		at, err := time.Parse(clockTime, strings.TrimPrefix(b.Key, clockPrefix))
		if err != nil {
			continue
		}
		c.marks = append(c.marks, b)
		c.behind = c.behind || at.After(limit) || b.Created.After(limit)
		if !at.After(limit) {
			last = later(last, earlier(at, b.Created))
		}
	}
	for i := range p.services {
		s := &p.services[i]
		if !s.expires || s.refused != 0 {
			continue
		}
		// A run that raises a horizon trusts the clock too, and its mark may be gone. By its age the
		// day tells the time of that run, unless the ages have changed since.
		for _, m := range s.marks {
			at := earlier(m.Blob.Created, (m.Day + 1).Start().Add(j.o.Policy.Age(s.name)))
			c.behind = c.behind || at.After(limit)
			if p.recorded.hash == p.policy && !m.Single && !at.After(limit) {
				last = later(last, at)
			}
		}
	}
	return last, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// stored returns the times since then at which blobs were stored, up to now. A blob of any day
// counts, and so does one that is hidden. One with an unknown time proves nothing.
func (j *Job) stored(ctx context.Context, p *Plan, since time.Time) (times []time.Time, err error) {
	var mu sync.Mutex
	err = each(len(p.services), func(i int) error {
		s := &p.services[i]
		if !s.stored {
			return nil
		}
		var own []time.Time
		behind := false
		for e, err := range catalog.Blobs(ctx, j.blobs, s.name, catalog.Range{}) {
			switch {
			case err != nil:
				return err
			case !e.Blob() || e.Created.IsZero() || !e.Created.After(since):
			case e.Created.After(p.now.Add(maxSkew)):
				behind = true
			default:
				own = append(own, e.Created)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		times = append(times, own...)
		p.clock.behind = p.clock.behind || behind
		return nil
	})
	return times, err
}

// why asks for the clock, if it is in doubt.
func (c *clockState) why(now time.Time) string {
	if c.doubt == (pause{}) {
		return ""
	}
	return fmt.Sprintf("nothing was stored from %s to %s, as if all had been switched off or the clock had been set ahead: is this host's clock right? It says %s",
		c.doubt.from.UTC().Format(time.DateOnly), c.doubt.to.UTC().Format(time.DateOnly), now.UTC().Format(time.DateOnly))
}

// trustClock leaves the mark of a run that trusts the clock, and deletes the others. A run with a
// clock that may be behind hides days all the same. It leaves no mark until a person confirms the
// clock.
func (j *Job) trustClock(ctx context.Context, p *Plan, confirmed bool) error {
	if !p.clock.unknown || p.clock.behind && !confirmed {
		return nil
	}
	key := clockPrefix + p.now.UTC().Format(clockTime)
	err := j.blobs.Create(ctx, key, nil, storage.Attrs{})
	if err != nil && !errors.Is(err, storage.ErrExist) {
		return fmt.Errorf("leave the time of this run: %w", err)
	}
	gone := slices.DeleteFunc(slices.Clone(p.clock.marks), func(b storage.Blob) bool { return b.Key == key })
	if len(gone) == 0 {
		return nil
	}
	return j.blobs.Delete(ctx, gone...)
}
