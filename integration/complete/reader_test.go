package complete_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"blobtail/internal/lease"
	"blobtail/internal/storeid"
	door "blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
	"blobtail/tailindex"
)

// reading is one read, done as logquery does it.
type reading struct {
	w    *world
	name string
	s    *store
	q    blobs.Query
	tail bool // tail -n
	// url is the host that the reader was given; with "" it finds all by the rows. A
	// blind reader has no URL and asks none.
	url   string
	blind bool
	y     *way
	n     *unflushed.Reader // a reader that has read before; nil: a new one
	// sums is the kind of numbers that it reads, and counted the number; see [reading.shared].
	sums    int
	counted int64

	begin, end uint64
	got        []string
	oldest     int64 // time of the oldest record it returned
	problems   []error
	err        error
}

// newReading returns a read of the store of some ingester, in fair weather.
func (w *world) newReading(rng *rand.Rand) *reading {
	w.mu.Lock()
	name := fmt.Sprint("read", w.totals.Reads)
	w.totals.Reads++
	w.mu.Unlock()
	r := &reading{w: w, name: name, s: w.all[rng.IntN(len(w.all))].to}
	r.y = &way{w: w, name: name, tables: &sky{}, writes: &sky{}, blobs: &sky{}}
	if w.distant && !w.p.Calm && w.fate("lists of "+name).IntN(3) == 0 { // one of many listings fails
		r.y.lists = &sky{}
		r.y.lists.set(mixed)
	}
	r.ask(rng)
	return r
}

// read starts a reader with a random query.
func (w *world) read() {
	rng := w.fate("reader")
	r := w.newReading(rng)
	if rng.IntN(8) == 0 {
		r.s = w.stores[rng.IntN(len(w.stores))]
	}
	switch k := rng.IntN(20); {
	case k < 10 || w.p.NoRole:
		for _, n := range rng.Perm(len(w.all)) { // most URLs are right
			in := w.all[n]
			if in.proc != nil && in.proc.to == r.s || rng.IntN(12) == 0 {
				r.url = in.host
				break
			}
		}
	case k < 13: // a reader that has read before
		if r.s.reader == nil {
			r.s.reader = r.reader()
		}
		r.n = r.s.reader
	case k == 19 && !w.p.Calm:
		r.blind = true
	}
	if !w.p.Calm {
		switch {
		case w.p.NoRole:
			r.y.tables.set(denied)
		case rng.IntN(3) == 0:
			r.y.tables.set([]weather{denied, denied, fails, hangs, mixed, mixed}[rng.IntN(6)])
		}
		if rng.IntN(8) == 0 {
			r.y.blobs.set([]weather{fails, mixed, mixed, denied}[rng.IntN(4)])
		}
	}
	w.clients.Go(r.run)
}

// ask draws the query.
func (r *reading) ask(rng *rand.Rand) {
	r.q = blobs.Query{Services: [][]string{{"*"}, {"a", "b", "c"}, {"a"}, {"b", "c"}}[rng.IntN(4)], Range: blobs.Always()}
	now := time.Now().UnixNano()
	switch rng.IntN(6) {
	case 0:
		r.q.Range.From = now - rng.Int64N(int64(3*time.Hour))
	case 1: // as an operator asks for records from before a crash
		r.q.Range.To = now - rng.Int64N(int64(2*time.Minute))
	case 2:
		r.q.Range.From = now - rng.Int64N(int64(31*time.Hour))
		r.q.Range.To = now - rng.Int64N(int64(time.Hour))
		if r.q.Range.From >= r.q.Range.To {
			r.q.Range.To = now
		}
	}
	if r.w.p.Closed && rng.IntN(4) > 0 {
		r.q.Range = closedRange(rng)
	}
	if rng.IntN(8) == 0 {
		r.q.Filter.Levels = 1 << record.Error
	}
	if r.tail = rng.IntN(3) == 0; r.tail {
		r.q.Limit = 1 + rng.IntN(30)
		r.q.Range = blobs.Always()
		// With several names and a limit, a read may report a service as missing if its
		// records are only in logs and not among the newest. It exits with 1 and
		// returns no record. This is known, and left out.
		if len(r.q.Services) > 1 {
			r.q.Services = r.q.Services[:1]
		}
	}
}

// optionsOf are those of a reader of a store, as logquery makes them. They leave out the ingesters
// that it asks.
func (y *way) optionsOf(s *store, blobs *blobs.Reader) unflushed.Options {
	w, tables := y.w, y.tablesOf(s)
	return unflushed.Options{
		Blobs: blobs,
		Tail:  tailindex.NewReader(tables, tailindex.Options{Store: s.container}),
		Store: func(ctx context.Context) (string, error) {
			rng := w.fate(y.name + " store")
			if !pause(ctx, w.latency(rng)) {
				return "", ctx.Err()
			}
			if y.blobs.fate(rng) != fair {
				return "", errAway
			}
			return storeid.Read(ctx, s.blobs)
		},
		Ingesters: func(ctx context.Context) ([]lease.Ingester, time.Time, error) {
			rows, err := lease.List(ctx, tables, s.container)
			return rows, time.Now(), err
		},
	}
}

