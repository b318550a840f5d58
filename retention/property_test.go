package retention_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit"
	"blobtail/retention"
)

// cases is how many random policies and stores are tried.
const cases = 10_000

// object is the model of one stored object.
type object struct {
	key     string
	service string
	start   time.Time // of its day
	ours    bool
	table   bool
}

// random is a random store with a policy, and a model of both that shares nothing
// with the code: it uses time spans, not days.
type random struct {
	*world
	rnd     *rand.Rand
	policy  retention.Policy
	objects map[string]object
	// floors has the instants below which a service was hidden, with the time of
	// publishing; dropped are single days.
	floors  map[string][]floor
	dropped map[string]bool // service and day
}

type floor struct {
	below, at time.Time
}

func randomWorld(t *testing.T, seed uint64) *random {
	r := &random{world: newWorld(t), rnd: rand.New(rand.NewPCG(seed, 1)), objects: map[string]object{}, floors: map[string][]floor{}, dropped: map[string]bool{}}
	r.now = r.now.Add(time.Duration(r.rnd.Int64N(int64(3 * day)))).Truncate(time.Second)
	r.policy = retention.Policy{Default: r.age(), Tail: r.age()}
	for range r.rnd.IntN(4) {
		globs := []string{"app", "app*", "app2", "app-?", "*", "_*", "_rejected", "[a-m]*", "web", "keep*"}
		r.policy.Rules = append(r.policy.Rules, retention.Rule{Service: globs[r.rnd.IntN(len(globs))], Age: r.age()})
	}
	for range r.rnd.IntN(25) {
		r.add(0)
	}
	for range r.rnd.IntN(4) {
		r.mark()
	}
	for range r.rnd.IntN(4) {
		ago := days(r.rnd.IntN(60))
		for _, prefix := range []string{"tail", "tail", "tailx", "audit"} {
			name := prefix + r.now.Add(-ago).UTC().Format("20060102")
			r.table(name)
			r.objects["table "+name] = object{key: "table " + name, start: r.now.Add(-ago).Truncate(day), ours: prefix == "tail", table: true}
		}
	}
	return r
}

func (r *random) age() time.Duration {
	switch r.rnd.IntN(6) {
	case 0:
		return retention.Keep
	case 1:
		return day
	case 2:
		return day + time.Duration(r.rnd.Int64N(int64(3*day)))
	}
	return days(1 + r.rnd.IntN(50))
}

func (r *random) service() string {
	names := []string{"app", "app", "app2", "app-2", "app.x", "web", "keepsake", "_rejected", "a"}
	return names[r.rnd.IntN(len(names))]
}

// add stores a random kind of object that is at least so old.
func (r *random) add(ago time.Duration) {
	service := r.service()
	at := r.now.Add(-ago - time.Duration(r.rnd.Int64N(int64(60*day)))).UTC().Truncate(15 * time.Minute)
	r.made++
	o := object{service: service, start: at.Truncate(day), ours: true}
	o.key = blobfmt.Name{Service: service, Period: at, Number: r.made}.String()
	meta := metadata(r.made, at, 1+r.rnd.Int64N(1000))
	switch r.rnd.IntN(12) {
	case 0:
		meta, o.ours = nil, false
	case 1:
		o.key, o.ours = fmt.Sprintf("%s/%s%04d.txt", service, at.Format("2006/01/02/1504/"), r.made), false
	case 2:
		o.key, o.ours = fmt.Sprintf("%s-%d.log", service, r.made), false
	case 3:
		meta["levels"] = "?"
	case 4:
		meta["format"] = "7"
	}
	r.put(o.key, 1+r.rnd.IntN(100), meta)
	r.objects[o.key] = o
}

