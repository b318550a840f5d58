package complete_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"blobtail/buffer/ship"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
	levels "blobtail/record/ack"
	"blobtail/storage"
	"blobtail/storage/fsys/simdisk"
)

// Ingesters ship their logs. Disks are destroyed, and some come back later. Silent ingesters are adopted,
// by several at once too: dead ones, and ones that hang, or that only the adopter cannot reach. Processes
// end within any of the operations for that. No operator gives an ingester up. A read that exits with 0
// has all that was acknowledged as shipped or stored; and what was acknowledged on a disk alone, until an
// operator acknowledges that as lost. In the end all are adopted, and reads are complete.
func TestShipped(t *testing.T) {
	s := simulation
	s.Test, s.Seeds = "TestShipped", 150
	var total totals
	first, done := testkit.Worlds(t, s, newShippedWorld, func(w *world) { testkit.Add(&total, &w.totals) })
	t.Logf("%d seeds from %d: %d adopted, %d fenced, %d disks came back, %d processes ended within an operation; %s",
		done, first, total.Adopted, total.Fenced, total.Back, total.Broken, &total)
	enough := total.Complete*3 > total.Reads && total.Acked*3 > total.Sent && total.Adopted > done/2 && total.Fenced > 0 && total.Back > 0
	if done >= 100 && os.Getenv(mutatedEnv) == "" && !enough {
		t.Error("too little happens")
	}
}

func newShippedWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 60))
	p := drawProfile(rng)
	p.Ships, p.Ingesters = true, 2+rng.IntN(3)
	p.BestEffort, p.Copies, p.Drops, p.Forgets = false, false, false, false
	if p.Stores = 1; rng.IntN(4) == 0 && !p.Calm {
		p.Stores = 2
	}
	w := worldOf(seed, p, rng)
	for _, in := range w.all {
		in.lax = !p.Calm && rng.IntN(4) == 0
	}
	return w
}

// shipment is the part of a process that ships and adopts, as in cmd/ingest.
type shipment struct {
	*ship.Shipper
	p        *process
	adoption ship.Adoption
}

const shipEvery = time.Second

func newShipment(p *process, y *way) *shipment {
	s := &shipment{p: p}
	s.Shipper = ship.New(ship.Options{
		Log: p.Log, Blobs: &brittle{y.blobsOf(p.to), p}, ID: p.Announcer.ID, StoreID: p.premises.StoreID, Needed: p.Buffer.Needed,
		Every: shipEvery, Wait: 5 * time.Second, Strict: !p.in.lax,
	})
	s.adoption = ship.Adoption{Tables: y.tablesOf(p.to), Store: p.to.container, Accept: s.accept, Ask: s.ask, Now: func() time.Time {
		return time.Now().Add(p.in.skew)
	}}
	p.Announcer.Ship(s.Ships)
	return s
}

// accept is the gate of the process.
func (s *shipment) accept(ctx context.Context, r *record.Request) (record.Receipt, error) {
	if err := errors.Join(s.p.premises.Ready(), s.Fenced(), s.p.gate.pass()); err != nil {
		return record.Receipt{}, fmt.Errorf("%w: %w", record.ErrUnheld, err)
	}
	receipt, err := s.p.Accept(ctx, r)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", record.ErrUnheld, err)
	}
	return receipt, err
}

// ask asks a silent ingester whether it runs, over a wire that may be cut.
func (s *shipment) ask(ctx context.Context, i lease.Ingester) error {
	client, err := live.NewClient(i.Address, live.ClientOptions{HTTP: s.p.in.w.net.client(s.p.in.host, s.p.gate)})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if self, err := client.Self(ctx); err == nil && self.ID == i.ID && s.p.in.w.fate("cut").IntN(2) > 0 {
		return errors.New("it answers")
	}
	return nil
}

// level draws what a sender asks for.
func (s *shipment) level(rng *rand.Rand) levels.Level {
	if s.p.in.lax && rng.IntN(2) == 0 {
		return levels.Disk
	}
	return levels.Shipped
}

func (s *shipment) run() {
	if s == nil {
		return
	}
	s.p.Go(s.Reap)
	s.p.Go(func(ctx context.Context) {
		if err := s.Run(ctx); err != nil && s.p.gate.pass() == nil {
			s.p.in.w.say("%s ends: %v", s.p.in.host, err)
			s.p.breaks(func(t *totals) { t.Fenced++ })
		}
	})
	if s.p.in.n%2 == 0 {
		s.p.Go(func(ctx context.Context) { s.AdoptSilent(ctx, 70*time.Second, s.adoption) })
	}
}

// breaks ends a process by itself. The world notes that before its next step.
func (p *process) breaks(count func(*totals)) {
	w := p.in.w
	p.die()
	w.mu.Lock()
	count(&w.totals)
	w.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exited = true
}

// fallsSilent has records sent to an ingester that hangs then, or dies with its disk, or is cut off from
// the tables. Another one adopts it, and it is back before, while or after that is done.
func (w *world) fallsSilent(in *ingester) {
	if in.proc == nil || in.proc.gate.shut() {
		return
	}
	id := in.proc.Announcer.ID()
	for range 2 {
		w.send(in)
	}
	time.Sleep(time.Duration(w.rng.Int64N(int64(3 * time.Second))))
	switch how := w.rng.IntN(5); {
	case how < 2:
		w.freeze(in)
	case how < 3:
		in.tables.set(fails)
		w.say("weather of %s: tables fails", in.host)
	default:
		w.say("%s and its disk are gone", in.host)
		in.kill(false)
		in.disk, in.away = nil, in.disk
		w.totals.Destroyed++
	}
	time.Sleep(lease.Silence + time.Duration(w.rng.Int64N(int64(15*time.Second))))
	w.adopt(id)
	for range w.rng.IntN(8) {
		time.Sleep(time.Duration(w.rng.Int64N(int64(time.Second))))
		w.send(in)
	}
	w.read()
	time.Sleep(time.Second)
	if in.reap(); in.proc != nil && in.proc.gate.shut() {
		w.freeze(in)
	} else if in.proc == nil && w.rng.IntN(2) == 0 {
		w.comesBack()
	}
	in.tables.set(fair)
	w.send(in)
	w.read()
}

