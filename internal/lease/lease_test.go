package lease_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/lease"
	"blobtail/storage"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/storagetest"
)

// The first request after a quiet time is let in when the row says that the ingester
// holds records. This costs one write, and later requests cost nothing.
func TestEnterWritesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		p := w.launch(logDisk(t))
		time.Sleep(3 * time.Second)
		w.says(lease.Idle)
		w.counted()
		for range 10 {
			leave, err := p.Enter(t.Context(), math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			if r := w.row(); r.State != lease.Holding || r.Process != p.Process() {
				t.Errorf("let in while the row says %+v", r)
			}
			leave()
		}
		if n := w.counted(); n != 1 {
			t.Errorf("%d writes", n)
		}
	})
}

// A request may come before Run has begun; the row that it writes can be read.
func TestEnterBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		o := lease.Options{ID: "0badcafe"}
		w.on(logDisk(t), logDir)(&o)
		a := announcerOf(t, w.tables(), o)
		if err := w.enter(a); err != nil {
			t.Fatal(err)
		}
		w.says(lease.Holding)
	})
}

// While the row cannot be written no record is accepted. The caller and the readiness
// check learn this within 5 s. When it can be written, records are accepted again.
func TestEnterFails(t *testing.T) {
	away := errors.New("the tables are away")
	for _, c := range []struct {
		name  string
		op    storagetest.Op
		fault storagetest.Fault
		takes time.Duration
	}{
		{"writes fail", storagetest.Swap, storagetest.Fault{Before: away}, 0},
		{"writes hang", storagetest.Swap, storagetest.Fault{Delay: time.Hour}, 5 * time.Second},
		{"writes are carried out, and no answer comes", storagetest.Swap, storagetest.Fault{After: away}, 0},
		{"writes are refused", storagetest.Swap, storagetest.Fault{Before: storage.ErrUnauthorized}, 0},
		{"the row changes each time", storagetest.Swap, storagetest.Fault{Before: storage.ErrChanged}, 0},
		{"the table is being deleted", storagetest.Swap, storagetest.Fault{Before: storage.ErrBeingDeleted}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWard(t)
				p := w.launch(logDisk(t))
				time.Sleep(11 * time.Second)
				w.setFault(storagetest.Times(-1, c.op, "", c.fault))
				w.refused(p.Announcer, c.takes)
				if p.Err() == nil {
					t.Error("it is ready, and takes nothing")
				}
				w.counted()
				w.refused(p.Announcer, c.takes) // for the same reason
				if n := w.counted(); n != 0 && c.takes == 0 {
					t.Errorf("%d writes right after one that failed", n)
				}
				time.Sleep(15 * time.Second)
				w.refused(p.Announcer, c.takes+5*time.Second) // a beat may be writing
				w.setFault(nil)
				time.Sleep(501 * time.Millisecond)
				if err := w.enter(p.Announcer); err != nil {
					t.Error(err)
				}
				w.says(lease.Holding)
				if err := p.Err(); err != nil {
					t.Errorf("it is not ready: %v", err)
				}
			})
		})
	}
}

// A caller that gives up stops waiting, and the others get the result.
func TestEnterGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		p := w.launch(logDisk(t))
		w.setFault(storagetest.Times(1, storagetest.Swap, "", storagetest.Fault{Delay: 3 * time.Second}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Enter(ctx, math.MaxInt64); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Enter gives %v", err)
		}
		if err := w.enter(p.Announcer); err != nil {
			t.Error(err)
		}
	})
}

// The notes must be durable before a record is accepted.
func TestEnterWithoutNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, disk := newWard(t), logDisk(t)
		p := w.launch(disk)
		full := errors.New("no space left")
		disk.SetFault(func(op simdisk.Op) error {
			if op.Kind == "syncdir" || op.Kind == "sync" {
				return full
			}
			return nil
		})
		w.refused(p.Announcer, 0)
		disk.SetFault(nil)
		time.Sleep(501 * time.Millisecond)
		if err := w.enter(p.Announcer); err != nil {
			t.Error(err)
		}
	})
}

// Many requests that come at once after a quiet time share one write.
func TestEnterTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		p := w.launch(logDisk(t))
		time.Sleep(1100 * time.Millisecond) // the row shows the records at its next check, which is not now
		w.counted()
		w.setFault(storagetest.Times(1, storagetest.Swap, "", storagetest.Fault{Delay: time.Second}))
		begun := time.Now()
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				if err := w.enter(p.Announcer); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n, took := w.counted(), time.Since(begun); n != 1 || took != time.Second {
			t.Errorf("%d writes in %v", n, took)
		}
	})
}

