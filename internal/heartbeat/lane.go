package heartbeat

import (
	"cmp"
	"time"
)

// resolve compares the own lane with the rows of peers, and gives way if two have the
// same one. It returns whether the own row has to change, and whether another ingester
// has our lane and ought to move on. With yield we move on.
//
// The ingester that started later moves on, because the first may not list the rows
// again for a while. At the same start time it is the one with the greater id. Blobs
// are right even if lanes are not: two on one lane meet at names and one steps aside.
func (a *Announcer) resolve(rows []Ingester, yield bool) (changed, contested bool) {
	now := a.o.Now()
	a.mu.Lock()
	before := a.me
	a.mu.Unlock()
	after := before
	var others []Ingester
	for _, r := range rows {
		if r.ID != before.ID {
			others = append(others, r)
		}
	}
	after.Lane, contested = a.pick(now, others, yield)
	a.mu.Lock()
	a.me.Lane = after.Lane
	a.mu.Unlock()
	if after.Lane != before.Lane || !a.found && a.o.Auto {
		a.o.Moved(after.Lane)
	}
	a.found = true
	return after != before, contested
}

// settle logs and keeps the result of a beat.
func (a *Announcer) settle() {
	a.mu.Lock()
	me := a.me // a request that draws a new id may change it meanwhile
	a.mu.Unlock()
	if a.o.Auto && a.found && a.told != me.Lane {
		a.told = me.Lane
		a.o.Log.Info().Int("lane", a.told).Msg("lane taken")
	}
	if a.kept == me {
		return
	}
	a.kept = me
	if err := a.o.Keep(me); err != nil {
		a.o.Log.Warn().Err(err).Msg("the next start will not know its row and its lane")
	}
}

// pick is the lane to have next to those of peers. The lane in force is kept unless a
// live peer had it first.
func (a *Announcer) pick(now time.Time, others []Ingester, yield bool) (lane int, contested bool) {
	var taken [Lanes]bool
	lane = a.Lane()
	rival := ""
	for _, o := range others {
		if !o.Live(now) || o.Lane < 0 || o.Lane >= Lanes {
			continue
		}
		taken[o.Lane] = true
		switch {
		case o.Lane != lane:
		case !a.found || yield || a.after(o):
			rival = o.ID
		default:
			contested = true
		}
	}
	switch {
	case rival == "":
		a.rival = ""
		return lane, contested && a.o.Auto
	case !a.o.Auto:
		if a.rival != rival {
			a.rival = rival
			a.o.Log.Warn().Int("lane", lane).Str("other", rival).Msg("another ingester has this lane too; it costs requests, no data: see ingest.lane")
		}
		return lane, false
	}
	for n := range taken {
		if !taken[n] {
			return n, false
		}
	}
	return lane, false // all lanes are taken, so there are conflicts
}

// after reports whether this ingester started later than other.
func (a *Announcer) after(other Ingester) bool {
	c := cmp.Or(a.started().Compare(other.Started), cmp.Compare(a.ID(), other.ID))
	return c > 0
}
