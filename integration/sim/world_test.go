package sim_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"blobtail/blobwriter"
	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/catalog/horizon"
	"blobtail/internal/count"
	"blobtail/internal/dev/check"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/fsys/simdisk"
)

// profile is the kind of world that a seed draws. Rare things must meet, so some worlds
// are full of them.
type profile struct {
	Ingesters int
	SameLane  bool
	Services  int
	Periods   int
	Segment   int64
	Ballast   int64
	Soft      int64
	Size      int64
	Age       time.Duration
	Lives     int    // of each ingester
	Ops       int    // of its disk in one life at most
	Seconds   int    // of one life at most
	DieAt     string // kind of operation soon after which lives end
	Power     int    // percent of deaths that are power cuts
	BadSyncs  int    // percent of lives in which an fsync fails
	FullDisk  int    // per mille of writes that meet a full disk
	Faults    int    // percent of calls to the store that fail
	Gap       int    // ms between the requests of one client at most
	Messages  int
	AckWait   time.Duration
	LostAcks  int  // percent
	NoOrigin  int  // percent of requests with their place in the log as origin
	Stuck     bool // the store refuses one service for long
	Hangs     bool // a refused request gets no answer at all
	Outages   bool // the store is down for half of each two minutes
	Rare      int  // how much rarer the first service is than others; 0: it is not
	Expires   bool // days are dropped
	Compacts  int  // compactors
}

func drawProfile(rng *rand.Rand) profile {
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	return profile{
		Ingesters: pick(1, 1, 2, 2, 3),
		SameLane:  rng.IntN(2) == 0,
		Services:  pick(1, 2, 3),
		Periods:   pick(1, 1, 2, 3),
		Segment:   int64(pick(1500, 2500, 4096, 6000)),
		Ballast:   int64(pick(-1, -1, 1000, 5000)),
		Soft:      int64(pick(6, 10, 16)) << 10,
		Size:      int64(pick(800, 1500, 3000)),
		Age:       time.Duration(pick(2, 5, 20)) * time.Second,
		Lives:     pick(3, 5, 8),
		Ops:       pick(60, 150, 400),
		Seconds:   pick(20, 100, 600),
		DieAt:     []string{"", "", "", "remove", "remove", "syncdir", "rename", "sync"}[rng.IntN(8)],
		Power:     pick(20, 50, 90),
		BadSyncs:  pick(0, 20, 80),
		FullDisk:  pick(0, 0, 0, 0, 10, 30),
		Faults:    pick(5, 15, 40),
		Gap:       pick(300, 1500, 3000),
		Messages:  pick(0, 5, 15, 30),
		AckWait:   time.Duration(pick(15, 60, 300)) * time.Second,
		LostAcks:  pick(0, 10, 40),
		NoOrigin:  pick(20, 50),
		Stuck:     rng.IntN(4) == 0,
		Hangs:     rng.IntN(3) == 0,
		Outages:   rng.IntN(4) == 0,
	}
}

// world is one run: a store, one to three ingesters with a disk each, a stream, and the
// clients' knowledge.
type world struct {
	seed   uint64
	p      profile
	store  *simStore
	stream *stream
	ledger check.Ledger
	expiry *expiry // nil: no day is dropped
	disks  []*simdisk.Disk

	compaction *compaction // nil: blobs stay as they are stored
	start      time.Time
	stuckFor   time.Duration

	mu         sync.Mutex
	rng        *rand.Rand     // for draws without an order of their own
	asked      map[string]int // number of draws of each kind of fate
	pending    []*request     // not acknowledged so far
	taken      map[record.Origin]int
	quiet      bool // no more faults
	totals     totals
	violations []string
	troubles   []string
}

func newWorld(seed uint64) *world {
	w := &world{
		seed:  seed,
		start: time.Now(), stuckFor: 20 * time.Minute,
		rng:   rand.New(rand.NewPCG(seed, 7)),
		asked: map[string]int{},
		taken: map[record.Origin]int{},
	}
	w.p = drawProfile(w.rng)
	w.p.Expires = rand.New(rand.NewPCG(seed, 11)).IntN(4) == 0 // by itself: the other draws stay as they were
	if w.p.Stuck {                                             // parking pays when most of the log is of other services
		w.p.Services, w.p.Rare = max(w.p.Services, 2), 4
	}
	for i := range w.p.Ingesters {
		w.disks = append(w.disks, simdisk.New(seed+uint64(i)<<32))
	}
	if w.p.Expires {
		w.expiry = newExpiry(w)
	}
	if rng := rand.New(rand.NewPCG(seed, 13)); rng.IntN(4) == 0 {
		w.p.Compacts = 1 + rng.IntN(2)
		w.compaction = newCompaction(w, rng)
	}
	w.store = newSimStore(w)
	w.stream = newStream(w, w.p.Messages)
	return w
}