// The row says Idle when the log has held nothing for ten minutes, and not before.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		p := w.launch(logDisk(t))
		if err := w.enter(p.Announcer); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // the record is in no blob
		w.says(lease.Holding)
		if w.row().Oldest.IsZero() {
			t.Error("the row says of no record")
		}
		w.stored()
		time.Sleep(9*time.Minute + 49*time.Second) // the record was there at the last beat
		w.says(lease.Holding)
		if !w.row().Oldest.IsZero() {
			t.Error("the row says of a record")
		}
		time.Sleep(21 * time.Second)
		w.says(lease.Idle)
		// A request without a record, and one of a moment, count as well.
		leave, err := p.Enter(t.Context(), math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		leave()
		time.Sleep(9*time.Minute + 49*time.Second)
		w.says(lease.Holding)
		time.Sleep(21 * time.Second)
		w.says(lease.Idle)
	})
}

// A beat that comes just when a request has asked for Holding does not give it up.
func TestEnterAfterTenMinutes(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			w := newWard(t)
			var mu sync.Mutex
			var states []string
			note := func(state string) {
				mu.Lock()
				defer mu.Unlock()
				states = append(states, state)
			}
			p := launch(t, watched{w.tables(), note}, identity{ID: "0badcafe"}, w.on(logDisk(t), logDir))
			time.Sleep(11*time.Minute + 3*time.Second) // amid two beats
			mu.Lock()
			states = nil
			mu.Unlock()
			w.setFault(storagetest.Times(1, storagetest.Swap, "", storagetest.Fault{Delay: time.Second}))
			next := w.row().At.Add(10 * time.Second)
			time.Sleep(time.Until(next) - time.Second/2) // the beat waits for the write of the request
			if err := w.enter(p.Announcer); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			w.says(lease.Holding)
			mu.Lock()
			defer mu.Unlock()
			if len(states) < 2 || slices.Contains(states, string(lease.Idle)) {
				t.Errorf("the row says %v", states)
			}
		})
	}
}

// watched are tables that check after each write whether the row may have its state.
type watched struct {
	storage.TableStore
	look func(state string)
}

func (w watched) Swap(ctx context.Context, table, partition string, row storage.Row) (string, error) {
	state, _ := row.Props["state"].(string)
	version, err := w.TableStore.Swap(ctx, table, partition, row)
	if err == nil {
		w.look(state)
	}
	return version, err
}

// Requests that come while the row goes to Idle, in any order: the row says Holding
// while a record is accepted, and never Idle while the log has one.
func TestIdleRaces(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			w := newWard(t)
			tables := watched{w.tables(), func(state string) {
				w.mu.Lock()
				defer w.mu.Unlock()
				if state == string(lease.Idle) && !w.since.IsZero() {
					t.Error("the row says Idle, and the log holds a record")
				}
			}}
			p := launch(t, tables, identity{ID: "0badcafe"}, w.on(logDisk(t), logDir), func(o *lease.Options) {
				o.IdleAfter, o.Every = 3*time.Millisecond, time.Millisecond
			})
			var all sync.WaitGroup
			for n := range uint64(4) {
				rng := rand.New(rand.NewPCG(seed, n))
				all.Go(func() {
					for range 200 {
						time.Sleep(time.Duration(rng.IntN(12)) * 500 * time.Microsecond)
						leave, err := p.Enter(t.Context(), math.MaxInt64)
						if err != nil {
							t.Error(err)
							return
						}
						w.took()
						if r := w.row(); r.State != lease.Holding || r.Process != p.Process() {
							t.Errorf("a record is taken while the row says %+v", r)
						}
						leave()
						w.stored()
					}
				})
			}
			all.Wait()
			time.Sleep(10 * time.Millisecond)
			w.says(lease.Idle)
		})
	}
}

