package retention_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/retention"
	"blobtail/storage/storagetest"
)

// A leaked secret: when the call returns, the day is hidden, and its blobs and the
// tables that may have its records are gone.
func TestDrop(t *testing.T) { synctest.Test(t, testDrop) }

func testDrop(t *testing.T) {
	w := newWorld(t)
	today := horizon.DayOf(w.now)
	leak := w.blob("app", days(2), 100)
	older, younger := w.blob("app", days(3), 100), w.blob("app", days(1), 100)
	sibling := w.blob("app2", days(2), 100)
	w.table("tail20261116", "tail20261117", "tail20261118", "tail20261119", "tail20261120")
	before := w.state()

	job := w.job(retention.Policy{}) // no policy is needed
	req := retention.DropRequest{Service: "app", Day: today - 2}
	r, err := job.Drop(t.Context(), req)
	var confirm *retention.ConfirmError
	if !errors.As(err, &confirm) || confirm.Hash != r.Plan.Hash || r.Plan.Total().Blobs != 1 || diff(w.state(), before) != "" {
		t.Fatalf("%+v, %v\n%s", r, err, diff(w.state(), before))
	}
	req.Confirm = strings.Repeat("f", 64)
	if _, err := job.Drop(t.Context(), req); !errors.As(err, &confirm) || diff(w.state(), before) != "" {
		t.Fatalf("%v\n%s", err, diff(w.state(), before))
	}
	req.Confirm = confirm.Hash
	if r, err = job.Drop(t.Context(), req); err != nil || r.Total().Blobs != 1 || len(r.Problems) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	left := w.state()
	for _, key := range []string{leak, "table tail20261117", "table tail20261118", "table tail20261119"} {
		if _, there := left[key]; there {
			t.Errorf("%s stays", key)
		}
	}
	for _, key := range []string{older, younger, sibling, "table tail20261116", "table tail20261120"} {
		if _, there := left[key]; !there {
			t.Errorf("%s is gone", key)
		}
	}
	h, err := horizon.Read(t.Context(), w.store)
	if err != nil || !h.Hides("app", today-2) || h.Hides("app", today-1) || h.Hides("app", today-3) || h.Hides("app2", today-2) {
		t.Errorf("%+v, %v", h, err)
	}

	// An ingester stored this blob before it knew of the drop. The next run deletes it,
	// and so does the same drop again.
	late := w.blob("app", days(2), 1)
	if r, err = job.Drop(t.Context(), req); err != nil || w.has(late) {
		t.Errorf("again: %+v, %v", r, err)
	}
	late = w.blob("app", days(2), 1)
	if r := w.apply(retention.Policy{Default: days(30)}); !w.has(late) || r.Total().Blobs != 0 {
		t.Errorf("a run within %s: %+v", horizon.Settle, r)
	}
	w.now = w.now.Add(horizon.Settle + time.Second)
	if r := w.apply(retention.Policy{Default: days(30)}); w.has(late) || r.Total().Blobs != 1 {
		t.Errorf("the next run: %+v", r)
	}
}

func TestDropRefuses(t *testing.T) { synctest.Test(t, testDropRefuses) }

func testDropRefuses(t *testing.T) {
	w := newWorld(t)
	w.table("tail20261120")
	today := horizon.DayOf(w.now)
	for _, req := range []retention.DropRequest{
		{Service: "app", Day: today + 1}, {Service: "", Day: today}, {Service: "App", Day: today}, {Service: "_horizon", Day: today}, {Service: "app/..", Day: today},
	} {
		var refused *retention.RefusedError
		if _, err := w.job(retention.Policy{}).Drop(t.Context(), req); !errors.As(err, &refused) {
			t.Errorf("%+v: %v", req, err)
		}
	}
	req := retention.DropRequest{Service: "_rejected", Day: today, KeepTail: true}
	r, _ := w.job(retention.Policy{}).Drop(t.Context(), req)
	req.Confirm = r.Plan.Hash
	if _, err := w.job(retention.Policy{}).Drop(t.Context(), req); err != nil || !slices.Contains(slices.Collect(keysOf(w.state())), "table tail20261120") {
		t.Errorf("today, with the tail kept: %v, %v", err, w.state())
	}
}

// A failed drop has already hidden the day.
func TestDropThatFails(t *testing.T) { synctest.Test(t, testDropThatFails) }

func testDropThatFails(t *testing.T) {
	w := newWorld(t)
	key := w.blob("app", days(2), 1)
	store := storagetest.Faulty(w.store, storagetest.Times(-1, storagetest.Delete, "", storagetest.Fault{Before: storagetest.ErrFault}))
	job := retention.New(store, w.store, w.options(retention.Policy{}))
	req := retention.DropRequest{Service: "app", Day: horizon.DayOf(w.now) - 2}
	r, _ := job.Drop(t.Context(), req)
	req.Confirm = r.Plan.Hash
	r, err := job.Drop(t.Context(), req)
	if err != nil || len(r.Problems) != 1 || r.Total().Failed != 1 || !w.has(key) {
		t.Errorf("%+v, %v", r, err)
	}
	if h, err := horizon.Read(t.Context(), w.store); err != nil || !h.Hides("app", req.Day) {
		t.Errorf("%+v, %v", h, err)
	}
}
