package complete_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/testkit/box"
	"blobtail/internal/lease"
	"blobtail/internal/storeid"
	"blobtail/internal/storeid/premises"
	"blobtail/storage/fsys/simdisk"
)

// step takes one random step.
func (w *world) step() {
	in := w.all[w.rng.IntN(len(w.all))]
	k := w.rng.IntN(100)
	at := func(share int) bool { k -= share; return k < 0 }
	switch {
	case at(w.p.Sends):
		w.send(in)
	case at(w.p.Reads):
		w.read()
	case at(w.p.Weather):
		w.weather(in)
	case at(w.p.Deaths):
		w.death(in)
	case w.p.Calm:
		w.flush(in)
	case at(6):
		w.flush(in)
	case at(4):
		w.freeze(in)
	case at(5):
		w.rare(in)
	case w.p.Ships && at(3):
		w.adopt("")
	case w.p.Ships && at(4):
		w.fallsSilent(in)
	default:
		for _, n := range w.rng.Perm(len(w.all)) { // an ingester that is down or stopped
			if in = w.all[n]; in.proc == nil && in.disk != nil || in.proc != nil && in.proc.gate.shut() {
				break
			}
		}
		w.revive(in)
	}
}

// send makes a sender send a request. Most requests are new. Now and then it sends an
// old one again, as a sender does after a lost answer.
func (w *world) send(in *ingester) {
	if in.proc == nil || w.rng.IntN(3) == 0 { // senders find one that runs
		in = w.all[w.rng.IntN(len(w.all))]
	}
	p, rng := in.proc, w.fate("request")
	if p == nil {
		return
	}
	q := w.compose(rng)
	if n := len(w.requests); rng.IntN(6) == 0 && n > 1 {
		// Not to another store: see the package's comment.
		if again := w.requests[rng.IntN(n)]; again.to == nil || again.to == p.to {
			q = again
		}
	}
	w.toward(q, p.to)
	stored := rng.IntN(12) == 0
	w.clients.Go(func() { w.told(q, in, p.send(q, stored)) })
}

