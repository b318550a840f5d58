package ship_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer/ship"
	"blobtail/internal/lease"
	"blobtail/record"
	"blobtail/record/ack"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// What is adopted keeps the time at which it came: whoever waits until no ingester holds records from
// before a moment, as an erasure does, waits for the adopter.
func TestKeepsArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, mem.New(mem.Options{}), a, storeID, nil)
		n.mustSend(ack.Shipped)
		came := time.Now()
		n.end()
		m := start(t, n.store, b, storeID, nil)
		defer m.end()
		time.Sleep(5 * time.Minute)
		m.mustSend(ack.Disk) // into the same batch
		if err := m.adopt(a); err != nil {
			t.Fatal(err)
		}
		m.mustSend(ack.Disk)
		if oldest, ok := m.Buffer.Oldest(); !ok || oldest.After(came) || came.Sub(oldest) > time.Second {
			t.Errorf("the oldest record came at %v, and not about %v", oldest, came)
		}
		time.Sleep(15 * time.Second)
		if row := m.row(b); row.Oldest.After(came) {
			t.Errorf("the row says since %v", row.Oldest)
		}
	})
}

// While an adopter reads, the silent one runs after all. It ships nothing more, since the mark is there;
// and if it writes its row, that stays.
func TestBackWhileAdopted(t *testing.T) {
	for name, writes := range map[string]bool{"it ships": false, "it writes its row": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := start(t, mem.New(mem.Options{}), a, storeID, nil)
				defer n.end()
				n.mustSend(ack.Shipped)
				n.Quiet()
				var sent error
				read := make(chan struct{})
				m := start(t, n.store, b, storeID, func(op storagetest.Op, key string) storagetest.Fault {
					if op != storagetest.Get || !strings.HasPrefix(key, "_wal/"+a) {
						return storagetest.Fault{}
					}
					go func() {
						defer close(read)
						if writes {
							n.rewrite(a)
							return
						}
						running, stop := context.WithCancel(t.Context())
						defer stop()
						go func() { _ = n.Shipper.Run(running) }() // Fenced has its error
						sent = n.send(ack.Shipped)
					}()
					return storagetest.Fault{Block: read}
				})
				defer m.end()
				time.Sleep(2 * time.Minute)
				err := m.adopt(a)
				switch row := n.row(a); {
				case writes && (err == nil || !strings.Contains(err.Error(), "meanwhile it is back") || row.State != lease.Holding):
					t.Errorf("the row of one that is back says %s: %v", row.State, err)
				case !writes && (err != nil || !errors.Is(sent, record.ErrUnheld)):
					t.Errorf("one that ships while it is adopted is told %v, and the adopter %v", sent, err)
				}
			})
		})
	}
}

// An adopter that ends before it clears the row leaves no part for which nobody would look: its own log
// has the records. The next attempt needs no part.
func TestNoPartStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, mem.New(mem.Options{}), a, storeID, nil)
		n.mustSend(ack.Shipped)
		n.end()
		m := start(t, n.store, b, storeID, nil)
		defer m.end()
		time.Sleep(2 * time.Minute)
		away := storagetest.FaultyTables(n.store, func(op storagetest.Op, _ string) storagetest.Fault {
			if op == storagetest.Swap {
				return storagetest.Fault{Before: storagetest.ErrFault}
			}
			return storagetest.Fault{}
		})
		for i, tables := range []storage.TableStore{away, n.store} {
			err := m.Adopt(t.Context(), a, ship.Adoption{
				Tables: tables, Accept: m.Accept, Now: time.Now, Ask: func(context.Context, lease.Ingester) error { return nil },
			})
			if (err == nil) != (i == 1) {
				t.Errorf("attempt %d: %v", i, err)
			}
			if got := m.objects(a); len(got) != i+1 || strings.HasSuffix(got[0], "1") {
				t.Errorf("behind attempt %d: %q", i, got)
			}
		}
		if row := m.row(a); m.held()["web"] != 1 || row.State != lease.Stopped {
			t.Errorf("%v, the row says %s", m.held(), row.State)
		}
	})
}

