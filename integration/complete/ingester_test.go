package complete_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"blobtail/blobwriter"
	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/lease"
	"blobtail/internal/storeid/premises"
	"blobtail/reading/unflushed/live"
	"blobtail/reading/unflushed/live/peers"
	"blobtail/record"
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
	to   *store        // the store it was last started with
	proc *process      // nil: no process runs

	// The world's lock guards the fields below.
	id       string          // while it has no notes; "": any
	ids      map[string]bool // all ids it has had
	absences []*absence
}

// process is one start of an ingester: all the parts that cmd/ingest wires, except the
// listeners.
type process struct {
	in        *ingester
	to        *store
	address   string // host it listens at
	gate      *gate
	log       *wal.Log
	disk      *simdisk.Disk
	buf       *buffer.Buffer
	announcer *lease.Announcer
	handler   *live.Handler
	premises  *premises.Premises
	announce  context.CancelFunc
	end       context.CancelFunc
	running   sync.WaitGroup

	mu     sync.Mutex
	port   *listener // nil: it does not listen yet
	closed bool      // refuses new requests
	under  int       // requests in progress
	idle   chan struct{}
	dying  sync.Once
	damage sync.Once
	ending bool // lets no new request in
	exited bool // in order, by itself
}

// sink is the blob writer with the checks of cmd/ingest.
type sink struct {
	*blobwriter.Writer
	p      *process
	newest *live.Newest
}

func (s sink) Write(ctx context.Context, b *buffer.Batch) error {
	if err := s.p.premises.Storing(); err != nil {
		return err
	}
	err := s.Writer.Write(ctx, b)
	if err == nil {
		s.newest.Note(b.Service(), blobwriter.Key(b), b.ID())
	}
	if errors.Is(err, blobwriter.ErrIDReused) {
		err = errors.Join(buffer.ErrAside, err)
	}
	return err
}

// journal is a copy of the one in cmd/ingest.
type journal struct {
	buf       *buffer.Buffer
	announcer *lease.Announcer
}

func (j journal) Open(ctx context.Context, q live.LogQuery) (live.Held, error) {
	snapshot, err := j.buf.Live(ctx, buffer.LiveQuery(q))
	if err != nil {
		return nil, err
	}
	return held{snapshot, j.announcer.Loss}, nil
}

type held struct {
	*buffer.Live
	lost func() lease.Loss
}

func (h held) Each(ctx context.Context, emit func(*record.Entry) error) error {
	err := h.Live.Each(ctx, emit)
	var missing *buffer.MissingError
	if errors.As(err, &missing) {
		return &live.DamageError{Err: err}
	}
	if loss := h.lost(); err == nil && loss.Any() {
		return &live.DamageError{Err: errors.New("records were lost")}
	}
	return err
}

// teller passes accepted records on to the tail, which is made after the buffer.
type teller struct{ w *tailindex.Writer }

func (t *teller) Accepted(mark uint64, run *record.Run) { t.w.Accepted(mark, run) }

// start runs a process on the disk, with a store. Like cmd/ingest, the process listens
// at an address of a host as soon as it has tried to write its row.
func (in *ingester) start(s *store, address string) error {
	w := in.w
	fs := host{in.disk, in.inode}
	log, err := wal.Open(dir, wal.Options{FS: fs, SegmentSize: w.p.Segment, Reserve: -1})
	if err != nil {
		return err
	}
	p := &process{in: in, to: s, address: address, gate: newGate(), log: log, disk: in.disk, idle: make(chan struct{})}
	if p.premises, err = openPremises(in, fs, s, log); err != nil {
		_ = log.Close()
		in.disk = in.disk.Kill()
		return err
	}
	if err := p.wire(fs); err != nil {
		w.trouble("start: %v", err)
		return err
	}
	in.proc, in.to = p, s
	w.mu.Lock()
	w.processes[p.announcer.Process()] = in
	in.ids[p.announcer.ID()] = true
	w.mu.Unlock()
	p.run()
	return nil
}

