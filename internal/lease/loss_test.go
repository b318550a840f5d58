package lease_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/lease"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// lossOf is a loss of some minutes before now.
func lossOf(since, until time.Duration) lease.Loss {
	return lease.Loss{Since: time.Now().Add(-since), Until: time.Now().Add(-until)}
}

func sameLoss(x, y lease.Loss) bool { return x.Since.Equal(y.Since) && x.Until.Equal(y.Until) }

// A loss stays in the notes and, once there are tables, in the row, over any number of
// starts, until it is acknowledged. A later loss counts anew.
func TestLossStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, disk := newWard(t), logDisk(t)
		p := w.launch(disk)
		if err := w.enter(p.Announcer); err != nil {
			t.Fatal(err)
		}
		restart := func() {
			disk = p.end(disk)
			p = w.launch(disk)
		}
		w.away()
		lost := lossOf(time.Hour, time.Minute)
		w.lose(lost)
		if !sameLoss(p.Loss(), lost) {
			t.Errorf("at once it knows of %v", p.Loss())
		}
		time.Sleep(20 * time.Second)
		w.lose(lease.Loss{}) // the next process finds nothing
		for range 3 {
			restart()
			time.Sleep(20 * time.Second)
			if !sameLoss(p.Loss(), lost) {
				t.Errorf("after a start it knows of %v", p.Loss())
			}
		}
		w.setFault(nil)
		time.Sleep(11 * time.Second)
		for range 3 {
			if got := w.row().Lost; !sameLoss(got, lost) {
				t.Errorf("the row says %v", got)
			}
			restart()
		}
		acknowledge(t, w, lost)
		for range 3 {
			time.Sleep(11 * time.Second)
			if got := w.row().Lost; got.Any() || p.Loss().Any() {
				t.Errorf("acknowledged, and the row says %v, the ingester %v", got, p.Loss())
			}
			restart()
		}
		if _, err := lease.ForgetLoss(t.Context(), w.store, "", "0badcafe"); err == nil || !strings.Contains(err.Error(), "it has lost nothing") {
			t.Errorf("acknowledged again: %v", err)
		}
		// The row shows a later loss within a second.
		later := lossOf(2*time.Second, time.Second)
		w.lose(later)
		time.Sleep(time.Second)
		if got := w.row().Lost; !sameLoss(got, later) {
			t.Errorf("of %v the row says %v", later, got)
		}
		acknowledge(t, w, later)
		time.Sleep(11 * time.Second) // although the process goes on reporting it
		if got := w.row().Lost; got.Any() || p.Loss().Any() {
			t.Errorf("acknowledged, and the row says %v, the ingester %v", got, p.Loss())
		}
	})
}

// acknowledge acknowledges the loss, and checks the loss in the former row.
func acknowledge(t *testing.T, w *ward, want lease.Loss) {
	t.Helper()
	was, err := lease.ForgetLoss(t.Context(), w.store, "", "0badcafe")
	if err != nil || !sameLoss(was.Lost, want) {
		t.Errorf("acknowledged is %v, %v; want %v", was.Lost, err, want)
	}
}

// A loss that was acknowledged while the log was away does not come back with it.
func TestLossAcknowledgedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, disk := newWard(t), logDisk(t)
		lost := lossOf(time.Hour, time.Minute)
		w.lose(lost)
		p := w.launch(disk)
		disk = p.end(disk)
		acknowledge(t, w, lost)
		p = w.launch(disk) // it finds the loss again
		if got := w.row().Lost; got.Any() || p.Loss().Any() {
			t.Errorf("the row says %v, the ingester %v", got, p.Loss())
		}
	})
}

// holder writes the row of another ingester that holds records.
func holder(t *testing.T, w *ward) {
	t.Helper()
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000000Z")
	upsert(t, w.store, "deadbeef", map[string]any{"format": int64(1), "state": "holding", "started": now, "at": now})
}