// Who forgets an ingester that shipped its log can have it adopted after all, without another loss.
func TestAdoptForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, mem.New(mem.Options{}), a, storeID, nil, func(o *ship.Options) { o.Strict = false })
		n.mustSend(ack.Shipped)
		time.Sleep(15 * time.Second)
		n.end()
		m := start(t, n.store, b, storeID, nil)
		defer m.end()
		time.Sleep(2 * time.Minute)
		nobody := func(context.Context, lease.Ingester) error { return nil }
		if _, err := lease.ForgetSilent(t.Context(), n.store, "", time.Minute, time.Now(), nobody); err == nil ||
			!strings.Contains(err.Error(), "ingest adopt "+a) {
			t.Errorf("all that are silent are forgotten: %v", err)
		}
		if _, err := lease.Forget(t.Context(), n.store, "", a, time.Now(), nobody); err != nil {
			t.Fatal(err)
		}
		if err := m.adopt(a); err != nil {
			t.Fatal(err)
		}
		if row := m.row(a); m.held()["web"] != 1 || row.Adopter != b || row.Lost.Any() {
			t.Errorf("%v, the row: %+v", m.held(), row)
		}
		if err := m.adopt(a); err == nil {
			t.Error("it is adopted twice")
		}
	})
}

// rewrite writes the row of an ingester as it is, as its announcer does after a while.
func (n *node) rewrite(id string) {
	for row, err := range n.store.Scan(n.t.Context(), lease.Table, lease.Partition, id, id+" ", 1) {
		if err == nil {
			_, err = n.store.Swap(n.t.Context(), lease.Table, lease.Partition, row)
		}
		if err != nil {
			n.t.Error(err)
		}
	}
}

// An adoption that cannot delete the parts of a log is not done: its repeat deletes them. Nobody else would.
func TestLeavesNoParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, mem.New(mem.Options{}), a, storeID, nil)
		n.mustSend(ack.Shipped)
		n.end()
		fails := true
		m := start(t, n.store, b, storeID, func(op storagetest.Op, key string) (f storagetest.Fault) {
			if op == storagetest.Delete && strings.HasPrefix(key, "_wal/"+a) && fails {
				fails = false
				f.Before = storagetest.ErrFault
			}
			return f
		})
		defer m.end()
		time.Sleep(2 * time.Minute)
		if err := m.adopt(a); !errors.Is(err, storagetest.ErrFault) {
			t.Errorf("an adoption that leaves parts says %v", err)
		}
		if err := m.adopt(a); err != nil {
			t.Fatal(err)
		}
		if got := m.objects(a); len(got) != 2 { // the marks
			t.Errorf("of the adopted log there is %q", got)
		}
		if found := m.held()["web"]; found != 1 {
			t.Errorf("%d records are adopted", found)
		}
	})
}

// An ingester starts with an empty log while nothing can be shipped, and dies. It acknowledged nothing, so
// nothing is lost.
func TestLosesNothingUnshipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, mem.New(mem.Options{}), a, storeID, func(_ storagetest.Op, key string) (f storagetest.Fault) {
			if strings.HasPrefix(key, "_wal/") {
				f.Before = storagetest.ErrFault
			}
			return f
		})
		if err := n.send(ack.Shipped); !errors.Is(err, record.ErrUnheld) {
			t.Error(err)
		}
		n.end()
		m := start(t, n.store, b, storeID, nil)
		defer m.end()
		time.Sleep(2 * time.Minute)
		if err := m.adopt(a); err != nil {
			t.Fatal(err)
		}
		if row := n.row(a); row.Lost.Any() {
			t.Errorf("the row of the adopted one: %+v", row)
		}
	})
}