// reader makes the reader as logquery does.
func (r *reading) reader() *unflushed.Reader {
	w := r.w
	o := r.y.optionsOf(r.s, blobs.New(r.y.blobsOf(r.s), r.blobOptions()))
	switch {
	case r.blind:
	case r.url != "":
		client, err := live.NewClient("http://"+r.url, live.ClientOptions{HTTP: w.net.client(r.name, nil)})
		if err != nil {
			w.trouble("client: %v", err)
		}
		o.Live = client
	default:
		o.Announced = w.net.client(r.name, nil)
	}
	return unflushed.New(o)
}

// blobOptions are those of a reader of blobs. A distant one lists in parts and guesses by its clock,
// which may be wrong.
func (r *reading) blobOptions() blobs.Options {
	o := blobs.Options{Workers: 2}
	if r.w.distant {
		wrong := []time.Duration{0, 0, 0, time.Hour, 30 * time.Hour, -time.Hour, -30 * time.Hour, -400 * 24 * time.Hour, 400 * 24 * time.Hour}
		if r.w.p.Closed { // by how much more than an hour clocks differ, the account of a day is not asked for
			wrong = append(wrong[:4], -time.Hour)
		}
		off := wrong[r.w.fate("clock of "+r.name).IntN(len(wrong))]
		o.Distant, o.Now = true, func() time.Time { return time.Now().Add(off) }
	}
	return o
}

// run reads, and compares the result with the acknowledged records.
func (r *reading) run() {
	r.see()
	r.judge()
}

// see reads.
func (r *reading) see() {
	w := r.w
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	n := r.n
	if n == nil {
		n = r.reader()
	}
	r.begin = w.tick()
	w.say("%s of %s begins: %s", r.name, r.s.container, r.what())
	r.oldest = blobs.Newest
	if r.tail {
		r.readTail(ctx, n)
	} else {
		r.readAll(ctx, n)
	}
	r.end = w.tick()
}

func (r *reading) what() string {
	how := "by the rows"
	switch {
	case r.blind:
		how = "blind"
	case r.url != "":
		how = "asks " + r.url
	}
	return fmt.Sprintf("%s, %v, tail %v %d, from %d to %d, levels %d, tables %s, blobs %s", how, r.q.Services, r.tail, r.q.Limit,
		(r.q.Range.From-r.w.start.UnixNano())/1e9, (r.q.Range.To-r.w.start.UnixNano())/1e9, r.q.Filter.Levels, weather(r.y.tables.now.Load()), weather(r.y.blobs.now.Load()))
}

func (r *reading) take(e *record.Entry) error {
	r.got = append(r.got, nameOf(e.Line))
	r.oldest = min(r.oldest, e.Time)
	return nil
}

func (r *reading) readTail(ctx context.Context, n *unflushed.Reader) {
	sum, report, err := n.Tail(ctx, r.q, r.take)
	r.err, r.problems = err, append(sum.Problems, report.Problems...)
}

func (r *reading) readAll(ctx context.Context, n *unflushed.Reader) {
	blobs := blobs.New(r.y.blobsOf(r.s), r.blobOptions())
	if r.w.crew != nil {
		r.shared(ctx, door.Options{Blobs: blobs, Logs: n, Sharing: r.w.crew.sharing})
		return
	}
	store := door.New(door.Options{Blobs: blobs, Logs: n}).For(nil)
	out, err := store.Entries(ctx, door.Ask{Services: r.q.Services, Range: r.q.Range, Levels: r.q.Filter.Levels}, r.take)
	r.err, r.problems = err, out.Problems()
}

// complete tells whether logquery would say that there is no more: by exit code 0, or by 1
// because there is no such service.
func (r *reading) complete() bool {
	return len(r.problems) == 0 && (r.err == nil || unknown(r.err))
}

// unknown reports whether an error says that a service does not exist.
func unknown(err error) bool {
	var none *blobs.NoServiceError
	return errors.As(err, &none)
}

// judge checks the rule.
func (r *reading) judge() {
	w := r.w
	w.mu.Lock()
	bad := append(r.strange(), r.lacking()...)
	isCopy := func(err error) bool { return errors.As(err, new(*blobs.CopyError)) }
	if i := slices.IndexFunc(r.problems, isCopy); i >= 0 && !w.harmed.Load() {
		bad = append(bad, "the store is taken for a copy: "+r.problems[i].Error())
	}
	whole := r.complete()
	switch {
	case r.blind:
		w.totals.Blind++
	case whole:
		w.totals.Complete++
	default:
		w.totals.incomplete[r.cause()]++
	}
	w.mu.Unlock()
	w.say("%s ends: %d records, complete %v, %v %v", r.name, len(r.got), whole, r.err, r.problems)
	for _, text := range bad {
		w.violation("%s: %s", r.name, text)
	}
	if w.p.Calm && !whole && !w.mutated && !w.harmed.Load() {
		w.violation("%s is incomplete though nothing fails: %v %v", r.name, r.err, r.problems)
	}
}