// A table that is removed under a running ingester also loses the row of another
// ingester that held records. The row that is written again says so.
func TestTableRemoved(t *testing.T) {
	for name, away := range map[string]time.Duration{"at once": 0, "and away for a while": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWard(t)
				holder(t, w)
				p := w.launch(logDisk(t))
				if err := w.enter(p.Announcer); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if away > 0 {
					w.setFault(storagetest.Times(-1, storagetest.Swap, "", storagetest.Fault{Before: storagetest.ErrFault}))
				}
				removed := time.Now()
				if err := w.store.Drop(t.Context(), lease.Table); err != nil {
					t.Fatal(err)
				}
				time.Sleep(away)
				w.setFault(nil)
				time.Sleep(11 * time.Second)
				r := w.row()
				if r.ID != "0badcafe" || r.State != lease.Holding || !r.Lost.Any() || r.Lost.Until.Before(removed) || !sameLoss(p.Loss(), r.Lost) {
					t.Errorf("the row says %+v, the ingester %v", r, p.Loss())
				}
				if n := strings.Count(p.told(), "the table of ingesters was removed"); n != 1 {
					t.Errorf("told %d times", n)
				}
				acknowledge(t, w, r.Lost)
				time.Sleep(time.Minute)
				if w.row().Lost.Any() || p.Loss().Any() {
					t.Error("acknowledged, and back again")
				}
			})
		})
	}
}

// A table that is removed is no loss if no other ingester held records.
func TestTableRemovedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		p := w.launch(logDisk(t))
		if err := w.enter(p.Announcer); err != nil {
			t.Fatal(err)
		}
		if err := w.store.Drop(t.Context(), lease.Table); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if r := w.row(); r.Lost.Any() || p.Loss().Any() || r.State != lease.Holding {
			t.Errorf("the row says %+v, the ingester %v", r, p.Loss())
		}
	})
}

// A table that was removed while the ingester was away is a loss for its next start, if
// another one held records when it ended.
func TestTableRemovedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, disk := newWard(t), logDisk(t)
		holder(t, w)
		p := w.launch(disk)
		disk = p.end(disk)
		if err := w.store.Drop(t.Context(), lease.Table); err != nil {
			t.Fatal(err)
		}
		w.launch(disk)
		if r := w.row(); !r.Lost.Any() || r.ID != "0badcafe" {
			t.Errorf("the row says %+v", r)
		}
	})
}

// A copy of the log that knows of no peers may write the own row into a new table. The
// row is then no proof that the table is the old one.
func TestTableMadeAnewByACopy(t *testing.T) {
	for _, running := range []bool{false, true} {
		t.Run(fmt.Sprintf("running %v", running), func(t *testing.T) { madeAnewByACopy(t, running, func(*ward) {}) })
	}
}

// The same holds while a row cannot be read, in the old table, the new one, or both.
func TestTableMadeAnewWithAStrangeRow(t *testing.T) {
	strange := func(w *ward) {
		upsert(w.t, w.store, "feedbeef", map[string]any{"format": int64(2)})
	}
	for _, running := range []bool{false, true} {
		for _, when := range []string{"before", "after", "always"} {
			t.Run(fmt.Sprintf("running %v, %s", running, when), func(t *testing.T) {
				madeAnewByACopy(t, running, func(w *ward) {
					_, gone := lease.List(t.Context(), w.store, "")
					if when == "always" || (gone == nil) == (when == "before") {
						strange(w)
					}
				})
			})
		}
	}
}

// madeAnewByACopy calls prepare for the old table and for the new one, which is not
// there yet.
func madeAnewByACopy(t *testing.T, running bool, prepare func(*ward)) {
	synctest.Test(t, func(t *testing.T) {
		w, disk := newWard(t), logDisk(t)
		holder(t, w)
		prepare(w)
		p := w.launch(disk)
		time.Sleep(11 * time.Second)
		if !running {
			disk = p.end(disk)
		}
		if err := w.store.Drop(t.Context(), lease.Table); err != nil {
			t.Fatal(err)
		}
		prepare(w)
		other := logDisk(t)
		q := w.launch(other)
		q.end(other)
		rows, err := lease.List(t.Context(), w.store, "")
		if _, err = lease.Unread(err); err != nil || len(rows) != 1 || rows[0].ID != "0badcafe" || rows[0].Lost.Any() || rows[0].Process != q.Process() {
			t.Fatalf("the copy's rows are %+v, %v", rows, err)
		}
		if !running {
			p = w.launch(disk)
		}
		time.Sleep(11 * time.Second)
		if !p.Loss().Any() {
			t.Error("it knows of no loss")
		}
		rows, err = lease.List(t.Context(), w.store, "")
		if _, err = lease.Unread(err); err != nil || !slices.ContainsFunc(rows, func(r lease.Ingester) bool { return r.Process == p.Process() && r.Lost.Any() }) {
			t.Errorf("the rows are %+v, %v", rows, err)
		}
	})
}

