package retention_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit"
	"blobtail/retention"
	"blobtail/storage/storagetest"
)

// holdWorlds is how many random worlds with holds are tried.
const holdWorlds = 5_000

// kept is a stored blob.
type kept struct {
	service string
	day     horizon.Day
}

// holding is a world with holds. Actors run one after another, and any of them may stop at one of its
// operations, for good or for another actor.
type holding struct {
	*world
	rnd      *rand.Rand
	policy   retention.Policy
	blobs    map[string]kept
	force    map[string]hold.Hold // that are in force
	promised map[string]bool      // keys of blobs that were not hidden when a hold began
	killed   bool                 // the last run: its marks may stand until the next one
	mu       sync.Mutex
	inner    bool // an actor runs within another
	counts   map[string]int
	trace    []string
}

func (h *holding) store(actor func() string) {
	name := actor()
	h.counts[name]++
	h.trace = append(h.trace, fmt.Sprintf("%s %s inner %v killed %v", h.now.Format("01-02 15:04:05"), name, h.inner, h.killed))
	for key, b := range h.blobs {
		if h.has(key) {
			continue
		}
		if by := h.holder(key, b); by != "" {
			h.t.Fatalf("%s: %s of %s was deleted, which %s holds", name, key, b.day, by)
		}
		delete(h.blobs, key)
	}
}

// holder is the name of a hold in force for a blob.
func (h *holding) holder(key string, b kept) string {
	for name, f := range h.force {
		if f.Holds(b.service, b.day) && h.promised[name+key] {
			return name
		}
	}
	return ""
}

// seen checks that no held blob is hidden.
func (h *holding) seen() {
	all, err := horizon.Read(context.Background(), h.world.store)
	if err != nil {
		h.t.Fatal(err)
	}
	for key, b := range h.blobs {
		if by := h.holder(key, b); by != "" && all.Hides(b.service, b.day) {
			h.t.Fatalf("%s of %s is hidden, which %s holds (%+v): %s",
				key, b.day, by, h.force[by], strings.Join(h.trace, "\n"))
		}
	}
}

func (h *holding) add() string {
	service := []string{"app", "app", "app2", "web", "_rejected"}[h.rnd.IntN(5)]
	key := h.blob(service, days(h.rnd.IntN(50)), 1)
	n, err := blobfmt.ParseName(key)
	if err != nil {
		h.t.Fatal(err)
	}
	b := kept{service, horizon.DayOf(n.Period)}
	all, err := horizon.Read(context.Background(), h.world.store)
	if err != nil {
		h.t.Fatal(err)
	}
	h.blobs[key] = b
	for name, f := range h.force {
		h.promised[name+key] = f.Holds(service, b.day) && !all.Hides(service, b.day)
	}
	return "add"
}

// job is a job that is killed at one of its operations, or that stops there for another actor.
func (h *holding) job() (job *retention.Job, ctx context.Context, killed func() bool) {
	ctx, cancel := context.WithCancel(context.Background())
	h.t.Cleanup(cancel)
	most := []int{10, 30, 60, 120}[h.rnd.IntN(4)]
	kills, stops := h.rnd.IntN(2) == 0, 1+h.rnd.IntN(most)
	k := &killer{left: stops + 1 + h.rnd.IntN(3), after: h.rnd.IntN(2) == 0, die: cancel}
	if kills && h.rnd.IntN(2) == 0 {
		k.left, stops = stops, -1
	}
	at, n := k.left, 0
	script := func(op storagetest.Op, key string) storagetest.Fault {
		h.mu.Lock() // operations of a job come at once
		n++
		stop := n == stops && !h.inner
		if stop {
			h.inner = true
		}
		h.mu.Unlock()
		if stop {
			for range 1 + h.rnd.IntN(2) {
				h.store(h.act())
			}
			h.mu.Lock()
			h.inner = false
			h.mu.Unlock()
		}
		if !kills {
			return storagetest.Fault{}
		}
		return k.script(op, key)
	}
	tables := storagetest.FaultyTables(h.world.store, script)
	job = retention.New(h.clocked(storagetest.Faulty(h.world.store, script)), tables, h.options(h.policy))
	return job, ctx, func() bool { return kills && k.seen >= at }
}

func (h *holding) apply() string {
	job, ctx, killed := h.job()
	p, err := job.Plan(ctx)
	if err == nil {
		_, err = job.Apply(ctx, p.Hash)
	}
	var confirm *retention.ConfirmError
	if err != nil && !killed() && !errors.As(err, &confirm) {
		h.t.Fatal(err)
	}
	h.killed = h.killed && err != nil || killed()
	return "apply"
}

