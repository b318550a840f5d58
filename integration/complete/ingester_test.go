package complete_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/dev/testkit/box"
	"blobtail/internal/lease"
	"blobtail/internal/storeid/premises"
	"blobtail/reading/unflushed/live"
	levels "blobtail/record/ack"
	"blobtail/storage/fsys/simdisk"
	"blobtail/tailindex"
)

// ingester is a log directory on a host, with or without a running process.
type ingester struct {
	w          *world
	n          int
	host       string
	bestEffort bool
	skew       time.Duration // of its clock
	inode      uint64
	// tables, writes and blobs are the weather on the ingester's way to the store. door
	// is the weather on the way to the ingester.
	tables, writes, blobs, door sky

	disk *simdisk.Disk // nil: destroyed
	away *simdisk.Disk // taken away, and may come back; nil: none is
	lax  bool          // it acknowledges what is on its disk alone, though it ships its log
	to   *store        // the store it was last started with
	proc *process      // nil: no process runs

	// The world's lock guards the fields below.
	id       string          // while it has no notes; "": any
	ids      map[string]bool // all ids it has had
	absences []*absence
	given    uint64 // when an operator has acknowledged what was lost by an adoption
}

// process is one start of an ingester, with its premises and its gate.
type process struct {
	*box.Process
	in       *ingester
	to       *store
	address  string // host it listens at
	gate     *gate
	premises *premises.Premises
	sent     *shipment // nil: the log is not shipped

	mu     sync.Mutex
	port   *box.Port // nil: it does not listen yet
	closed bool      // refuses new requests
	under  int       // requests in progress
	idle   chan struct{}
	dying  sync.Once
	damage sync.Once
	ending bool // lets no new request in
	exited bool // in order, by itself
}

// start runs a process on the disk, with a store. Like cmd/ingest, the process listens
// at an address of a host as soon as it has tried to write its row.
func (in *ingester) start(s *store, address string) error {
	w := in.w
	fs := host{in.disk, in.inode}
	log, err := wal.Open(dir, wal.Options{FS: fs, SegmentSize: w.p.Segment, Reserve: -1})
	if err != nil {
		return err
	}
	p := &process{in: in, to: s, address: address, gate: newGate(), idle: make(chan struct{})}
	if p.premises, err = openPremises(in, fs, s, log); err != nil {
		_ = log.Close()
		in.disk = in.disk.Kill()
		return err
	}
	if err := p.wire(fs, log); err != nil {
		w.trouble("start: %v", err)
		return err
	}
	in.proc, in.to = p, s
	w.mu.Lock()
	w.processes[p.Announcer.Process()] = in
	in.ids[p.Announcer.ID()] = true
	w.mu.Unlock()
	p.listen()
	return nil
}

// wire makes the parts of the process, and runs them.
func (p *process) wire(fs host, log *wal.Log) (err error) {
	in, w := p.in, p.in.w
	y := &way{w: w, name: in.host, gate: p.gate, tables: &in.tables, writes: &in.writes, blobs: &in.blobs}
	w.mu.Lock()
	id := in.id
	w.mu.Unlock()
	o := box.Options{
		Blobs: y.blobsOf(p.to), Tables: y.tablesOf(p.to), Storing: p.premises.Storing,
		Lease: lease.Options{
			ID: id, Dir: dir, FS: fs, Lane: in.n, Store: p.to.container, StoreID: p.premises.StoreID, Address: "http://" + p.address, Host: in.host,
			BestEffort: in.bestEffort, Lost: p.lost, Now: func() time.Time { return time.Now().Add(in.skew) }, IdleAfter: w.p.IdleAfter,
		},
		Buffer: buffer.Options{Size: 64 << 10, Min: 1, Age: w.p.Age, MaxAge: w.p.Age, Workers: 2},
		Live: live.Options{
			Self: func() live.Self {
				return live.Self{ID: p.Announcer.ID(), Process: p.Announcer.Process(), Store: p.premises.ID()}
			},
			HTTP: w.net.client(in.host, p.gate),
		},
	}
	if w.p.Tail { // of old ingesters, and of others
		o.Tail = &tailindex.Options{Every: []time.Duration{time.Second, 5 * time.Second, tailindex.MostEvery}[in.n%3]}
	}
	if w.p.Ships {
		if in.n%2 == 1 { // batches that cannot be stored are copied to the end of the log
			o.Buffer.Soft = w.p.Segment
		}
		o.Buffer.Shipped = func(ctx context.Context, pos wal.Pos) error { return p.sent.Wait(ctx, pos) }
	}
	if p.Process, err = box.NewProcess(log, o); err != nil {
		return err
	}
	if w.p.Ships {
		p.sent = newShipment(p, y)
	}
	p.Run()
	p.Go(p.premises.Run)
	p.sent.run()
	return nil
}

