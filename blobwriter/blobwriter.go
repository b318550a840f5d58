// Package blobwriter turns a batch into exactly one numbered blob.
//
// Exactly once rests on three things that the batch brings along: a random id,
// a content that never changes, and a name that is durable before it is used.
// [Writer.Write] encodes the batch and creates the blob under that name with a
// conditional create. When the store says that the name is taken, it looks who
// holds it (see [Writer.put]):
//
//	created                          -> MINE
//	taken, by this batch's id        -> MINE: an answer was lost before
//	taken, by another batch          -> FOREIGN: the next number
//	anything else                    -> UNKNOWN: the same name again, later
//
// A second name is tried only after FOREIGN at the first, and nothing is ever
// overwritten, so a late copy of our own request can do no harm. Names are left
// one by one, never jumped over: after a restart nobody knows how far an earlier
// life of the batch had come, and a name that was not looked at may be its own,
// now or as soon as a request that is still on its way arrives.
//
// Numbers are lane x 10,000 + k, k counting from 1 in each service and period.
// The lane keeps ingesters out of each other's way; it is no matter of safety.
// The package does not retry: whoever drives batches calls Write again.
package blobwriter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"blobtail/blobfmt"
	"blobtail/record"
	"blobtail/storage"
)

// Store is what a Writer needs of a blob store.
type Store interface {
	Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error
	Stat(ctx context.Context, key string) (storage.Blob, error)
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error]
}

// Batch is what a Writer needs to know of a batch. Its id and its lines are the
// same at every call and after every restart.
type Batch interface {
	ID() [16]byte
	Service() string
	Period() time.Time
	Attempts() int // how many Writes have failed
	// Pin is what Plan returned, or the last Walk.
	Pin() []byte
	// Walk moves the pin on, without a trace.
	Walk(pin []byte)
	// Each calls f for the lines in order.
	Each(ctx context.Context, f func(line []byte, t int64, origin record.Origin, index uint32) error) error
}

// IDReuseError says that a blob carries a batch's id and other content. It can
// only come from a copied log or from damage; the batch must not be put anywhere.
type IDReuseError struct {
	Key  string
	ID   blobfmt.BatchID
	Want blobfmt.Meta
	Got  blobfmt.Meta
}

// Error names the blob and both contents, and asks the likely question.
func (e *IDReuseError) Error() string {
	return fmt.Sprintf("blob %s carries batch %s with %d records, crc %08x; this log has that batch with %d records, crc %08x: was the log directory copied?",
		e.Key, e.ID, e.Got.Records, e.Got.CRC, e.Want.Records, e.Want.CRC)
}

const (
	perLane  = 10000
	lastLane = 98 // 99 is the compactor's
	maxWalk  = 3  // foreign numbers met one by one before the writer asks for a list
)

// Options tune a Writer. The zero value works.
type Options struct {
	Lane     int                   // 0 to 98
	Level    zstd.EncoderLevel     // 0: SpeedFastest
	Encoders int                   // batches encoded at once; 0: one a core
	Uploads  int                   // creates under way at once; 0: 8
	Bodies   int64                 // bytes of encoded bodies held at once; 0: 64 MiB
	Metrics  prometheus.Registerer // nil: none
}

// Writer stores batches. Its methods may be called by any number of goroutines.
type Writer struct {
	o        Options
	store    Store
	m        *metrics
	encoders chan *blobfmt.Encoder
	free     chan []byte // bodies to be used again
	uploads  *semaphore.Weighted
	bodies   *semaphore.Weighted

	mu   sync.Mutex
	lane int
	next map[place]int // number that the next batch plans with
}

// place is where numbers are counted.
type place struct {
	service string
	period  int64
	lane    int
}

