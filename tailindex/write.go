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
	context.AfterFunc(ctx, func() { time.AfterFunc(lastWrite, end) })
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { w.work(ctx, writing) })
	}
	running.Go(func() { w.upkeep(ctx) })
	running.Wait()
	return nil
}

// work writes services when they are due. After ctx has ended it writes each remaining
// one once, until writing ends.
func (w *Writer) work(ctx, writing context.Context) {
	var p packer
	defer p.close()
	for {
		last := ctx.Err() != nil
		s := w.queue.take(ctx)
		if s == nil || writing.Err() != nil {
			return
		}
		failed := s.fails > 0
		due, again := w.serve(writing, s, &p, last)
		if failed {
			w.queue.retried()
		}
		if again && !last {
			w.queue.put(s, due)
		}
	}
}

// serve writes the waiting records of a service, and returns when it is due again.
func (w *Writer) serve(ctx context.Context, s *service, p *packer, last bool) (due time.Time, again bool) {
	if s.job == nil && w.held.Load() > w.o.Memory/2 && !last {
		// The store is unavailable, and rows that must be written unchanged fill the
		// memory. So this service keeps gathering.
		return time.Now().Add(maxPause/2 + rand.N(maxPause/2)), true
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
		return now.Add(pause - rand.N(pause/4)), true
	}
	if s.fails > 0 {
		s.fails = 0
		w.reporter.recovered()
	}
	return w.settle(s, now)
}

// settle is called when all rows of the service are written. It returns when the service
// is due for the records that arrived meanwhile.
func (w *Writer) settle(s *service, now time.Time) (due time.Time, again bool) {
	s.stripe.mu.Lock()
	defer s.stripe.mu.Unlock()
	if s.batch == nil {
		s.busy, s.since = false, time.Time{}
		return now, false
	}
	s.since = s.batch.since
	return s.next(now, w.o.Now()), true
}

// makeJob makes rows of the waiting records, unless the previous job is unfinished.
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
	defer w.bytes.Add(-int64(b.size()))
	j, err := w.build(s, b, p)
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
			arrived: now, first: k.first, last: k.last, count: k.seen, entries: k.shown(),
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

// writeJob writes the rows. Once that is known to have succeeded, they are done with.
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

// rowSize is the approximate memory of a row in bytes.
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

// upkeep makes the tables of today and, an hour ahead, of tomorrow, so that the first
// write of a day need not. It also forgets quiet services.
func (w *Writer) upkeep(ctx context.Context) {
	made := ""
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		if table := Table(w.o.Prefix, w.o.Now().Add(tableAhead)); table != made {
			if w.makeTable(ctx, table) == nil {
				made = table
			}
		}
		w.each(func(s *service) {
			if !s.busy && time.Since(s.wrote) > forget {
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

// makeTable makes a table. If it fails, the writes report the reason.
func (w *Writer) makeTable(ctx context.Context, table string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return w.tables.Upsert(ctx, table, "tail", nil)
}

// packer has an encoder for the rows that need one. Only one goroutine may use it.
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
