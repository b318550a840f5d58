package ship_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/buffer/ship"
	"blobtail/buffer/wal"
	"blobtail/internal/count"
	"blobtail/internal/dev/testkit/box"
	"blobtail/internal/lease"
	"blobtail/record"
	"blobtail/record/ack"
	"blobtail/record/origin"
	"blobtail/storage"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// node is an ingester that ships its log.
type node struct {
	*box.Process
	*ship.Shipper
	t       *testing.T
	store   *mem.Store
	n       int
	last    *record.Request
	metrics *count.Registry
}

const dir = "/var/wal"

// start starts an ingester with an empty disk. script decides about its requests to the store.
func start(t *testing.T, store *mem.Store, id, storeID string, script storagetest.Script, change ...func(*ship.Options)) *node {
	t.Helper()
	return startOn(t, simdisk.New(1), store, id, storeID, script, change...)
}

// startOn is start with a disk.
func startOn(t *testing.T, disk *simdisk.Disk, store *mem.Store, id, storeID string, script storagetest.Script,
	change ...func(*ship.Options)) *node {
	t.Helper()
	log, err := wal.Open(dir, wal.Options{FS: disk, Reserve: -1, SegmentSize: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, store: store, metrics: new(count.Registry)}
	blobs := storage.BlobStore(store)
	if script != nil {
		blobs = storagetest.Faulty(store, script)
	}
	known := func() (string, error) { return storeID, nil }
	n.Process, err = box.NewProcess(log, box.Options{
		Blobs: blobs, Tables: store, Lease: lease.Options{ID: id, Dir: dir, FS: disk, StoreID: known, Host: id, Now: time.Now},
		Buffer: buffer.Options{Age: time.Hour, MaxAge: time.Hour, Soft: 64 << 10, Shipped: n.Wait, Metrics: n.metrics},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := ship.Options{
		Log: log, Blobs: blobs, ID: n.Announcer.ID, StoreID: known, Needed: n.Buffer.Needed,
		Every: 250 * time.Millisecond, Wait: 10 * time.Second, Strict: true,
	}
	for _, f := range change {
		f(&o)
	}
	n.Shipper = ship.New(o)
	n.Announcer.Ship(n.Ships)
	n.Process.Run()
	n.Go(func(ctx context.Context) { _ = n.Shipper.Run(ctx) }) // the tests look for Fenced
	n.Go(n.Reap)
	return n
}

// Wait is that of the shipper.
func (n *node) Wait(ctx context.Context, pos wal.Pos) error { return n.Shipper.Wait(ctx, pos) }

// end ends the process as SIGKILL does.
func (n *node) end() {
	n.End()
	if err := n.Process.Wait(); err != nil {
		n.t.Error(err)
	}
}

// send sends a record of web and waits for a level.
func (n *node) send(level ack.Level) error { return n.sendTo(level, "web") }

// sendTo sends a request with a record of each of some services.
func (n *node) sendTo(level ack.Level, services ...string) error {
	n.n++
	now := time.Now().UnixNano()
	r := &record.Request{Services: services}
	for i, s := range services {
		line := fmt.Appendf(nil, `{"ts":%q,"level":"","service":%q,"msg":"%d %s"}`+"\n",
			record.AppendTime(nil, now), s, n.n, strings.Repeat("x", 900))
		r.Lines = append(r.Lines, record.Line{Time: now, Off: uint32(len(r.Data)), Len: uint32(len(line)), Service: uint32(i)})
		r.Data = append(r.Data, line...)
	}
	r.Origin = origin.OfBody("", "/ingest", 0, r.Data, now)
	n.last = r
	receipt, err := n.Accept(n.t.Context(), r)
	if err != nil {
		return err
	}
	return receipt.Reached(n.t.Context(), level)
}

func (n *node) mustSend(level ack.Level) {
	n.t.Helper()
	if err := n.send(level); err != nil {
		n.t.Fatal(err)
	}
}

// adopt has an ingester adopt another one that is silent.
func (n *node) adopt(id string) error {
	return n.Adopt(n.t.Context(), id, ship.Adoption{
		Tables: n.store, Accept: n.Accept, Now: time.Now, Ask: func(context.Context, lease.Ingester) error { return nil },
	})
}

// held counts the unflushed records of an ingester by their services.
func (n *node) held() map[string]int {
	n.t.Helper()
	live, err := n.Buffer.Live(n.t.Context(), buffer.LiveQuery{To: math.MaxInt64})
	if err != nil {
		n.t.Fatal(err)
	}
	defer live.Close()
	found := map[string]int{}
	err = live.Each(n.t.Context(), func(e *record.Entry) error {
		_, rest, _ := strings.Cut(string(e.Line), `"service":"`)
		service, _, _ := strings.Cut(rest, `"`)
		found[service]++
		return nil
	})
	if err != nil {
		n.t.Error(err)
	}
	return found
}

// objects are the keys under the log of an ingester.
func (n *node) objects(id string) (keys []string) {
	n.t.Helper()
	for o, err := range n.store.List(n.t.Context(), "_wal/"+id+"/", "") {
		if err != nil {
			n.t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

func (n *node) row(id string) lease.Ingester {
	n.t.Helper()
	rows, err := lease.List(n.t.Context(), n.store, "")
	for _, i := range rows {
		if i.ID == id {
			return i
		}
	}
	n.t.Fatalf("%s has no row: %v", id, err)
	return lease.Ingester{}
}

const a, b, storeID = "0000000a", "0000000b", "0123456789abcdef0123456789abcdef"

// Objects go when their records are in blobs. An empty one is the last: so a start, and an adopter, know
// the number of the next.
func TestObjectsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, mem.New(mem.Options{}), a, storeID, nil)
		defer n.end()
		for range 5 {
			n.mustSend(ack.Shipped)
		}
		time.Sleep(10 * time.Second)
		if got := n.objects(a); len(got) != 5 || got[0] != "_wal/"+a+"/00000001" {
			t.Errorf("the store has %q", got)
		}
		if _, err := n.Buffer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		empty := func(number string) {
			t.Helper()
			got := n.objects(a)
			if len(got) != 1 || got[0] != "_wal/"+a+"/"+number {
				t.Fatalf("when all is in blobs, the store has %q", got)
			}
			if o, err := n.store.Stat(t.Context(), got[0]); err != nil || o.Size > 8 {
				t.Errorf("it has %d bytes, %v", o.Size, err)
			}
		}
		empty("00000006")
		time.Sleep(time.Minute)
		empty("00000006")

		n.mustSend(ack.Shipped)
		if _, err := n.Buffer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := n.Clear(t.Context()); err != nil {
			t.Fatal(err)
		}
		empty("00000008")
	})
}

// Records of the disk alone are shipped too, and records since the last object cost one.
func TestShipsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, mem.New(mem.Options{}), a, storeID, nil)
		defer n.end()
		for range 20 {
			n.mustSend(ack.Disk)
		}
		time.Sleep(time.Second)
		if got := n.objects(a); len(got) == 0 || len(got) > 2 {
			t.Errorf("20 records are in %q", got)
		}
		m := start(t, n.store, b, storeID, nil)
		defer m.end()
		n.End()
		time.Sleep(2 * time.Minute)
		if err := m.adopt(a); err != nil {
			t.Fatal(err)
		}
		if got := m.objects(b); len(got) == 0 {
			t.Error("an adopter clears the row before it has shipped the records")
		}
		if found := m.held()["web"]; found != 20 {
			t.Errorf("%d records are adopted", found)
		}
		if row := n.row(a); row.State != lease.Stopped || row.Adopter != b || row.Lost.Any() {
			t.Errorf("the row of the adopted one: %+v", row)
		}
	})
}