// adopt has one or two ingesters adopt a silent one, the one with an id if that is not "".
func (w *world) adopt(id string) {
	s := w.stores[w.rng.IntN(len(w.stores))]
	silent, _ := lease.List(context.Background(), s.tables, s.container)
	again := 1 + w.rng.IntN(2)
	for _, n := range w.rng.Perm(len(w.all)) {
		in := w.all[n]
		if p := in.proc; p != nil && p.to == s && len(silent) > 0 && again > 0 {
			again--
			id := cmp.Or(id, silent[w.rng.IntN(len(silent))].ID)
			w.clients.Go(func() { p.sent.adopts(id) })
		}
	}
}

// adopts has a process adopt an ingester.
func (s *shipment) adopts(id string) {
	w := s.p.in.w
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := s.Adopt(ctx, id, s.adoption)
	w.say("%s adopts %s: %v", s.p.in.host, id, err)
}

// comesBack starts ingesters again whose disks were gone.
func (w *world) comesBack() {
	for _, in := range w.all {
		if in.away != nil && in.proc == nil {
			w.say("the disk of %s is back", in.host)
			in.disk, in.away = in.away.Kill(), nil
			w.startOn(in, in.to, in.host)
			w.totals.Back++
		}
	}
}

// adoptAll has every silent ingester adopted, as ingesters do by themselves after a while. An adopter may
// learn now that it was adopted itself: then it ends, and is started again, as by a supervisor.
func (w *world) adoptAll() {
	for range 3 {
		w.adoptEach()
		time.Sleep(5 * time.Second)
	}
}

func (w *world) adoptEach() {
	for _, s := range w.stores {
		var by *process
		for _, in := range w.all {
			if in.reap(); in.proc == nil && in.disk != nil && in.to == s {
				w.startOn(in, s, in.host)
				time.Sleep(5 * time.Second)
			}
			if in.proc != nil && in.proc.to == s && in.proc.premises.Ready() == nil { // its log may be of another store
				by = in.proc
			}
		}
		if by == nil {
			in := w.add(simdisk.New(w.seed<<8 | uint64(len(w.all))))
			w.startOn(in, s, in.host)
			by = in.proc
			time.Sleep(5 * time.Second)
		}
		rows, _ := lease.List(context.Background(), s.tables, s.container)
		for _, i := range rows {
			if by != nil && i.State == lease.Holding && !i.Live(time.Now()) {
				by.sent.adopts(i.ID)
			}
		}
	}
}

// adopted counts the rows that are cleared by adopters.
func (w *world) adopted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals.Adopted++
}

// gave notes that an operator has acknowledged the loss of an ingester. If it hangs, and wakes, it may
// acknowledge what is on its disk alone until it notices: reads need not know of that before its next row.
func (w *world) gave(i lease.Ingester) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, in := range w.all {
		if in.ids[i.ID] {
			in.given = w.tickLocked()
			in.absences = append(in.absences, &absence{from: in.given, id: i.ID, weak: true})
		}
	}
}

// brittle are blobs as a shipper reaches them. Its process may end at each call, before it or behind it,
// and does nothing while it is stopped.
type brittle struct {
	storage.BlobStore
	p *process
}

func (b *brittle) around(op string, do func() error) error {
	if b.p.gate.pass() != nil {
		return errGone
	}
	w := b.p.in.w
	rng := w.fate(b.p.in.host + " ends at " + op)
	end := rng.IntN(150)
	if w.p.Calm || w.p.Deaths < 8 || w.mended.Load() {
		end = -1
	}
	if end == 0 {
		b.breaks(op)
		return errGone
	}
	err := do()
	if end == 1 {
		b.breaks(op)
	}
	if b.p.gate.pass() != nil {
		return errGone
	}
	return err
}

func (b *brittle) breaks(op string) {
	b.p.in.w.say("%s ends at %s", b.p.in.host, op)
	b.p.breaks(func(t *totals) { t.Broken++ })
}

// Create implements [storage.BlobStore].
func (b *brittle) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	return b.around("create", func() error { return b.BlobStore.Create(ctx, key, body, attrs) })
}

// Stat implements [storage.BlobStore].
func (b *brittle) Stat(ctx context.Context, key string) (o storage.Blob, err error) {
	err = b.around("stat", func() error { o, err = b.BlobStore.Stat(ctx, key); return err })
	return o, err
}

// Get implements [storage.BlobStore].
func (b *brittle) Get(ctx context.Context, key string, off, n int64) (r io.ReadCloser, err error) {
	err = b.around("get", func() error { r, err = b.BlobStore.Get(ctx, key, off, n); return err })
	return r, err
}

// Delete implements [storage.BlobStore].
func (b *brittle) Delete(ctx context.Context, blobs ...storage.Blob) error {
	return b.around("delete", func() error { return b.BlobStore.Delete(ctx, blobs...) })
}

// List implements [storage.BlobStore].
func (b *brittle) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		var all []storage.Blob
		err := b.around("list", func() error {
			for o, err := range b.BlobStore.List(ctx, prefix, after) {
				if err != nil {
					return err
				}
				all = append(all, o)
			}
			return nil
		})
		for _, o := range all {
			if !yield(o, nil) {
				return
			}
		}
		if err != nil {
			yield(storage.Blob{}, err)
		}
	}
}
