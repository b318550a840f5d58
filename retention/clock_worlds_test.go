package retention_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit"
	"blobtail/retention"
	"blobtail/storage/storagetest"
)

// A clockWorld is a store without a clock, for some months. The clock of its host may be wrong.
type clockWorld struct {
	*world
	rnd    *rand.Rand
	real   time.Time     // the true time; now is the time of the host's clock
	offset time.Duration // of the host's clock
	policy retention.Policy
	apps   []*app

	asked  int // questions
	hidden int // horizons that runs found
}

// app is a service of a world.
type app struct {
	name    string
	from    int     // the day of its first record
	to      int     // and of its last
	chance  float64 // that it has a record in a quarter of a day
	senders bool    // its records have the times of senders with right clocks
}

func newClockWorld(t *testing.T, seed uint64) *clockWorld {
	w := &clockWorld{world: newWorld(t), rnd: rand.New(rand.NewPCG(seed, 7))}
	w.real = noon().Add(time.Duration(w.rnd.IntN(24*60)) * time.Minute)
	w.set(0)
	w.policy = retention.Policy{Default: days([]int{7, 10, 30, 60}[w.rnd.IntN(4)])}
	names := []string{"web", "orders", "legal", "debug"}
	for _, name := range names[:1+w.rnd.IntN(len(names))] {
		a := &app{name: name, to: w.rnd.IntN(200), chance: []float64{0.1, 0.5, 1}[w.rnd.IntN(3)], senders: w.rnd.IntN(2) == 0}
		a.from = w.rnd.IntN(max(1, a.to/2))
		w.apps = append(w.apps, a)
		switch name {
		case "legal":
			w.policy.Rules = append(w.policy.Rules, retention.Rule{Service: name, Age: retention.Keep})
		case "debug":
			w.policy.Rules = append(w.policy.Rules, retention.Rule{Service: name, Age: days(1 + w.rnd.IntN(4))})
		}
	}
	w.apply(w.policy)
	return w
}

// set sets the host's clock.
func (w *clockWorld) set(offset time.Duration) {
	w.offset = offset
	w.now = w.real.Add(offset)
}

// pass lets time pass.
func (w *clockWorld) pass(d time.Duration) {
	w.real = w.real.Add(d)
	w.now = w.now.Add(d)
}

// store stores a record of a service.
func (w *clockWorld) store(service string, at time.Time) {
	w.made++
	period := at.UTC().Truncate(time.Hour)
	w.put(blobfmt.Name{Service: service, Period: period, Number: 1 + w.made%999_998}.String(), 1, metadata(w.made, period, 1))
}

// log stores the records of a quarter of a day.
func (w *clockWorld) log(d int) {
	for _, a := range w.apps {
		if d < a.from || d > a.to || w.rnd.Float64() > a.chance {
			continue
		}
		at := w.now
		if a.senders {
			at = w.real
		}
		w.store(a.name, at)
	}
	if w.rnd.IntN(60) == 0 { // an import
		for range w.rnd.IntN(20) {
			w.store(w.apps[w.rnd.IntN(len(w.apps))].name, w.real.Add(-time.Duration(w.rnd.Int64N(int64(90*day)))))
		}
	}
	if w.rnd.IntN(8) == 0 {
		w.compact()
	}
	if w.rnd.IntN(200) == 0 {
		w.restore()
	}
}

// compact makes new blobs of those of some past hours, as compaction does.
func (w *clockWorld) compact() {
	for _, a := range w.apps {
		for e, err := range catalog.Blobs(w.t.Context(), w.world.store, a.name, catalog.Range{To: w.now.Add(-day)}) {
			if err != nil {
				w.t.Fatal(err)
			}
			if w.rnd.IntN(3) == 0 {
				w.restamp(e.Key)
			}
		}
	}
}

