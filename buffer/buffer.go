// Package buffer stands between the sources and the blobs. It accepts requests
// durably, gathers their lines into batches of one service and one period, and
// drives each batch through a sink until it is surely stored; then it lets the
// log go.
//
// Call [New] with an open log and a sink, start [Buffer.Run], and hand requests
// to [Buffer.Accept]. [Buffer.Flush] puts all that was accepted before into
// blobs.
//
//	Accept -> runs record, fsync -> 2xx
//	   |         | list of positions per (service, period), and of the last runs -> Live
//	   |         |
//	 Tail        |
//	cut      -> batch record, fsync -> sink (encode, put) -> commit record -> segment deleted
//
// An open batch is a list of positions in the log, not a copy of its lines, so
// memory does not grow with the backlog, and what a start finds in the log is
// handled as if it had just arrived. The rules that make this safe, and what
// leaving one out costs, are in DESIGN.md; the bytes are in docs/FORMAT.md.
//
// A request that comes again is a repeat if its outcome is the same as well, and is
// answered as the first one was. Another outcome under the same origin is a new
// request; what both have has the same identities, and a batch keeps each once.
//
// What is on its way can be read: [Buffer.Live] is a snapshot of all that is
// accepted and may not be in a blob yet, under the identities that the blobs will
// have. Who takes it first and looks for blobs then misses nothing, and drops by
// their identities the records that it meets in both. The same call follows: it
// gives what was appended behind a position of an earlier snapshot, stored or not,
// as far as that is remembered. A snapshot keeps its part of the log, so it must be
// closed; it holds few lines in memory, whatever the backlog. Who wants to see
// records as they are accepted is a [Tail].
//
// The package does not know blobs: what a batch becomes is the sink's matter. It
// does not decode requests, and it never waits for a table or for a clock.
package buffer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"blobtail/buffer/runlog"
	"blobtail/record"
	"blobtail/wal"
)

// Sink turns batches into stored objects.
type Sink interface {
	// Plan returns what the batch record of a batch must hold for the sink (the
	// first name), which is opaque to the buffer. It is called with the buffer
	// locked and must be quick.
	Plan(service string, period time.Time) (pin []byte)
	// Write stores b. It returns nil only when b is surely stored as ours. An error
	// that wraps [ErrExpired] or [ErrAside] ends the matter too; any other means that
	// nothing is known, and Write is called again later. It is called by several
	// goroutines at once, never twice at once for one batch.
	Write(ctx context.Context, b *Batch) error
}

// Messages is told what becomes of messages: requests with a Reply, which their
// server keeps until they are stored. It is called with the buffer locked, so it
// must be quick and must not call back. After Stored or Dropped nothing more is
// said of a reply.
type Messages interface {
	// Found is called for a message that a start found in the log and will store.
	Found(reply string)
	// Stored is called when all records of a message are in blobs. It may come for
	// a message that was acknowledged before.
	Stored(reply string)
	// Dropped is called for a message that this buffer will not store: it must be
	// delivered again, unless a later delivery of it has been accepted since.
	Dropped(reply string)
}

// ErrAside is what a [Sink] wraps when no repeat can ever store a batch: it is
// set aside then, counted, and what the log holds of it is kept.
var ErrAside = errors.New("the batch cannot be stored")

// ErrExpired is what a [Sink] wraps when the day of a batch has been dropped: it is
// never stored then, counted, and the log lets go of it.
var ErrExpired = errors.New("the batch has expired")

// hopeless reports whether no repeat can store a batch: it rotted in the log, or the
// sink says so.
func hopeless(err error) bool {
	var rot *runlog.RotError
	return errors.Is(err, ErrAside) || errors.As(err, &rot)
}

