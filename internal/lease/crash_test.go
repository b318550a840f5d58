package lease_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/lease"
	"blobtail/storage"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// found is the remains after a kill or a power cut.
type found struct {
	when string
	disk *simdisk.Disk
	rows []storage.Row
}

// rowsOf are the rows of a store, as they are.
func rowsOf(s storage.TableStore) (rows []storage.Row) {
	for row, err := range s.Scan(context.Background(), lease.Table, lease.Partition, "", "", 0) {
		if err == nil {
			rows = append(rows, row)
		}
	}
	return rows
}

// lives is one life of an ingester, with the remains of a crash before each operation
// on the disk and each write of the row.
func lives(t *testing.T) (all []found) {
	w, disk := newWard(t), logDisk(t)
	n := 0
	keep := func(what string, fork func(simdisk.Crash, uint64) *simdisk.Disk) {
		n++
		rows := rowsOf(w.store)
		for crash := range simdisk.Crashes {
			for seed := range uint64(2) {
				all = append(all, found{fmt.Sprintf("step %d, %s, %v", n, what, crash), fork(crash, seed), rows})
			}
		}
	}
	disk.SetFault(func(op simdisk.Op) error {
		keep(op.Kind+" "+op.Path, op.Fork)
		return nil
	})
	w.setFault(func(op storagetest.Op, _ string) storagetest.Fault {
		if op == storagetest.Swap {
			keep("write of the row", disk.Fork)
		}
		return storagetest.Fault{}
	})
	p := w.launch(disk)
	for range 2 {
		time.Sleep(time.Second)
		if err := w.enter(p.Announcer); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		w.stored()
		time.Sleep(11 * time.Minute)
		w.says(lease.Idle)
	}
	if err := w.enter(p.Announcer); err != nil {
		t.Fatal(err)
	}
	p.kill()
	w.stored()
	if err := p.Stop(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	w.says(lease.Stopped)
	keep("end", disk.Fork)
	return all
}

// The process or the machine may die at any time: notes that say Holding always mean a
// row that does. The next start goes on with its row. It accepts records at once if the
// notes say Holding, and else as soon as the row does.
func TestCrashAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		holding := 0
		all := lives(t)
		for _, f := range all {
			state, _ := note(t, f.disk, logDir)
			if state == string(lease.Holding) {
				holding++
				if len(f.rows) != 1 || f.rows[0].Props["state"] != state {
					t.Errorf("%s: the notes say holding, and the rows %v", f.when, f.rows)
				}
			}
			s := mem.New(mem.Options{})
			if err := s.Upsert(t.Context(), lease.Table, lease.Partition, f.rows); err != nil {
				t.Fatal(err)
			}
			start := func(tables storage.TableStore) (*lease.Announcer, error) {
				a := announcerOf(t, tables, lease.Options{ID: "0badcafe", FS: f.disk, Dir: logDir})
				leave, err := a.Enter(t.Context(), math.MaxInt64)
				if err == nil {
					leave()
				}
				return a, err
			}
			away := storagetest.Fault{Before: storagetest.ErrFault}
			if _, err := start(storagetest.FaultyTables(s, func(storagetest.Op, string) storagetest.Fault { return away })); (err == nil) != (state == string(lease.Holding)) {
				t.Errorf("%s: the notes say %q, and without tables Enter gives %v", f.when, state, err)
			}
			a, err := start(s)
			if err != nil {
				t.Errorf("%s: %v", f.when, err)
			}
			if r := one(t, s, ""); r.State != lease.Holding || r.ID != "0badcafe" || a.ID() != r.ID || r.Lost.Any() {
				t.Errorf("%s: it goes on with %+v", f.when, r)
			}
		}
		if holding < 20 || len(all)-holding < 20 {
			t.Errorf("%d of %d say holding", holding, len(all))
		}
	})
}

// A failed write of the notes leaves the old or the new ones. Neither says Holding when
// the row ceases to.
func TestNotesFail(t *testing.T) {
	for n := range 40 {
		synctest.Test(t, func(t *testing.T) {
			w, disk := newWard(t), logDisk(t)
			check := func(state string) {
				for _, crash := range []simdisk.Crash{simdisk.Killed, simdisk.None} {
					if said, _ := note(t, disk.Fork(crash, 1), logDir); said == string(lease.Holding) && state != said {
						t.Errorf("operation %d failed; now the row says %s, and after a crash (%v) the notes say %s", n, state, crash, said)
					}
				}
			}
			ops := 0
			disk.SetFault(func(simdisk.Op) error {
				if ops++; ops == n+1 {
					return os.ErrPermission
				}
				return nil
			})
			begun := time.Now()
			o := lease.Options{ID: "0badcafe", IdleAfter: 3 * time.Second, Every: time.Second}
			w.on(disk, logDir)(&o)
			o.Replayed = func() bool { return time.Since(begun) > time.Second } // the first write says Holding
			a, _ := lease.New(watched{w.tables(), check}, o)                    // the notes may not be readable
			end := beat(t, a)
			time.Sleep(5 * time.Second)
			w.says(lease.Idle)
			for range 3 {
				_ = w.enter(a) // it may be refused
				w.stored()
				time.Sleep(6 * time.Second)
				w.says(lease.Idle)
			}
			end()
		})
	}
}
