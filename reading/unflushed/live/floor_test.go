package live_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
)

// A peer that does not answer is not missing if the range of the question ends at its
// floor. Otherwise the answer says up to when it is whole, if all that are missing have a
// floor in this store.
func TestPeersFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		floor := time.Unix(0, start).Add(-time.Hour).UTC()
		row := func(id string, at time.Time, change ...func(*lease.Ingester)) lease.Ingester {
			p := peer(lease.Ingester{ID: id, StoreID: storeID, Floor: at})
			for _, f := range change {
				f(&p)
			}
			return p
		}
		of := func(ids string) func(*lease.Ingester) {
			return func(p *lease.Ingester) { p.StoreID = ids }
		}
		effort := func(p *lease.Ingester) { p.BestEffort = true }
		lower := floor.Add(-time.Hour)
		for _, c := range []struct {
			name    string
			peers   []lease.Ingester
			to      time.Time
			missing int
			says    string
		}{
			{"at the floor", []lease.Ingester{row("bbbbbbbb", floor)}, floor, 0, ""},
			{"beyond it", []lease.Ingester{row("bbbbbbbb", floor)}, floor.Add(1), 1, "records before 2026-11-20T14:00:00Z are whole without it"},
			{"one of two", []lease.Ingester{row("bbbbbbbb", floor), row("cccccccc", lower)}, floor, 1, "records before 2026-11-20T13:00:00Z are whole without it"},
			{"the least", []lease.Ingester{row("bbbbbbbb", floor), row("cccccccc", lower)}, time.Time{}, 2, "records before 2026-11-20T13:00:00Z are whole without them"},
			{"no floor", []lease.Ingester{row("bbbbbbbb", floor), row("cccccccc", time.Time{})}, time.Time{}, 2, ""},
			{"another store", []lease.Ingester{row("bbbbbbbb", floor, of(strings.Repeat("9", 32)))}, floor, 1, ""},
			{"no store", []lease.Ingester{row("bbbbbbbb", floor, of(""))}, floor, 1, ""},
			{"best effort", []lease.Ingester{row("bbbbbbbb", floor, effort)}, floor, 1, ""},
			{"a loss", []lease.Ingester{row("bbbbbbbb", floor, func(p *lease.Ingester) { p.Lost.Until = floor })}, floor, 1, ""},
		} {
			n := network{}
			n.ingester(t, "aaaaaaaa", c.peers...)
			q := all("web")
			if !c.to.IsZero() {
				q.To = c.to.UnixNano()
			}
			answer, err := n.askFor(t, "aaaaaaaa", q)
			if err != nil {
				t.Fatal(err)
			}
			_, err = rest(answer)
			if c.missing == 0 {
				if err != io.EOF {
					t.Errorf("%s: %v", c.name, err)
				}
				continue
			}
			m := incomplete(t, err, c.missing, 0)
			if said := strings.Contains(m.Reason, "are whole"); said != (c.says != "") || !strings.HasSuffix(m.Reason, c.says) {
				t.Errorf("%s: %q", c.name, m.Reason)
			}
		}
	})
}

// A long reason leaves room for the end that says up to when the answer is whole.
func TestPeersFloorLongReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{}
		p := peer(lease.Ingester{ID: "bbbbbbbb", StoreID: storeID, Floor: time.Unix(0, start), Address: "http://" + strings.Repeat("ä", 900)})
		n.ingester(t, "aaaaaaaa", p)
		answer, err := n.ask(t, "aaaaaaaa")
		if err != nil {
			t.Fatal(err)
		}
		_, err = rest(answer)
		if m := incomplete(t, err, 1, 0); !strings.HasSuffix(m.Reason, "; records before 2026-11-20T15:00:00Z are whole without it") {
			t.Errorf("%q", m.Reason)
		}
	})
}

// A copy of the log has just taken the row of the asked ingester, which goes by another id
// since then. The copy is asked.
func TestPeerTakesOwnID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{}
		twin := peer(lease.Ingester{ID: "aaaaaaaa", StoreID: storeID})
		twin.Process = "01234567"
		own := peer(lease.Ingester{ID: "aaaaaaaa", StoreID: storeID})
		for _, c := range []struct {
			row    lease.Ingester
			misses bool
		}{{twin, true}, {own, false}} {
			n.serve(t, "aaaaaaaa", live.NewHandler(live.Options{Self: selfOf("aaaaaaaa"), Journal: &journal{}, HTTP: n.http(t), Peers: roll([]lease.Ingester{c.row}, nil)}))
			answer, err := n.ask(t, "aaaaaaaa")
			if err != nil {
				t.Fatal(err)
			}
			if _, err = rest(answer); (err != io.EOF) != c.misses {
				t.Errorf("a row of process %s: %v", c.row.Process, err)
			}
		}
	})
}
