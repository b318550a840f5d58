package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/catalog"
	"blobtail/catalog/horizon"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// inParts lists a range of the service web in parts, by a clock.
func inParts(ctx context.Context, s catalog.Store, now time.Time, r catalog.Range) iter.Seq2[catalog.Entry, error] {
	view := catalog.NewView(s, []string{"web"}, horizon.Checked{Days: horizon.Horizons{}})
	view.InParts(func() time.Time { return now })
	return view.Blobs(ctx, "web", r)
}

// days stores a blob at noon of each of some days.
func days(t *testing.T, first time.Time, n int) (s *mem.Store, keys []string) {
	s = mem.New(mem.Options{})
	for day := range n {
		keys = append(keys, blob(t, s, "web", first.AddDate(0, 0, day), 1))
	}
	return s, keys
}

// A range has few requests, and few of them at once, whatever days the service has beside it.
func TestRequestsInParts(t *testing.T) {
	const day = 24 * time.Hour
	first := time.Date(2024, 11, 20, 12, 0, 0, 0, time.UTC)
	s, _ := days(t, first, 3*365)
	now := first.AddDate(0, 0, 3*365-1)
	for _, c := range []struct {
		name        string
		from, to    time.Duration // before now
		open        bool
		lists, dirs int
	}{
		{"an hour", time.Hour, 0, false, 1, 0},
		{"an hour up to now", time.Hour, 0, true, 1, 3},
		{"over midnight", 20 * time.Hour, 0, true, 2, 3},
		{"8 days up to now", 8 * day, 0, true, 1, 3}, // longer, up to the end of today: ten days
		{"8 days with an end", 8 * day, 0, false, 9, 0},
		{"10 days", 10 * day, 0, false, 2, 0},
		{"62 days", 62 * day, 0, false, 9, 0},
		{"63 days", 63 * day, 0, false, 3, 0},
		{"2 years", 731 * day, 0, false, 25, 0},
		{"more than 2 years", 733 * day, 0, false, 1, 0},
		{"in the future", -2 * day, 0, true, 1, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			seen := map[storagetest.Op]int{}
			asked := storagetest.Faulty(s, func(op storagetest.Op, key string) storagetest.Fault {
				mu.Lock()
				defer mu.Unlock()
				seen[op]++
				return storagetest.Fault{Delay: time.Second}
			})
			r := catalog.Range{From: now.Add(-c.from), To: now.Add(-c.to)}
			if c.open {
				r.To = time.Time{}
			}
			begun := time.Now()
			got := keys(t, inParts(t.Context(), asked, now, r))
			if want := keys(t, catalog.Blobs(t.Context(), s, "web", r)); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", c.name, got, want)
			}
			if seen[storagetest.List] != c.lists || seen[storagetest.Dirs] != c.dirs {
				t.Errorf("%s: %v, want %d lists, %d dirs", c.name, seen, c.lists, c.dirs)
			}
			if took := time.Since(begun); took > 3*time.Second {
				t.Errorf("%s: a chain of %s", c.name, took)
			}
		})
	}
}

// Whichever request of a listing fails, the listing ends with that error, after all objects before
// it. The clock is days behind, so that there are days after today.
func TestErrorsInParts(t *testing.T) {
	first := time.Date(2026, 12, 29, 12, 0, 0, 0, time.UTC)
	s, all := days(t, first, 7)
	r, now := catalog.Range{From: first.Add(-time.Hour)}, first.AddDate(0, 0, 1)
	var mu sync.Mutex
	calls := map[string]bool{}
	list := func(failing string) (got []string, failed error) {
		asked := storagetest.Faulty(s, func(op storagetest.Op, key string) storagetest.Fault {
			mu.Lock()
			defer mu.Unlock()
			call := fmt.Sprint(op, " ", key)
			if calls[call] = true; call == failing {
				return storagetest.Fault{Before: storage.ErrUnauthorized}
			}
			return storagetest.Fault{}
		})
		for e, err := range inParts(t.Context(), asked, now, r) {
			if err != nil {
				return got, err
			}
			got = append(got, e.Key)
		}
		return got, nil
	}
	if got, err := list(""); err != nil || !slices.Equal(got, all) {
		t.Fatalf("%q, %v", got, err)
	}
	if len(calls) != 7+5 { // a list for each day, and directories of both years
		t.Errorf("%v", calls)
	}
	for call := range calls {
		got, err := list(call)
		if !errors.Is(err, storage.ErrUnauthorized) || len(got) >= len(all) || !slices.Equal(got, all[:len(got)]) {
			t.Errorf("%s fails: %d objects, %v", call, len(got), err)
		} else if n := strings.Count(err.Error(), "list web/: "); n != 1 {
			t.Errorf("%s fails: the service is named %d times: %v", call, n, err)
		}
	}
}

// A caller that stops early, or whose context ends, waits for no request that hangs, and a listing
// that is cut short has an error.
func TestEndsInParts(t *testing.T) {
	first := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	s, all := days(t, first, 400)
	now := first.AddDate(0, 0, 399)
	for _, from := range []time.Time{first, now.AddDate(0, 0, -3)} {
		synctest.Test(t, func(t *testing.T) {
			never := make(chan struct{})
			last := now.Format("2006/01")
			hanging := storagetest.Faulty(s, func(op storagetest.Op, key string) storagetest.Fault {
				if op == storagetest.Dirs || strings.Contains(key, last) {
					return storagetest.Fault{Block: never}
				}
				return storagetest.Fault{Delay: time.Millisecond}
			})
			if from.Equal(first) {
				for e, err := range inParts(t.Context(), hanging, now, catalog.Range{From: from}) {
					if err != nil || e.Key != all[0] {
						t.Errorf("%s, %v", e.Key, err)
					}
					break
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var failed error
			for _, err := range inParts(ctx, hanging, now, catalog.Range{From: from}) {
				failed = err
			}
			if !errors.Is(failed, context.DeadlineExceeded) {
				t.Errorf("from %s: %v", from, failed)
			}
		})
	}
}
