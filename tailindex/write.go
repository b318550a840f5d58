package tailindex

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/storage"
)

const (
	workers   = 12
	retriers  = 4 // workers at most for services with a failed last write
	patience  = 5 * time.Second
	maxPause  = 10 * time.Second
	lastWrite = 2 * time.Second
	// tableAhead is the time before midnight at which the table of the next day is made.
	tableAhead = time.Hour
	// upkeepEvery is the time between two checks for tables to make and services to
	// forget.
	upkeepEvery = 10 * time.Second
	// forget is the time after which a quiet service is forgotten. Its numbers begin
	// again then. No key is used twice, since the day's table is another.
	forget = 49 * time.Hour
)

// job is rows that must be written unchanged until their write is known to have
// succeeded. A write with a lost answer may have.
type job struct {
	table, partition string
	rows             []storage.Row
	size             int64
	mark             uint64
	since            time.Time
	lines, omitted   int
}

// Run writes the accepted records until ctx ends, and then once more the waiting ones,
// within 2 s. It must be called only once.
func (w *Writer) Run(ctx context.Context) error {
	// Writes continue for a short time after ctx.
	writing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	w.mu.Lock()
	w.writing = writing
	for _, s := range w.services {
		if s.batch != nil {
			w.schedule(s, gather)
		}
	}
	w.mu.Unlock()
	w.upkeep(ctx)
	defer time.AfterFunc(lastWrite, end).Stop()
	w.mu.Lock()
	w.ending = true
	for _, s := range w.services {
		if s.timer != nil && s.timer.Stop() {
			s.timer.Reset(0)
		}
	}
	for _, s := range w.failed.due {
		go w.work(s) // all workers are for the last writes
	}
	w.failed.due = nil
	w.mu.Unlock()
	w.turns.Wait()
	return nil
}

// schedule gives the service its turn after a pause. w.mu is held.
func (w *Writer) schedule(s *service, pause time.Duration) {
	w.turns.Add(1)
	s.timer = time.AfterFunc(pause, func() { w.work(s) })
}

// work serves the services that are due, unless there are enough workers.
func (w *Writer) work(s *service) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &w.well
	if s.fails > 0 && !w.ending {
		l = &w.failed
	}
	l.due = append(l.due, s)
	if l.free == 0 {
		return
	}
	l.free--
	for len(l.due) > 0 {
		s, l.due = l.due[0], l.due[1:]
		if w.writing.Err() == nil {
			w.turn(s)
		}
		w.turns.Done()
	}
	l.free++
}

// turn writes the waiting records of a service, and schedules its next turn. After Run
// was ended each service gets one more. w.mu is held.
func (w *Writer) turn(s *service) {
	last := w.ending
	pause := w.serve(s)
	s.timer = nil
	if last || pause == 0 && s.batch == nil {
		return
	}
	s.every = 0
	if pause == 0 {
		s.every = w.every()
		pause = s.pause(w.o.Now(), s.every)
	}
	if w.ending {
		pause = 0
	}
	w.schedule(s, pause)
}

// serve writes the waiting records of a service. If it has to be called again for them,
// it returns the pause until then, else 0. It releases w.mu while it works.
func (w *Writer) serve(s *service) (pause time.Duration) {
	if s.job == nil && w.held > w.o.Memory/2 && !w.ending {
		// The store is unavailable, and rows that must be written unchanged fill the
		// memory. So this service keeps gathering.
		return maxPause/2 + rand.N(maxPause/2)
	}
	if b := s.batch; s.job == nil {
		s.batch, s.wrote = nil, time.Now()
		w.mu.Unlock()
		runtime.Gosched() // thousands of services may be due at once, and requests wait
		j := w.build(s, b)
		w.mu.Lock()
		s.job = j
		w.held += j.size
		w.stats.Held += j.size - b.size()
	}
	j := s.job
	w.mu.Unlock()
	err := w.write(j)
	w.reporter.wrote(err, s.fails)
	w.mu.Lock()
	if err != nil {
		w.stats.Failed++
		s.fails++
		pause = min(maxPause, soonest<<min(s.fails, 10))
		return pause - rand.N(pause/4)
	}
	w.stats.Written++
	w.stats.Records += uint64(j.lines)
	w.stats.Omitted += uint64(j.omitted)
	w.held -= j.size
	w.stats.Held -= j.size
	s.job, s.fails = nil, 0
	return 0
}

