// Package blobwriter turns a batch into exactly one numbered blob.
//
// Exactly-once storage relies on three properties of the batch: a random id, a content
// that never changes, and a name that is durable before its first use. [Writer.Write]
// encodes the batch and creates the blob under that name with a conditional create. If
// the store reports that the name is taken, the writer checks the blob's owner:
//
//	created                          -> MINE
//	taken, by this batch's id        -> MINE: an answer was lost before
//	taken, by another batch          -> FOREIGN: the next number
//	anything else                    -> UNKNOWN: the same name again, later
//
// The writer tries a second name only after FOREIGN at the first. It never overwrites a
// blob, so a late copy of our own request can do no harm. It leaves names one by one and never
// skips one. After a restart the writer does not know which name an earlier life of the batch had
// reached. An unchecked name may be the batch's own, now or after the arrival of a request in
// transit.
//
// Numbers are lane x 10,000 + k, with k counting from 1 in each service and period. The
// lane only avoids conflicts between ingesters; safety does not depend on it. The package
// does not retry: its caller calls Write again.
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

	"blobtail/blobfmt"
	"blobtail/internal/count"
	"blobtail/record"
	"blobtail/storage"
)

// Store is the part of a blob store that a Writer needs.
type Store interface {
	Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error
	Stat(ctx context.Context, key string) (storage.Blob, error)
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error]
}

// Batch is a Writer's view of a batch. Its id and its lines are the same at every call
// and after every restart.
type Batch interface {
	ID() [16]byte
	Service() string
	Period() time.Time
	Attempts() int // number of failed Writes
	// Pin is the result of Plan, or of the last Walk.
	Pin() []byte
	// Walk moves the pin on. The new pin is not recorded.
	Walk(pin []byte)
	// Each calls f for the lines in order.
	Each(ctx context.Context, f func(line []byte, t int64, origin record.Origin, index uint32) error) error
}

// ErrIDReused means that a blob has a batch's id but other content. The only causes are
// a copied log and damage. The batch must not be stored anywhere.
var ErrIDReused = errors.New("was the log directory copied?")

const (
	perLane  = 10000
	lastLane = 98 // 99 is the compactor's
	maxWalk  = 3  // foreign numbers tried one by one before the writer lists them
)

// Writer stores batches. Any number of goroutines may call its methods.
type Writer struct {
	store    Store
	m        *metrics
	encoding blobfmt.EncoderOptions
	encoders chan *blobfmt.Encoder
	free     chan []byte // bodies for reuse
	bodies   *room

	mu   sync.Mutex
	lane int
	next map[place]int // number for the next plan
}

// place is the scope of one count of numbers.
type place struct {
	service string
	period  int64
	lane    int
}

// Options tune a [Writer]. Attempts of one batch may differ in them.
type Options struct {
	NoFilters bool // blobs have no filters, see [blobfmt.EncoderOptions]
}

// New returns a Writer with lane 0 and metrics at reg; nil: none. It starts nothing and
// asks the store nothing. It encodes as many batches at once as there are cores.
func New(store Store, o Options, reg *count.Registry) *Writer {
	cores := runtime.GOMAXPROCS(0)
	w := &Writer{
		store:    store,
		m:        newMetrics(reg),
		encoders: make(chan *blobfmt.Encoder, cores),
		free:     make(chan []byte, cores),
		bodies:   newRoom(),
		next:     map[place]int{},
	}
	if o.NoFilters {
		w.encoding.FilterPercent = -1
	}
	for range cores {
		w.encoders <- nil // encode makes it
	}
	return w
}

