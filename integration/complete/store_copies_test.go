package complete_test

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/storage"
	"blobtail/storage/mem"
)

// A store is copied while ingesters write to it, and the copy is read while they run. A read of the
// copy that exits 0 has every record from before the copy, and every record that was acknowledged
// since by an ingester whose row in the copy says that it holds some.
func TestStoreCopies(t *testing.T) {
	s := simulation
	s.Test, s.Seeds = "TestStoreCopies", 100
	var total copyCounts
	first, done := testkit.Worlds(t, s, newCopyWorld, func(w *copyWorld) { testkit.Add(&total, &w.counts) })
	t.Logf("%d seeds from %d: %d copies, %d reads of them, %d complete, %d that noticed the copy", done, first, total.Copies, total.Reads, total.Complete, total.Noticed)
	if done >= 50 && os.Getenv(mutatedEnv) == "" && (total.Complete*10 < total.Reads || total.Noticed*10 < total.Reads) {
		t.Errorf("of %d reads of copies %d are complete, %d noticed the copy", total.Reads, total.Complete, total.Noticed)
	}
}

type copyCounts struct{ Copies, Reads, Complete, Noticed int }

// A copyWorld is a world with copies of its store.
type copyWorld struct {
	*world
	copies []*storeCopy
	counts copyCounts // the world's lock guards them
}

// A storeCopy is a copy of the store of a world.
type storeCopy struct {
	*store
	at      uint64
	holding map[string]bool // ids of the ingesters with such rows in the copy
}

func newCopyWorld(seed uint64) *copyWorld {
	rng := rand.New(rand.NewPCG(seed, 44))
	p := drawProfile(rng)
	p.Stores, p.Deaths, p.Weather = 1, p.Deaths/3, p.Weather/3
	p.BestEffort, p.Copies, p.Moves, p.Drops, p.Forgets, p.NoRole = false, false, false, false, false, false
	return &copyWorld{world: worldOf(seed, p, rng)}
}

// Run takes the steps of the world, and between them copies its store and reads the copies.
func (w *copyWorld) Run() {
	for _, in := range w.all {
		w.startOn(in, in.to, in.host)
	}
	time.Sleep(15 * time.Second)
	for range w.p.Steps {
		if w.violated() {
			break
		}
		for _, in := range w.all {
			in.reap()
		}
		switch k := w.rng.IntN(10); {
		case k == 0 && len(w.copies) < 4:
			w.copyStore()
		case k < 4 && len(w.copies) > 0:
			w.readCopy(w.copies[w.rng.IntN(len(w.copies))])
		default:
			w.step()
		}
		time.Sleep(w.pace())
	}
	w.settle()
	w.end()
}

// copyStore copies the store as it is at one moment.
func (w *copyWorld) copyStore() {
	synctest.Wait()
	s, to := w.stores[0], mem.New(mem.Options{})
	c := &storeCopy{store: &store{container: s.container, blobs: to, tables: newRegistry(w.world, to)}, at: w.tick(), holding: map[string]bool{}}
	ctx := context.Background()
	for row, err := range s.tables.Scan(ctx, lease.Table, lease.Partition, "", "", 0) {
		if err != nil {
			break // there is no table yet
		}
		if row.Props["state"] == "holding" {
			c.holding[row.Key] = true
		}
		if err := to.Upsert(ctx, lease.Table, lease.Partition, []storage.Row{row}); err != nil {
			w.trouble("copy a row: %v", err)
		}
	}
	for b, err := range s.blobs.List(ctx, "", "") {
		if err != nil {
			w.trouble("list the store: %v", err)
			return
		}
		r, err := s.blobs.Get(ctx, b.Key, 0, b.Size)
		if err != nil {
			w.trouble("copy %s: %v", b.Key, err)
			return
		}
		body, _ := io.ReadAll(r) // of memory
		r.Close()
		if err := to.Create(ctx, b.Key, body, b.Attrs); err != nil {
			w.trouble("copy %s: %v", b.Key, err)
		}
	}
	w.say("the store is copied: %v hold records", c.holding)
	w.copies = append(w.copies, c)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Copies++
}

// readCopy reads a copy in fair weather. The range is open: one that ends before the floor in a
// copied row needs no ingester.
func (w *copyWorld) readCopy(c *storeCopy) {
	rng := w.fate("reader of a copy")
	r := w.newReading(rng)
	r.s, r.q.Range.To = c.store, blobs.Newest
	if in := w.all[rng.IntN(len(w.all))]; rng.IntN(3) == 0 {
		r.url = in.host
	} else if rng.IntN(2) == 0 { // a reader that has read before
		if c.reader == nil {
			c.reader = r.reader()
		}
		r.n = c.reader
	}
	w.clients.Go(func() {
		r.see()
		w.judgeCopy(c, r)
	})
}

func (w *copyWorld) judgeCopy(c *storeCopy, r *reading) {
	w.say("%s of a copy ends: %d records, %v %v", r.name, len(r.got), r.err, r.problems)
	if w.p.Calm && r.err != nil && !unknown(r.err) {
		w.violation("%s of a copy fails: %v", r.name, r.err)
	}
	w.mu.Lock()
	w.counts.Reads++
	if r.complete() {
		w.counts.Complete++
	}
	for _, err := range r.problems {
		if strings.Contains(err.Error(), "is this a copy") {
			w.counts.Noticed++
			break
		}
	}
	bad := r.lackingOf(func(a ack) bool { return a.to == w.stores[0] && (a.at < c.at || holdsOne(c, a.by)) })
	w.mu.Unlock()
	for _, text := range bad {
		w.violation("%s of a copy: %s", r.name, text)
	}
}

// holdsOne reports whether an ingester holds records by its row in a copy. The world's lock is held.
func holdsOne(c *storeCopy, in *ingester) bool {
	for id := range in.ids {
		if c.holding[id] {
			return true
		}
	}
	return false
}

// storeCopyMutants are the rules by which a read notices that its store is a copy, each left out.
var storeCopyMutants = []mutant{
	{name: "a blob that the store lacks is no matter", edits: []edit{{"reading/blobs/stored.go",
		`		err = a.unexcused(ctx, v)
`, `		err = nil
`}}},
	{name: "a blob that no listing goes over is no matter", edits: []edit{{"reading/blobs/stored.go",
		`(listed || s.Number > a.upto[s.Process])`, `listed`}}},
	{name: "the newest blob of a service is not always noted", edits: []edit{{"reading/unflushed/live/newest.go",
		`	n.last++
`, `	if n.last++; n.last%2 == 0 {
		return
	}
`}}},
}
