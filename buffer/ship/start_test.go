package ship_test

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/record/ack"
	"blobtail/storage"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// A log that was found damaged at the start is shipped without the damaged record. Its loss is in the row.
func TestDamagedLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := simdisk.New(1)
		n := startOn(t, disk, mem.New(mem.Options{}), a, storeID, func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.Create && strings.HasPrefix(key, "_wal/") {
				return storagetest.Fault{Before: storagetest.ErrFault}
			}
			return storagetest.Fault{}
		})
		for range 3 {
			n.mustSend(ack.Disk)
		}
		n.end()
		disk = disk.Kill()
		f, err := disk.OpenFile(dir+"/00000001.seg", os.O_RDWR, 0)
		if err == nil {
			_, err = f.WriteAt([]byte("damage"), 1500) // in the second record
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		n = startOn(t, disk, n.store, a, storeID, nil)
		time.Sleep(time.Second)
		n.mustSend(ack.Shipped)
		n.end()
		m := start(t, n.store, b, storeID, nil)
		defer m.end()
		time.Sleep(2 * time.Minute)
		if err := m.adopt(a); err != nil {
			t.Fatal(err)
		}
		if found := m.held()["web"]; found != 3 {
			t.Errorf("%d records are adopted", found)
		}
	})
}

// Numbers have more digits after the greatest one of eight, which comes within a year.
func TestManyObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, store := simdisk.New(1), mem.New(mem.Options{})
		meta := map[string]string{"format": "1", "store": storeID, "object": "1", "from": "0", "to": "0", "until": "3"}
		err := store.Create(t.Context(), "_wal/"+a+"/99999998", []byte("\x00\x00\x00\x00\x00"), storage.Attrs{Metadata: meta})
		if err != nil {
			t.Fatal(err)
		}
		n := startOn(t, disk, store, a, storeID, nil)
		n.mustSend(ack.Shipped)
		n.mustSend(ack.Shipped)
		n.end()
		n = startOn(t, disk.Kill(), store, a, storeID, nil)
		n.mustSend(ack.Shipped)
		n.end()
		if _, err := store.Stat(t.Context(), "_wal/"+a+"/100000001"); err != nil {
			t.Error(err)
		}
		m := start(t, store, b, storeID, nil)
		defer m.end()
		time.Sleep(2 * time.Minute)
		if err := m.adopt(a); err != nil {
			t.Fatal(err)
		}
		if found := m.held()["web"]; found != 3 {
			t.Errorf("%d records are adopted", found)
		}
		if got := m.objects(a); len(got) != 1 || got[0] != "_wal/"+a+"/100000002" {
			t.Errorf("behind the adoption: %q", got)
		}
	})
}

// An old copy of the log is in its place, and has new records before the store can be listed. They are
// not taken for those that were shipped from the same positions.
func TestOldCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, store := simdisk.New(1), mem.New(mem.Options{})
		n := startOn(t, disk, store, a, storeID, nil)
		n.mustSend(ack.Shipped)
		old := disk.Fork(simdisk.Killed, 1)
		for range 25 { // into the next segment
			n.mustSend(ack.Shipped)
		}
		n.end()
		var listed atomic.Bool
		n = startOn(t, old, store, a, storeID, func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.List && strings.HasPrefix(key, "_wal/") && !listed.Load() {
				return storagetest.Fault{Before: storagetest.ErrFault}
			}
			return storagetest.Fault{}
		})
		time.Sleep(time.Second)
		for range 14 {
			n.mustSend(ack.Disk)
		}
		listed.Store(true)
		time.Sleep(10 * time.Second)
		n.mustSend(ack.Shipped)
		n.end()
		m := start(t, store, b, storeID, nil)
		defer m.end()
		time.Sleep(2 * time.Minute)
		if err := m.adopt(a); err != nil {
			t.Fatal(err)
		}
		if found := m.held()["web"]; found != 1+25+14+1 {
			t.Errorf("%d records are adopted", found)
		}
	})
}