// Options tune a Buffer. The zero value works.
type Options struct {
	Period time.Duration // slice of event time of a batch; 0: 1 h. Minutes that divide 60
	Size   int64         // bytes of lines that cut a batch; 0: 32 MiB
	Age    time.Duration // after which a batch of Min bytes is cut; 0: 60 s
	Min    int64         // 0: 1 MiB
	MaxAge time.Duration // after which any batch is cut; 0: 5 min
	Soft   int64         // log size from which the oldest batches are cut early; 0: 4 GiB
	Max    int64         // log size from which ErrFull is returned; 0: none
	Full   func() bool   // asked every second whether the disk is too full; nil: never
	// Expired says whether a period of a service has been dropped: its records are
	// not taken then. It is called for each run and must be quick; nil: never.
	Expired func(service string, period time.Time) bool
	// LossFound is called by Run when a start has found that the log lost records,
	// before anything of the log is given up; [Buffer.Lost] has them. nil: nobody is.
	LossFound func()
	// Messages is told of messages; nil: there are none.
	Messages Messages
	// Tail is told of all that is accepted; nil: nobody is.
	Tail    Tail
	Workers int // batches given to the sink at once; 0: 8 and one a core
	Log     zerolog.Logger
	Metrics prometheus.Registerer // nil: none
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	setN := func(n *int64, v int64) {
		if *n == 0 {
			*n = v
		}
	}
	set(&o.Period, time.Hour)
	set(&o.Age, time.Minute)
	set(&o.MaxAge, 5*time.Minute)
	setN(&o.Size, 32<<20)
	setN(&o.Min, 1<<20)
	setN(&o.Soft, 4<<30)
	if o.LossFound == nil {
		o.LossFound = func() {}
	}
	if o.Messages == nil {
		o.Messages = noMessages{}
	}
	if o.Workers == 0 {
		o.Workers = 8 + runtime.GOMAXPROCS(0)
	}
	return o
}

// Buffer accepts requests and drives batches. Accept and Flush may be called by
// any number of goroutines while Run runs.
type Buffer struct {
	o    Options
	log  *wal.Log
	sink Sink
	m    *metrics

	encoders sync.Pool           // *encoder
	loaders  chan *runlog.Loader // as many batches are loaded at once as there are cores
	full     atomic.Bool

	mu       sync.Mutex
	wake     *sync.Cond // signalled when queue, replayed or closing change
	open     map[runlog.Bin]*openBatch
	queue    []*Batch       // cut and not stored, oldest first
	pending  map[uint32]int // runs that are not stored, by segment
	pinned   map[uint32]int // snapshots that need a segment, and all behind it
	room     runlog.Room    // of readers of snapshots
	held     int64          // bytes of the log that the runs not stored are
	recent   *recent
	services services
	origins  *originMemory
	twice    twice
	replayed bool
	loss     Loss // none while it has no records
	closing  bool
	cutErr   string    // the last failure to cut, so that it is told once
	demanded time.Time // when batches were last cut because someone waits for them
	needed   wal.Pos   // what must be durable before a segment goes: the last commit or copy

	messages     map[record.Origin]*message // that are not stored
	openMessages int                        // of them, those with runs that no batch record names

	releasing sync.Mutex // held while segments are deleted
}

// openBatch gathers the runs of one service and period.
type openBatch struct {
	bin      runlog.Bin
	runs     runlog.Extents
	span     runlog.Span // of the times of its lines
	messages []*message  // one for each run that a message brought
	records  int
	bytes    int64
	since    time.Time
	fate     *fate  // of the batch that is made of it
	wanted   bool   // a request waits for that
	pin      []byte // what the sink planned, once it was asked
}

// fate is how a batch ended: done is closed when it is stored, or set aside
// with err.
type fate struct {
	done chan struct{}
	err  error
}

// wait returns nil when the batch is stored.
func (f *fate) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func newFate() *fate { return &fate{done: make(chan struct{})} }

func newOpenBatch(k runlog.Bin) *openBatch {
	return &openBatch{bin: k, span: runlog.NoSpan(), since: time.Now(), fate: newFate()}
}