// violation reports a broken promise.
func (w *world) violation(format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf(format, a...))
}

// trouble reports a failure of the simulation itself.
func (w *world) trouble(format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.troubles = append(w.troubles, fmt.Sprintf(format, a...))
}

func (w *world) Found() (violations, troubles []string) { return w.violations, w.troubles }

func (w *world) Story() string { return fmt.Sprintf("%+v", w.p) }

func (w *world) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

// fate returns a source of chance for one event of a kind. It depends on the number of
// earlier events of this kind and not on other events, so that one seed is one story as
// far as possible.
func (w *world) fate(kind string, a ...any) *rand.Rand {
	what := kind + fmt.Sprint(a...)
	w.mu.Lock()
	w.asked[what]++
	n := w.asked[what]
	w.mu.Unlock()
	h := fnv.New64a()
	_, _ = h.Write([]byte(what)) // never fails
	return rand.New(rand.NewPCG(w.seed^h.Sum64(), uint64(n)))
}

// Run lets the ingesters live and die, then once more without faults. At the end it
// compares the records read with the promises.
func (w *world) Run() {
	var wg sync.WaitGroup
	for i := range w.disks {
		wg.Go(func() {
			for n := range w.p.Lives {
				rng := w.fate("life", i, "/", n)
				w.life(i, rng)
				if rng.IntN(3) == 0 {
					time.Sleep(time.Duration(rng.IntN(120)) * time.Second)
				}
			}
		})
	}
	if w.expiry != nil {
		wg.Go(func() { w.expiry.run(w.fate("expiry")) })
	}
	var compactors sync.WaitGroup
	for i := range w.p.Compacts {
		compactors.Go(func() { w.compaction.run(i, w.fate("compactor", i)) })
	}
	wg.Wait()
	w.mu.Lock()
	w.quiet = true
	w.mu.Unlock()
	w.finish()
	if w.compaction != nil {
		w.compaction.end()
		compactors.Wait()
		w.store.late.Wait()
		w.compaction.finish()
	}
	w.verify()
}

// life is one process. It opens the log and accepts requests and messages. Its disk
// ends it after a number of operations, or it ends by time or by a shutdown.
func (w *world) life(i int, rng *rand.Rand) {
	disk := w.disks[i]
	m := w.mortal(disk, rng)
	seconds := 1 + rng.IntN(w.p.Seconds)
	p, err := w.open(i, m.dead, rng)
	if err == nil {
		var wg sync.WaitGroup
		for c := range 2 {
			r := rand.New(rand.NewPCG(rng.Uint64(), uint64(c)))
			wg.Go(func() { w.client(p, r) })
		}
		r := rand.New(rand.NewPCG(rng.Uint64(), 9))
		wg.Go(func() { w.puller(p, r) })
		select {
		case <-m.dead:
		case <-p.ended: // an fsync failed: the process exits
		case <-time.After(time.Duration(seconds) * time.Second):
			if rng.IntN(4) == 0 {
				p.shutdown()
				w.count(&w.totals.shutdowns)
			}
		}
		m.die()
		p.kill()
		wg.Wait()
		w.mu.Lock()
		w.totals.parked += p.parked()
		w.mu.Unlock()
	} else if !errors.Is(err, simdisk.ErrKilled) && !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ENOSPC) {
		w.trouble("open: %v", err)
	}
	w.count(&w.totals.lives)
	// A process exits after a failed fsync. A power cut at the same time is a separate
	// event.
	if rng.IntN(100) < w.p.Power && (!m.failed() || rng.IntN(4) == 0) {
		w.disks[i] = disk.PowerCut()
		w.count(&w.totals.powerCuts)
	} else {
		w.disks[i] = disk.Kill()
		w.count(&w.totals.kills)
	}
}

// mortality ends a process through its disk.
type mortality struct {
	dead   chan struct{}
	die    func()
	failed func() bool // reports a failed fsync
}

