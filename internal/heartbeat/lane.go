package heartbeat

import (
	"cmp"
	"slices"
)

// resolve compares the own lane with the rows of peers, and gives way if two have the
// same one. It returns whether the own row has to change, and whether another ingester
// has our lane and ought to move on. With yield we move on.
//
// The ingester that started later moves on, because the first may not list the rows
// again for a while. At the same start time it is the one with the greater id. Blobs
// are right even if lanes are not: two on one lane meet at names and one steps aside.
func (a *Announcer) resolve(peers []Ingester, yield bool) (changed, contested bool) {
	now, started, id, lane := a.o.Now(), a.started(), a.ID(), a.Lane()
	var taken [Lanes]bool
	rival := ""
	for _, p := range peers {
		if p.ID == id || !p.Live(now) || p.Lane < 0 || p.Lane >= Lanes {
			continue
		}
		taken[p.Lane] = true
		switch {
		case p.Lane != lane:
		case !a.found || yield || cmp.Or(started.Compare(p.Started), cmp.Compare(id, p.ID)) > 0:
			rival = p.ID
		default:
			contested = a.o.Auto
		}
	}
	first := !a.found
	a.found = true
	if !a.o.Auto {
		if rival != "" && rival != a.rival {
			a.o.Log.Warn().Int("lane", lane).Str("other", rival).Msg("another ingester has this lane too; it costs requests, no data: see ingest.lane")
		}
		a.rival = rival
		return false, false
	}
	// If all lanes are taken there are conflicts.
	if free := slices.Index(taken[:], false); rival != "" && free >= 0 {
		changed, lane = true, free
	}
	if changed || first {
		a.mu.Lock()
		a.lane = lane
		a.mu.Unlock()
		a.o.Moved(lane)
		a.o.Log.Info().Int("lane", lane).Msg("lane taken")
	}
	return changed, contested && rival == ""
}