// lost returns the loss that the start found in the log. After a power cut the loss may
// be overstated: any part of the unsynced data may be there, and a gap before readable
// data is taken for damage.
func (p *process) lost() lease.Loss {
	l, ok := p.Buffer.Lost()
	if !ok {
		return lease.Loss{}
	}
	p.damage.Do(func() {
		p.in.w.say("%s says that its log has lost %d records", p.in.host, l.Records)
		p.in.w.mu.Lock()
		defer p.in.w.mu.Unlock()
		p.in.w.totals.Damaged++
	})
	return lease.Loss{Since: l.Since, Until: l.Until}
}

// listen lets requests in once readers can know of the process, or after a while.
func (p *process) listen() {
	p.Go(func(context.Context) {
		select {
		case <-p.Announcer.First():
		case <-time.After(1500 * time.Millisecond):
		case <-p.gate.dead:
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.ending {
			p.port = p.in.w.net.Up(p.address, &listener{p.Handler, p.gate, &p.in.door})
		}
	})
}

// enter lets a request in, or refuses it.
func (p *process) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.port == nil:
		return box.ErrRefused
	case p.closed:
		return errDrained
	}
	p.under++
	return nil
}

func (p *process) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.under--; p.under == 0 && p.closed {
		close(p.idle)
	}
}

var errDrained = errors.New("this ingester takes no more")

// refuse makes the process refuse new requests.
func (p *process) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	if p.under == 0 {
		close(p.idle)
	}
}

// drain refuses new requests and stores all records.
func (p *process) drain() {
	p.refuse()
	p.Go(func(context.Context) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		select {
		case <-p.idle:
		case <-ctx.Done():
		}
		_, _ = p.Buffer.Flush(ctx) // unflushed records stay in the log
	})
}

const grace = 20 * time.Second

// stop ends a process in order, as cmd/ingest does. This takes time, and the process
// may be killed meanwhile.
func (p *process) stop() {
	p.refuse()
	p.in.w.ending.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		p.quit((*box.Port).Leave)
		p.Handler.Stop()
		select {
		case <-p.idle:
		case <-time.After(grace / 2):
		}
		_, err := p.Buffer.Flush(ctx)
		if p.gate.pass() != nil {
			return
		}
		p.Quiet()
		last, end := context.WithTimeout(context.Background(), 2*time.Second)
		_ = p.Announcer.Stop(last, err == nil)
		end()
		if p.gate.pass() == nil {
			p.die()
			p.mu.Lock()
			p.exited = true
			p.mu.Unlock()
		}
	})
}

// quit lets no new request in, and ends listening if the process has begun to.
func (p *process) quit(end func(*box.Port)) {
	p.mu.Lock()
	p.ending = true
	port := p.port
	p.mu.Unlock()
	if port != nil {
		end(port)
	}
}

// die ends the process at once, even in the middle of a call. The caller handles the
// disk.
func (p *process) die() {
	p.dying.Do(func() {
		p.refuse()
		close(p.gate.dead)
		p.quit((*box.Port).Close)
		p.End()
		p.in.w.ending.Go(func() { _ = p.Wait() })
	})
}

// kill ends the process of an ingester, and cuts its power too if power is set.
func (in *ingester) kill(power bool) {
	p := in.proc
	in.proc = nil
	if power {
		in.disk = in.disk.PowerCut()
	} else {
		in.disk = in.disk.Kill()
	}
	p.die()
}

// reap notes that a process has ended by itself.
func (in *ingester) reap() {
	if p := in.proc; p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.exited {
			in.proc, in.disk = nil, in.disk.Kill()
		}
	}
}

// send sends a request and notes the answer.
func (p *process) send(q *request, stored bool) error {
	w := p.in.w
	rng := w.fate("send " + q.name + " " + p.in.host)
	time.Sleep(w.latency(rng))
	if err := p.gate.pass(); err != nil {
		return err
	}
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := p.premises.Ready(); err != nil {
		return refusedStore{err}
	}
	part := q.reading(rng)
	receipt, err := p.Accept(ctx, &part.r)
	if err != nil {
		return err
	}
	level := levels.Disk
	if stored {
		level = levels.Stored
	} else if p.sent != nil {
		level = p.sent.level(rng)
	}
	if err := receipt.Reached(ctx, level); err != nil {
		return err
	}
	if err := p.gate.pass(); err != nil {
		return err
	}
	w.acknowledged(part, p.in, p.to, p.sent != nil && level == levels.Disk)
	return nil
}
