package complete_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/mem"
)

// profile is the kind of world that a seed draws. Rare things must meet, so some worlds
// are full of them.
type profile struct {
	Calm      bool // nothing fails, and no process stops
	Ingesters int
	Stores    int
	Shared    bool // two stores are containers of one account: they share their tables
	Steps     int
	Segment   int64
	Age       time.Duration // of a batch when it is stored
	IdleAfter time.Duration
	Tail      bool // the tail's tables are written
	Slow      time.Duration
	Skewed    bool // the clocks of ingesters differ, as far as a store's time corrects them
	BestEffort,
	Copies, // logs are copied, with or without a running process
	Moves, // ingesters are started with another store, or at another's address
	Drops, // the table of the ingesters is removed
	Forgets, // operators forget every silent ingester, not only those with destroyed disks
	NoRole bool // readers have no right to the tables
	Sends, Reads, Weather, Deaths int // how often, of 100 steps

	// Ships has ingesters ship their logs, and adopt those of others.
	Ships bool
	// Begins has records of new services come all the time, and of times weeks ago.
	Begins bool
	// Closed has most records come of days that can be closed, and most questions be about these.
	Closed bool
}

func drawProfile(rng *rand.Rand) profile {
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	p := profile{
		Calm:      rng.IntN(8) == 0,
		Ingesters: pick(1, 2, 2, 3, 4),
		Stores:    pick(1, 1, 1, 2, 2),
		Shared:    rng.IntN(2) == 0,
		Steps:     pick(40, 60, 90),
		Segment:   int64(pick(2000, 4096, 8192)),
		Age:       time.Duration(pick(2, 5, 20, 60)) * time.Second,
		IdleAfter: time.Duration(pick(1, 5, 20, 60, 600)) * time.Second,
		Tail:      rng.IntN(3) == 0,
		Slow:      time.Duration(pick(2, 10, 50, 400)) * time.Millisecond,
		Skewed:    rng.IntN(4) == 0,

		BestEffort: rng.IntN(20) == 0,
		Copies:     rng.IntN(4) == 0,
		Moves:      rng.IntN(2) == 0,
		Drops:      rng.IntN(6) == 0,
		Forgets:    rng.IntN(4) == 0,
		NoRole:     rng.IntN(6) == 0,
		Sends:      pick(25, 35, 45),
		Reads:      pick(15, 25),
		Weather:    pick(3, 8, 15),
		Deaths:     pick(3, 8, 15),
	}
	if p.Copies || p.NoRole { // both matter most when ingesters turn idle and back
		p.IdleAfter = time.Duration(pick(1, 5, 20)) * time.Second
	}
	if p.Calm {
		p.Stores = 1
		p.Weather, p.Deaths, p.BestEffort, p.Copies, p.Moves, p.Drops, p.Forgets, p.NoRole = 0, 0, false, false, false, false, false, false
	}
	return p
}

// world is one run: stores, ingesters with a disk each, and the senders' knowledge.
type world struct {
	seed   uint64
	p      profile
	start  time.Time
	rng    *rand.Rand // of the steps
	stores []*store
	net    *wire
	all    []*ingester
	never  chan struct{}
	// turning now and then has an ingester, just after its row has left holding.
	turning chan *ingester
	// mutated reports that a rule is left out. Then only the records of reads are
	// checked, and not whether reads become complete again.
	mutated bool
	// distant says that the store is far from its readers: see [reading.blobOptions].
	distant bool
	// crew are the workers that readers share questions with; nil: there are none.
	crew *workers
	// lost reports whether a complete answer for a range may lack a record, because somebody has
	// removed it from the store; nil: nobody does. harmed says that somebody has changed the store by
	// hand.
	lost   func(s *sent, rng blobs.Range) bool
	harmed atomic.Bool
	mended atomic.Bool // nothing fails any more

	late    sync.WaitGroup // writes still on their way
	ending  sync.WaitGroup // processes that are stopping
	clients sync.WaitGroup // senders and readers

	mu         sync.Mutex
	moment     uint64
	turned     int // rows that were written
	asked      map[string]int
	requests   []*request
	records    map[string]*sent
	processes  map[string]*ingester
	story      []string
	totals     totals
	violations []string
	troubles   []string
}

func newWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	return worldOf(seed, drawProfile(rng), rng)
}

// worldOf returns the world of a profile. rng draws its steps.
func worldOf(seed uint64, p profile, rng *rand.Rand) *world {
	w := &world{
		seed: seed, p: p, start: time.Now(), rng: rng, never: make(chan struct{}), turning: make(chan *ingester, 1), asked: map[string]int{},
		records: map[string]*sent{}, processes: map[string]*ingester{}, mutated: os.Getenv(mutatedEnv) != "",
	}
	w.totals.refused, w.totals.incomplete = map[string]int{}, map[string]int{}
	w.net = &wire{w: w}
	for n := range w.p.Stores {
		s := &store{container: fmt.Sprint("logs", n), blobs: mem.New(mem.Options{})}
		if n > 0 && w.p.Shared {
			s.tables = w.stores[0].tables
		} else {
			s.tables = newRegistry(w, s.blobs)
		}
		w.stores = append(w.stores, s)
	}
	for range w.p.Ingesters {
		in := w.add(simdisk.New(seed<<8 | uint64(len(w.all))))
		in.bestEffort = w.p.BestEffort && w.rng.IntN(2) == 0
		in.to = w.stores[w.rng.IntN(len(w.stores))]
	}
	return w
}

// add adds an ingester with a disk, without a process.
func (w *world) add(disk *simdisk.Disk) *ingester {
	n := len(w.all)
	in := &ingester{w: w, n: n, host: fmt.Sprint("h", n), inode: uint64(n + 1), disk: disk, ids: map[string]bool{}}
	in.id = fmt.Sprintf("%08x", 0xa0+n)
	if w.p.Skewed {
		in.skew = time.Duration(w.rng.IntN(40)-20) * time.Second
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, in)
	return in
}

func (w *world) say(format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story = append(w.story, fmt.Sprintf("%10.3f ", time.Since(w.start).Seconds())+fmt.Sprintf(format, a...))
}

// violation reports a broken promise, trouble a failure of the simulation itself.
func (w *world) violation(format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	w.say("VIOLATION: %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, text)
}

// violated reports whether a promise was broken.
func (w *world) violated() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.violations) > 0
}

