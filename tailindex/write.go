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
	workers   = 8 // for services that are well
	retriers  = 4 // for those whose last write failed
	patience  = 5 * time.Second
	maxPause  = 10 * time.Second
	lastWrite = 2 * time.Second
	// ahead is how long before midnight the table of the next day is made.
	tableAhead = time.Hour
)

// job is rows that have to be written as they are until that is known to have
// happened: a write whose answer is lost may have.
type job struct {
	table, partition string
	rows             []storage.Row
	size             int64
	mark             uint64
	lines, omitted   int
}

// Run writes what it is told of until ctx ends, and then once more what waits,
// within 2 s. It is called once.
func (w *Writer) Run(ctx context.Context) error {
	// Writes outlive ctx a little.
	writing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	context.AfterFunc(ctx, func() { time.AfterFunc(lastWrite, end) })
	var running sync.WaitGroup
	for _, q := range []struct {
		*queue
		workers int
	}{{w.fresh, workers}, {w.again, retriers}} {
		running.Go(func() { w.drive(ctx, writing, q.queue, q.workers) })
	}
	running.Go(func() { w.upkeep(ctx) })
	running.Wait()
	w.last(writing)
	return nil
}

// drive gives the services of a queue to workers when they are due.
func (w *Writer) drive(ctx, writing context.Context, q *queue, workers int) {
	jobs := make(chan *service)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { w.work(writing, jobs) })
	}
	defer running.Wait()
	defer close(jobs)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		s, wait := q.next(time.Now())
		if s != nil {
			// Workers may be busy for long; when ctx ends they are not.
			jobs <- s
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-q.wake:
		case <-ctx.Done():
		}
	}
}

// last writes what is left, each service once.
func (w *Writer) last(ctx context.Context) {
	jobs := make(chan *service)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { w.work(ctx, jobs) })
	}
	for _, q := range []*queue{w.fresh, w.again} {
		for _, s := range q.all() {
			jobs <- s
		}
	}
	close(jobs)
	running.Wait()
}

func (w *Writer) work(ctx context.Context, jobs <-chan *service) {
	var p packer
	defer p.close()
	for s := range jobs {
		if ctx.Err() == nil {
			w.serve(ctx, s, &p)
		}
	}
}

// serve writes what there is of a service, and puts it where it belongs next.
func (w *Writer) serve(ctx context.Context, s *service, p *packer) {
	if s.job == nil && w.held.Load() > w.o.Memory/2 {
		// The store is away, and what is to be written as it is fills the memory:
		// this service goes on gathering.
		w.again.put(s, time.Now().Add(maxPause/2+rand.N(maxPause/2)))
		return
	}
	err := w.makeJob(s, p)
	if err == nil && s.job != nil {
		err = w.writeJob(ctx, s)
	}
	now := time.Now()
	if err != nil {
		w.m.failed.Add(1)
		w.reporter.failed(err, s.fails == 0)
		s.fails++
		pause := min(maxPause, soonest<<min(s.fails, 10))
		pause -= rand.N(pause / 4)
		w.again.put(s, now.Add(pause))
		return
	}
	if s.fails > 0 {
		s.fails = 0
		w.reporter.recovered()
	}
	w.settle(s, now)
}

// settle is called when there are no rows of the service to be written any more.
func (w *Writer) settle(s *service, now time.Time) {
	s.stripe.mu.Lock()
	defer s.stripe.mu.Unlock()
	if s.batch == nil {
		s.busy, s.since = false, time.Time{}
		return
	}
	s.since = s.batch.since
	w.fresh.put(s, s.next(now, w.o.Now()))
}

// makeJob makes rows of what came, unless there are some still.
func (w *Writer) makeJob(s *service, p *packer) error {
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
	size := int64(b.size())
	j, err := w.build(s, b, p)
	if err != nil {
		// Nothing was numbered. What it had is lost to the tail, and stands in blobs.
		w.bytes.Add(-size)
		return err
	}
	s.job = j
	w.held.Add(j.size)
	w.bytes.Add(j.size)
	b.reset()
	s.stripe.mu.Lock()
	if w.bytes.Load() < w.o.Memory/2 {
		s.spare = b
	} else {
		w.bytes.Add(-size)
	}
	s.stripe.mu.Unlock()
	return nil
}

// build makes the rows of a batch.
func (w *Writer) build(s *service, b *batch, p *packer) (*job, error) {
	now := w.o.Now()
	lane := max(0, w.o.Lane())
	j := &job{table: Table(w.o.Prefix, now), partition: Partition(s.name, lane%w.o.Shards), mark: b.mark}
	for i, k := range []*kept{&b.all, &b.errors} {
		if k.seen == 0 {
			continue
		}
		c := content{
			kind: kind(i == 1), process: w.o.Process, number: s.numbers[i] + 1, store: w.o.Store,
			arrived: now, first: k.first, last: k.last, count: k.seen, entries: k.entries(),
		}
		row, lines, err := c.row(p)
		if err != nil {
			return nil, err
		}
		j.rows = append(j.rows, row)
		if i == 0 {
			j.lines, j.omitted = lines, k.seen-lines
		}
		j.size += rowSize(row)
	}
	for i, k := range []*kept{&b.all, &b.errors} {
		if k.seen > 0 {
			s.numbers[i]++
		}
	}
	return j, nil
}

// writeJob writes the rows; if that is known to have happened, they are done with.
func (w *Writer) writeJob(ctx context.Context, s *service) error {
	j := s.job
	if err := w.o.Durable(j.mark); err != nil {
		return fmt.Errorf("wait for the log before the newest records are shown: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := w.tables.Upsert(ctx, j.table, j.partition, j.rows); err != nil {
		return fmt.Errorf("write the newest records: %w", err)
	}
	s.job = nil
	w.held.Add(-j.size)
	w.bytes.Add(-j.size)
	w.m.written.Add(1)
	w.m.records.Add(uint64(j.lines))
	w.m.omitted.Add(uint64(j.omitted))
	return nil
}

// rowSize is about what a row holds of memory.
func rowSize(row storage.Row) int64 {
	n := int64(1024)
	for _, v := range row.Props {
		switch v := v.(type) {
		case string:
			n += int64(len(v))
		case []byte:
			n += int64(len(v))
		}
	}
	return n
}

// upkeep makes the tables of today and, an hour ahead, of tomorrow, so that the
// first write of a day need not, and gives back memory.
func (w *Writer) upkeep(ctx context.Context) {
	made := ""
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for {
		if table := Table(w.o.Prefix, w.o.Now().Add(tableAhead)); table != made {
			if w.makeTable(ctx, table) == nil {
				made = table
			}
		}
		w.sweep(time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// makeTable makes a table. The writes say what is wrong, if something is.
func (w *Writer) makeTable(ctx context.Context, table string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return w.tables.Upsert(ctx, table, "tail", nil)
}

// packer has an encoder for those rows that need one. It is of one goroutine.
type packer struct{ z *zstd.Encoder }

func (p *packer) encoder() (*zstd.Encoder, error) {
	if p.z == nil {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
			zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
		if err != nil {
			return nil, fmt.Errorf("make an encoder of rows: %w", err)
		}
		p.z = z
	}
	return p.z, nil
}

func (p *packer) close() {
	if p.z != nil {
		p.z.Close()
	}
}
