package complete_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/unflushed"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

var (
	errGone = errors.New("the process is gone")
	errAway = errors.New("nothing is there")
	errLost = errors.New("nothing came back")
)

// store is a store that ingesters write to and readers read.
type store struct {
	container string // its name, when two stores share their tables
	blobs     *mem.Store
	tables    *registry
	reader    *unflushed.Reader // reads now and then; nil: none has read yet
}

// weather is the fate of a call.
type weather int32

const (
	fair  weather = iota
	fails         // at once
	hangs         // until the caller gives up
	loses         // it is carried out, and the answer is lost
	late          // it is carried out after its caller has given up, or never
	mixed         // each call draws one of these
	denied
)

var weathers = [...]string{"fair", "fails", "hangs", "loses", "late", "mixed", "denied"}

func (x weather) String() string { return weathers[x] }

// sky is the weather between one party and one service. The steps of the world change
// it.
type sky struct {
	now atomic.Int32
	// drawl is how long an ingester takes for each part of an answer, in ns.
	drawl atomic.Int64
}

func (s *sky) set(x weather) { s.now.Store(int32(x)) }

// fate draws the weather for one call.
func (s *sky) fate(rng *rand.Rand) weather {
	if s == nil {
		return fair
	}
	x := weather(s.now.Load())
	if x != mixed {
		return x
	}
	return [...]weather{fair, fair, fair, fails, hangs, loses, late}[rng.IntN(7)]
}

// way is one party's way to a store.
type way struct {
	w    *world
	name string
	gate *gate
	// tables is the weather for all calls to the tables, writes that for writes alone, gets that for
	// parts of blobs alone, and lists that for listings of services.
	tables, writes, blobs, gets, lists *sky
}

// script translates the part of the weather that [storagetest.Faulty] knows.
func (y *way) script(op storagetest.Op, key string) storagetest.Fault {
	rng := y.w.fate(y.name + " " + string(op) + " " + key)
	f := storagetest.Fault{Delay: y.w.latency(rng)}
	isWrite := op == storagetest.Create || op == storagetest.Upsert || op == storagetest.Swap
	x := y.blobs.fate(rng)
	switch op {
	case storagetest.Swap, storagetest.Upsert, storagetest.Scan, storagetest.Tables, storagetest.Drop:
		if x = y.tables.fate(rng); x == fair && isWrite {
			x = y.writes.fate(rng)
		}
	case storagetest.Get:
		if x == fair {
			x = y.gets.fate(rng)
		}
	case storagetest.List, storagetest.Dirs:
		if x == fair && !strings.HasPrefix(key, "_") {
			x = y.lists.fate(rng)
		}
	}
	switch {
	case x == fails:
		f.Before = errAway
	case x == denied:
		f.Before = fmt.Errorf("%s: %w", key, storage.ErrUnauthorized)
	case x == hangs, x == late && isWrite:
		f.Block = y.w.never
	case x == loses && isWrite:
		f.After = errLost
	case x == loses:
		f.Before = errLost
	}
	return f
}

// isLate draws whether a write takes longer than any caller waits for it, and how long.
func (y *way) isLate(what string, skies ...*sky) (time.Duration, bool) {
	rng := y.w.fate(y.name + " late " + what)
	for _, s := range skies {
		if x := s.fate(rng); x == late && rng.IntN(4) > 0 {
			return time.Duration(rng.Int64N(int64([]time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}[rng.IntN(3)]))), true
		}
	}
	return 0, false
}

// wayTables are the tables as a party reaches them.
type wayTables struct {
	storage.TableStore // with faults
	*way
	there storage.TableStore
}

func (y *way) tablesOf(s *store) storage.TableStore {
	return &wayTables{storagetest.FaultyTables(s.tables, y.script), y, s.tables}
}

func (t *wayTables) Swap(ctx context.Context, table, partition string, row storage.Row) (version string, err error) {
	if t.gate.pass() != nil {
		return "", errGone
	}
	if d, ok := t.isLate(table+" "+row.Key, t.tables, t.writes); ok {
		t.w.later(d, func() bool {
			_, err := t.there.Swap(context.Background(), table, partition, row)
			return err == nil
		})
		<-ctx.Done()
		return "", ctx.Err()
	}
	version, err = t.TableStore.Swap(ctx, table, partition, row)
	// The answer takes its time too.
	if !pause(ctx, t.w.latency(t.w.fate(t.name+" swapped "+row.Key))) {
		return "", ctx.Err()
	}
	if t.gate.pass() != nil {
		return "", errGone
	}
	return version, err
}

func (t *wayTables) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	if t.gate.pass() != nil {
		return errGone
	}
	if d, ok := t.isLate(table+" "+partition, t.tables, t.writes); ok {
		t.w.later(d, func() bool { return t.there.Upsert(context.Background(), table, partition, rows) == nil })
		return errLost
	}
	err := t.TableStore.Upsert(ctx, table, partition, rows)
	if t.gate.pass() != nil {
		return errGone
	}
	return err
}