func (w *world) trouble(format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	w.say("TROUBLE: %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.troubles = append(w.troubles, text)
}

func (w *world) Found() (violations, troubles []string) { return w.violations, w.troubles }

func (w *world) Story() string { return fmt.Sprintf("%+v\n%s", w.p, strings.Join(w.story, "\n")) }

// fate returns a source of chance for one event of a kind. It depends on the number of
// earlier events of this kind and not on other events, so that one seed is one story as
// far as possible.
func (w *world) fate(kind string) *rand.Rand {
	w.mu.Lock()
	w.asked[kind]++
	n := w.asked[kind]
	w.mu.Unlock()
	h := fnv.New64a()
	_, _ = h.Write([]byte(kind)) // never fails
	return rand.New(rand.NewPCG(w.seed^h.Sum64(), uint64(n)))
}

// latency returns how long a message travels. No two travel equally long, so that
// little is left to the scheduler.
func (w *world) latency(rng *rand.Rand) time.Duration {
	d := time.Duration(rng.Int64N(int64(2 * time.Millisecond)))
	if rng.IntN(4) == 0 {
		d += time.Duration(rng.Int64N(int64(w.p.Slow)))
	}
	return d
}

// Run takes the steps, repairs all faults, and checks that reads are complete then.
func (w *world) Run() {
	for _, in := range w.all {
		w.startOn(in, in.to, in.host)
	}
	time.Sleep(5 * time.Second)
	if w.p.Calm { // the table exists, and all have seen it
		time.Sleep(10 * time.Second)
	}
	for range w.p.Steps {
		if w.violated() {
			break
		}
		for _, in := range w.all {
			in.reap()
		}
		w.step()
		select {
		case <-time.After(w.pace()):
		case in := <-w.turning:
			w.catch(in)
		}
	}
	w.settle()
	if !w.violated() && !w.mutated {
		w.mend()
		w.clients.Wait()
	}
	w.end()
}

// settle continues stopped processes, and waits for senders and readers.
func (w *world) settle() {
	for _, in := range w.all {
		if in.proc != nil && in.proc.gate.shut() {
			in.proc.gate.cont()
		}
	}
	w.clients.Wait()
}

// end ends all processes.
func (w *world) end() {
	for _, in := range w.all {
		if in.reap(); in.proc != nil {
			in.kill(false)
		}
	}
	w.ending.Wait()
	w.late.Wait()
	time.Sleep(time.Minute) // work that processes left behind is over
}

// pace returns the time between two steps: mostly short, so that things meet.
func (w *world) pace() time.Duration {
	jitter := time.Duration(w.rng.Int64N(int64(time.Second)))
	switch k := w.rng.IntN(100); {
	case w.p.Ships && k < 5: // somebody falls silent
		return jitter + time.Duration(60+w.rng.IntN(60))*time.Second
	case k < 70:
		return 100*time.Millisecond + jitter
	case k < 88:
		return jitter + time.Duration(w.rng.IntN(6))*time.Second
	case k < 96:
		return jitter + time.Duration(5+w.rng.IntN(20))*time.Second
	case k < 99 || w.p.IdleAfter > time.Minute && w.rng.IntN(3) > 0:
		return jitter + time.Duration(20+w.rng.IntN(70))*time.Second
	}
	return w.p.IdleAfter + time.Minute + jitter
}

// mend repairs all faults: the weather, stopped and killed processes, lost logs. Then
// reads must be complete.
func (w *world) mend() {
	w.say("all is mended")
	w.mended.Store(true)
	for _, in := range w.all {
		in.clear()
	}
	time.Sleep(25 * time.Second) // stopping processes have ended
	for _, in := range w.all {
		if in.reap(); in.proc == nil && in.disk != nil {
			w.startOn(in, in.to, in.host)
		}
	}
	time.Sleep(100 * time.Second)
	if w.p.Ships {
		w.adoptAll()
	}
	for _, s := range w.stores {
		w.forgetSilent(s)
		w.forgetLosses(s)
	}
	time.Sleep(15 * time.Second)
	for _, s := range w.stores {
		w.finalRead(s)
	}
}

// clear makes the weather of an ingester fair.
func (in *ingester) clear() {
	for _, s := range []*sky{&in.tables, &in.writes, &in.blobs, &in.door} {
		s.set(fair)
	}
}

// forgetSilent forgets silent ingesters, as an operator does after a change of hosts.
func (w *world) forgetSilent(s *store) {
	if w.p.Ships {
		return // others adopt them
	}
	s.tables.amend(func() {
		gone, err := lease.ForgetSilent(context.Background(), s.tables, s.container, lease.Silence, time.Now(), unreached)
		if err != nil {
			w.say("forget the silent of %s: %v", s.container, err)
		}
		for _, i := range gone {
			w.forgot(i, s)
		}
	})
}

// unreached is the question of an operator on a host that reaches no ingester.
func unreached(context.Context, lease.Ingester) error { return nil }

// forgot notes that an ingester was forgotten, and with it the losses it reported.
func (w *world) forgot(i lease.Ingester, s *store) {
	w.say("%s of %s, which was on %s, is forgotten", i.ID, s.container, i.Host)
	if i.Lost.Any() {
		s.tables.settle()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals.Forgotten++
}

// forgetLosses acknowledges all losses.
func (w *world) forgetLosses(s *store) {
	found := false
	s.tables.amend(func() {
		rows, _ := lease.List(context.Background(), s.tables, s.container) // there may be no table
		for _, i := range rows {
			if i.Lost.Any() {
				found = true
				w.gave(i)
				_, err := lease.ForgetLoss(context.Background(), s.tables, s.container, i.ID)
				w.say("the loss of %s of %s is acknowledged: %v", i.ID, s.container, err)
			}
		}
	})
	if found {
		s.tables.settle()
		w.totals.Losses++
	}
}