// A store that does not answer: requests are told after a while, and the next ones at once. Nothing is
// dropped. A lost answer is no matter.
func TestStoreAway(t *testing.T) {
	for name, c := range map[string]struct {
		disk bool
		want error
	}{"refuse": {false, record.ErrUnheld}, "disk": {true, ack.ErrDisk}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var away, lost atomic.Bool
				away.Store(true)
				lost.Store(true)
				script := func(op storagetest.Op, key string) storagetest.Fault {
					switch {
					case op == storagetest.Create && away.Load():
						return storagetest.Fault{Before: storagetest.ErrFault}
					case op == storagetest.Create && lost.Swap(false):
						return storagetest.Fault{After: storagetest.ErrFault}
					}
					return storagetest.Fault{}
				}
				n := start(t, mem.New(mem.Options{}), a, storeID, script, func(o *ship.Options) { o.Disk = c.disk })
				defer n.end()
				begun := time.Now()
				if err := n.send(ack.Shipped); !errors.Is(err, c.want) || time.Since(begun) != 10*time.Second {
					t.Errorf("%v after %s", err, time.Since(begun))
				}
				begun = time.Now()
				if err := n.send(ack.Shipped); !errors.Is(err, c.want) || time.Since(begun) > time.Second {
					t.Errorf("the next one: %v after %s", err, time.Since(begun))
				}
				n.mustSend(ack.Disk)
				if err := n.Away(); !c.disk && !errors.Is(err, record.ErrUnheld) || c.disk && err != nil {
					t.Errorf("the next ones are told %v before they are in the log", err)
				}
				away.Store(false)
				time.Sleep(20 * time.Second)
				if err := n.Away(); err != nil {
					t.Error(err)
				}
				n.mustSend(ack.Shipped)
				if got := n.objects(a); len(got) < 2 || lost.Load() {
					t.Errorf("the store has %q", got)
				}
				if err := n.Fenced(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// An adopted ingester acknowledges nothing as shipped, and says who has adopted it.
func TestFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, mem.New(mem.Options{}), a, storeID, nil)
		defer n.end()
		m := start(t, n.store, b, storeID, nil)
		defer m.end()
		n.mustSend(ack.Shipped)
		if err := m.adopt(a); err == nil || !strings.Contains(err.Error(), "announced itself") {
			t.Errorf("one that runs is adopted: %v", err)
		}
		n.Quiet() // neither its row nor its log
		time.Sleep(2 * time.Minute)
		if err := m.adopt(a); err != nil {
			t.Fatal(err)
		}
		again, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		go func() { _ = n.Shipper.Run(again) }()
		err := n.send(ack.Shipped)
		if !errors.Is(err, record.ErrUnheld) || !strings.Contains(err.Error(), "ingester "+b+" has adopted "+a) {
			t.Errorf("an adopted one answers %v", err)
		}
		if err := m.adopt(a); err == nil || !strings.Contains(err.Error(), "ingester "+b+" has adopted it already") {
			t.Errorf("one that is adopted is adopted again: %v", err)
		}
	})
}

