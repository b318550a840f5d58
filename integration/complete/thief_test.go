package complete_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
)

// Days are closed and compacted, by two jobs at once too, while records of them come late. A thief
// removes, swaps and rolls back objects of closed days at any moment, beside readers and servers. No
// answer is complete without a record that the account of its day has. Before the thief comes, each
// answer is complete, and at the end verify finds what he has done.
//
// Only verify finds a blob that is gone together with each part that names it, if anything of the
// day is left.
func TestThief(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := simulation
	s.Test, s.Seeds = "TestThief", 200
	var total totals
	var asks counts
	var thefts thefts
	first, done := testkit.Worlds(t, s, newThiefWorld, func(w *thiefWorld) {
		testkit.Add(&total, &w.totals)
		testkit.Add(&asks, &w.counts)
		testkit.Add(&thefts, &w.thefts)
	})
	t.Logf("%d seeds from %d: %d parts, %d thefts (%s), %d records gone that accounts have, %d others; "+
		"%d of %d answers and %d of %d reads complete, not for: %s; %d blobs compacted; verify: %d clean, %d with findings",
		done, first, thefts.Parts, thefts.Thefts, byCause(thefts.kinds), thefts.Guarded, thefts.Lost,
		asks.Complete, asks.Asks, total.Complete, total.Reads, byCause(asks.incomplete), asks.Compacted, thefts.Clean, thefts.Found)
	enough := asks.Complete*4 > asks.Asks && thefts.Guarded*2 > done && thefts.Found > 0 && thefts.Clean > 0
	if done >= 50 && os.Getenv(mutatedEnv) == "" && !enough {
		t.Errorf("too little happens")
	}
}

type thefts struct {
	Parts, Thefts, Guarded, Lost, Clean, Found int

	kinds map[string]int
}

// A thiefWorld is a world with servers, whose days are closed and robbed.
type thiefWorld struct {
	*serverWorld
	robbed int // steps after which the thief comes; never, if it is more than there are
	seen   inventory
	stolen []*object // parts
	// The world's lock guards these.
	gone     map[string]*missing      // records that are in no blob, by their names
	vanished map[serviceDay]*vanished // days of which nothing is left
	thefts   thefts
}

type serviceDay struct {
	service string
	day     horizon.Day
}

// prefix begins the keys of the objects.
func (d serviceDay) prefix() string {
	return strings.TrimSuffix(closed.PartPrefix(d.service, d.day), "_closed.")
}

// missing is a record that is in no blob. guarded says that an account tells that it was there.
type missing struct {
	of      serviceDay
	guarded bool
	blobs   map[string]batchID // that had it, by their places
}

// back reports whether the record is in the store again: the thief has put a blob back, or its ingester
// has stored it again. A read that has looked for it before then sees that nothing is missing.
func (m *missing) back(s *store) bool {
	for key, batch := range m.blobs {
		if o, err := s.blobs.Stat(context.Background(), key); err == nil {
			if meta, err := blobfmt.ParseMeta(o.Metadata); err == nil && meta.Batch == batch {
				return true
			}
		}
	}
	return false
}

// vanished is a day of which nothing is left, but in a root. A range without a beginning or an end
// touches it if there is a day before, or after.
type vanished struct{ before, after bool }

func newThiefWorld(seed uint64) *thiefWorld {
	rng := rand.New(rand.NewPCG(seed, 56))
	p := serverProfile(rng)
	p.Closed, p.Calm, p.Steps = true, rng.IntN(3) > 0, []int{20, 30, 45}[rng.IntN(3)]
	w := &thiefWorld{
		serverWorld: &serverWorld{world: worldOf(seed, p, rng), ids: map[string]string{}}, robbed: rng.IntN(p.Steps + p.Steps/3),
		gone: map[string]*missing{}, vanished: map[serviceDay]*vanished{},
	}
	w.distant = rng.IntN(2) == 0
	w.counts.kinds, w.counts.incomplete, w.thefts.kinds = map[string]int{}, map[string]int{}, map[string]int{}
	w.seen = inventory{place: map[batchID]string{}, names: map[batchID][]string{}}
	w.lost = w.lacks
	return w
}

// Run takes the steps, and has the store verified.
func (w *thiefWorld) Run() {
	time.Sleep(10 * time.Minute)
	for _, in := range w.all {
		w.startOn(in, in.to, in.host)
	}
	time.Sleep(15 * time.Second)
	w.serve(0)
	for n := range w.p.Steps {
		if w.violated() {
			break
		}
		for _, in := range w.all {
			in.reap()
		}
		switch k := w.rng.IntN(100); {
		case k < 12:
			w.clients.Go(w.close)
		case k < 20:
			w.clients.Go(w.rewrite)
		case k < 36 && n > w.robbed:
			w.steal()
		case k < 50:
			w.read()
		case k < 54:
			time.Sleep(keepAge)
		default:
			w.step()
		}
		time.Sleep(w.pace())
	}
	w.settle()
	if !w.violated() && !w.mutated {
		w.fair()
		w.verify()
	}
	w.end()
}

