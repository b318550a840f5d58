package closing_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/catalog/horizon"
	"blobtail/retention"
	"blobtail/retention/closing"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// The daily run of the retention job looks for a week at the days that it has closed: a late blob
// comes into the account, and one that is missing is told by each run. Older days without an account
// stay as they are.
func TestAgain(t *testing.T) {
	w := newWorld(t)
	apply := func(store storage.BlobStore) closing.Result {
		t.Helper()
		r, err := retention.New(store, w.store, retention.Options{Policy: retention.Policy{Default: 90 * 24 * time.Hour}, Grace: time.Hour,
			Clock: func() time.Time { return w.now }, Closing: &closing.Options{Log: zerolog.Nop()}}).Apply(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		return r.Closed
	}
	w.blob("web", day.Add(-40*24*time.Hour), 1, 1) // before what the first run closes
	w.hours("web")
	apply(w.store)
	w.now = w.now.Add(24 * time.Hour)
	late := w.blob("web", day.Add(15*time.Hour), 9, 2)
	if got := apply(w.store); got.Parts != 1 || got.Days != 1 {
		t.Errorf("of a late blob: %+v", got)
	}
	w.remove(late)
	for i := range 8 {
		w.now = w.now.Add(24 * time.Hour)
		got := apply(w.store)
		told := len(got.Problems) == 1 && strings.HasPrefix(got.Problems[0].Error(), late+": it is missing")
		if told != (i < 6) || got.Parts > 0 {
			t.Errorf("run %d after a blob was removed: %+v", i, got)
		}
	}

	// A day that could not be closed is one that the next run closes.
	first := w.now.Add(-48 * time.Hour).Truncate(24 * time.Hour)
	w.blob("web", first.Add(24*time.Hour), 1, 1)
	w.now = w.now.Add(24 * time.Hour)
	full := storagetest.Fault{Before: errors.New("it is full")}
	fails := storagetest.Faulty(w.store, storagetest.Times(1, storagetest.Create, "/_closed.", full))
	got := apply(fails)
	if len(got.Problems) != 1 || got.Parts != 0 || got.Through != horizon.DayOf(first) {
		t.Errorf("%+v", got)
	}
	if got := apply(fails); len(got.Problems) != 0 || got.Parts != 1 || got.Through != horizon.DayOf(first)+1 {
		t.Errorf("%+v", got)
	}
}