// run runs the job. If it asks, a person confirms the plan if the clock is right.
func (w *clockWorld) run() {
	w.t.Helper()
	before := w.keys()
	_, err := w.clocklessJob(w.policy).Apply(w.t.Context(), "")
	if confirm, ok := errors.AsType[*retention.ConfirmError](err); ok {
		w.asked++
		if err = nil; w.offset == 0 {
			_, err = w.clocklessJob(w.policy).Apply(w.t.Context(), confirm.Hash)
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	h, err := horizon.Read(w.t.Context(), w.world.store)
	if err != nil {
		w.t.Fatal(err)
	}
	for service := range h {
		s := h[service]
		age := w.policy.Age(service)
		if age == retention.Keep || s.First > horizon.DayOf(w.real.Add(-age)) {
			w.t.Fatalf("on %s, with a clock that is %v ahead, all of %s before %s is hidden; its age is %v", w.real, w.offset, service, s.First, age)
		}
		w.hidden++
	}
	after := w.keys()
	for key := range before {
		if after[key] {
			continue
		}
		name, err := blobfmt.ParseName(key)
		if err != nil {
			continue
		}
		if age := w.policy.Age(name.Service); age == retention.Keep || horizon.DayOf(name.Period) >= horizon.DayOf(w.real.Add(-age)) {
			w.t.Fatalf("on %s, with a clock that is %v ahead, %s was deleted; its age is %v", w.real, w.offset, key, age)
		}
	}
}

// keys are the keys of all objects.
func (w *clockWorld) keys() map[string]bool {
	keys := make(map[string]bool)
	for _, b := range storagetest.Objects(w.t, w.world.store, "") {
		keys[b.Key] = true
	}
	return keys
}

// live lets the world live for some days, with a run a day that may be some hours late.
func (w *clockWorld) live(from, n int, wrong func(d int)) {
	silent := 0 // days
	for d := from; d < from+n; d++ {
		wrong(d)
		if silent--; silent < 0 && w.rnd.IntN(40) == 0 {
			silent = w.rnd.IntN(50)
		}
		at := w.rnd.IntN(4)
		for quarter := range 4 {
			if silent <= 0 {
				w.log(d)
			}
			if quarter == 0 || quarter == at && w.rnd.IntN(3) == 0 {
				w.run()
			}
			w.pass(6 * time.Hour)
		}
	}
}

// off switches the host off, for no longer than anybody may leave it off without a question.
func (w *clockWorld) off() {
	shortest := w.policy.Default
	for _, r := range w.policy.Rules {
		shortest = min(shortest, r.Age)
	}
	if most := min(shortest/2, 5*day) - day; most > 0 {
		w.pass(time.Duration(w.rnd.Int64N(int64(most))))
	}
}

// left are the blobs that are past their age by some days.
func (w *clockWorld) left() (late []string) {
	for _, key := range slices.Sorted(maps.Keys(w.keys())) {
		name, err := blobfmt.ParseName(key)
		if err != nil || strings.HasPrefix(key, "_") {
			continue
		}
		if age := w.policy.Age(name.Service); age != retention.Keep && horizon.DayOf(name.Period) < horizon.DayOf(w.real.Add(-age))-3 {
			late = append(late, key)
		}
	}
	return late
}

// In worlds with a right clock, retention goes on without a question, with any stored blobs or
// none. In others the clock is set ahead for a while by more than five days, or behind. There no
// run hides or deletes a day before its time.
func TestClockWorlds(t *testing.T) {
	worlds := testkit.Portion(150, 40, 4)
	asked, hidden, wrongly := 0, 0, 0
	for seed := range worlds {
		w := newClockWorld(t, uint64(seed))
		w.live(0, 150, func(int) {
			if w.rnd.IntN(10) == 0 {
				w.off()
			}
		})
		for range 2 {
			w.run()
			w.pass(day)
		}
		if w.asked > 0 {
			t.Errorf("world %d: %d questions", seed, w.asked)
		}
		if late := w.left(); len(late) > 0 {
			t.Errorf("world %d: still there: %v", seed, late)
		}
		hidden += w.hidden

		w = newClockWorld(t, uint64(seed))
		begin := 5 + w.rnd.IntN(60)
		end := begin + 1 + w.rnd.IntN(60)
		w.live(0, 150, func(d int) {
			switch {
			case d == begin, d > begin && d < end && w.rnd.IntN(10) == 0:
				w.set(5*day + time.Hour + time.Duration(w.rnd.Int64N(int64(400*day))))
				if w.rnd.IntN(2) == 0 {
					w.set(5*day + time.Hour + time.Duration(w.rnd.Int64N(int64(20*day))))
				}
				wrongly++
			case d == end, d > end && w.rnd.IntN(20) == 0:
				w.set(0)
			case (d < begin || d > end) && w.rnd.IntN(20) == 0:
				w.set(-time.Duration(w.rnd.Int64N(int64(200 * day))))
			case w.rnd.IntN(20) == 0:
				w.pass(time.Duration(w.rnd.Int64N(int64(40 * day)))) // switched off
			}
		})
		asked += w.asked
		if t.Failed() {
			t.Fatalf("world %d: policy %+v", seed, w.policy)
		}
	}
	t.Logf("%d worlds: %d horizons seen in honest ones, %d questions in those with %d wrong clocks", worlds, hidden, asked, wrongly)
	if hidden == 0 || asked < worlds {
		t.Errorf("%d horizons, %d questions", hidden, asked)
	}
}