// A write of Idle that is held up on its way never replaces Holding, at any time of
// arrival.
func TestLateIdle(t *testing.T) {
	for _, between := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWard(t)
			p := w.launch(logDisk(t))
			if err := w.enter(p.Announcer); err != nil {
				t.Fatal(err)
			}
			w.stored()
			through := make(chan struct{})
			// All beats say Holding until ten minutes are over.
			time.Sleep(10*time.Minute - time.Second)
			w.says(lease.Holding)
			w.setFault(storagetest.Times(1, storagetest.Swap, "", storagetest.Fault{Late: through}))
			time.Sleep(10 * time.Second)
			w.says(lease.Holding)
			if between { // the row was read, and the write of Holding is on its way
				w.setFault(storagetest.Times(1, storagetest.Swap, "", storagetest.Fault{Delay: time.Second}))
				time.AfterFunc(time.Second/2, func() { close(through) })
			}
			leave, err := p.Enter(t.Context(), math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			w.took()
			w.says(lease.Holding)
			leave() // a beat waits for that, and Wait would wait for the beat
			if !between {
				close(through)
				synctest.Wait()
			}
			w.says(lease.Holding)
			time.Sleep(time.Minute)
			w.says(lease.Holding)
		})
	}
}

// Best effort accepts records in any state of the tables, and the row says so.
func TestBestEffort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		w.setFault(func(storagetest.Op, string) storagetest.Fault { return storagetest.Fault{Delay: time.Hour} })
		p := w.launch(logDisk(t), func(o *lease.Options) { o.BestEffort = true })
		begun := time.Now()
		if err := w.enter(p.Announcer); err != nil || time.Since(begun) != 0 {
			t.Errorf("Enter gives %v after %v", err, time.Since(begun))
		}
		if err := p.Err(); err != nil {
			t.Errorf("it is not ready at once: %v", err)
		}
		time.Sleep(25 * time.Second)
		if err := p.Err(); err == nil {
			t.Error("it is ready though nobody can be told of it")
		}
		w.setFault(nil)
		time.Sleep(20 * time.Second)
		if r := w.row(); !r.BestEffort || r.State != lease.Holding {
			t.Errorf("the row says %+v", r)
		}
		if err := p.Err(); err != nil {
			t.Errorf("it is not ready: %v", err)
		}
		if !strings.Contains(p.told(), "records are taken as before") {
			t.Errorf("the log says %s", p.told())
		}
	})
}

// While the row is known to say Holding, tables that are away cost readiness after
// 20 s only, and no record.
func TestErrWhileHolding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		p := w.launch(logDisk(t))
		if err := w.enter(p.Announcer); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // until the row shows the record
		w.away()
		for time.Since(epoch) < 19*time.Second { // the first beat that fails is at 10 s
			time.Sleep(time.Second)
			if err := p.Err(); err != nil {
				t.Fatalf("not ready after %v: %v", time.Since(epoch), err)
			}
		}
		time.Sleep(time.Hour)
		if p.Err() == nil {
			t.Error("ready after an hour")
		}
		if err := w.enter(p.Announcer); err != nil {
			t.Error(err)
		}
		w.setFault(nil)
		time.Sleep(11 * time.Second)
		if err := p.Err(); err != nil {
			t.Error(err)
		}
	})
}

// While the store's id is not known, or the store is another one, nothing is announced.
// If that is detected after a write, no record is accepted.
func TestStoreNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		w.storeErr = errors.New("it is another store now")
		p := w.launch(logDisk(t))
		w.refused(p.Announcer, 0)
		if n := w.counted(); n != 0 {
			t.Errorf("%d writes", n)
		}
		w.mu.Lock()
		w.storeErr = nil
		w.mu.Unlock()
		w.setFault(func(op storagetest.Op, _ string) storagetest.Fault {
			if op == storagetest.Swap { // the caller has the lock of w
				w.storeErr = errors.New("it is another store now")
			}
			return storagetest.Fault{}
		})
		time.Sleep(501 * time.Millisecond)
		w.refused(p.Announcer, 0)
		if n := w.counted(); n != 1 {
			t.Errorf("%d writes", n)
		}
	})
}

// Rows of peers that cannot be listed make no ingester silent.
func TestListHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t)
		p := w.launch(logDisk(t))
		w.setFault(storagetest.Times(-1, storagetest.Scan, "", storagetest.Fault{Delay: time.Hour}))
		for range 60 {
			time.Sleep(10 * time.Second)
			if r := w.row(); !r.Live(time.Now()) {
				t.Fatalf("silent since %v", r.At)
			}
		}
		if err := w.enter(p.Announcer); err != nil {
			t.Error(err)
		}
	})
}
