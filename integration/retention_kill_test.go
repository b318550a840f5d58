package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/catalog/horizon"
)

// archive returns an estate of three services with similar names and four blobs a
// day, for the given number of days before today.
func archive(t testing.TB, at place, days int) (e *estate, services []string) {
	t.Helper()
	e = newEstate(t, at, "default: keep")
	e.gap = 5 * time.Hour
	p := start(t, at, t.TempDir(), e.flag)
	ago := make([]int, days)
	for i := range ago {
		ago[i] = i + 1
	}
	services = []string{"app", "app2", "app-2"}
	for _, s := range services {
		e.fill(p, s, 4, ago...)
	}
	p.stop()
	return e, services
}

// state returns the contents of a store, without the times of its policies.
func state(t testing.TB, at place) []string {
	all := keys(t, at, "")
	for i, k := range all {
		if strings.HasPrefix(k, "_policy/") {
			all[i] = "_policy/" + k[len(k)-64:]
		}
	}
	return slices.Compact(all)
}

// A job that is killed at any moment and runs again has the same result as one that
// was not killed: all expired blobs are deleted, and nothing else.
func TestRetentionKilled(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		const step = 4
		days, rounds := sized("BLOBTAIL_KILLS", 20, 40), sized("BLOBTAIL_KILLS", 4, 8)
		e, services := archive(t, at, days)
		seed := newSeed(t)
		rnd := rand.New(rand.NewPCG(seed, 1))
		killed := 0
		for round := range rounds {
			age := days - step*(round+1)
			e.policy(fmt.Sprintf("default: %dd", age))
			took := 50 * time.Millisecond
			for range 1 + kills(t, 16)/rounds {
				// A killed run leaves another plan behind.
				out, _ := e.must(0, "plan")
				args := []string{"apply", "--grace", "0s", "--confirm", planHash(t, out), "--now", e.now.Format(time.RFC3339)}
				begun := time.Now()
				if killRetention(t, e, time.Duration(rnd.Int64N(int64(took))), args...) {
					killed++
				} else {
					took = max(time.Since(begun)/2, 10*time.Millisecond)
				}
				// The kept blobs are there after every kill.
				allKept(e, services, age)
			}
			e.confirm("--grace", "0s")
			e.sweep()
			want := func(d horizon.Day) bool { return d >= e.day(age) }
			for _, s := range services {
				got := of(logs(t, at), s, func(horizon.Day) bool { return true })
				if keep := of(got, s, want); len(got) != len(keep) || len(keep) != 4*age {
					t.Errorf("round %d: %d blobs of %s, %d of them to keep; want %d", round, len(got), s, len(keep), 4*age)
				}
				e.counts(s, e.day(age))
			}
		}
		if killed < rounds {
			t.Errorf("killed %d times only", killed)
		}
		t.Logf("seed %d: apply killed %d times", seed, killed)
		query(t, at, "verify")
		all := state(t, at)
		e.sweep()
		if got := state(t, at); !slices.Equal(got, all) {
			t.Errorf("one more run does something: %v, was %v", got, all)
		}
	})
}

// allKept compares the blobs to keep with those in the store.
func allKept(e *estate, services []string, age int) {
	e.t.Helper()
	names := logs(e.t, e.at)
	for _, s := range services {
		if got := of(names, s, func(d horizon.Day) bool { return d >= e.day(age) }); len(got) != 4*age {
			e.t.Fatalf("%d blobs of %s above the horizon, want %d", len(got), s, 4*age)
		}
	}
}

// killRetention starts a run and kills it after a while; false if it was done.
func killRetention(t testing.TB, e *estate, after time.Duration, args ...string) bool {
	t.Helper()
	cmd := retention(context.Background(), e.at, append(args, e.flag)...)
	if err := shared.start(cmd); err != nil {
		t.Fatal(err)
	}
	over := time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) // it may have ended
	defer over.Stop()
	_ = cmd.Wait() // the state is checked below
	return !cmd.ProcessState.Exited()
}

// A compactor is killed at any moment, or two run at once. Readers see no difference
// from one that was never killed.
func TestCompactionKilled(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		e := newEstate(t, at, "default: keep")
		e.gap = 20 * time.Second
		p := start(t, at, t.TempDir(), e.flag)
		seed := newSeed(t)
		rnd := rand.New(rand.NewPCG(seed, 2))
		killed, small := 0, 0
		var want []byte
		took := 60 * time.Millisecond
		for i := range kills(t, 8) {
			if i%sized("BLOBTAIL_KILLS", 4, 8) == 0 { // more to do
				for range 6 {
					e.fill(p, "web", 5, 2, 3, 4)
					e.fill(p, "db", 5, 2)
					small += 4
				}
				want = query(t, at, "*", "-o", "json")
				e.close()
			}
			begun := time.Now()
			if killRetention(t, e, time.Duration(rnd.Int64N(int64(took))), "compact", "--grace", "0s") {
				killed++
			} else {
				took = max(time.Since(begun)/2, 5*time.Millisecond)
			}
			if got := query(t, at, "*", "-o", "json"); !bytes.Equal(got, want) {
				t.Fatalf("seed %d, after %d kills: %s", seed, killed, difference(got, want))
			}
		}
		p.stop()
		for range 2 {
			var work sync.WaitGroup
			for range 2 {
				cmd := retention(t.Context(), at, "compact", "--grace", "0s", e.flag)
				work.Go(func() {
					if log, err := output(cmd); err != nil {
						t.Errorf("%v: %s", err, log)
					}
				})
			}
			work.Wait()
		}
		e.must(0, "compact", "--grace", "0s")
		if got := query(t, at, "*", "-o", "json"); !bytes.Equal(got, want) {
			t.Errorf("in the end: %s", difference(got, want))
		}
		few := len(logs(t, at))
		t.Logf("seed %d: compact killed %d times; %d small blobs or more, %d in the end", seed, killed, small, few)
		if few*2 > small {
			t.Errorf("%d small blobs, %d in the end", small, few)
		}
		query(t, at, "verify")
	})
}

// Two concurrent jobs have the same result as one, and both succeed.
func TestRetentionTwiceAtOnce(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		const days, age = 20, 10
		e, services := archive(t, at, days)
		e.policy(fmt.Sprintf("default: %dd", age))
		out, _ := e.must(0, "plan")
		hash := planHash(t, out)
		// The first runs hide and delete nothing, so all of them see the plan of the hash.
		for _, flags := range [][]string{{"--confirm", hash}, {"--grace", "0s"}, {"--grace", "0s"}} {
			var work sync.WaitGroup
			for range 3 {
				cmd := retention(t.Context(), at, append([]string{"apply", "--now", e.now.Format(time.RFC3339), e.flag}, flags...)...)
				work.Go(func() {
					if log, err := output(cmd); err != nil {
						t.Errorf("%v: %s", err, log)
					}
				})
			}
			work.Wait()
			allKept(e, services, age)
		}
		if got := logs(t, at); len(got) != 3*4*age {
			t.Errorf("%d blobs stay, want %d", len(got), 3*4*age)
		}
		for _, s := range services {
			e.counts(s, e.day(age))
			if marks := keys(t, at, "_horizon/"+s+"/"); len(marks) != 1 {
				t.Errorf("marks of %s: %v", s, marks)
			}
		}
	})
}

// output runs a command to its end.
func output(cmd *exec.Cmd) (string, error) {
	var log strings.Builder
	cmd.Stderr = &log
	if err := shared.start(cmd); err != nil {
		return "", err
	}
	err := cmd.Wait()
	return log.String(), err
}