// build makes the rows of a batch.
func (w *Writer) build(s *service, b *batch) *job {
	now := w.o.Now()
	j := &job{table: Table(w.o.Prefix, now), partition: Partition(s.name, max(0, w.o.Lane())%w.o.Shards), mark: b.mark, since: b.since}
	for i, k := range []*kept{&b.all, &b.errors} {
		if k.seen == 0 {
			continue
		}
		s.numbers[i]++
		r := Row{
			Process: w.o.Process, Number: s.numbers[i], Errors: i == 1,
			Arrived: now, First: k.first, Last: k.last, Count: k.seen, Entries: k.shown(),
		}
		row, size := r.encode(w.o.Store, w.encoder)
		j.rows, j.size = append(j.rows, row), j.size+int64(size)
		if i == 0 {
			j.omitted, j.lines = r.Omitted, r.Count-r.Omitted
		}
	}
	return j
}

// write writes the rows.
func (w *Writer) write(j *job) error {
	if err := w.o.Durable(j.mark); err != nil {
		return fmt.Errorf("wait for the log before the newest records are shown: %w", err)
	}
	ctx, cancel := context.WithTimeout(w.writing, patience)
	defer cancel()
	if err := w.tables.Upsert(ctx, j.table, j.partition, j.rows); err != nil {
		return fmt.Errorf("write the newest records: %w", err)
	}
	return nil
}

// upkeep makes the tables of today and, an hour ahead, of tomorrow, so that the first
// write of a day need not. It also forgets quiet services.
func (w *Writer) upkeep(ctx context.Context) {
	made := ""
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		if table := Table(w.o.Prefix, w.o.Now().Add(tableAhead)); table != made {
			ctx, cancel := context.WithTimeout(ctx, patience)
			if w.tables.Upsert(ctx, table, "tail", nil) == nil {
				made = table // otherwise the writes report the reason
			}
			cancel()
		}
		w.mu.Lock()
		maps.DeleteFunc(w.services, func(_ string, s *service) bool {
			return s.timer == nil && time.Since(s.wrote) > forget
		})
		w.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Stats are a writer's counters since its creation.
type Stats struct {
	Written, Failed uint64 // writes, one for each service and interval
	Records         uint64 // in written rows
	Omitted         uint64 // counted in written rows, but not included
	Outside         uint64 // outside the time bounds: too old for the newest, or ahead of the clock
	Held            int64  // bytes of memory
}

// Stats returns the counters.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// Waiting returns the number of services with records to write, and the longest wait, less
// the time by which the interval is longer than the least one. It reads the state of each
// service.
func (w *Writer) Waiting() (services int, behind time.Duration) {
	now := time.Now().Add(LeastEvery - w.o.Every)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.services {
		switch {
		case s.job != nil:
			services, behind = services+1, max(behind, now.Sub(s.job.since))
		case s.batch != nil:
			services, behind = services+1, max(behind, now.Sub(s.batch.since))
		}
	}
	return services, behind
}

// reporter logs each kind of failure once, and once the end of all failures.
type reporter struct {
	log     zerolog.Logger
	mu      sync.Mutex
	failing int // services with a failed last write
	told    map[string]bool
}

// maxKinds bounds the kinds of failure that are logged before all services recover.
const maxKinds = 10

// wrote notes the result of a write after a number of failures.
func (r *reporter) wrote(err error, fails int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && fails == 0 {
		r.failing++
	}
	if err == nil && fails > 0 {
		if r.failing--; r.failing == 0 {
			clear(r.told)
			r.log.Info().Msg("the newest records are written again")
		}
	}
	if err == nil || r.told[storage.Gist(err)] || len(r.told) >= maxKinds {
		return
	}
	r.told[storage.Gist(err)] = true
	r.log.Warn().Err(err).Msg("the newest records cannot be written; they are taken and stored as before, and missing in what tail shows")
}
