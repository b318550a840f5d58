package complete_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"blobtail/catalog/closed"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
)

// step takes one random step.
func (w *serverWorld) step() {
	in := w.all[w.rng.IntN(len(w.all))]
	k := w.rng.IntN(100)
	at := func(share int) bool { k -= share; return k < 0 }
	switch {
	case at(34):
		for range 1 + w.rng.IntN(3) {
			w.send(w.all[w.rng.IntN(len(w.all))])
		}
	case at(32):
		w.burst()
	case at(8):
		w.flush(in)
	case at(6):
		w.drawl(in)
	case w.p.Calm:
		w.burst()
	case at(6):
		w.weather(in)
	case at(5):
		w.cloud()
	case at(4):
		w.freeze(in)
	case at(3):
		w.death(in)
	default:
		w.reviveAny()
	}
}

// reviveAny starts an ingester that is down, or continues one that is stopped. If all run, a
// server may start anew.
func (w *serverWorld) reviveAny() {
	for _, n := range w.rng.Perm(len(w.all)) {
		if in := w.all[n]; in.proc == nil && in.disk != nil || in.proc != nil && in.proc.gate.shut() {
			w.revive(in)
			return
		}
	}
	if w.rng.IntN(3) == 0 {
		w.serve(w.rng.IntN(len(w.servers)))
	}
}

// drawl has an ingester take long to list its records, or as long as others again.
func (w *serverWorld) drawl(in *ingester) {
	d := []time.Duration{0, 300 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second}[w.rng.IntN(4)]
	w.say("%s takes %v for each part of an answer", in.host, d)
	in.door.drawl.Store(int64(d))
}

// cloud changes the weather on the way of a server to its store.
func (w *serverWorld) cloud() {
	s := w.servers[w.rng.IntN(len(w.servers))]
	x := []weather{fair, fair, fails, hangs, mixed, mixed, denied}[w.rng.IntN(7)]
	name := []string{"tables", "blobs", "gets"}[w.rng.IntN(3)]
	map[string]*sky{"tables": s.y.tables, "blobs": s.y.blobs, "gets": s.y.gets}[name].set(x)
	w.say("weather of %s: %s %s", s.name, name, x)
}

// readAge is the largest age of a server's reads, and keepAge how long a replaced blob stays.
const (
	readAge = time.Minute
	keepAge = 2 * readAge
)

// past is the age of the hour that is compacted: its day can be closed.
const past = 60 * time.Hour

// compact closes past days and compacts them, as retention does.
func (w *serverWorld) compact(s *store) {
	options := closing.Options{After: closed.Soonest, Log: zerolog.Nop(), Now: time.Now()}
	if done, err := closing.Run(context.Background(), s.blobs, options); err != nil {
		w.say("%s is not closed: %v %v", s.container, err, done.Problems)
	}
	result, err := compact.Run(context.Background(), s.blobs, compact.Options{Grace: keepAge, Log: zerolog.Nop(), Now: time.Now})
	w.say("%s is compacted: %d blobs to %d, %d deleted: %v %v", s.container, result.In, result.Out, result.Deleted, err, result.Problems)
	w.counts.Compacted += result.In
}

// turnover has a past hour compacted and its first blobs deleted, an ingester started anew, and
// more records of that hour come. Their blob may have the name of one that is deleted.
func (w *serverWorld) turnover(in *ingester) {
	rng := w.fate("turnover")
	w.fair()
	stored := func() {
		if in.reap(); in.proc == nil {
			return
		}
		q := w.composeOf(rng, 6, 200, []time.Duration{past, past + 2*time.Minute, past + 5*time.Minute})
		w.toward(q, in.to)
		w.told(q, in, in.proc.send(q, false))
		w.flush(in)
		time.Sleep(time.Second)
	}
	stored()
	stored()
	w.byMinute(rng)
	time.Sleep(5 * time.Second)
	w.compact(in.to)
	time.Sleep(keepAge + time.Second)
	w.compact(in.to)
	if in.reap(); in.proc != nil {
		w.say("kill -9 %s", in.host)
		in.kill(false)
		w.totals.Kills++
	}
	if in.disk != nil {
		w.startOn(in, in.to, in.host)
		time.Sleep(5 * time.Second)
	}
	stored()
	w.byMinute(rng)
}

// byMinute asks each server for numbers that the indexes of blobs have.
func (w *serverWorld) byMinute(rng *rand.Rand) {
	for _, s := range w.servers {
		like := everything()
		like.win.From, like.win.To = time.Now().Add(-past-time.Hour).UnixNano(), time.Now().Add(time.Hour-past).UnixNano()
		a := &ask{wish: like, w: w, s: s}
		a.numbers(a.own(rng), 0, "service")
		w.launch(a, 0)
	}
	w.clients.Wait()
}