// New returns a buffer over an open log. It starts nothing.
func New(log *wal.Log, sink Sink, o Options) *Buffer {
	b := &Buffer{
		o:        o.withDefaults(),
		log:      log,
		sink:     sink,
		loaders:  make(chan *runlog.Loader, runtime.GOMAXPROCS(0)),
		open:     map[runlog.Bin]*openBatch{},
		pending:  map[uint32]int{},
		pinned:   map[uint32]int{},
		recent:   newRecent(unknownBefore(log)),
		origins:  newOriginMemory(),
		twice:    twice{},
		messages: map[record.Origin]*message{},
	}
	b.services = newServices(b.o.Workers)
	for range cap(b.loaders) {
		b.loaders <- runlog.NewLoader(log)
	}
	b.encoders.New = func() any { return &encoder{Encoder: runlog.NewEncoder(b.o.Period, b.o.Expired)} }
	b.wake = sync.NewCond(&b.mu)
	b.m = newMetrics(b)
	return b
}

// Accept appends a request to the log and copies all that it needs. The request
// is not safe before the receipt's Wait has returned nil; of a message nobody
// need wait, [Messages] is told. The error is
// [record.ErrFull] when the log cannot grow, [record.ErrKeyReused] when the
// request's key came with another body, a [*record.EarlierError] when it came with
// this one and its records have to get the times of then; any other means that the
// log failed.
func (b *Buffer) Accept(ctx context.Context, r *record.Request) (record.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return record.Receipt{}, err
	}
	if len(r.Lines) == 0 {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.nothingLeft(r), nil
	}
	if b.isFull() && !b.allExpired(r) {
		return b.acceptKnown(r)
	}
	e := b.encoders.Get().(*encoder)
	defer b.encoders.Put(e)
	e.Encode(r, time.Now())
	receipt, pos, origin, err := b.append(r, e)
	if b.o.Tail != nil && err == nil && !receipt.Duplicate {
		b.tell(r, e, pos, origin)
	}
	return receipt, err
}

func (b *Buffer) isFull() bool {
	return b.full.Load() || (b.o.Max > 0 && b.log.Size() >= b.o.Max)
}

// allExpired reports whether nothing of a request is to be kept, which needs no room
// in a log that is full. Of most requests the first line tells.
func (b *Buffer) allExpired(r *record.Request) bool {
	if b.o.Expired == nil {
		return false
	}
	for i := range r.Lines {
		bin := runlog.Bin{Service: r.Services[r.Lines[i].Service], Period: runlog.PeriodOf(r.Lines[i].Time, b.o.Period)}
		if !b.o.Expired(bin.Service, bin.Start()) {
			return false
		}
	}
	return true
}

// append is Accept of an encoded request. It also returns where that is in the
// log, and the origin of its records, unless it came before.
func (b *Buffer) append(r *record.Request, e *encoder) (_ record.Receipt, pos wal.Pos, origin record.Origin, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer endIfPanicking()
	if receipt, known, err := b.known(r); known {
		return receipt, 0, origin, err
	}
	if len(e.Runs) == 0 {
		b.m.expired.Add(float64(e.LeftOut.Records))
		receipt := b.nothingLeft(r)
		receipt.Expired = e.LeftOut.Expired()
		return receipt, 0, origin, nil
	}
	pos, err = b.log.Append(runlog.TypeRuns, e.Payload)
	if errors.Is(err, syscall.ENOSPC) {
		b.m.refused.Inc()
		return record.Receipt{}, 0, origin, fmt.Errorf("%w: %w", record.ErrFull, err)
	}
	if err != nil {
		return record.Receipt{}, 0, origin, fmt.Errorf("append to the log: %w", err)
	}
	if b.o.Tail != nil {
		origin = b.originAt(r, pos)
	}
	var m *message
	if r.Reply != "" {
		m = b.newMessage(r, len(e.Runs), e.LeftOut.Expired())
	} else if !r.Origin.IsZero() {
		b.rememberOrigin(r, pos, e.LeftOut.Expired())
	}
	b.recent.appended(pos, len(e.Payload))
	batches := b.gather(pos, e.Runs, m)
	b.m.expired.Add(float64(e.LeftOut.Records))
	b.m.records.Add(float64(len(r.Lines) - e.LeftOut.Records))
	b.m.bytes.Add(float64(int64(len(r.Data)) - e.LeftOut.Bytes))
	return record.Receipt{Expired: e.LeftOut.Expired(), Wait: b.waitFor(pos, batches)}, pos, origin, nil
}

