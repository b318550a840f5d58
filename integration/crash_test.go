package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/blobwriter"
	"blobtail/buffer"
	"blobtail/internal/check"
	"blobtail/internal/fsys/simdisk"
	logs "blobtail/query"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
	"blobtail/wal"
)

// Power cuts and kills at any operation of the log's disk, fsyncs that fail, a
// store that loses requests and answers, clients that send again elsewhere: what
// was acknowledged is read once, whatever else at most once. The parts are those
// of the ingester; only the disk, the store and the clock are simulated.
func TestCrashes(t *testing.T) {
	first, seeds := 0, 150
	if n, err := strconv.Atoi(os.Getenv("BLOBTAIL_CRASH_SEEDS")); err == nil {
		seeds = n
	}
	if n, err := strconv.Atoi(os.Getenv("BLOBTAIL_CRASH_FIRST")); err == nil {
		first = n
	}
	var mu sync.Mutex
	total := world{}
	t.Run("seeds", func(t *testing.T) {
		for part := range 4 {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for seed := first + part; seed < first+seeds && !t.Failed(); seed += 4 {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t, uint64(seed))
						w.live()
						mu.Lock()
						defer mu.Unlock()
						total.lives += w.lives
						total.powerCuts += w.powerCuts
						total.sent += w.sent
					})
				}
			})
		}
	})
	t.Logf("%d seeds, %d lives of ingesters, %d ended by power cuts, %d requests", seeds, total.lives, total.powerCuts, total.sent)
}

// world is one run: a store, one or two ingesters with a disk each, and what the
// clients know.
type world struct {
	t     *testing.T
	seed  uint64
	store *mem.Store

	mu  sync.Mutex // guards rng
	rng *rand.Rand

	ledger    check.Ledger
	pending   []*sentRequest // not acknowledged so far
	disks     []*simdisk.Disk
	same      bool // both ingesters on one lane
	requests  int
	sent      int
	lives     int
	powerCuts int
}

type sentRequest struct {
	r   *record.Request
	ids []string
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, seed: seed, store: mem.New(mem.Options{}), rng: rand.New(rand.NewPCG(seed, 7))}
	w.disks = []*simdisk.Disk{simdisk.New(seed), simdisk.New(seed + 1<<32)}[:1+w.rng.IntN(2)]
	w.same = w.rng.IntN(2) == 0
	return w
}

func (w *world) dice(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// live runs the ingesters through several lives, then once more without faults.
func (w *world) live() {
	for range 5 {
		var wg sync.WaitGroup
		for i := range w.disks {
			wg.Go(func() { w.life(i, 20+w.dice(400)) })
		}
		wg.Wait()
	}
	for i := range w.disks {
		w.disks[i].SetFault(nil)
		w.lastLife(i)
	}
	w.verify()
}

// life is one process: it opens the log, takes requests and is ended by its disk
// after a number of operations.
func (w *world) life(i, budget int) {
	disk := w.disks[i]
	stop, syncs := disk.Ops()+budget, w.dice(300)
	dead := make(chan struct{})
	die := sync.OnceFunc(func() { close(dead) })
	disk.SetFault(func(op simdisk.Op) error { // called one at a time
		if op.N >= stop {
			die()
			return simdisk.ErrKilled
		}
		if op.Kind == "sync" {
			if syncs--; syncs == 0 {
				return syscall.EIO
			}
		}
		return nil
	})
	p, err := w.open(i, w.faulty())
	if err == nil {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { w.client(p, dead) })
		}
		select {
		case <-dead:
		case <-p.ended: // an fsync failed: the process exits
		case <-time.After(time.Duration(1+w.dice(600)) * time.Second):
		}
		die()
		wg.Wait()
		p.kill()
	} else if !errors.Is(err, simdisk.ErrKilled) && !errors.Is(err, syscall.EIO) {
		w.t.Errorf("seed %d: open: %v", w.seed, err)
	}
	w.mu.Lock()
	w.lives++
	w.mu.Unlock()
	if w.dice(2) == 0 {
		w.disks[i] = disk.Kill()
	} else {
		w.disks[i] = disk.PowerCut()
		w.mu.Lock()
		w.powerCuts++
		w.mu.Unlock()
	}
}