// New returns a Writer. It starts nothing and asks the store nothing.
func New(store Store, o Options) (*Writer, error) {
	if err := checkLane(o.Lane); err != nil {
		return nil, err
	}
	if o.Encoders == 0 {
		o.Encoders = runtime.GOMAXPROCS(0)
	}
	if o.Uploads == 0 {
		o.Uploads = 8
	}
	if o.Bodies == 0 {
		o.Bodies = 64 << 20
	}
	w := &Writer{
		o:        o,
		store:    store,
		m:        newMetrics(o.Metrics),
		encoders: make(chan *blobfmt.Encoder, o.Encoders),
		free:     make(chan []byte, o.Encoders),
		uploads:  semaphore.NewWeighted(int64(o.Uploads)),
		bodies:   semaphore.NewWeighted(o.Bodies),
		lane:     o.Lane,
		next:     map[place]int{},
	}
	for range o.Encoders {
		e, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{Level: o.Level})
		if err != nil {
			return nil, fmt.Errorf("make an encoder: %w", err)
		}
		w.encoders <- e
	}
	return w, nil
}

func checkLane(lane int) error {
	if lane < 0 || lane > lastLane {
		return fmt.Errorf("lane %d: want 0 to %d", lane, lastLane)
	}
	return nil
}

// SetLane changes the lane for batches that are planned from now on. What is
// planned already keeps its name, which is pinned.
func (w *Writer) SetLane(lane int) error {
	if err := checkLane(lane); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lane = lane
	return nil
}

// maxPlaces bounds the memory of numbers. Forgetting costs a few conflicts.
const maxPlaces = 65536

// Plan reserves the next number of a service and period and returns it as the
// pin for the batch record.
func (w *Writer) Plan(service string, period time.Time) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.next) >= maxPlaces {
		clear(w.next)
	}
	p := place{service, period.Unix(), w.lane}
	n := max(w.next[p], w.lane*perLane+1)
	w.next[p] = n + 1
	return appendPin(nil, n)
}

func appendPin(b []byte, number int) []byte { return binary.AppendUvarint(b, uint64(number)) }

func parsePin(pin []byte) (int, error) {
	n, l := binary.Uvarint(pin)
	if l <= 0 || l != len(pin) || n == 0 || n > 999999 {
		return 0, fmt.Errorf("pin %x is no blob number", pin)
	}
	return int(n), nil
}

// Write stores b. It returns nil only when a blob surely carries this batch;
// after any other error nothing is known, and the same batch is to be written
// again later. Errors that repeating cannot mend are [*IDReuseError] and what
// b.Each returns.
func (w *Writer) Write(ctx context.Context, b Batch) error {
	number, err := parsePin(b.Pin())
	if err != nil {
		return err
	}
	name := blobfmt.Name{Service: b.Service(), Period: b.Period(), Number: number}
	if b.Attempts() > 0 {
		// A store that is down is asked the cheapest thing before a batch is
		// encoded once more.
		if _, err := w.store.Stat(ctx, name.String()); err != nil && !errors.Is(err, storage.ErrNotExist) {
			return fmt.Errorf("look at %s: %w", name, err)
		}
	}
	body, meta, err := w.encode(ctx, b)
	if err != nil {
		return err
	}
	defer w.giveBack(body)
	if err := w.uploads.Acquire(ctx, 1); err != nil {
		return err
	}
	defer w.uploads.Release(1)
	for passed := 0; ; {
		out, err := w.put(ctx, name.String(), body, meta)
		switch out {
		case mine:
			w.m.blob(meta, len(body))
			w.used(b, name.Number)
			return nil
		case unknown:
			return err
		}
		w.m.foreign.Inc()
		passed++
		name.Number++
		if passed%maxWalk == 0 {
			if name.Number, err = w.walk(ctx, name, meta.Batch); err != nil {
				return err
			}
		}
		if name.Number >= (lastLane+1)*perLane {
			return fmt.Errorf("no numbers are left for %s in %s", name.Service, name.Period.Format(time.RFC3339))
		}
		b.Walk(appendPin(nil, name.Number))
		// Who falls behind another on one lane must not plan where that one was.
		w.used(b, name.Number)
	}
}

