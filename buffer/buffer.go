// Package buffer stands between the sources and the blobs. It accepts requests
// durably, gathers their lines into batches of one service and one period, and drives
// each batch through a sink until the sink has confirmed it. Then it releases the log.
//
// Call [New] with an open log and a sink, start [Buffer.Run], and hand requests to
// [Buffer.Accept]. [Buffer.Flush] stores everything that was accepted before.
//
//	Accept -> runs record, fsync -> 2xx
//	   |         | list of positions per (service, period), and of the last runs -> Live
//	   |         |
//	 Tail        |
//	cut      -> batch record, fsync -> sink (encode, put) -> commit record -> segment deleted
//
// An open batch is a list of positions in the log, not a copy of its lines. So memory
// does not grow with the backlog, and a start handles the runs that it finds in the
// log as if they had just arrived. There is no other recovery code.
// DESIGN.md has the rules that make this safe.
// Package runlog and docs/reference/format-shipped.md describe the bytes.
//
// [Buffer.Live] is a snapshot of the unflushed records, under the identities that
// they will have in blobs. A follower passes the position of an earlier snapshot, and the
// same call returns the records behind it. A [Tail] sees records as they are accepted.
//
// The package neither decodes requests nor knows blobs. It never waits for a table or for
// a clock.
//
// # Waiting requests
//
// The answer to a request waits for one fsync, shared by all requests that wait. The fsync
// begins when as many requests wait as shared the last one, or after 1 ms. A lone request is not
// delayed. While the disk has plenty of room, short records are written together, just before
// their fsync.
//
// A batch record is fsynced before anything of the batch is sent. A segment is fsynced when it
// is rolled, so the runs of a batch are durable with its record. Before a segment is deleted
// from the front, the commits are fsynced. The directory is fsynced after each deletion.
//
// # Messages
//
// A message is a request from a stream, with a Reply. It takes the same path without the wait,
// because its stream keeps it until every run of it is stored. In memory the buffer keeps only
// the reply of the message; the runs record has it too. The buffer acknowledges the message when
// the sink has stored its last run. If the stream delivers it again before that, the buffer only
// replaces the reply. If the stream delivers it again later, the buffer accepts it anew, and a
// reader drops the copy. A start leaves out messages that no batch record names: they were not
// acknowledged, so the stream delivers them again.
//
// # Parking
//
// If a batch at the front of the log cannot be stored, no segment behind it can be deleted
// either. When the log is over its soft limit, the buffer parks such batches: it copies them to
// the end of the log. A copy keeps the id and the name of its batch, and the identity of each
// record. The buffer parks only while less than half of the log is runs that are still needed.
// Log-structured stores clean by the same rule: an outage of the whole store does not wear the
// disk by copying the log round and round. While requests are refused, because the disk is full
// or the log at its bound, batches are parked at any size of the log and the limit is three
// quarters: room is worth more then. A damaged copy is taken apart like any damaged batch. Its
// undamaged part is parked again under a new id, because a start looks for runs in runs records
// only.
//
// # Repeats
//
// A request that comes again is a repeat only if its outcome is the same: the counts, and a
// checksum of the accepted lines and their places. It gets the answer of the first one, and
// nothing is kept. With another outcome, because the clock was corrected or the body is read as
// another type, it is a new request under the same origin. Records of both are dropped in the
// batch, or by readers. All others are stored. A repeat that waits for blobs waits for those of the
// first request: its batches had runs where the record of that request is, or was, in the log.
//
// A request with a key is found by its key and body. Records without times get the time of their
// request, and that differs at each attempt. So the buffer returns the time of the first attempt
// ([record.EarlierError]). The source gives that time to the records and hands the request over
// again. The head of a runs record has the data for all of this, so a start knows it too. It
// also has the arrival of the request, so a restart does not reset the age of waiting records.
//
// # Dropped days
//
// A record of a dropped day is left out of its request after the request has its origin and the
// records their numbers. So the remaining records are those of a copy that another ingester
// accepted before it knew of the drop. The answer counts the expired records. This check sends
// no request: it uses the horizons that the ingester read within the last minute. A batch may
// have waited for long, so it is checked again before each attempt to store it, by horizons of
// the last two minutes. An expired batch gets a commit record that says so. Its messages are
// acknowledged, and the log releases it.
package buffer

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
	"blobtail/internal/count"
	"blobtail/record"
)

// Sink turns batches into stored objects.
type Sink interface {
	// Plan returns the sink's part of a batch record: the first name, opaque to the
	// buffer. It is called with the buffer locked and must be quick.
	Plan(service string, period time.Time) (pin []byte)
	// Write stores b. It returns nil only when b is surely stored as ours. An error
	// that wraps [ErrExpired] or [ErrAside] is final too. After any other the outcome
	// is unknown, and Write is called again later. Several goroutines call it at once,
	// but only one for each batch.
	Write(ctx context.Context, b *Batch) error
}

// Messages learns the outcome of messages: requests with a Reply, which their server
// keeps until they are stored. It is called with the buffer locked, so it must be quick
// and must not call back. Stored or Dropped is the last call for a reply.
type Messages interface {
	// Found is called for a message that a start found in the log and will store.
	Found(reply string)
	// Stored is called when all records of a message are in blobs. The message may have
	// been acknowledged before.
	Stored(reply string)
	// Dropped is called for a message that this buffer will not store: it must be
	// delivered again, unless a later delivery of it has been accepted since.
	Dropped(reply string)
}