// lastLife stores what the others left behind.
func (w *world) lastLife(i int) {
	p, err := w.open(i, w.store)
	if err != nil {
		w.t.Fatalf("seed %d: the last start: %v", w.seed, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if left, err := p.buf.Flush(ctx); err != nil {
		w.t.Errorf("seed %d: the last flush: %v, left %+v", w.seed, err, left)
	}
	p.kill()
}

// faulty is the store as an ingester meets it in bad times.
func (w *world) faulty() storage.BlobStore {
	return storagetest.Faulty(w.store, func(op storagetest.Op, _ string) storagetest.Fault {
		lost := fmt.Errorf("%s: %w", op, storagetest.ErrFault)
		switch w.dice(12) {
		case 0:
			return storagetest.Fault{Before: lost}
		case 1:
			return storagetest.Fault{After: lost}
		case 2:
			return storagetest.Fault{Delay: time.Duration(w.dice(90)) * time.Second}
		}
		return storagetest.Fault{}
	})
}

// simProcess is an ingester without its listeners.
type simProcess struct {
	buf   *buffer.Buffer
	log   *wal.Log
	end   context.CancelFunc
	ended chan struct{}
}

type simSink struct{ *blobwriter.Writer }

func (s simSink) Write(ctx context.Context, b *buffer.Batch) error { return s.Writer.Write(ctx, b) }

func (w *world) open(i int, store blobwriter.Store) (*simProcess, error) {
	log, err := wal.Open("/var/wal", wal.Options{FS: w.disks[i], SegmentSize: 4 << 10})
	if err != nil {
		return nil, err
	}
	lane := i
	if w.same {
		lane = 0
	}
	writer, err := blobwriter.New(store, blobwriter.Options{Lane: lane, Encoders: 1})
	if err != nil {
		return nil, err
	}
	buf := buffer.New(log, simSink{writer}, buffer.Options{Size: 3000, Age: 20 * time.Second, Min: 500, MaxAge: time.Minute, Soft: 12 << 10, Workers: 3})
	ctx, cancel := context.WithCancel(context.Background())
	p := &simProcess{buf: buf, log: log, end: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = buf.Run(ctx) // its error is the fault that ended it
	}()
	return p, nil
}

func (p *simProcess) kill() {
	p.end()
	<-p.ended
	_ = p.log.Close() // of a dead process's disk it says so
}

// client sends requests, new ones and those that nobody has acknowledged, until
// the process is dead.
func (w *world) client(p *simProcess, dead <-chan struct{}) {
	for {
		select {
		case <-dead:
			return
		case <-p.ended:
			return
		case <-time.After(time.Duration(w.dice(3000)) * time.Millisecond):
		}
		s := w.next()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		receipt, err := p.buf.Accept(ctx, s.r)
		if err == nil {
			err = receipt.Wait(ctx, w.dice(8) == 0)
		}
		cancel()
		w.mu.Lock()
		if err == nil {
			w.ledger.Acked(s.ids...)
		} else {
			w.pending = append(w.pending, s)
		}
		w.mu.Unlock()
	}
}

// next is a request that was not acknowledged, or a new one.
func (w *world) next() *sentRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent++
	if n := len(w.pending); n > 0 && w.rng.IntN(2) == 0 {
		i := w.rng.IntN(n)
		s := w.pending[i]
		w.pending[i] = w.pending[n-1]
		w.pending = w.pending[:n-1]
		return s
	}
	w.requests++
	base := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC).UnixNano()
	s := &sentRequest{r: &record.Request{Services: []string{"a", "b"}}}
	s.r.Origin = record.BodyOrigin("", "/ingest", 0, fmt.Append(nil, w.seed, w.requests), base)
	for j := range 1 + w.rng.IntN(6) {
		service := w.rng.IntN(2)
		// Few different times, so that records of several blobs have the same.
		at := base + int64(w.rng.IntN(150))*int64(time.Minute)
		id := fmt.Sprintf("r%d-%d", w.requests, j)
		off := len(s.r.Data)
		s.r.Data = append(s.r.Data, `{"ts":"`...)
		s.r.Data = record.AppendTime(s.r.Data, at)
		s.r.Data = fmt.Appendf(s.r.Data, `","level":"info","service":"%s","msg":"%s %0100d"}`+"\n", s.r.Services[service], id, j)
		s.r.Lines = append(s.r.Lines, record.Line{Time: at, Off: uint32(off), Len: uint32(len(s.r.Data) - off), Service: uint32(service)})
		s.ids = append(s.ids, id)
		w.ledger.Sent(id, s.r.Services[service], at)
	}
	return s
}

// verify reads everything back and holds it against the ledger, and holds every
// blob against its name and metadata.
func (w *world) verify() {
	reader := logs.New(w.store, logs.Options{})
	plan, err := reader.Plan(context.Background(), logs.Query{Services: []string{"*"}, Range: logs.Always()})
	var out bytes.Buffer
	if err == nil {
		var sum logs.Summary
		sum, err = plan.Read(context.Background(), func(lines []byte) error {
			out.Write(lines)
			return nil
		})
		if err == nil && !sum.Complete() {
			err = errors.Join(sum.Problems...)
		}
	}
	var none *logs.NoServiceError
	if err != nil && !errors.As(err, &none) {
		w.t.Fatalf("seed %d: read: %v", w.seed, err)
	}
	report, err := w.ledger.Verify(&out)
	if err != nil {
		w.t.Errorf("seed %d: %v (%v)", w.seed, err, report)
	}
	ids := map[string]string{}
	for b, err := range w.store.List(context.Background(), "", "") {
		if err != nil {
			w.t.Fatal(err)
		}
		if other, ok := ids[b.Metadata["batch"]]; ok {
			w.t.Errorf("seed %d: %s and %s hold the same batch", w.seed, other, b.Key)
		}
		ids[b.Metadata["batch"]] = b.Key
	}
}
