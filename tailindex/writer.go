package tailindex

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"blobtail/record"
	"blobtail/storage"
)

// Options are the tables, and the writer's identity. The zero value works.
type Options struct {
	Prefix  string     // of the tables' names, letters; "": DefaultPrefix
	Shards  int        // partitions of a service, 1 to MaxShards; 0: DefaultShards
	Store   string     // the container, if several share the tables
	Process string     // 8 hex digits, new with each start; "": drawn
	Lane    func() int // of this ingester: it selects the shard to write to; nil: 0
	// Durable returns when all records accepted up to the mark are on disk. So no row
	// shows a record that a power cut removes. nil: they always are.
	Durable func(mark uint64) error
	// Now is the store's clock as far as it is known; nil: time.Now.
	Now    func() time.Time
	Memory int64 // bytes that wait to be written, at most; 0: 64 MiB
	// Every is the time between two rows of a busy service, LeastEvery to MostEvery; 0:
	// LeastEvery.
	Every time.Duration
	Log   zerolog.Logger
}

func (o Options) withDefaults() Options {
	o.Prefix, o.Shards, o.Memory = cmp.Or(o.Prefix, DefaultPrefix), cmp.Or(o.Shards, DefaultShards), cmp.Or(o.Memory, 64<<20)
	o.Process = cmp.Or(o.Process, fmt.Sprintf("%08x", rand.Uint32()))
	o.Every = min(max(o.Every, LeastEvery), MostEvery)
	if o.Lane == nil {
		o.Lane = func() int { return 0 }
	}
	if o.Durable == nil {
		o.Durable = func(uint64) error { return nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Writer writes the newest records of each service into the tables. All its methods may
// be called concurrently.
//
// A service is idle, waits for its turn, or has it. So its rows are written one after the
// other, and their numbers have no gaps.
type Writer struct {
	o        Options
	tables   storage.TableStore
	encoder  *zstd.Encoder  // of rows; may be used concurrently
	turns    sync.WaitGroup // that are scheduled or under way
	reporter reporter

	mu           sync.Mutex // guards the fields below
	services     map[string]*service
	writing      context.Context // of all writes, set by Run; nil: before that
	ending       bool            // Run was ended
	stats        Stats
	well, failed lane  // by the result of the last write: services that hang must not keep the rest waiting
	held         int64 // bytes of stats.Held in rows that must be written unchanged
}

// lane is services that are due, for a number of workers. A service waits as a pointer,
// not as a goroutine.
type lane struct {
	due  []*service
	free int // workers that may begin
}

// service is the state of a service. The writer's lock guards it, except for the fields of
// the turn.
type service struct {
	name  string
	phase time.Duration // offset within each interval at which it is written
	timer *time.Timer   // of the turn that it waits for, or has; nil: it is idle
	every time.Duration // interval that decided when that turn is; 0: none did
	batch *batch        // arrivals since the last write; nil: none
	wrote time.Time     // time at which the last batch was taken
	job   *job          // its rows, until they are written; only the turn changes it

	// The next fields belong to the turn.
	numbers [2]uint64 // of the last row of all and of errors
	fails   int
}

// batch is the arrivals of a service between two writes.
type batch struct {
	all, errors kept
	mark        uint64
	since       time.Time // first arrival, by this host's clock
}

func (b *batch) size() int64 { return int64(b.all.size() + b.errors.size()) }

// NewWriter returns a writer. It starts nothing and sends the store no request.
func NewWriter(tables storage.TableStore, o Options) *Writer {
	o = o.withDefaults()
	z, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(workers), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderDict(dictionary), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(1<<20)) // no error: the options are valid
	return &Writer{
		o: o, tables: tables, encoder: z, reporter: reporter{log: o.Log, told: map[string]bool{}},
		services: map[string]*service{}, well: lane{free: workers}, failed: lane{free: retriers},
	}
}

// Accepted passes the writer a run of lines. It copies the lines that it keeps, and waits
// for nothing. Durable is called with mark before a row shows a line of the run.
func (w *Writer) Accepted(mark uint64, run *record.Run) {
	now := w.o.Now()
	from, to := window(run, now.UnixNano())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Outside += uint64(run.Len() - (to - from))
	if from == to {
		return
	}
	s := w.services[run.Service]
	if s == nil {
		name := strings.Clone(run.Service)
		s = &service{name: name, phase: phase(name, w.o.Every)}
		w.services[name] = s
	}
	if s.batch == nil {
		s.batch = &batch{since: time.Now()}
	}
	b, held := s.batch, w.stats.Held
	before := b.size()
	if held > w.o.Memory {
		b.all.drop()
		b.errors.drop()
	}
	b.mark = max(b.mark, mark)
	b.keep(run, from, to, held > w.o.Memory+w.o.Memory/8)
	w.stats.Held += b.size() - before
	every := w.every()
	switch {
	case w.writing == nil || w.ending:
	case s.timer == nil:
		s.every = every
		w.schedule(s, s.pause(now, every))
	case every < s.every && s.timer.Stop(): // its turn was set while less waited
		s.every = every
		s.timer.Reset(s.pause(now, every))
	}
}

// window is the part of the run within Behind and Ahead. The run is sorted by time.
func window(run *record.Run, now int64) (from, to int) {
	lines, order := run.Request.Lines, run.Order
	to = sort.Search(len(order), func(i int) bool { return lines[order[i]].Time > now+int64(Ahead) })
	from = sort.Search(to, func(i int) bool { return lines[order[i]].Time > now-int64(Behind) })
	return from, to
}

// keep adds the new lines of a run: those of its newest that are newer than the kept
// ones, in order. With full it only counts the lines, and so omits them.
func (b *batch) keep(run *record.Run, from, to int, full bool) {
	lines, order := run.Request.Lines, run.Order
	b.all.tell(to-from, lines[order[from]].Time, lines[order[to-1]].Time)
	b.all.holes, b.errors.holes = b.all.holes || full, b.errors.holes || full
	for i := max(from, to-MaxLines); i < to && !full; i++ {
		e := run.Entry(i)
		b.all.add(&e)
	}
	// Errors are few, and only a search of all lines finds the last ones.
	for i := from; i < to; i++ {
		l := &lines[order[i]]
		if !isError(record.LineLevel(run.Request.Data[l.Off : l.Off+l.Len])) {
			continue
		}
		b.errors.tell(1, l.Time, l.Time)
		if !full {
			e := run.Entry(i)
			b.errors.add(&e)
		}
	}
}

const (
	// gather is the time for which a service that was quiet waits for more records.
	gather = 100 * time.Millisecond
	// soonest is the least time between two writes, while a service falls into step with
	// its phase.
	soonest = 250 * time.Millisecond
)

// every is the time between two rows of a service. While much waits it is the least one, so
// that many busy services lose no lines to the bound on memory. w.mu is held.
func (w *Writer) every() time.Duration {
	if w.stats.Held > w.o.Memory/4 {
		return LeastEvery
	}
	return w.o.Every
}

// phase is the offset within each interval at which a service is written. It is the same at
// all ingesters with that interval, so that their rows appear together and a follower can
// sort them. It differs from service to service, so that the store's load is even.
func phase(service string, every time.Duration) time.Duration {
	h := fnv.New32a()
	io.WriteString(h, service)
	return time.Duration(h.Sum32()%uint32(every.Milliseconds())) * time.Millisecond
}

// pause is the time until the service's next turn after an arrival at the store's time
// now.
func (s *service) pause(now time.Time, every time.Duration) time.Duration {
	ago := time.Since(s.wrote)
	if ago >= every {
		return gather
	}
	wait := max(0, soonest-ago)
	in := time.Duration(now.Add(wait).UnixNano() % int64(every))
	return wait + (s.phase%every-in+every)%every
}