func (w *world) mortal(disk *simdisk.Disk, rng *rand.Rand) mortality {
	m := mortality{dead: make(chan struct{})}
	var gone, failed atomic.Bool
	m.failed = failed.Load
	m.die = sync.OnceFunc(func() {
		gone.Store(true)
		close(m.dead)
	})
	faults := rand.New(rand.NewPCG(rng.Uint64(), 3))
	stop, syncs := disk.Ops()+10+rng.IntN(w.p.Ops), -1
	if rng.IntN(100) < w.p.BadSyncs {
		syncs = 1 + rng.IntN(w.p.Ops/4)
	}
	disk.SetFault(func(op simdisk.Op) error { // called one at a time
		if op.N >= stop || gone.Load() {
			m.die()
			return simdisk.ErrKilled
		}
		if op.Kind == w.p.DieAt && faults.IntN(10) == 0 {
			stop = min(stop, op.N+1+faults.IntN(4))
		}
		switch {
		case op.Kind == "sync":
			if syncs--; syncs == 0 {
				w.count(&w.totals.failedSyncs)
				failed.Store(true)
				return syscall.EIO
			}
		case op.Kind == "write" && faults.IntN(1000) < w.p.FullDisk:
			w.count(&w.totals.fullDisk)
			return &simdisk.Partial{N: faults.IntN(op.Len + 1), Err: syscall.ENOSPC}
		}
		return nil
	})
	return m
}

// process is an ingester without its listeners.
type process struct {
	number int
	buf    *buffer.Buffer
	log    *wal.Log
	dead   <-chan struct{}
	reg    *count.Registry // nil: not counted
	end    context.CancelFunc
	ended  chan struct{}
	watch  *horizon.Watch // nil: no day is dropped
}

type sink struct {
	*blobwriter.Writer
	w *world
}

func (s sink) Write(ctx context.Context, b *buffer.Batch) error {
	err := s.Writer.Write(ctx, b)
	switch {
	case errors.Is(err, horizon.ErrExpired):
		s.w.count(&s.w.totals.expiredBatches)
		err = fmt.Errorf("%w: %w", buffer.ErrExpired, err)
	case errors.Is(err, blobwriter.ErrIDReused):
		err = fmt.Errorf("%w: %w", buffer.ErrAside, err)
	}
	return err
}

func (w *world) open(i int, dead <-chan struct{}, rng *rand.Rand) (*process, error) {
	log, err := wal.Open("/var/wal", wal.Options{FS: w.disks[i], SegmentSize: w.p.Segment, Reserve: w.p.Ballast})
	if err != nil {
		return nil, err
	}
	lane := i
	if w.p.SameLane {
		lane = 0
	}
	p := &process{number: i, log: log, dead: dead, ended: make(chan struct{})}
	store := storage.BlobStore(&storeOf{w.store, i})
	if w.expiry != nil {
		p.watch = horizon.NewWatch(store, horizon.WatchOptions{Now: w.expiry.now})
		store = p.watch.Guard(store)
	}
	writer := blobwriter.New(store, blobwriter.Options{}, nil)
	if err := writer.SetLane(lane); err != nil {
		return nil, err
	}
	o := buffer.Options{
		Size: w.p.Size, Age: w.p.Age, Min: w.p.Size / 4, MaxAge: 3 * w.p.Age, Soft: w.p.Soft, Workers: 3,
		Messages: &told{w.stream, i},
	}
	if w.p.Stuck || w.isQuiet() {
		p.reg = new(count.Registry)
		o.Metrics = p.reg
	}
	if p.watch != nil {
		o.Expired = func(service string, period time.Time) bool { return p.watch.Hides(service, horizon.DayOf(period)) }
	}
	p.buf = buffer.New(log, sink{writer, w}, o)
	// Requests that come before the log is replayed are not recognised as repeats.
	for range rng.IntN(3) {
		if rng.IntN(3) > 0 {
			w.send(p, attempt{request: w.next(rng)})
		} else {
			w.pull(p, rng)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.end = cancel
	go func() {
		defer close(p.ended)
		var watching sync.WaitGroup
		defer watching.Wait()
		defer cancel()
		if p.watch != nil {
			watching.Go(func() { p.watch.Run(ctx) })
		}
		_ = p.buf.Run(ctx) // its error is the fault that ended it
	}()
	return p, nil
}

// shutdown ends a process as a signal does.
func (p *process) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, _ = p.buf.Flush(ctx) // unflushed records stay in the log
	p.kill()
}

func (p *process) kill() {
	p.end()
	<-p.ended
	_ = p.log.Close() // fails on the disk of a dead process
}

// metric returns one of the buffer's metrics, or 0 if they are not counted.
func (p *process) metric(name string) int {
	if p.reg == nil {
		return 0
	}
	return int(count.Read(p.reg.Page())[name])
}

// parked returns the number of batches that a process parked.
func (p *process) parked() int { return p.metric("blobtail_buffer_batches_parked_total") }