func (h *holding) hold() string {
	at := func() horizon.Day { return horizon.DayOf(h.now) - horizon.Day(h.rnd.IntN(50)) }
	globs := []string{"app", "app*", "*", "_*", "web"}
	f := hold.Hold{Name: fmt.Sprint("h", h.rnd.IntN(3)), From: hold.Oldest, To: hold.Newest, Reason: "x"}
	f.Services = []string{globs[h.rnd.IntN(len(globs))]}
	if h.rnd.IntN(3) > 0 {
		f.From = at()
	}
	if h.rnd.IntN(2) > 0 {
		f.To = max(f.From, at())
	}
	job, ctx, killed := h.job()
	before := maps.Clone(h.blobs)
	err := job.Hold(ctx, f)
	var refused *retention.RefusedError
	switch {
	case err != nil && !errors.As(err, &refused) && !killed():
		h.t.Fatal(err)
	case err != nil:
		return "hold not in force"
	}
	if !h.has(f.Key()) {
		return "hold released meanwhile"
	}
	if _, there := h.force[f.Name]; there {
		return "hold again"
	}
	all, err := horizon.Read(context.Background(), h.world.store)
	if err != nil {
		h.t.Fatal(err)
	}
	for key, b := range before {
		if _, there := h.blobs[key]; there && f.Holds(b.service, b.day) {
			if f.From != hold.Oldest && all.Hides(b.service, b.day) && !h.killed && !h.inner {
				h.t.Fatalf("%s of %s is hidden, and a hold from %s began", key, b.day, f.From)
			}
			h.promised[f.Name+key] = !all.Hides(b.service, b.day)
		}
	}
	h.force[f.Name] = f
	return "hold"
}

func (h *holding) release() string {
	name := fmt.Sprint("h", h.rnd.IntN(3))
	job, ctx, _ := h.job()
	delete(h.force, name) // from now on it promises nothing
	maps.DeleteFunc(h.promised, func(key string, _ bool) bool { return key[:2] == name })
	err := job.Release(ctx, name)
	if f := (hold.Hold{Name: name}); !h.has(f.Key()) {
		delete(h.force, name) // somebody made it again in between
	}
	if err != nil {
		return "release of nothing"
	}
	return "release"
}

func (h *holding) drop() string {
	if len(h.blobs) == 0 {
		return "drop of nothing"
	}
	keys := slices.Sorted(maps.Keys(h.blobs))
	b := h.blobs[keys[h.rnd.IntN(len(keys))]]
	job, ctx, killed := h.job()
	req := retention.DropRequest{Service: b.service, Day: b.day}
	r, err := job.Drop(ctx, req)
	if r != nil {
		req.Confirm = r.Plan.Hash
		_, err = job.Drop(ctx, req)
	}
	var refused *retention.RefusedError
	if err != nil && !errors.As(err, &refused) && !killed() {
		h.t.Fatal(err)
	}
	h.killed = h.killed || killed()
	if refused != nil {
		return "drop refused"
	}
	return "drop"
}

func (h *holding) act() func() string {
	all := []func() string{h.add, h.apply, h.apply, h.hold, h.hold, h.release, h.drop}
	return all[h.rnd.IntN(len(all))]
}

// TestHolds runs jobs, holds, releases and drops that are killed, or interrupted by one another, at any of
// their operations. Nothing that is held is deleted, and nothing held is hidden once a run has ended. What
// is released goes.
func TestHolds(t *testing.T) {
	counts := map[string]int{}
	for seed := range testkit.Portion(holdWorlds, holdWorlds/20, holdWorlds/100) {
		synctest.Test(t, func(t *testing.T) { holdWorld(t, uint64(seed), counts) })
		if t.Failed() {
			t.Fatalf("world %d", seed)
		}
	}
	t.Log(counts)
	for _, name := range []string{"hold", "hold not in force", "hold again", "release", "drop", "drop refused"} {
		if counts[name] == 0 {
			t.Errorf("no %s was tried", name)
		}
	}
}

func holdWorld(t *testing.T, seed uint64, counts map[string]int) {
	h := &holding{
		world: newWorld(t), rnd: rand.New(rand.NewPCG(seed, 59)), blobs: map[string]kept{}, force: map[string]hold.Hold{},
		promised: map[string]bool{}, counts: counts,
	}
	h.policy = retention.Policy{Default: days(1 + h.rnd.IntN(20)), Rules: []retention.Rule{{Service: "web", Age: retention.Keep}}}
	for range 20 {
		h.add()
	}
	for range 12 {
		h.store(h.act())
		h.now = h.now.Add([]time.Duration{0, 0, time.Second, grace, day, days(5)}[h.rnd.IntN(6)])
		if !h.killed {
			h.seen()
		}
	}
	for range 3 { // the marks of killed runs are withdrawn
		h.world.apply(h.policy)
		h.seen()
		h.now = h.now.Add(grace + 2*time.Second)
	}
	h.store(func() string { return "runs" })
	h.gone()
	for _, name := range []string{"h0", "h1", "h2"} {
		_ = h.world.job(h.policy).Release(t.Context(), name)
	}
	h.force = nil
	for range 3 {
		h.world.apply(h.policy)
		h.now = h.now.Add(grace + 2*time.Second)
	}
	h.gone()
}

// gone checks that what is past its age and not held is deleted.
func (h *holding) gone() {
	h.t.Helper()
	holds, err := hold.List(context.Background(), h.world.store)
	if err != nil {
		h.t.Fatal(err)
	}
	first := horizon.DayOf(h.now.Add(-h.policy.Default-4*grace)) - 1
	for key, b := range h.blobs {
		if b.service != "web" && b.day < first && h.has(key) && holds.Of(b.service, b.day) == nil {
			h.t.Errorf("%s of %s is past its age, and nothing holds it", key, b.day)
		}
	}
}