// An announcement that comes while an ingester is forgotten wins: it runs.
func TestForgetBesideAnnouncement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		p := w.launch(logDisk(t))
		if err := w.enter(p.Announcer); err != nil {
			t.Fatal(err)
		}
		w.away()
		time.Sleep(2 * time.Minute) // silent, and running
		tables := storagetest.FaultyTables(w.store, storagetest.Times(1, storagetest.Swap, "", storagetest.Fault{Delay: 20 * time.Second}))
		time.AfterFunc(time.Second, func() { w.setFault(nil) })
		if _, err := lease.Forget(t.Context(), tables, "", "0badcafe", time.Now(), away); err == nil || !strings.Contains(err.Error(), "ingester 0badcafe: ") {
			// It was silent at the time of the call. Its row is now later than that
			// time.
			t.Errorf("Forget gives %v", err)
		}
		w.says(lease.Holding)
		if err := w.enter(p.Announcer); err != nil {
			t.Error(err)
		}
	})
}

// A forgotten ingester that comes back goes on with its row. An acknowledged loss stays
// acknowledged.
func TestForgottenComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, disk := newWard(t), logDisk(t)
		lost := lossOf(time.Hour, time.Minute)
		w.lose(lost)
		p := w.launch(disk)
		if err := w.enter(p.Announcer); err != nil {
			t.Fatal(err)
		}
		disk = p.end(disk)
		time.Sleep(2 * time.Minute)
		for range 2 {
			was, err := lease.Forget(t.Context(), w.store, "", "0badcafe", time.Now(), away)
			if err != nil || was.State != lease.Holding {
				t.Fatalf("%+v, %v", was, err)
			}
			if r := w.row(); r.State != lease.Stopped || r.GivenUp.IsZero() || r.Lost.Any() {
				t.Errorf("forgotten: %+v", r)
			}
			p = w.launch(disk)
			if r := w.row(); r.ID != "0badcafe" || r.State != lease.Holding || !r.GivenUp.IsZero() || r.Lost.Any() {
				t.Errorf("back: %+v", r)
			}
			disk = p.end(disk)
			time.Sleep(2 * time.Minute)
		}
	})
}

// All ingesters that may hold records and are silent for long enough are forgotten at
// once. A row that cannot be read is named. Without a table there is nothing to forget.
func TestForgetSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		if gone, err := lease.ForgetSilent(t.Context(), w.store, "", time.Hour, time.Now(), away); len(gone) != 0 || err != nil {
			t.Errorf("without a table: %v, %v", gone, err)
		}
		w.storeRow("00000001", 2*time.Hour, "holding")
		w.storeRow("00000002", 2*time.Hour, "idle")
		w.storeRow("00000003", 2*time.Hour, "stopped")
		w.storeRow("00000004", 30*time.Minute, "holding")
		w.storeRow("00000005", 2*time.Hour, "strange")
		w.storeRow("00000006", 3*time.Hour, "holding")
		gone, err := lease.ForgetSilent(t.Context(), w.store, "", time.Hour, time.Now(), away)
		if len(gone) != 2 || gone[0].ID != "00000001" || gone[1].ID != "00000006" {
			t.Errorf("forgotten are %+v", gone)
		}
		var row *lease.RowError
		if !errors.As(err, &row) || row.ID != "00000005" {
			t.Errorf("%v", err)
		}
		// With less than a minute they may run.
		w.storeRow("00000007", 30*time.Second, "holding")
		gone, err = lease.ForgetSilent(t.Context(), w.store, "", time.Second, time.Now(), away)
		if len(gone) != 1 || gone[0].ID != "00000004" || !strings.Contains(err.Error(), "00000007: it announced itself 30s ago") {
			t.Errorf("forgotten are %+v, %v", gone, err)
		}
	})
}

