package integration_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/catalog/horizon"
)

// often returns how many in a thousand requests meet each fault: so many that a
// request fails now and then in spite of its retries.
func often() map[fault]int {
	return map[fault]int{refuse: 150, fail: 80, lose: 80, hang: 5, cutBody: 10, cutAnswer: 20, drip: 20}
}

// The store fails now and then in every known way. A job reports that it could not do
// everything, and finishes in the end. Kept blobs stay.
func TestRetentionFaulty(t *testing.T) {
	t.Parallel()
	through, direct, px := proxied(t)
	days, ages := 7, []int{5}
	if _, long := torture(t); long {
		days, ages = 15, []int{14, 12, 10, 8, 6, 4, 2}
	}
	e, services := archive(t, direct, days)
	seed := newSeed(t)
	px.hangs.Store(int64(2 * time.Second))
	px.set(bad(seed, often()))
	codes := map[int]int{}
	for _, age := range ages {
		e.policy(fmt.Sprintf("default: %dd", age))
		for done := 0; done < 2; {
			// A run that failed leaves another plan behind.
			e.at = direct
			out, _ := e.must(0, "plan")
			e.at = through
			out, errs, code := e.run("apply", "--grace", "0s", "--confirm", planHash(t, out))
			codes[code]++
			switch code {
			case 0:
				done++
			case 3, 5:
			default:
				t.Fatalf("exit code %d: %s%s", code, out, errs)
			}
			if codes[3]+codes[5] > 60 {
				t.Fatalf("it never gets there: %v; %s", codes, errs)
			}
			e.at = direct
			allKept(e, services, age)
		}
		for _, s := range services {
			if got := of(logs(t, direct), s, func(d horizon.Day) bool { return d < e.day(age) }); len(got) > 0 {
				t.Errorf("a run said that it was done, and there stay %v", got)
			}
		}
	}
	if px.done() < 5 {
		t.Errorf("hardly anything failed")
	}
	t.Logf("exit codes %v; %s", codes, px.report())
}

// The same holds for a compactor, and no reader sees a difference at any moment.
func TestCompactionFaulty(t *testing.T) {
	t.Parallel()
	through, direct, px := proxied(t)
	e := newEstate(t, direct, "default: keep")
	fills, ago, times := 4, []int{2, 3}, 2
	e.gap = 90 * time.Second // all blobs of a day are in one hour
	if _, long := torture(t); long {
		fills, ago, times = 6, []int{2, 3, 4}, 3
		e.gap = 2 * time.Minute
	}
	p := start(t, direct, t.TempDir(), e.flag)
	for range fills {
		e.fill(p, "web", 10, ago...)
	}
	p.stop()
	want := query(t, direct, "*", "-o", "json")
	small := len(logs(t, direct))
	e.close()
	px.hangs.Store(int64(2 * time.Second))
	px.set(bad(newSeed(t), often()))
	codes := map[int]int{}
	e.at = through
	for done := 0; done < times; {
		out, errs, code := e.run("compact", "--grace", "0s")
		codes[code]++
		switch code {
		case 0:
			done++
		case 3, 5:
		default:
			t.Fatalf("exit code %d: %s%s", code, out, errs)
		}
		if codes[3]+codes[5] > 60 {
			t.Fatalf("it never gets there: %v; %s", codes, errs)
		}
		if got := query(t, direct, "*", "-o", "json"); !bytes.Equal(got, want) {
			t.Fatal(difference(got, want))
		}
	}
	t.Logf("exit codes %v; %d blobs before, %d after; %s", codes, small, len(logs(t, direct)), px.report())
	if few := len(logs(t, direct)); few*2 > small {
		t.Errorf("%d blobs before, %d after", small, few)
	}
	query(t, direct, "verify")
}

// A store that refuses and a store that is unreachable have different exit codes, and
// nothing changes.
func TestRetentionRefused(t *testing.T) {
	t.Parallel()
	through, direct, px := proxied(t)
	e := newEstate(t, direct, "default: 3d")
	p := start(t, direct, t.TempDir(), e.flag)
	e.fill(p, "web", 2, 1, 5, 6)
	p.stop()
	before := keys(t, direct, "")
	e.at = through
	px.set(all(forbid))
	drop := []string{"drop", "web", "--day", e.day(5).String()}
	for _, args := range [][]string{{"plan"}, {"apply"}, {"compact"}, drop} {
		if out, errs, code := e.run(args...); code != 4 || strings.Count(errs, "\n") > 4 {
			t.Errorf("forbidden, retention %v exits %d, want 4: %s%s", args, code, out, errs)
		}
	}
	px.server.CloseClientConnections()
	px.server.Close()
	var running sync.WaitGroup
	for _, args := range [][]string{{"apply"}, {"compact"}} { // each retries for some seconds
		running.Go(func() {
			if out, errs, code := e.run(args...); code != 5 || strings.Count(errs, "\n") > 4 {
				t.Errorf("unreachable, retention %v exits %d, want 5: %s%s", args, code, out, errs)
			}
		})
	}
	running.Wait()
	if got := keys(t, direct, ""); !slices.Equal(got, before) {
		t.Errorf("%v, was %v", got, before)
	}
}