// SetLane changes the lane of later plans, 0 to 98. Planned batches keep their names,
// which are pinned.
func (w *Writer) SetLane(lane int) error {
	if lane < 0 || lane > lastLane {
		return fmt.Errorf("lane %d: want 0 to %d", lane, lastLane)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lane = lane
	return nil
}

// maxPlaces bounds the memory of numbers. Dropping one costs a few conflicts.
const maxPlaces = 65536

// Plan reserves the next number of a service and period and returns it as the pin for the
// batch record.
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

// Write stores b. It returns nil only if a blob surely has this batch. After any other
// error the outcome is unknown, and the caller must write the same batch again later. A
// repeat does not help after [ErrIDReused] or an error of b.Each.
func (w *Writer) Write(ctx context.Context, b Batch) error {
	number, err := parsePin(b.Pin())
	if err != nil {
		return err
	}
	name := blobfmt.Name{Service: b.Service(), Period: b.Period(), Number: number}
	var held *holder
	if b.Attempts() > 0 {
		// If the store is down, a cheap request finds out before the batch is encoded
		// again. It also finds a blob of this batch, whose answer was lost.
		if held, err = w.look(ctx, name.String()); err != nil {
			return err
		}
	}
	body, meta, err := w.encode(ctx, b)
	if err != nil {
		return err
	}
	defer w.giveBack(b.Service(), body)
	meta.Place = name.Place()
	for passed := 0; ; {
		if held == nil {
			held, err = w.create(ctx, name.String(), body, meta)
		}
		mine := false
		if err == nil {
			mine, err = held.is(meta, name)
		}
		if err != nil {
			return err
		}
		if mine {
			w.m.blob(meta, len(body))
			w.used(b, name.Number)
			return nil
		}
		w.m.foreign.Inc()
		held = nil
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
		// A second writer on the same lane may be ahead. This one must not plan with the
		// numbers of the other.
		w.used(b, name.Number)
	}
}

// Key is the name of the blob of a batch, once Write has stored it.
func Key(b Batch) string {
	number, _ := parsePin(b.Pin()) // it was read before the blob was put
	return blobfmt.Name{Service: b.Service(), Period: b.Period(), Number: number}.String()
}

// encode makes the blob of a batch. The caller owns the body, which has its place in w.bodies until
// giveBack. While it waits for room, it holds neither an encoder nor a body: it encodes again, which
// gives the same bytes.
func (w *Writer) encode(ctx context.Context, b Batch) ([]byte, blobfmt.Meta, error) {
	reserved := 0
	defer func() { w.bodies.giveBack(b.Service(), reserved) }() // after an error or a panic
	for {
		body, meta, size, err := w.encodeInto(ctx, b, reserved)
		if body != nil && size == reserved {
			reserved = 0 // it is the body's now
		}
		if body != nil || err != nil {
			return body, meta, err
		}
		w.bodies.giveBack(b.Service(), reserved)
		reserved = 0
		if err := w.bodies.wait(ctx, b.Service(), size); err != nil {
			return nil, meta, err
		}
		reserved = size
	}
}

// encodeInto encodes a batch, if there is room for a body of its size, or if room for that size is
// reserved; else it returns the size alone.
func (w *Writer) encodeInto(ctx context.Context, b Batch, reserved int) (body []byte, meta blobfmt.Meta, size int, err error) {
	var enc *blobfmt.Encoder
	select {
	case enc = <-w.encoders:
	case <-ctx.Done():
		return nil, meta, 0, ctx.Err()
	}
	defer func() { w.encoders <- enc }()
	if enc == nil {
		if enc, err = blobfmt.NewEncoder(w.encoding); err != nil {
			return nil, meta, 0, fmt.Errorf("make an encoder: %w", err)
		}
	}
	enc.Reset()
	if err = b.Each(ctx, enc.Add); err != nil {
		return nil, meta, 0, fmt.Errorf("encode a batch of %s: %w", b.Service(), err)
	}
	encoded, meta, err := enc.Finish(b.ID())
	if err != nil {
		return nil, meta, 0, fmt.Errorf("encode a batch of %s: %w", b.Service(), err)
	}
	if len(encoded) != reserved && !w.bodies.try(b.Service(), len(encoded)) {
		return nil, meta, len(encoded), nil
	}
	// The copy frees the encoder for the next batch during the upload.
	var free []byte
	select {
	case free = <-w.free:
	default:
	}
	return append(free[:0], encoded...), meta, len(encoded), nil
}

func (w *Writer) giveBack(service string, body []byte) {
	w.bodies.giveBack(service, len(body))
	select {
	case w.free <- body:
	default:
	}
}

// A holder is the batch whose blob has a name; without an id if nobody can tell, and the blob is not
// of this batch then: damaged, or of another program.
type holder struct {
	known bool
	meta  blobfmt.Meta
}

// is reports whether the holder is the batch of m. The error is [ErrIDReused].
func (h *holder) is(m blobfmt.Meta, name blobfmt.Name) (bool, error) {
	if got := h.meta; !h.known || got.Batch != m.Batch {
		return false, nil
	} else if got.Records != m.Records || got.CRC != m.CRC {
		return false, fmt.Errorf("blob %s carries batch %s with %d records, crc %08x; this log has that batch with %d records, crc %08x: %w",
			name, m.Batch, got.Records, got.CRC, m.Records, m.CRC, ErrIDReused)
	}
	return true, nil
}

// create creates the blob, or finds the holder of its name. The error is the reason for an unknown
// outcome.
func (w *Writer) create(ctx context.Context, key string, body []byte, m blobfmt.Meta) (*holder, error) {
	start := time.Now()
	err := w.store.Create(ctx, key, body, storage.Attrs{
		ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: m.Map(),
	})
	w.m.create.Observe(time.Since(start).Seconds())
	if err == nil {
		return &holder{true, m}, nil
	}
	if !errors.Is(err, storage.ErrExist) {
		return nil, fmt.Errorf("create %s: %w", key, err)
	}
	held, err := w.look(ctx, key)
	if held == nil && err == nil {
		err = fmt.Errorf("see whose %s is: it existed a moment ago: %w", key, storage.ErrNotExist)
	}
	return held, err
}

// look finds the holder of a name; nil if there is none.
func (w *Writer) look(ctx context.Context, key string) (*holder, error) {
	blob, err := w.store.Stat(ctx, key)
	switch {
	case errors.Is(err, storage.ErrNotExist):
		return nil, nil
	case errors.Is(err, storage.ErrDamaged):
		// If it was this batch, its lines will be stored twice, once damaged, and readers show
		// each once.
		return &holder{}, nil
	}
	var got blobfmt.Meta
	if err == nil {
		got, err = blobfmt.ParseMeta(blob.Metadata)
	}
	if errors.Is(err, blobfmt.ErrForeign) || errors.Is(err, blobfmt.ErrNewer) {
		return &holder{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("see whose %s is: %w", key, err)
	}
	return &holder{true, got}, nil
}

// walk returns the first number at or after from that no other batch is seen to hold. One
// listing replaces a create and a Stat for each number, which matters after a restart in
// a busy period.
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

// used keeps the numbers of later plans greater than the used ones.
func (w *Writer) used(b Batch, number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := place{b.Service(), b.Period().Unix(), number / perLane}
	w.next[p] = max(w.next[p], number+1)
}
