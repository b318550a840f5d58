package retention_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"blobtail/catalog/horizon"
	"blobtail/retention"
	"blobtail/storage/storagetest"
)

// killer lets a run do a number of operations and then simulates the end of the
// process: the operation fails before or after it is done, and nothing follows it.
type killer struct {
	mu    sync.Mutex
	left  int
	after bool // the last operation is done, but its answer is lost
	die   context.CancelFunc
	seen  int
}

func (k *killer) script(storagetest.Op, string) storagetest.Fault {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen++
	if k.left--; k.left > 0 {
		return storagetest.Fault{}
	}
	k.die()
	if k.left == 0 && k.after {
		return storagetest.Fault{After: storagetest.ErrFault}
	}
	return storagetest.Fault{Before: storagetest.ErrFault}
}

// killed starts a run that is killed at an operation, counted from 1, and reports
// whether the run got that far.
func (w *world) killed(p retention.Policy, at int, after bool) bool {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// The confirming hash is known from before.
	plan, err := w.job(p).Plan(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	k := &killer{left: at, after: after, die: cancel}
	job := retention.New(storagetest.Faulty(w.store, k.script), storagetest.FaultyTables(w.store, k.script), w.options(p))
	_, err = job.Apply(ctx, plan.Hash)
	if k.seen < at && err != nil {
		w.t.Fatal(err)
	}
	return k.seen >= at
}

// killWorld has work for every step of a run.
func killWorld(t *testing.T) (*world, retention.Policy) {
	w := newWorld(t)
	w.bare = true // such a store has one kind of object more
	for _, service := range []string{"app", "app2", "_rejected"} {
		for _, n := range []int{5, 29, 33, 33, 40} {
			w.blob(service, days(n), 10)
		}
	}
	w.put("app/2026/10/01/notes.txt", 1, nil)
	w.blob("legal", days(300), 10)
	w.publish("app", days(38))
	w.publish("app", days(36))
	if err := horizon.Drop(t.Context(), w.store, "app2", horizon.DayOf(w.now.Add(-days(29)))); err != nil {
		t.Fatal(err)
	}
	if err := horizon.Drop(t.Context(), w.store, "app", horizon.DayOf(w.now.Add(-days(45)))); err != nil {
		t.Fatal(err)
	}
	w.table("tail20261101", "tail20261102", "tail20261119")
	w.now = w.now.Add(grace)
	return w, retention.Policy{Default: days(30), Tail: days(3), Rules: []retention.Rule{{Service: "legal", Age: retention.Keep}}}
}

// A run that is killed at any operation and repeated ends in the same state as an
// undisturbed run. So does the run that deletes the days that the first one hid.
func TestKilledAnywhere(t *testing.T) {
	w, policy := killWorld(t)
	begin := w.state()
	w.apply(policy)
	first := w.state()
	w.now = w.now.Add(grace)
	w.apply(policy)
	second := w.state()
	if len(first) >= len(begin) || len(second) >= len(first) {
		t.Fatalf("%d, %d, %d objects: not everything is tried", len(begin), len(first), len(second))
	}

	kills := 0
	for _, after := range []bool{false, true} {
		for _, run := range []int{1, 2} {
			for at := 1; ; at++ {
				w, policy := killWorld(t)
				if run == 2 {
					w.apply(policy)
					w.now = w.now.Add(grace)
				}
				if !w.killed(policy, at, after) {
					if at < 20 {
						t.Errorf("run %d has %d operations: something is not tried", run, at-1)
					}
					break
				}
				kills++
				w.apply(policy)
				want := second
				if run == 1 {
					want = first
				}
				if d := diff(w.state(), want); d != "" {
					t.Errorf("run %d killed at operation %d (done: %v), then run again:\n%s", run, at, after, d)
				}
				if run == 2 {
					continue
				}
				w.now = w.now.Add(grace)
				w.apply(policy)
				if d := diff(w.state(), second); d != "" {
					t.Errorf("killed at operation %d (done: %v), two runs later:\n%s", at, after, d)
				}
			}
		}
	}
	t.Logf("killed %d times", kills)
}

// The same holds for a drop that is killed and repeated.
func TestDropKilledAnywhere(t *testing.T) { synctest.Test(t, testDropKilledAnywhere) }

func testDropKilledAnywhere(t *testing.T) {
	drop := func(j *retention.Job, ctx context.Context, w *world) error {
		req := retention.DropRequest{Service: "app", Day: horizon.DayOf(w.now.Add(-days(33)))}
		p, _ := w.job(retention.Policy{}).Drop(context.Background(), req)
		req.Confirm = p.Plan.Hash
		_, err := j.Drop(ctx, req)
		return err
	}
	start := func() *world {
		w, _ := killWorld(t)
		w.table("tail20261017", "tail20261018", "tail20261019")
		return w
	}
	undisturbed := start()
	if err := drop(undisturbed.job(retention.Policy{}), t.Context(), undisturbed); err != nil {
		t.Fatal(err)
	}
	want := undisturbed.state()
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			w := start()
			ctx, cancel := context.WithCancel(t.Context())
			k := &killer{left: at, after: after, die: cancel}
			err := drop(retention.New(storagetest.Faulty(w.store, k.script), storagetest.FaultyTables(w.store, k.script), w.options(retention.Policy{})), ctx, w)
			cancel()
			if k.seen < at {
				if err != nil || at < 8 {
					t.Errorf("%d operations, %v", at-1, err)
				}
				break
			}
			if err := drop(w.job(retention.Policy{}), t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if d := diff(w.state(), want); d != "" {
				t.Errorf("killed at operation %d (done: %v), then asked again:\n%s", at, after, d)
			}
		}
	}
}

// Two concurrent runs only do the same work twice.
func TestTwoAtOnce(t *testing.T) {
	for range 50 {
		w, policy := killWorld(t)
		want, _ := killWorld(t)
		for range 2 {
			plan, err := w.job(policy).Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var runs sync.WaitGroup
			for range 2 {
				runs.Go(func() {
					r, err := w.job(policy).Apply(t.Context(), plan.Hash)
					var confirm *retention.ConfirmError
					// The other run may have finished before this one planned. Then this plan
					// differs, and needs no confirmation any more.
					if err != nil && !errors.As(err, &confirm) || err == nil && len(r.Problems) > 0 {
						t.Errorf("%v, %+v", err, r.Problems)
					}
				})
			}
			runs.Wait()
			want.apply(policy)
			if d := diff(w.state(), want.state()); d != "" {
				t.Fatalf("two at once:\n%s", d)
			}
			w.now, want.now = w.now.Add(grace), want.now.Add(grace)
		}
	}
}