// wire makes the parts of the process.
func (p *process) wire(fs host) error {
	in, w := p.in, p.in.w
	y := &way{w: w, name: in.host, gate: p.gate, tables: &in.tables, writes: &in.writes, blobs: &in.blobs}
	blobs, tables := y.blobsOf(p.to), y.tablesOf(p.to)
	writer := blobwriter.New(blobs, blobwriter.Options{}, nil)
	err := writer.SetLane(in.n)
	if err != nil {
		return err
	}
	o := buffer.Options{Size: 64 << 10, Min: 1, Age: w.p.Age, MaxAge: w.p.Age, Workers: 2}
	told := &teller{}
	if w.p.Tail {
		o.Tail = told
	}
	newest := &live.Newest{}
	p.buf = buffer.New(p.log, sink{writer, p, newest}, o)
	now := func() time.Time { return time.Now().Add(in.skew) }
	w.mu.Lock()
	id := in.id
	w.mu.Unlock()
	p.announcer, err = lease.New(tables, lease.Options{
		ID: id, Dir: dir, FS: fs, Lane: in.n, Store: p.to.container, StoreID: p.premises.StoreID, Address: "http://" + p.address, Host: in.host,
		BestEffort: in.bestEffort, Oldest: p.buf.Oldest, Earliest: p.buf.Earliest, Replayed: p.buf.Replayed, Lost: p.lost, Now: now, IdleAfter: w.p.IdleAfter,
	})
	if err != nil {
		return err
	}
	told.w = tailindex.NewWriter(tables, tailindex.Options{
		Store: p.to.container, Process: p.announcer.Process(), Lane: p.announcer.Lane, Durable: p.buf.Durable, Now: now,
		Every: []time.Duration{time.Second, 5 * time.Second, tailindex.MostEvery}[in.n%3], // of old ingesters, and of others
	})
	others := peers.New(peers.Options{Self: p.announcer.ID, Process: p.announcer.Process(), Now: now, List: func(ctx context.Context) ([]lease.Ingester, error) {
		return lease.List(ctx, tables, p.to.container)
	}})
	p.handler = live.NewHandler(live.Options{
		Self: func() live.Self {
			return live.Self{ID: p.announcer.ID(), Process: p.announcer.Process(), Store: p.premises.ID()}
		},
		Journal: journal{p.buf, p.announcer}, Newest: newest, Peers: others.Roll, HTTP: w.net.client(in.host, p.gate),
	})
	ctx, end := context.WithCancel(context.Background())
	announcing, quit := context.WithCancel(ctx)
	p.end, p.announce = end, quit
	p.running.Go(func() { _ = p.buf.Run(ctx) }) // fails only when the disk ends
	p.running.Go(func() { p.announcer.Run(announcing) })
	p.running.Go(func() { p.premises.Run(announcing) })
	p.running.Go(func() { others.Run(announcing) })
	if w.p.Tail {
		p.running.Go(func() { _ = told.w.Run(ctx) })
	}
	return nil
}

// lost returns the loss that the start found in the log. After a power cut the loss may
// be overstated: any part of the unsynced data may be there, and a gap before readable
// data is taken for damage.
func (p *process) lost() lease.Loss {
	l, ok := p.buf.Lost()
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

// run lets requests in once readers can know of the process, or after a while.
func (p *process) run() {
	p.running.Go(func() {
		select {
		case <-p.announcer.First():
		case <-time.After(1500 * time.Millisecond):
		case <-p.gate.dead:
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.ending {
			p.port = p.in.w.net.up(p.address, p.handler, p.gate, &p.in.door)
		}
	})
}

// enter lets a request in, or refuses it.
func (p *process) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.port == nil:
		return errRefused
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
	p.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		select {
		case <-p.idle:
		case <-ctx.Done():
		}
		_, _ = p.buf.Flush(ctx) // unflushed records stay in the log
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
		p.in.w.net.close(p.leaving(), false)
		p.handler.Stop()
		select {
		case <-p.idle:
		case <-time.After(grace / 2):
		}
		_, err := p.buf.Flush(ctx)
		if p.gate.pass() != nil {
			return
		}
		p.announce()
		last, end := context.WithTimeout(context.Background(), 2*time.Second)
		_ = p.announcer.Stop(last, err == nil)
		end()
		if p.gate.pass() == nil {
			p.die()
			p.mu.Lock()
			p.exited = true
			p.mu.Unlock()
		}
	})
}

// leaving returns the port for the last time. It is nil if the process never listened
// and never will.
func (p *process) leaving() *listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ending = true
	return p.port
}

// die ends the process at once, even in the middle of a call. The caller handles the
// disk.
func (p *process) die() {
	p.dying.Do(func() {
		p.refuse()
		close(p.gate.dead)
		p.in.w.net.close(p.leaving(), true)
		p.end()
		p.in.w.ending.Go(func() {
			p.running.Wait()
			_ = p.log.Close() // another process has its disk by then
		})
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
	receipt, err := p.accept(ctx, part)
	if err != nil {
		return err
	}
	if err := receipt.Wait(ctx, stored); err != nil {
		return err
	}
	if err := p.gate.pass(); err != nil {
		return err
	}
	w.acknowledged(part, p.in, p.to)
	return nil
}

// accept is the gate of cmd/ingest. No time passes between Enter and leave: the clock
// of a bubble stands still while a goroutine waits for a mutex.
func (p *process) accept(ctx context.Context, q *request) (record.Receipt, error) {
	leave, err := p.announcer.Enter(ctx, q.r.Earliest())
	if err != nil {
		return record.Receipt{}, err
	}
	defer leave()
	r := q.r
	return p.buf.Accept(ctx, &r)
}