// ErrAside is wrapped by a [Sink] when no repeat can ever store a batch. Then the
// batch is set aside and counted, and its part of the log is kept.
var ErrAside = errors.New("the batch cannot be stored")

// ErrExpired is wrapped by a [Sink] when the day of a batch has been dropped. Then
// the batch is never stored but counted, and its part of the log is released.
var ErrExpired = errors.New("the batch has expired")

// hopeless reports whether no repeat can store a batch: it rotted in the log, or the
// sink says so.
func hopeless(err error) bool {
	_, rot := errors.AsType[*runlog.RotError](err)
	return rot || errors.Is(err, ErrAside)
}

// Options tune a Buffer. The zero value works.
type Options struct {
	Period time.Duration // slice of event time of a batch; 0: 1 h. Minutes that divide 60
	Size   int64         // bytes of lines that cut a batch; 0: 32 MiB
	Age    time.Duration // after which a batch of Min bytes is cut; 0: 60 s
	Min    int64         // 0: 2 MiB
	MaxAge time.Duration // after which any batch is cut; 0: 5 min
	// StoredEvery is the least time between cuts of batches that requests wait for; 0: 1 s.
	StoredEvery time.Duration
	Soft        int64       // log size from which the oldest batches are cut early; 0: 4 GiB
	Max         int64       // log size from which ErrFull is returned; 0: none
	Full        func() bool // called every second: is the disk too full? nil: never
	// Expired reports whether a period of a service has been dropped: its records are not
	// accepted then. It is called for each run and must be quick; nil: never.
	Expired func(service string, period time.Time) bool
	// LossFound is called by Run when a start finds that the log lost records, before
	// any segment is deleted; [Buffer.Lost] has them. nil: no call.
	LossFound func()
	Messages  Messages // learns the outcome of messages; nil: there are none
	// Crowded reports whether the server of messages soon delivers no more, because too many are
	// not acknowledged: then batches are cut. It must be quick; nil: never.
	Crowded func() bool
	Tail    Tail // sees everything that is accepted; nil: no tail
	// Shipped returns nil once a durable record of the log is in the store, as part of the log; nil: the
	// log is not shipped.
	Shipped func(ctx context.Context, pos wal.Pos) error

	// Workers bounds the batches in the sink at once, but for those whose upload is slow; 0: 8 and one
	// a core.
	Workers int
	Log     zerolog.Logger
	Metrics *count.Registry // nil: none
}

func (o Options) withDefaults() Options {
	o.Period = cmp.Or(o.Period, time.Hour)
	o.Size = cmp.Or(o.Size, 32<<20)
	o.Age = cmp.Or(o.Age, time.Minute)
	o.Min = cmp.Or(o.Min, 2<<20)
	o.MaxAge = cmp.Or(o.MaxAge, 5*time.Minute)
	o.StoredEvery = cmp.Or(o.StoredEvery, time.Second)
	o.Soft = cmp.Or(o.Soft, 4<<30)
	o.Workers = cmp.Or(o.Workers, 8+runtime.GOMAXPROCS(0))
	if o.Messages == nil {
		o.Messages = noMessages{}
	}
	return o
}

// Buffer accepts requests and drives batches. Any number of goroutines may call Accept
// and Flush while Run runs.
//
// One lock guards its parts, which have invariants of their own. [Buffer.Accept] holds it
// from the check for a repeat until the runs are in their open batches. So all parts have
// the order of the log. The lock is not held while the log is read or synced. An unstored
// run is in exactly one open batch or one batch of the queue.
type Buffer struct {
	o    Options
	log  *wal.Log
	sink Sink
	m    *metrics

	encoders sync.Pool           // *runlog.Encoder
	loaders  chan *runlog.Loader // as many batches are loaded at once as there are cores
	room     runlog.Room         // of all snapshots; it has its own lock
	full     atomic.Bool         // the disk; watch sets it

	replayed  chan struct{} // closed when the log that the start found is read
	ended     chan struct{} // closed when Run ends
	releasing sync.Mutex    // held while segments are deleted; taken before mu

	mu       sync.Mutex
	wake     *sync.Cond // signalled when the queue has a batch to try, or Run ends
	index    index
	queue    queue
	pinned   map[uint32]int // snapshots that need a segment and all behind it
	settled  wal.Pos        // the last commit or copy
	appended wal.Pos        // the last runs record; 0: none since the start
	messages messages
	repeats  repeats
	recent   *recent
	loss     Loss // none while it has no records
	refusals refusals
	demand   demand
}

// New returns a buffer over an open log. It starts nothing.
func New(log *wal.Log, sink Sink, o Options) *Buffer {
	o = o.withDefaults()
	b := &Buffer{
		o:        o,
		log:      log,
		sink:     sink,
		loaders:  make(chan *runlog.Loader, runtime.GOMAXPROCS(0)),
		queue:    newQueue(o.Workers),
		pinned:   map[uint32]int{},
		messages: messages{told: o.Messages, byOrigin: map[record.Origin]*message{}},
		repeats:  newRepeats(),
		recent:   newRecent(log),
		replayed: make(chan struct{}),
		ended:    make(chan struct{}),
	}
	for range cap(b.loaders) {
		b.loaders <- runlog.NewLoader(log)
	}
	b.encoders.New = func() any { return runlog.NewEncoder(o.Period, o.Expired) }
	b.wake = sync.NewCond(&b.mu)
	b.index = newIndex(&b.o)
	b.m = newMetrics(b)
	return b
}

// Ready reports whether the log accepts appends.
func (b *Buffer) Ready() error { return b.log.Err() }