// encode makes the blob of a batch. The body is the caller's, and weighs on
// w.bodies until released.
func (w *Writer) encode(ctx context.Context, b Batch) ([]byte, blobfmt.Meta, error) {
	var enc *blobfmt.Encoder
	select {
	case enc = <-w.encoders:
	case <-ctx.Done():
		return nil, blobfmt.Meta{}, ctx.Err()
	}
	defer func() { w.encoders <- enc }()
	enc.Reset()
	if err := b.Each(ctx, enc.Add); err != nil {
		return nil, blobfmt.Meta{}, fmt.Errorf("encode a batch of %s: %w", b.Service(), err)
	}
	body, meta, err := enc.Finish(b.ID())
	if err != nil {
		return nil, meta, fmt.Errorf("encode a batch of %s: %w", b.Service(), err)
	}
	if err := w.bodies.Acquire(ctx, w.weight(body)); err != nil {
		return nil, meta, err
	}
	return append(w.empty(), body...), meta, nil
}

// empty returns a slice to copy a body into, so that the encoder is free for the
// next batch while this one is on its way.
func (w *Writer) empty() []byte {
	select {
	case b := <-w.free:
		return b[:0]
	default:
		return nil
	}
}

func (w *Writer) giveBack(body []byte) {
	w.bodies.Release(w.weight(body))
	select {
	case w.free <- body:
	default:
	}
}

// weight is what a body counts for; one that is larger than the whole bound
// must still get through.
func (w *Writer) weight(body []byte) int64 { return min(int64(len(body)), w.o.Bodies) }

// outcome is what is known after a put.
type outcome int

const (
	unknown outcome = iota
	mine
	foreign
)

// put creates the blob and finds out whose name it is. The error says why the
// outcome is unknown.
func (w *Writer) put(ctx context.Context, key string, body []byte, m blobfmt.Meta) (outcome, error) {
	start := time.Now()
	err := w.store.Create(ctx, key, body, storage.Attrs{
		ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: m.Map(),
	})
	w.m.create.Observe(time.Since(start).Seconds())
	if err == nil {
		return mine, nil
	}
	if !errors.Is(err, storage.ErrExist) {
		return unknown, fmt.Errorf("create %s: %w", key, err)
	}
	held, err := w.store.Stat(ctx, key)
	if errors.Is(err, storage.ErrDamaged) {
		// Whose it was cannot be seen any more. If it was ours its lines stand
		// twice now, once damaged, and readers show each once.
		return foreign, nil
	}
	if err != nil {
		// Also when it is absent: it was there a moment ago.
		return unknown, fmt.Errorf("see whose %s is: %w", key, err)
	}
	got, err := blobfmt.ParseMeta(held.Metadata)
	if errors.Is(err, blobfmt.ErrForeign) || errors.Is(err, blobfmt.ErrNewer) {
		return foreign, nil
	}
	if err != nil {
		return unknown, fmt.Errorf("see whose %s is: %w", key, err)
	}
	if got.Batch != m.Batch {
		return foreign, nil
	}
	if got.Records != m.Records || got.CRC != m.CRC {
		return unknown, &IDReuseError{key, m.Batch, m, got}
	}
	return mine, nil
}

// walk returns the first number from here on that is not seen to be held by
// another batch. One listing shows what a create and a look at every number
// would, which matters after a restart in a busy period.
func (w *Writer) walk(ctx context.Context, from blobfmt.Name, own blobfmt.BatchID) (int, error) {
	w.m.walks.Inc()
	next := from.Number
	before := from
	before.Number--
	for blob, err := range w.store.List(ctx, blobfmt.PeriodPrefix(from.Service, from.Period), before.String()) {
		if err != nil {
			return 0, fmt.Errorf("list the numbers of %s: %w", from.Service, err)
		}
		name, err := blobfmt.ParseName(blob.Key)
		if err != nil || name.Number < next {
			continue
		}
		m, err := blobfmt.ParseMeta(blob.Metadata)
		if name.Number > next || err != nil || m.Batch == own {
			break
		}
		next++
	}
	return next, nil
}

// used keeps the numbers that Plan gives ahead of those that are taken.
func (w *Writer) used(b Batch, number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := place{b.Service(), b.Period().Unix(), number / perLane}
	w.next[p] = max(w.next[p], number+1)
}