// endIfPanicking ends the process when its caller panics with the buffer locked:
// net/http would take that for the matter of one request, but neither the log nor
// the batches are to be trusted then. A start makes them anew from what is durable.
func endIfPanicking() {
	if cause := recover(); cause != nil {
		go panic(fmt.Sprintf("%v, in\n%s", cause, debug.Stack()))
		select {}
	}
}

// nothingLeft takes a request without records, or with none that has not expired:
// nothing of it is kept. b.mu is held.
func (b *Buffer) nothingLeft(r *record.Request) record.Receipt {
	if r.Reply != "" {
		b.o.Messages.Stored(r.Reply)
	}
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}
}

// gather adds freshly appended runs to their open batches, and cuts those that
// have grown to size. b.mu is held.
func (b *Buffer) gather(pos wal.Pos, runs []runlog.Written, m *message) []*openBatch {
	b.pending[pos.Segment()] += len(runs)
	batches := make([]*openBatch, len(runs))
	for i := range runs {
		r := &runs[i]
		ob := b.open[r.Bin]
		if ob == nil {
			ob = newOpenBatch(r.Bin)
			b.open[r.Bin] = ob
		}
		at := runlog.Extent{Pos: pos + wal.Pos(r.Off), Len: uint32(r.Len)}
		ob.runs.Add(at)
		b.recent.add(at, r.Service)
		ob.span.Extend(r.Span)
		ob.records += r.Records
		ob.bytes += r.Bytes
		b.held += int64(r.Len)
		if m != nil {
			ob.messages = append(ob.messages, m)
		}
		batches[i] = ob
		if ob.bytes >= b.o.Size {
			b.cut(ob)
		}
	}
	b.cutMessages()
	return batches
}

// cut pins an open batch with a batch record and queues it. The record is not
// durable yet: who takes the batch from the queue syncs it first. b.mu is held.
func (b *Buffer) cut(ob *openBatch) {
	rec := runlog.BatchRecord{Bin: ob.bin, Records: ob.records, Bytes: ob.bytes, Runs: ob.runs}
	rand.Read(rec.ID[:])
	if ob.pin == nil { // a name that is planned anew with each try is used up
		ob.pin = b.sink.Plan(ob.bin.Service, ob.bin.Start())
	}
	rec.Pin = ob.pin
	payload := rec.Append(nil)
	pos, err := b.log.AppendReserved(runlog.TypeBatch, payload)
	if err != nil {
		// A full disk must not stop what makes room on it: the batch stays open
		// and is tried again with the next tick.
		if b.cutErr != err.Error() {
			b.cutErr = err.Error()
			b.o.Log.Error().Err(err).Msg("cannot cut a batch; it stays open")
		}
		return
	}
	b.cutErr = ""
	delete(b.open, ob.bin)
	batch := newBatch(b, &rec, runlog.PlaceOfBatch(pos, len(payload), &ob.runs), ob.since)
	batch.span, batch.messages, batch.fate = ob.span, ob.messages, ob.fate
	b.queue = append(b.queue, batch)
	b.named(ob.messages)
	b.m.cut.Inc()
	b.wake.Broadcast()
}

// waitFor returns the Wait of a request whose record is at pos.
func (b *Buffer) waitFor(pos wal.Pos, batches []*openBatch) func(context.Context, bool) error {
	return func(ctx context.Context, stored bool) error {
		if err := b.log.Sync(pos); err != nil || !stored {
			return err
		}
		b.mu.Lock()
		for _, ob := range batches {
			ob.wanted = true
		}
		b.mu.Unlock()
		for _, ob := range batches {
			if err := ob.fate.wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// Ready reports whether the log takes appends.
func (b *Buffer) Ready() error { return b.log.Err() }
