package tailindex

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

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
	lines, omitted   int
}

// Run writes the accepted records until ctx ends, and then once more the waiting ones,
// within 2 s. It must be called only once.
func (w *Writer) Run(ctx context.Context) error {
	// Writes continue for a short time after ctx.
	writing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	w.writing = writing
	w.state.Store(running)
	w.each(func(s *service) {
		if s.batch != nil && s.timer == nil {
			w.schedule(s, gather)
		}
	})
	w.upkeep(ctx)
	defer time.AfterFunc(lastWrite, end).Stop()
	w.state.Store(ending)
	w.each(func(s *service) {
		if s.timer != nil && s.timer.Stop() {
			s.timer.Reset(0)
		}
	})
	w.turns.Wait()
	return nil
}

// schedule gives the service its turn after a pause. The lock of its stripe is held.
func (w *Writer) schedule(s *service, pause time.Duration) {
	w.turns.Add(1)
	s.timer = time.AfterFunc(pause, func() { w.work(s) })
}

// due is the services that are due, and the number of workers that serve them. Services
// with a failed last write have some of the workers at most: services that hang must not
// keep the rest waiting.
type due struct {
	mu                sync.Mutex
	well, failed      []*service
	working, retrying int
}

// next removes and returns the next service; nil if the worker must end. failed says that
// the worker has served a service with a failed last write. These have all workers for
// their last write.
func (d *due) next(failed, last bool) (s *service, retry bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if failed {
		d.retrying--
	}
	switch {
	case len(d.failed) > 0 && (d.retrying < retriers || last && len(d.well) == 0):
		s, d.failed = d.failed[0], d.failed[1:]
		d.retrying++
		return s, true
	case len(d.well) > 0:
		s, d.well = d.well[0], d.well[1:]
		return s, false
	}
	d.working--
	return nil, false
}

// add makes a service wait for a worker. It returns false if the caller has to be one.
func (d *due) add(s *service) (waits bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.fails > 0 {
		d.failed = append(d.failed, s)
	} else {
		d.well = append(d.well, s)
	}
	if d.working == workers {
		return true
	}
	d.working++
	return false
}

// work serves the services that are due, unless there are enough workers. A service in
// an outage waits as a pointer, not as a goroutine.
func (w *Writer) work(s *service) {
	if w.due.add(s) {
		return
	}
	last := func() bool { return w.state.Load() == ending }
	for s, retry := w.due.next(false, last()); s != nil; s, retry = w.due.next(retry, last()) {
		if w.writing.Err() == nil {
			w.turn(s)
		}
		w.turns.Done()
	}
}

// turn writes the waiting records of a service, and schedules its next turn. After Run
// was ended each service gets one more.
func (w *Writer) turn(s *service) {
	last := w.state.Load() == ending
	pause := w.serve(s, last)
	s.stripe.mu.Lock()
	defer s.stripe.mu.Unlock()
	s.timer = nil
	switch {
	case pause > 0:
	case s.batch == nil:
		s.since = time.Time{}
		return
	default:
		s.since, pause = s.batch.since, s.pause(w.o.Now())
	}
	if w.state.Load() == ending {
		pause = 0
	}
	if !last {
		w.schedule(s, pause)
	}
}

// serve writes the waiting records of a service. If it has to be called again for them,
// it returns the pause until then, else 0.
func (w *Writer) serve(s *service, last bool) (pause time.Duration) {
	if s.job == nil && w.held.Load() > w.o.Memory/2 && !last {
		// The store is unavailable, and rows that must be written unchanged fill the
		// memory. So this service keeps gathering.
		return maxPause/2 + rand.N(maxPause/2)
	}
	err := w.makeJob(s)
	if err == nil && s.job != nil {
		err = w.writeJob(s)
	}
	if err != nil {
		w.reporter.failed(err, s.fails == 0)
		s.fails++
		pause = min(maxPause, soonest<<min(s.fails, 10))
		return pause - rand.N(pause/4)
	}
	if s.fails > 0 {
		s.fails = 0
		w.reporter.recovered()
	}
	return 0
}

// makeJob makes rows of the waiting records, unless the previous job is unfinished.
func (w *Writer) makeJob(s *service) error {
	if s.job != nil {
		return nil
	}
	s.stripe.mu.Lock()
	b := s.batch
	s.batch = nil
	s.wrote = time.Now()
	if b != nil {
		s.since = b.since
	}
	s.stripe.mu.Unlock()
	if b == nil {
		return nil
	}
	defer w.bytes.Add(-int64(b.size()))
	j, err := w.build(s, b)
	if err != nil {
		// No number was used. These records are missing in the tail; blobs have them.
		return err
	}
	s.job = j
	w.held.Add(j.size)
	w.bytes.Add(j.size)
	return nil
}

// build makes the rows of a batch.
func (w *Writer) build(s *service, b *batch) (*job, error) {
	now, numbers := w.o.Now(), s.numbers
	j := &job{table: Table(w.o.Prefix, now), partition: Partition(s.name, max(0, w.o.Lane())%w.o.Shards), mark: b.mark}
	for i, k := range []*kept{&b.all, &b.errors} {
		if k.seen == 0 {
			continue
		}
		numbers[i]++
		r := Row{
			Process: w.o.Process, Number: numbers[i], Errors: i == 1,
			Arrived: now, First: k.first, Last: k.last, Count: k.seen, Entries: k.shown(),
		}
		row, size, err := r.encode(w.o.Store, w.encoder)
		if err != nil {
			return nil, err
		}
		j.rows, j.size = append(j.rows, row), j.size+int64(size)
		if i == 0 {
			j.omitted, j.lines = r.Omitted, r.Count-r.Omitted
		}
	}
	s.numbers = numbers
	return j, nil
}

// writeJob writes the rows. Once that is known to have succeeded, they are done with.
func (w *Writer) writeJob(s *service) error {
	j := s.job
	if err := w.o.Durable(j.mark); err != nil {
		return fmt.Errorf("wait for the log before the newest records are shown: %w", err)
	}
	ctx, cancel := context.WithTimeout(w.writing, patience)
	defer cancel()
	if err := w.tables.Upsert(ctx, j.table, j.partition, j.rows); err != nil {
		return fmt.Errorf("write the newest records: %w", err)
	}
	s.job = nil
	w.held.Add(-j.size)
	w.bytes.Add(-j.size)
	w.reporter.count(func(s *Stats) {
		s.Written++
		s.Records += uint64(j.lines)
		s.Omitted += uint64(j.omitted)
	})
	return nil
}

// upkeep makes the tables of today and, an hour ahead, of tomorrow, so that the first
// write of a day need not. It also forgets quiet services.
func (w *Writer) upkeep(ctx context.Context) {
	made := ""
	// If a table cannot be made, the writes report the reason.
	makeTable := func(table string) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return w.tables.Upsert(ctx, table, "tail", nil)
	}
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		if table := Table(w.o.Prefix, w.o.Now().Add(tableAhead)); table != made && makeTable(table) == nil {
			made = table
		}
		w.each(func(s *service) {
			if s.timer == nil && time.Since(s.wrote) > forget {
				delete(s.stripe.services, s.name)
			}
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func newEncoder() (*zstd.Encoder, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(workers), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, fmt.Errorf("make an encoder of rows: %w", err)
	}
	return z, nil
}
