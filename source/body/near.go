package body

import (
	"runtime"
	"time"

	"blobtail/record"
	"blobtail/record/meaning"
)

// A time that may be that of another thing is a guess: one within a sentence, in JSON behind one, in
// an indented line, in a field created. It is believed if it is near the arrival, or a time next to
// it in the body that is none.

// near judges the guesses of a body.
type near struct {
	arrival Arrival
	at      int64            // the time of records without one
	judge   meaning.Defaults // with believes, unless all are believed
	time    int64            // that of the last record with one that is no guess, or the first; 0: none so far
	dated   bool             // the record has a date with a clock
	undated bool             // one before has none
	judged  bool             // the part has a guess
	before  record.Stamp     // of the last record of the body, if begun
	begun   bool

	// These are of a body that is not looked through so far.
	form Form
	body []byte
}

// nearby is how far a guess may be off.
const nearby = 24 * time.Hour

func isNear(a, b int64) bool { return max(a, b)-min(a, b) <= nearby.Nanoseconds() }

// arrive begins a body.
func (n *near) arrive(a Arrival, at int64) {
	guess := n.judge.Guess
	if guess == nil {
		guess = n.believes
	}
	*n = near{arrival: a, at: at, judge: meaning.Defaults{Arrived: a.Time}}
	if !a.Fields.Far() {
		n.judge.Guess = guess
	}
}

// believes is [meaning.Defaults.Guess].
func (n *near) believes(ns int64, dated bool) bool {
	n.dated, n.judged = n.dated || dated, true
	if isNear(ns, n.at) || n.time != 0 && isNear(ns, n.time) {
		return true
	}
	if n.body != nil && (dated || n.time == 0) {
		n.look()
	}
	return dated && !n.undated || n.time != 0 && isNear(ns, n.time)
}

// look looks through the body: for the first time that is no guess, and for a record without a date.
func (n *near) look() {
	const most = 64 << 10
	all, body, a := NewGatherer(), n.body, n.arrival
	n.body, a.Allow = nil, nil
	all.After = func(int) bool {
		if len(all.Req.Data) > most {
			all.Clear()
			runtime.Gosched()
		}
		return !all.near.undated || all.near.time == 0 && n.time == 0
	}
	all.Arrive(a)
	n.form.decode(body, bom(body), all)
	n.undated = n.undated || all.near.undated
	if n.time == 0 {
		n.time = all.near.time
	}
}

// add adds a record of the body.
func (n *near) add(s *record.Stamp) {
	n.before, n.begun = *s, true
	if s.OwnTime && !s.Guessed {
		n.time = s.Time
	}
	n.undated, n.dated = n.undated || !n.dated, false
}

// knows tells the gatherer of the body that is decoded next; nil: it is at its end.
func (g *Gatherer) knows(f Form, body []byte) {
	if f.own == nil {
		g.near.form, g.near.body = f, body
	}
}

// Arrival is that of the body, as in [Sink].
func (g *Gatherer) Arrival() *meaning.Defaults { return &g.near.judge }
