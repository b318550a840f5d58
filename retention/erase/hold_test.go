package erase_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/catalog/erasure"
	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit"
	"blobtail/retention"
	"blobtail/storage/storagetest"
)

// A day that is held is refused, and nothing of it is erased. If the hold came behind the plan, and something
// else was erased before, the result tells of both.
func TestHeld(t *testing.T) { synctest.Test(t, testHeld) }

func testHeld(t *testing.T) {
	w := small(t)
	before := w.keys("web")
	refused := func(after int) {
		t.Helper()
		r, err := w.erase(t.Context(), expr)
		if r.Made > 0 && err == nil && len(r.Problems) > 1 {
			err = r.Problems[0]
		}
		if r.Made != after || err == nil || !strings.Contains(err.Error(), "are held, so nothing more is erased: ") ||
			!strings.Contains(err.Error(), "of web by case-7") {
			t.Error(err)
		}
		if after := w.keys("web"); !slices.Equal(after, before) {
			t.Errorf("the store has %v", after)
		}
	}
	h := hold.Hold{Name: "case-7", Services: []string{"web"}, From: hold.Oldest, To: hold.Newest}
	w.ops = func(op storagetest.Op, key string) storagetest.Fault {
		if op == storagetest.Create && strings.HasPrefix(key, "_erase/web/") && len(storagetest.KeysOf(t, w.store, h.Key())) == 0 {
			w.must(hold.Create(t.Context(), w.store, &h))
		}
		return storagetest.Fault{}
	}
	refused(1) // of _rejected, which is first
	w.ops = nil
	refused(0)
}

// A hold meets a run at each of its operations, which ends or is killed then. Once it is in force, nothing
// that is stored goes from its days, whatever is repeated: also what an erased blob has replaced already.
func TestMeetsHold(t *testing.T) {
	inForce, refused := 0, 0
	for at, more := 1, true; more; at += testkit.Share(1, 17) {
		synctest.Test(t, func(t *testing.T) {
			var now bool
			if more, now = testMeetsHold(t, at, at%4 > 1); now {
				inForce++
			} else {
				refused++
			}
		})
	}
	if inForce == 0 || refused == 0 {
		t.Errorf("%d holds were in force at once, %d were not", inForce, refused)
	}
}

func testMeetsHold(t *testing.T, at int, kills bool) (reached, now bool) {
	w := small(t)
	job := retention.New(w.store, w.tables, retention.Options{Log: zerolog.Nop()})
	h := hold.Hold{Name: "case-7", Services: []string{"we*"}, From: hold.Oldest, To: hold.Newest, Reason: "x"}
	if at%2 == 0 {
		h.From = horizon.DayOf(ago(3, 0))
	}
	when := fmt.Sprintf("a hold at operation %d (kills: %v)", at, kills)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var held map[string]bool
	var again sync.WaitGroup
	slow := time.Duration(at%3) * 35 * time.Second // an operation
	stored := func() map[string]bool {             // and those that are shown, without their newlines
		all := w.janes("web/")
		for line := range first(w.shown(w.plan())) {
			if strings.Contains(line, "jane") && !strings.Contains(line, "broken") {
				all[strings.TrimSpace(line)] = true
			}
		}
		return all
	}
	take := func() bool {
		err := job.Hold(t.Context(), h)
		if err == nil {
			held = stored()
		} else if !errors.As(err, new(*retention.RefusedError)) || !strings.Contains(err.Error(), "are being erased") {
			t.Errorf("%s: %v", when, err)
		}
		return err == nil
	}
	k := &killer{at: at, meets: func(storagetest.Op, string) {
		if reached, now = true, take(); kills {
			cancel()
		}
		again.Go(func() {
			time.Sleep(erasure.Fresh + 2*time.Minute)
			if !now && !take() {
				t.Errorf("%s: it is not in force later", when)
			}
		})
	}}
	w.ops = func(op storagetest.Op, key string) storagetest.Fault {
		time.Sleep(slow)
		return k.script(op, key)
	}
	r, err := w.erase(ctx, expr)
	w.ops = nil
	if again.Wait(); !reached {
		return false, false
	}
	switch did := r.Made+r.Deleted > 0 || r.Lines > 0; {
	case kills && err != nil:
	case err != nil && (did || !errors.As(err, new(*retention.RefusedError))):
		t.Errorf("%s: %+v, %v", when, r, err)
	case err == nil && len(r.Problems) == 0 && len(w.janes("web/")) > 0:
		t.Errorf("%s: the run says nothing of what it has left", when)
	}
	for range 3 {
		time.Sleep(2 * time.Hour)
		w.close()
		_, err := w.compact(w.store)
		w.must(err)
		if r, err := w.erase(t.Context(), expr); len(held) > 0 && !errors.As(err, new(*retention.RefusedError)) {
			t.Errorf("%s: another run: %+v, %v", when, r, err)
		}
	}
	if after := stored(); !maps.Equal(after, held) {
		t.Errorf("%s: %d records of %d are stored later", when, len(after), len(held))
	}
	w.must(job.Release(t.Context(), h.Name))
	w.erased()
	w.clean(when + " that was released")
	return true, now
}