// storeRow stores the row of an ingester.
func (w *ward) storeRow(id string, ago time.Duration, state string) {
	w.t.Helper()
	at := stamp(time.Now().Add(-ago))
	upsert(w.t, w.store, id, map[string]any{"format": int64(1), "process": "01234567", "state": state, "started": at, "at": at})
}

// A row that only an older version wrote is refused by the name of the commit to go through, and
// its ingester takes nothing. One that ended in order left nothing behind: its row is taken over.
func TestOlderRow(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWard(t)
			at := stamp(time.Now().Add(-time.Minute))
			row := map[string]any{"format": int64(1), "process": "01234567", "stopped": stopped, "started": at, "at": at, "oldest": at}
			upsert(t, w.store, "0badcafe", row)
			if stopped {
				w.says(lease.Stopped)
				p := w.launch(logDisk(t))
				if r := w.row(); r.Process != p.Process() || r.State != lease.Idle {
					t.Errorf("it goes on with %+v", r)
				}
				return
			}
			rows, err := lease.List(t.Context(), w.store, "")
			_, rest := lease.Unread(err)
			const says = "row 0badcafe of table ingesters: a version before commit a960ca37 wrote it"
			if len(rows) != 0 || !errors.Is(err, storage.ErrOlder) || rest != nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%+v, %v", rows, err)
			}
			if err := w.enter(w.launch(logDisk(t)).Announcer); !errors.Is(err, storage.ErrOlder) {
				t.Errorf("its ingester takes a record: %v", err)
			}
			if _, err := lease.Forget(t.Context(), w.store, "", "0badcafe", time.Now().Add(time.Hour), nil); !errors.Is(err, storage.ErrOlder) {
				t.Errorf("forget: %v", err)
			}
		})
	}
}

// A log that ends before the durable position in its row has lost its end: an old copy
// of the directory was put in its place.
func TestLogGoesBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		found uint64
		held  bool
		lost  bool
	}{
		{"as it was", 500, true, false},
		{"longer", 501, true, false},
		{"shorter", 499, true, true},
		{"empty", 0, true, true},
		{"shorter, with nothing held", 499, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, disk := newWard(t), logDisk(t)
				at := func(found uint64) func(*lease.Options) {
					return func(o *lease.Options) {
						o.Found, o.Position = found, func() uint64 { return 500 }
					}
				}
				p := w.launch(disk, at(0))
				if c.held {
					if err := w.enter(p.Announcer); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(11 * time.Second)
				disk = p.end(disk)
				p = w.launch(disk, at(c.found))
				if r := w.row(); r.Lost.Any() != c.lost || p.Loss().Any() != c.lost || r.Position != 500 {
					t.Errorf("the row says %+v, the ingester %v", r, p.Loss())
				}
			})
		})
	}
}

// A write of the row may reach the table although its answer does not come. The position
// in that row is this process's own: it lies behind the end that the start found, and
// nothing is lost.
func TestOwnPositionIsNoLoss(t *testing.T) {
	for _, c := range []struct {
		earlier bool // the row is that of an earlier process
		answer  error
	}{
		{false, storagetest.ErrFault},
		{false, storage.ErrChanged}, // to a repeated request
		{true, storagetest.ErrFault},
		{true, storage.ErrChanged},
	} {
		t.Run(fmt.Sprintf("earlier %v, %v", c.earlier, c.answer), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, disk := newWard(t), logDisk(t)
				at := func(found, position uint64) func(*lease.Options) {
					return func(o *lease.Options) { o.Found, o.Position = found, func() uint64 { return position } }
				}
				w.took()
				found := uint64(0)
				if c.earlier {
					p := w.launch(disk, at(0, 500))
					disk, found = p.end(disk), 500
				}
				w.setFault(storagetest.Times(1, storagetest.Swap, "", storagetest.Fault{After: c.answer}))
				p := w.launch(disk, at(found, 600))
				time.Sleep(11 * time.Second)
				if r := w.row(); r.Lost.Any() || p.Loss().Any() || r.Position != 600 || r.Process != p.Process() {
					t.Errorf("the row says %+v, the ingester %v", r, p.Loss())
				}
			})
		})
	}
}