// strange lists records that the read should not have returned. w.mu is held.
func (r *reading) strange() (bad []string) {
	seen := map[string]bool{}
	for _, name := range r.got {
		s := r.w.records[name]
		switch {
		case s == nil || !s.stores[r.s]:
			bad = append(bad, name+" was never sent to this store")
		case seen[name] && (r.complete() || !r.w.harmed.Load() && r.w.crew == nil): // else a worker may not know where it came from
			bad = append(bad, name+" comes twice")
		case !r.wants(s) && !r.w.harmed.Load():
			bad = append(bad, name+" was not asked for")
		}
		seen[name] = true
	}
	return bad
}

// lacking lists records that a complete read lacks. w.mu is held.
func (r *reading) lacking() (bad []string) {
	return r.lackingOf(func(a ack) bool { return a.to == r.s })
}

// lackingOf lists those with an acknowledgement that counts. w.mu is held.
func (r *reading) lackingOf(counts func(a ack) bool) (bad []string) {
	if !r.complete() {
		return nil
	}
	if r.sums > 0 {
		return r.miscounted(counts)
	}
	full := r.q.Limit > 0 && len(r.got) >= r.q.Limit
	got := map[string]bool{}
	for _, name := range r.got {
		got[name] = true
	}
	for name, s := range r.w.records {
		if got[name] || !r.wants(s) || full && s.time <= r.oldest || r.w.lost != nil && r.w.lost(s, r.q.Range) {
			continue
		}
		if a := r.owed(s, counts); a != nil {
			bad = append(bad, fmt.Sprintf("exit 0 without %s, which %s has acknowledged", name, a.by.host))
		}
	}
	slices.Sort(bad)
	return bad
}

// owed returns an acknowledgement for which a complete read has a record; nil: there is none.
func (r *reading) owed(s *sent, counts func(a ack) bool) *ack {
	for i, a := range s.acks {
		if counts(a) && a.at < r.begin && !r.w.excused(a, r.begin, r.end) {
			return &s.acks[i]
		}
	}
	return nil
}

// wants reports whether the query asks for a record.
func (r *reading) wants(s *sent) bool {
	return (r.q.Services[0] == "*" || slices.Contains(r.q.Services, s.service)) &&
		s.time >= r.q.Range.From && (r.q.Range.To == blobs.Newest || s.time < r.q.Range.To) &&
		(r.q.Filter.Levels == 0 || r.q.Filter.Levels.Has(record.LevelOf([]byte(s.level))))
}

// finalRead reads after all faults are repaired.
func (w *world) finalRead(s *store) {
	if s.tables.empty(s.container) {
		return // no ingester has ever written to the store, or all are gone since the table was removed
	}
	for range 3 {
		r := &reading{w: w, name: fmt.Sprint("last read of ", s.container), s: s, y: &way{w: w, name: "last", tables: &sky{}, writes: &sky{}, blobs: &sky{}}}
		r.q = blobs.Query{Services: []string{"*"}, Range: blobs.Always()}
		w.mu.Lock()
		w.totals.Reads++
		w.mu.Unlock()
		r.run()
		if r.complete() || w.violated() {
			return
		}
		time.Sleep(20 * time.Second)
		// A write of a destroyed ingester may land after the operator has listed the rows.
		w.forgetSilent(s)
		w.forgetLosses(s)
	}
	w.violation("reads of %s stay incomplete when all is mended", s.container)
}

var varying = regexp.MustCompile(`[0-9a-f]{8,}|h\d+|[0-9][0-9:.TZsmh-]*`)

// cause returns in few words why a read is incomplete.
func (r *reading) cause() string {
	text := ""
	switch {
	case len(r.problems) > 0:
		text = r.problems[0].Error()
	case r.err != nil:
		text = r.err.Error()
	}
	return causeOf(text)
}

// causeOf returns a problem in few words.
func causeOf(text string) string {
	for _, known := range []string{
		"another start of ingester", "has been silent for", "not among those that answered", "could not be asked", "wrote to store", "has lost records",
		"table of ingesters cannot be read", "table of ingesters is gone", "which store this is", "no right to", "which writes to another store",
		"other ingesters answered", "can be reached at", "does not answer", "no ingester is running", "stale", "cut short", "no ingester to ask",
		"log of the ingester that was asked is damaged",
	} {
		if strings.Contains(text, known) {
			return known
		}
	}
	text = varying.ReplaceAllString(text, "#")
	return text[:min(len(text), 60)]
}