// told counts the answers that senders got.
func (w *world) told(q *request, in *ingester, err error) {
	w.say("%s (%s..) to %s: %v", q.name, q.all[0].name, in.host, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals.Sent++
	if err != nil {
		w.totals.refused[refusal(err)]++
	}
	if err != nil && w.p.Calm && !w.mutated {
		w.violations = append(w.violations, "a request is refused though nothing fails: "+err.Error())
	}
}

// refusal returns the reason why a request was not acknowledged.
func refusal(err error) string {
	switch {
	case strings.Contains(err.Error(), "this ingester cannot be announced"):
		return "not announced"
	case errors.Is(err, errGone), errors.Is(err, box.ErrRefused), errors.Is(err, simdisk.ErrKilled):
		return "down"
	case errors.Is(err, errDrained):
		return "drained"
	case errors.As(err, &refusedStore{}):
		return "another store"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer"
	}
	return "else"
}

func (w *world) flush(in *ingester) {
	p := in.proc
	if p == nil {
		return
	}
	w.say("flush %s", in.host)
	w.flushAfter(p, 0)
}

// flushAfter stores the records that an ingester holds, after a while.
func (w *world) flushAfter(p *process, d time.Duration) {
	w.clients.Go(func() {
		time.Sleep(d)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_, _ = p.Buffer.Flush(ctx) // unflushed records stay in the log
	})
}

// weather changes the weather on one way of an ingester.
func (w *world) weather(in *ingester) {
	if w.rng.IntN(2) == 0 {
		in.clear()
		w.say("fair weather for %s", in.host)
		return
	}
	skies := map[string]*sky{"tables": &in.tables, "writes of tables": &in.writes, "blobs": &in.blobs, "door": &in.door}
	name := []string{"tables", "tables", "writes of tables", "writes of tables", "blobs", "door"}[w.rng.IntN(6)]
	x := []weather{fails, hangs, loses, late, late, mixed, mixed, denied}[w.rng.IntN(8)]
	if w.p.NoRole && w.rng.IntN(2) == 0 { // the asked ingester cannot list its peers
		name, x = "tables", []weather{fails, hangs, denied}[w.rng.IntN(3)]
	}
	if name == "door" && x == denied {
		x = fails
	}
	skies[name].set(x)
	w.say("weather of %s: %s %s", in.host, name, x)
}

// death ends a process in one of several ways, sometimes with its disk.
func (w *world) death(in *ingester) {
	if in.proc == nil {
		return
	}
	switch k := w.rng.IntN(10); {
	case k < 4:
		w.say("kill -9 %s", in.host)
		in.kill(false)
		w.totals.Kills++
	case k < 6:
		w.say("power cut %s", in.host)
		in.kill(true)
		w.totals.PowerCuts++
	case k < 9 && !in.proc.gate.shut():
		w.say("stop %s", in.host)
		in.proc.stop()
		w.totals.Stops++
	default:
		w.say("%s and its disk are destroyed", in.host)
		in.kill(false)
		in.disk, in.away = nil, in.disk
		w.totals.Destroyed++
	}
}

// freeze stops a process as SIGSTOP does, or continues it. No goroutine is then between
// Enter and leave: it would block the rest without letting time pass.
func (w *world) freeze(in *ingester) {
	p := in.proc
	if p == nil {
		return
	}
	if p.gate.shut() {
		w.say("SIGCONT %s", in.host)
		p.gate.cont()
		return
	}
	synctest.Wait()
	w.say("SIGSTOP %s", in.host)
	p.gate.stop()
	w.totals.Frozen++
}

// catch kills an ingester before it knows that its row has left holding. It then starts
// the ingester again, perhaps out of reach of the tables.
func (w *world) catch(in *ingester) {
	if in.reap(); in.proc == nil {
		return
	}
	w.say("kill -9 %s, whose row has turned", in.host)
	in.kill(w.rng.IntN(3) == 0)
	w.totals.Kills++
	if w.rng.IntN(3) > 0 {
		in.tables.set([]weather{fails, hangs}[w.rng.IntN(2)])
	}
	w.startOn(in, in.to, in.host)
	p, rng := in.proc, w.fate("caught")
	if p == nil {
		return
	}
	r, q := w.newReading(rng), w.compose(rng)
	r.s = p.to
	w.toward(q, p.to)
	w.clients.Go(func() {
		time.Sleep(time.Duration(rng.Int64N(int64(4 * time.Second))))
		w.told(q, in, p.send(q, false))
		r.run()
	})
}

// rare does the things that happen once a year.
func (w *world) rare(in *ingester) {
	s := w.stores[w.rng.IntN(len(w.stores))]
	may := []func(){func() { w.forgetGone(s) }, func() { w.forgetLosses(s) }, func() { w.drain(in) }}
	if w.p.Copies && len(w.all) < 6 {
		may = append(may, func() { w.copy(in) }, func() { w.copy(in) })
	}
	if w.p.Drops {
		may = append(may, func() {
			if in.proc != nil && w.rng.IntN(2) == 0 {
				w.say("kill -9 %s", in.host)
				in.kill(false)
				w.totals.Kills++
			}
			w.say("the table of the ingesters of %s is removed", s.container)
			s.tables.clear()
			w.totals.Drops++
		})
	}
	if w.p.Forgets {
		may = append(may, func() { w.forgetSilent(s) })
	}
	may[w.rng.IntN(len(may))]()
}

func (w *world) drain(in *ingester) {
	if in.proc != nil && !in.proc.gate.shut() {
		w.say("drain %s", in.host)
		in.proc.drain()
	}
}

// forgetGone forgets the ingesters with destroyed disks.
func (w *world) forgetGone(s *store) {
	if w.p.Ships {
		w.comesBack()
		return
	}
	for _, in := range w.all {
		if in.disk != nil {
			continue
		}
		w.mu.Lock()
		ids := make([]string, 0, len(in.ids))
		for id := range in.ids {
			ids = append(ids, id)
		}
		w.mu.Unlock()
		for _, id := range ids {
			s.tables.amend(func() {
				if was, err := lease.Forget(context.Background(), s.tables, s.container, id, time.Now(), unreached); err == nil {
					w.forgot(was, s)
				}
			})
		}
	}
}

// copy copies a log directory to a new host, with or without a running process. The
// copy has its own inode. A copy of a whole disk, used next to the original, is
// documented as not covered.
func (w *world) copy(in *ingester) {
	if in.disk == nil || in.to == nil {
		return
	}
	c := w.add(in.disk.Fork(simdisk.Killed, w.seed))
	id, _ := in.noted()
	w.mu.Lock()
	c.id = in.id
	c.ids[cmp.Or(id, in.id)] = true
	w.mu.Unlock()
	c.to, c.bestEffort = in.to, in.bestEffort
	w.say("the log of %s is copied to %s", in.host, c.host)
	w.totals.Copies++
	if w.rng.IntN(2) == 0 {
		w.startOn(c, c.to, c.host)
		w.meet(in, c)
	}
}

// meet has a sender send to one of two ingesters on copies of a log, and a reader read
// by the URL of the other. One of them was just started: a few seconds later the two
// know of each other.
func (w *world) meet(first, second *ingester) {
	rng := w.fate("meet")
	if rng.IntN(2) == 0 {
		first, second = second, first
	}
	p := second.proc
	if p == nil {
		return
	}
	r, q := w.newReading(rng), w.compose(rng)
	r.s, r.url = p.to, first.host
	if rng.IntN(2) == 0 {
		r.y.tables.set(denied) // the reader relies on the ingester it asks
	}
	w.toward(q, p.to)
	w.clients.Go(func() {
		time.Sleep(100*time.Millisecond + time.Duration(rng.Int64N(int64(5*time.Second))))
		w.told(q, second, p.send(q, false))
		time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
		r.run()
	})
}

// revive starts an ingester that is down, or continues one that is stopped.
func (w *world) revive(in *ingester) {
	switch {
	case in.proc != nil && in.proc.gate.shut():
		w.freeze(in)
	case in.proc == nil && in.disk != nil:
		s, host := in.to, in.host
		if w.p.Moves && w.rng.IntN(3) == 0 {
			s = w.stores[w.rng.IntN(len(w.stores))]
		}
		if w.p.Moves && w.rng.IntN(3) == 0 {
			host = w.all[w.rng.IntN(len(w.all))].host
		}
		w.startOn(in, s, host)
	}
}

// startOn starts an ingester with a store, at a free address.
func (w *world) startOn(in *ingester, s *store, host string) {
	for _, other := range w.all {
		if other.proc != nil && other.proc.address == host {
			return
		}
	}
	err := in.start(s, host)
	var wrong *premises.WrongStoreError
	if errors.As(err, &wrong) && wrong.ID == "" {
		// Only an ingester with a log of its own makes a store.
		if _, err := storeid.Ensure(context.Background(), s.blobs); err != nil {
			w.trouble("make %s: %v", s.container, err)
		}
		err = in.start(s, host)
	}
	w.say("start %s with %s at %s: %v", in.host, s.container, host, err)
	switch {
	case errors.As(err, &wrong) && wrong.ID != "":
		w.totals.OtherStore++
	case err != nil:
		w.trouble("start %s: %v", in.host, err)
	default:
		w.say("%s is %s.%s", in.host, in.proc.Announcer.ID(), in.proc.Announcer.Process())
		w.totals.Starts++
	}
}