// mark hides something by hand, some time ago.
func (r *random) mark() {
	service, back := r.service(), days(1+r.rnd.IntN(60))
	start := r.now.Add(-back).Truncate(day)
	since := time.Duration(r.rnd.Int64N(int64(2 * grace))).Truncate(time.Second)
	r.now = r.now.Add(-since)
	var err error
	if r.rnd.IntN(2) == 0 {
		err = horizon.Drop(r.t.Context(), r.store, service, horizon.DayOf(start))
		r.dropped[service+start.String()] = true
	} else if err = horizon.Publish(r.t.Context(), r.store, service, horizon.DayOf(start)); err == nil {
		r.floors[service] = append(r.floors[service], floor{start, r.now})
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.now = r.now.Add(since)
}

// ageOf evaluates the policy independently of the code.
func (r *random) ageOf(o object) time.Duration {
	if o.table {
		return r.policy.Tail
	}
	for _, rule := range r.policy.Rules {
		ok, err := path.Match(rule.Service, o.service)
		if err != nil {
			r.t.Fatal(err)
		}
		if ok && strings.HasPrefix(o.service, "_") == strings.HasPrefix(rule.Service, "_") {
			return rule.Age
		}
	}
	return r.policy.Default
}

// past reports whether all of an object's day is older than its age.
func (r *random) past(o object) bool {
	age := r.ageOf(o)
	return o.ours && age != retention.Keep && !o.start.Add(day).After(r.now.Add(-age))
}

// mayGo reports whether an object may be deleted now.
func (r *random) mayGo(o object) bool {
	if !o.ours {
		return false
	}
	if o.table {
		return r.past(o)
	}
	if r.dropped[o.service+o.start.String()] {
		return true
	}
	for _, f := range r.floors[o.service] {
		if o.start.Before(f.below) && r.now.Sub(f.at) >= grace {
			return true
		}
	}
	return false
}

// run applies the policy once and compares the result with the model.
func (r *random) run() {
	r.t.Helper()
	before := r.state()
	var may, must []string
	for key, o := range r.objects {
		if r.mayGo(o) {
			may = append(may, key)
		}
	}
	result := r.apply(r.policy)
	after := r.state()
	gone := 0
	for key := range before {
		_, there := after[key]
		switch o, known := r.objects[key]; {
		case there || !known:
		case !slices.Contains(may, key):
			r.t.Errorf("%s went, which must stay: %+v, policy %+v", key, o, r.policy)
		default:
			gone++
			delete(r.objects, key)
		}
	}
	for _, key := range may {
		if _, there := after[key]; there {
			must = append(must, key)
		}
	}
	if len(must) > 0 {
		r.t.Errorf("stays: %v", must)
	}
	if len(result.Problems) > 0 || result.Total().Blobs+len(result.Tables) != gone {
		r.t.Errorf("%d went; the result says %d blobs and %d tables, problems %v", gone, result.Total().Blobs, len(result.Tables), result.Problems)
	}
	for _, h := range result.Raised {
		below := h.Day.Start()
		if o := (object{service: h.Service, start: below.Add(-day), ours: true}); !r.past(o) {
			r.t.Errorf("the horizon of %s was raised to %s, which hides what is kept", h.Service, h.Day)
		}
		r.floors[h.Service] = append(r.floors[h.Service], floor{below, r.now})
	}
}

// TestRandom checks random policies on random stores. A run never deletes an object
// within its age, a kept one, a foreign one or one of another service, unless it was
// hidden by hand. It deletes nothing that was hidden for less than a grace. After two
// runs, a grace apart, everything past its age is deleted.
func TestRandom(t *testing.T) {
	n := testkit.Portion(cases, cases/4, cases/20)
	gone, kept, late := 0, 0, 0
	for seed := range n {
		r := randomWorld(t, uint64(seed))
		var doomed []string
		for key, o := range r.objects {
			if r.past(o) {
				doomed = append(doomed, key)
			}
		}
		r.run()
		r.now = r.now.Add(grace)
		if r.rnd.IntN(2) == 0 {
			r.add(0) // arrives late, perhaps below the horizon
			late++
		}
		r.run()
		left := r.state()
		for _, key := range doomed {
			if _, there := left[key]; there {
				t.Errorf("%s is past its age and there after two runs", key)
			}
		}
		gone, kept = gone+len(doomed), kept+len(r.objects)
		// One more run, later: it deletes the due objects and nothing else.
		r.now = r.now.Add(grace + time.Duration(r.rnd.Int64N(int64(3*day))))
		r.run()
		if t.Failed() {
			t.Fatalf("case %d: policy %+v, objects %v", seed, r.policy, slices.Sorted(maps.Keys(r.objects)))
		}
	}
	t.Logf("%d cases: %d objects past their age went in two runs, %d stayed, %d came late", n, gone, kept, late)
}