// everything is the wish for all records.
func everything() *wish {
	return &wish{selection{params: url.Values{"service": {"*"}}, logql: `{service_name=~".+"}`, wants: func(*sent) bool { return true }}, blobs.Always(), 1}
}

// crowd has an ingester hold so much that a read puts records aside if there are many others: it
// reads everything, beside clients that look for the newest record only.
func (w *serverWorld) crowd(in *ingester) {
	if in.reap(); in.proc == nil || in.proc.gate.shut() {
		return
	}
	rng := w.fate("crowd")
	w.fair()
	w.p.Calm = false // from here on something fails
	in.blobs.set(fails)
	in.door.drawl.Store(int64(300 * time.Millisecond))
	q := w.composeOf(rng, 12, record.MaxRecord-1000, []time.Duration{0})
	w.toward(q, in.to)
	w.told(q, in, in.proc.send(q, false))
	s := w.servers[rng.IntN(len(w.servers))]
	for range manyReads {
		a := &ask{wish: everything(), w: w, s: s, kind: "newest", newest: 1, target: "/api/v1/records?service=*&form=events&limit=1", read: (*ask).readEvents}
		w.launch(a, time.Duration(rng.Int64N(int64(time.Millisecond))))
	}
	for range 2 {
		w.launch(w.ask(rng, s, everything()), 2*time.Millisecond)
	}
	w.clients.Wait()
}

// manyReads leave each read the least memory for unflushed records.
const manyReads = 26

// burst has clients ask at the same time: mostly for much the same, as the panels of a dashboard
// do.
func (w *serverWorld) burst() {
	rng := w.fate("burst")
	s := w.servers[rng.IntN(len(w.servers))]
	w.counts.Bursts++
	like := w.wish(rng)
	if rng.IntN(3) == 0 { // records move from logs to blobs meanwhile
		in := w.all[rng.IntN(len(w.all))]
		if p := in.proc; p != nil {
			w.flushAfter(p, time.Duration(rng.Int64N(int64(2*w.p.Slow))))
		}
	}
	for range []int{1, 1, 2, 3, 4, 6}[rng.IntN(6)] {
		w.launch(w.ask(rng, s, like), time.Duration(rng.Int64N(int64(2*time.Millisecond))))
		like = w.near(rng, like)
	}
	if rng.IntN(4) > 0 {
		return
	}
	// Records come, and clients ask again, while the first ones still wait.
	in, again := w.all[rng.IntN(len(w.all))], *like
	w.send(in)
	for range 2 {
		w.launch(w.ask(rng, s, &again), 50*time.Millisecond+time.Duration(rng.Int64N(int64(time.Second))))
	}
}

// few draws a limit.
func few(rng *rand.Rand) int { return []int{1, 1, 2, 3, 5, 12}[rng.IntN(6)] }

// launch asks after a while.
func (w *serverWorld) launch(a *ask, after time.Duration) {
	w.mu.Lock()
	a.name = fmt.Sprint("ask", w.counts.Asks)
	w.counts.Asks++
	w.counts.kinds[a.kind]++
	w.mu.Unlock()
	w.clients.Go(func() {
		time.Sleep(after)
		a.run()
	})
}

// fair makes the weather fair for all.
func (w *serverWorld) fair() {
	for _, s := range w.servers {
		s.y.tables.set(fair)
		s.y.blobs.set(fair)
		s.y.gets.set(fair)
	}
	for _, in := range w.all {
		in.clear()
		in.door.drawl.Store(0)
		if in.proc != nil && in.proc.gate.shut() {
			in.proc.gate.cont()
		}
	}
}

// recovered asks each server when all is mended. Its answers must be complete.
func (w *serverWorld) recovered() {
	w.fair()
	alive := slices.ContainsFunc(w.all, func(in *ingester) bool { return in.proc != nil })
	for _, s := range w.servers {
		if s.s.tables.empty(s.s.container) || s.url != "" && w.net.At(s.url) == nil {
			continue // the ingester that it asks is gone for good
		}
		rng := w.fate("recovered")
		for range 4 {
			// A tail that reaches no ingester goes by the tables of the tail, and says so.
			if a := w.ask(rng, s, w.wish(rng)); a.kind != "follow" && (alive || a.kind != "tail once" || !s.distant) {
				a.must = true
				w.launch(a, 0)
				w.clients.Wait()
			}
		}
	}
}