// Objects of another store, and damaged ones, are refused: the row stays as it is.
func TestNotAdopted(t *testing.T) {
	instead := func(body string) func(t *testing.T, n *node) {
		return func(t *testing.T, n *node) {
			key := "_wal/" + a + "/00000001"
			o, err := n.store.Stat(t.Context(), key)
			if err == nil {
				err = errors.Join(n.store.Delete(t.Context(), o), n.store.Create(t.Context(), key, []byte(body), o.Attrs))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, n *node)
		of    string // the store of the adopter
		want  string
	}{
		"another store": {func(*testing.T, *node) {}, strings.Repeat("f", 32), "ships to the store " + storeID},
		"a copied object": {func(t *testing.T, n *node) {
			meta := map[string]string{"format": "1", "store": strings.Repeat("f", 32), "object": "1", "from": "1", "to": "2", "until": "3"}
			if err := n.store.Create(t.Context(), "_wal/"+a+"/00000000", nil, storage.Attrs{Metadata: meta}); err != nil {
				t.Fatal(err)
			}
		}, storeID, "is of the store ffff"},
		"a damaged object":  {instead("nothing of ours"), storeID, "_wal/" + a + "/00000001: damaged"},
		"nothing":           {instead(""), storeID, "_wal/" + a + "/00000001: damaged: it is cut short"},
		"a length of 4 GiB": {instead("crc.\xff\xff\xff\xff\x0fx"), storeID, "so few cannot become 4294967295 bytes"},
		"an object of a newer version": {func(t *testing.T, n *node) {
			attrs := storage.Attrs{Metadata: map[string]string{"format": "2"}}
			if err := n.store.Create(t.Context(), "_wal/"+a+"/00000009", nil, attrs); err != nil {
				t.Fatal(err)
			}
		}, storeID, "use a newer version"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := start(t, mem.New(mem.Options{}), a, storeID, nil)
				defer n.end()
				n.mustSend(ack.Shipped)
				n.Quiet()
				c.spoil(t, n)
				m := start(t, n.store, b, c.of, nil)
				defer m.end()
				time.Sleep(2 * time.Minute)
				if err := m.adopt(a); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want a word of %q", err, c.want)
				}
				if row := n.row(a); row.State != lease.Holding {
					t.Errorf("the row: %+v", row)
				}
			})
		})
	}
}

// Batches that cannot be stored are copied to the end of the log. Their copies are shipped, and until
// then the objects that had them stay. An adopter has all parts of a request, which are copied apart.
func TestCopiedBatches(t *testing.T) {
	for _, shipped := range []bool{true, false} {
		t.Run(fmt.Sprint("copies are shipped ", shipped), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var away atomic.Bool
				script := func(op storagetest.Op, key string) storagetest.Fault {
					if op == storagetest.Create && (strings.HasPrefix(key, "bad") || away.Load() && strings.HasPrefix(key, "_wal/"+a)) {
						return storagetest.Fault{Before: storagetest.ErrFault}
					}
					return storagetest.Fault{}
				}
				n := start(t, mem.New(mem.Options{}), a, storeID, script)
				if err := n.sendTo(ack.Shipped, "bad1", "bad2"); err != nil {
					t.Fatal(err)
				}
				sent := *n.last
				n.mustSend(ack.Shipped)
				away.Store(!shipped)
				for range 100 {
					n.mustSend(ack.Disk)
				}
				parked := func() bool {
					page := httptest.NewRecorder()
					n.metrics.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/", nil))
					return strings.Contains(page.Body.String(), "blobtail_buffer_batches_parked_total 2")
				}
				for tries := 0; !parked(); tries++ {
					if tries == 100 {
						t.Fatal("the batches are not copied")
					}
					_ = n.sendTo(ack.Disk, "web")
					time.Sleep(5 * time.Second)
				}
				time.Sleep(time.Minute)
				n.end()
				away.Store(false)
				m := start(t, n.store, b, storeID, script) // its log is over its limit soon, and cuts batches
				defer m.end()
				sent.Services, sent.Lines = sent.Services[:1], sent.Lines[:1] // its sender tries another ingester, with other rules
				if _, err := m.Accept(t.Context(), &sent); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				if err := m.adopt(a); err != nil {
					t.Fatal(err)
				}
				if held := m.held(); held["bad1"] != 1 || held["bad2"] != 1 {
					t.Errorf("adopted: %v", held)
				}
			})
		})
	}
}