// Scan implements [storage.TableStore].
func (t *wayTables) Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		if t.gate.pass() != nil {
			yield(storage.Row{}, errGone)
			return
		}
		for row, err := range t.TableStore.Scan(ctx, table, partition, from, to, limit, props...) {
			if t.gate.pass() != nil {
				row, err = storage.Row{}, errGone
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// wayBlobs are the blobs as a party reaches them.
type wayBlobs struct {
	storage.BlobStore // with faults
	*way
	there storage.BlobStore
}

func (y *way) blobsOf(s *store) storage.BlobStore {
	return &wayBlobs{storagetest.Faulty(s.blobs, y.script), y, s.blobs}
}

func (b *wayBlobs) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	if b.gate.pass() != nil {
		return errGone
	}
	if d, ok := b.isLate(key, b.blobs); ok {
		body := append([]byte(nil), body...)
		b.w.later(d, func() bool { return b.there.Create(context.Background(), key, body, attrs) == nil })
		return errLost
	}
	err := b.BlobStore.Create(ctx, key, body, attrs)
	if b.gate.pass() != nil {
		return errGone
	}
	return err
}

// later calls do after a while, even if its caller has gone by then. do reports whether
// it changed anything.
func (w *world) later(d time.Duration, do func() bool) {
	w.late.Go(func() {
		time.Sleep(d)
		landed := do()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.totals.LateWrites++
		if landed {
			w.totals.LateLanded++
		}
	})
}

// registry is a table store that notes every change of the ingesters' rows. From it the
// world knows which ingesters an operator has given up, and when.
type registry struct {
	*mem.Store
	w *world

	mu   sync.Mutex
	rows map[string]*registered // by id
	// knew has the ids that each ingester knew to hold records when the table was
	// removed. As soon as one of these ingesters writes a row again, reads must know
	// that these rows are missing, until an operator acknowledges the loss.
	knew map[*ingester][]string
	owed map[string][]turn // by id; the world's lock guards it
	// operator is set while an operator writes rows.
	operator bool
}

type registered struct {
	state, container string
	forgotten, lost  bool
}

// turn is a moment from which on reads must know of a loss, or need not.
type turn struct {
	at   uint64
	owed bool
}

func newRegistry(w *world, s *mem.Store) *registry {
	return &registry{Store: s, w: w, rows: map[string]*registered{}, knew: map[*ingester][]string{}, owed: map[string][]turn{}}
}

// Swap implements [storage.TableStore].
func (r *registry) Swap(ctx context.Context, table, partition string, row storage.Row) (string, error) {
	if table != lease.Table {
		return r.Store.Swap(ctx, table, partition, row)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	version, err := r.Store.Swap(ctx, table, partition, row)
	if err == nil {
		r.note(row)
	}
	return version, err
}

// Upsert implements [storage.TableStore]. Only a mutant writes the row of an ingester
// without a condition.
func (r *registry) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.Store.Upsert(ctx, table, partition, rows)
	if err == nil && table == lease.Table {
		for _, row := range rows {
			r.note(row)
		}
	}
	return err
}

// note notes a row that was just written. r.mu is held.
func (r *registry) note(row storage.Row) {
	text := func(name string) string { s, _ := row.Props[name].(string); return s }
	was := r.rows[row.Key]
	if was == nil {
		was = &registered{}
	}
	is := &registered{text("state"), text("store"), text("forgotten") != "", text("lostuntil") != ""}
	r.rows[row.Key] = is
	if text("adopter") != "" {
		r.w.adopted()
	}
	r.w.wrote(row.Key, text("process"), was, is)
	if !r.operator {
		in := r.w.writer(text("process"))
		for _, id := range r.knew[in] {
			r.owe(id, true)
		}
		delete(r.knew, in)
	}
}

// owe notes that from now on reads must know of the lost row of an ingester, or need
// not.
func (r *registry) owe(id string, owed bool) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.owed[id] = append(r.owed[id], turn{r.w.tickLocked(), owed})
}

// quiet reports whether, at some moment between from and until, reads could not know of
// the lost row of an ingester, or did not need to. The world's lock is held.
func (r *registry) quiet(id string, from, until uint64) bool {
	owed := false
	for _, t := range r.owed[id] {
		if t.at > from && !owed {
			return true
		}
		if t.at > until {
			return false
		}
		owed = t.owed
	}
	return !owed
}

// empty reports whether no ingester of a container has a row.
func (r *registry) empty(container string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range r.rows {
		if row.container == container {
			return false
		}
	}
	return true
}

// clear acts as an operator that removes the table of the ingesters.
func (r *registry) clear() {
	knew := map[*ingester][]string{}
	for _, in := range r.w.all {
		if in.disk != nil {
			if id, others := in.noted(); r.has(id) {
				knew[in] = others
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.Store.Drop(context.Background(), lease.Table) // never fails
	for id := range r.rows {
		r.w.absent(id, true)
		r.owe(id, false)
	}
	clear(r.rows)
	r.knew = knew
}

func (r *registry) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rows[id] != nil
}

// amend runs a change of rows by an operator.
func (r *registry) amend(do func()) {
	set := func(operator bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.operator = operator
	}
	set(true)
	do()
	set(false)
}

// settle notes that an operator has acknowledged all losses that rows report.
func (r *registry) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.owed {
		r.owe(id, false)
	}
}