// job is the way of a retention job to the store.
func (w *thiefWorld) job() *way {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked["jobs"]++
	return &way{w: w.world, name: fmt.Sprint("job", w.asked["jobs"]), tables: &sky{}, writes: &sky{}, blobs: &sky{}}
}

// close closes days, as `retention close` does, or `retention apply`.
func (w *thiefWorld) close() {
	y, s := w.job(), w.stores[0]
	if !w.p.Calm && w.fate("job").IntN(3) == 0 {
		y.blobs.set(mixed)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	done, err := closing.Run(ctx, y.blobsOf(s), closing.Options{
		Now: time.Now(), Log: zerolog.Nop(), Daily: w.fate("daily").IntN(2) == 0,
	})
	w.say("%s closes: %d parts, %v %v", y.name, done.Parts, err, done.Problems)
	w.mu.Lock()
	w.thefts.Parts += done.Parts
	w.mu.Unlock()
	if w.p.Calm && !w.harmed.Load() && !w.mutated && (err != nil || len(done.Problems) > 0) {
		w.violation("nothing fails, and %s says: %v %v", y.name, err, done.Problems)
	}
}

// rewrite compacts closed days.
func (w *thiefWorld) rewrite() {
	y, s := w.job(), w.stores[0]
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	done, err := compact.Run(ctx, y.blobsOf(s), compact.Options{Grace: keepAge, Log: zerolog.Nop(), Now: time.Now})
	w.say("%s compacts: %d blobs to %d, %d deleted: %v %v", y.name, done.In, done.Out, done.Deleted, err, done.Problems)
	w.mu.Lock()
	w.counts.Compacted += done.In
	w.mu.Unlock()
	if w.p.Calm && !w.harmed.Load() && !w.mutated && (err != nil || len(done.Problems) > 0) {
		w.violation("nothing fails, and %s says: %v %v", y.name, err, done.Problems)
	}
}

// lacks reports whether a complete answer for a range may lack a record. w.mu is held.
func (w *thiefWorld) lacks(s *sent, rng blobs.Range) bool {
	m := w.gone[s.name]
	switch {
	case m == nil:
		return false
	case !m.guarded, m.back(w.stores[0]):
		return true
	}
	v := w.vanished[m.of]
	if v == nil {
		return false
	}
	for range w.stores[0].blobs.List(context.Background(), m.of.prefix(), "") {
		m.guarded = false // something has come of the day
		return true
	}
	return rng.From == blobs.Oldest && !v.before || rng.To == blobs.Newest && !v.after
}

// verify verifies the store.
func (w *thiefWorld) verify() {
	var found []string
	r := blobs.New(w.stores[0].blobs, blobs.Options{})
	_, err := r.Verify(context.Background(), blobs.Query{Range: blobs.Always()}, blobs.VerifyOptions{}, func(f blobs.Finding) {
		if !f.Note {
			found = append(found, f.Key+": "+f.Err.Error())
		}
	})
	w.say("verify: %v %q", err, found)
	if err != nil && !w.stores[0].tables.empty(w.stores[0].container) {
		w.trouble("verify: %v", err)
	}
	all, parts := w.objects()
	in, damaged := w.recorded(all), w.unrooted(parts)
	w.mu.Lock()
	if len(found) == 0 {
		w.thefts.Clean++
	} else {
		w.thefts.Found++
	}
	for name, m := range w.gone {
		if m.guarded && w.vanished[m.of] == nil && !in[name] { // its ingester may have stored it again
			damaged[m.of.prefix()] = "without " + name
		}
	}
	w.mu.Unlock()
	for prefix, what := range damaged {
		names := func(f string) bool { return strings.HasPrefix(f, prefix) || strings.Contains(f, w.alias(prefix)) }
		if !slices.ContainsFunc(found, names) {
			w.violation("verify finds nothing at %s, %s: %q", prefix, what, found)
		}
	}
	if len(found) > 0 && w.p.Calm && !w.harmed.Load() {
		w.violation("nothing was robbed, and verify finds %q", found)
	}
}

// unrooted are the days that lack a stolen part that a root names, with the root, by prefixes of keys.
// A run may have made the part again, with the same bytes.
func (w *thiefWorld) unrooted(parts map[serviceDay][]*object) map[string]string {
	damaged := map[string]string{}
	for root, err := range catalog.Roots(context.Background(), w.stores[0].blobs, nil) {
		if err != nil {
			w.trouble("roots: %v", err)
			continue
		}
		for _, o := range w.stolen {
			n, _ := closed.ParseName(o.Key)
			again := func(is *object) bool { return bytes.Equal(is.body, o.body) }
			if at := (serviceDay{n.Service, n.Day}); root.Days.Get(at.day, at.service) == closed.HashOf(o.body) &&
				!slices.ContainsFunc(parts[at], again) {
				damaged[at.prefix()] = "where a part that " + root.Name + " names is gone"
			}
		}
	}
	return damaged
}

// alias ends a finding about a service of which nothing is left.
func (w *thiefWorld) alias(prefix string) string {
	service, _, _ := strings.Cut(prefix, "/")
	return "the SHA-256 of its name begins with " + closed.Alias(service)
}
