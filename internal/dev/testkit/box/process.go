package box

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"blobtail/blobwriter"
	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
	"blobtail/reading/unflushed/live/peers"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/storagetest"
	"blobtail/tailindex"
)

// ErrGone is the error of calls by a process that has ended.
var ErrGone = errors.New("the process is gone")

// Options are the settings of a process, in those of its parts. What joins the parts is set by
// [NewProcess].
type Options struct {
	Blobs  storage.BlobStore
	Tables storage.TableStore
	Lease  lease.Options // with Now
	Buffer buffer.Options
	Tail   *tailindex.Options // nil: no tail is written
	Live   live.Options       // Self may be nil if Lease has StoreID
	// Storing reports why no batch may be stored; nil: each may.
	Storing func() error
	// Asked is called with each question; nil: there is no call.
	Asked func(live.LogQuery)
}

// Process is one start of an ingester: all parts that cmd/ingest joins, but for listeners and
// sources.
type Process struct {
	Log       *wal.Log
	Buffer    *buffer.Buffer
	Announcer *lease.Announcer
	Handler   *live.Handler

	storing    func() error
	asked      func(live.LogQuery)
	newest     live.Newest
	others     *peers.Peers
	tail       *tailindex.Writer // nil: no tail is written
	dead       atomic.Bool
	announcing context.Context
	quiet, end context.CancelFunc
	running    sync.WaitGroup
}

// NewProcess joins the parts of a process on a log. Once it has ended, nothing that it does reaches
// the store.
func NewProcess(log *wal.Log, o Options) (*Process, error) {
	p := &Process{Log: log, storing: o.Storing, asked: o.Asked}
	tables := storagetest.FaultyTables(o.Tables, p.mortal)
	writer := blobwriter.New(storagetest.Faulty(o.Blobs, p.mortal), blobwriter.Options{}, nil)
	if err := writer.SetLane(o.Lease.Lane); err != nil {
		return nil, err
	}
	if o.Tail != nil {
		o.Buffer.Tail = p
	}
	p.Buffer = buffer.New(log, sink{writer, p}, o.Buffer)
	o.Lease.Oldest, o.Lease.Earliest, o.Lease.Replayed = p.Buffer.Oldest, p.Buffer.Earliest, p.Buffer.Replayed
	var err error
	if p.Announcer, err = lease.New(tables, o.Lease); err != nil {
		return nil, err
	}
	if o.Tail != nil {
		of := *o.Tail
		of.Store, of.Process, of.Lane = o.Lease.Store, p.Announcer.Process(), p.Announcer.Lane
		of.Durable, of.Now = p.Buffer.Durable, o.Lease.Now
		p.tail = tailindex.NewWriter(tables, of)
	}
	list := func(ctx context.Context) ([]lease.Ingester, error) { return lease.List(ctx, tables, o.Lease.Store) }
	p.others = peers.New(peers.Options{Self: p.Announcer.ID, Process: p.Announcer.Process(), Now: o.Lease.Now, List: list})
	if o.Live.Self == nil {
		o.Live.Self = func() live.Self {
			store, _ := o.Lease.StoreID() // "": unknown
			return live.Self{ID: p.Announcer.ID(), Process: p.Announcer.Process(), Store: store}
		}
	}
	o.Live.Journal, o.Live.Newest, o.Live.Peers = journal{p}, &p.newest, p.others.Roll
	p.Handler = live.NewHandler(o.Live)
	return p, nil
}

// Run runs the parts until [Process.End].
func (p *Process) Run() {
	ctx, end := context.WithCancel(context.Background())
	p.end = end
	p.announcing, p.quiet = context.WithCancel(ctx)
	p.running.Go(func() { _ = p.Buffer.Run(ctx) }) // its error is the end of the disk
	p.Go(p.Announcer.Run)
	p.Go(p.others.Run)
	if p.tail != nil {
		p.running.Go(func() { _ = p.tail.Run(ctx) })
	}
}

// Go runs a part of the process as long as it announces itself.
func (p *Process) Go(run func(context.Context)) { p.running.Go(func() { run(p.announcing) }) }

// mortal is the script of calls to the store by a process that may have ended.
func (p *Process) mortal(op storagetest.Op, _ string) storagetest.Fault {
	switch op {
	case storagetest.Create, storagetest.Upsert, storagetest.Swap:
		if p.dead.Load() {
			return storagetest.Fault{Before: ErrGone}
		}
	}
	return storagetest.Fault{}
}

// Accepted implements [buffer.Tail]: the tail is made after the buffer.
func (p *Process) Accepted(mark uint64, run *record.Run) { p.tail.Accepted(mark, run) }

// Accept is the gate of cmd/ingest. No time passes between Enter and leave: the clock of a bubble
// stands still while a goroutine waits for a mutex.
func (p *Process) Accept(ctx context.Context, r *record.Request) (record.Receipt, error) {
	leave, err := p.Announcer.Enter(ctx, r.Earliest())
	if err != nil {
		return record.Receipt{}, err
	}
	defer leave()
	copied := *r
	return p.Buffer.Accept(ctx, &copied)
}

// Quiet ends the announcements, and the parts of [Process.Go].
func (p *Process) Quiet() { p.quiet() }

// End ends the process at once, even in the middle of a call.
func (p *Process) End() {
	p.dead.Store(true)
	p.end()
}

// Wait waits for the parts of a process that ends, and closes its log. Another process may have the
// disk by then.
func (p *Process) Wait() error {
	p.running.Wait()
	return p.Log.Close()
}

// sink stores batches as cmd/ingest does.
type sink struct {
	*blobwriter.Writer
	p *Process
}

func (s sink) Write(ctx context.Context, b *buffer.Batch) error {
	if s.p.storing != nil {
		if err := s.p.storing(); err != nil {
			return err
		}
	}
	err := s.Writer.Write(ctx, b)
	if err == nil {
		s.p.newest.Note(b.Service(), blobwriter.Key(b), b.ID())
	}
	if errors.Is(err, blobwriter.ErrIDReused) {
		err = fmt.Errorf("%w: %w", buffer.ErrAside, err)
	}
	return err
}

// journal is a copy of the one in cmd/ingest.
type journal struct{ p *Process }

func (j journal) Open(ctx context.Context, q live.LogQuery) (live.Held, error) {
	if j.p.asked != nil {
		j.p.asked(q)
	}
	snapshot, err := j.p.Buffer.Live(ctx, buffer.LiveQuery(q))
	if err != nil {
		return nil, err // not a nil *Live, which is no nil Held
	}
	return held{snapshot, j.p.Announcer.Loss}, nil
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
