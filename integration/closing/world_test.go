package closing_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"blobtail/blobfmt"
	"blobtail/blobwriter"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/mem"
)

const (
	grace = time.Hour
	// firstDays are the days before the world begins that have records.
	firstDays = 3
)

// profile is the kind of world that a seed draws.
type profile struct {
	Services  int
	Ingesters int
	Hours     []int // of the day with records
	Page      int   // objects in a page of a listing
	Pause     time.Duration
	Rounds    int
	After     time.Duration
	Age       time.Duration // 0: nothing expires
	Held      bool          // the first ingester holds what it has for two days
	Drops     bool
	Hands     int // 0: nobody does anything by hand; 1: at the end; 2: in between
}

func drawProfile(rng *rand.Rand) (p profile) {
	p = profile{
		Services:  1 + rng.IntN(2),
		Ingesters: 1 + rng.IntN(2),
		Hours:     [][]int{{15}, {3, 15}, {3, 15, 23}}[rng.IntN(3)],
		Page:      []int{1, 2, 3, 5, 1000}[rng.IntN(5)],
		Pause:     []time.Duration{time.Millisecond, time.Second, 20 * time.Second, 2 * time.Minute}[rng.IntN(4)],
		Rounds:    6 + rng.IntN(6),
		After:     []time.Duration{24 * time.Hour, 26 * time.Hour}[rng.IntN(2)],
		Held:      rng.IntN(3) == 0,
		Drops:     rng.IntN(4) == 0,
	}
	if rng.IntN(3) == 0 {
		p.Age = []time.Duration{48 * time.Hour, 72 * time.Hour}[rng.IntN(2)]
	}
	if rng.IntN(2) == 0 {
		p.Hands = 1 + rng.IntN(2)
	}
	return p
}

// world is one run: a store with all that write, close, compact, delete and read it.
type world struct {
	seed  uint64
	p     profile
	rng   *rand.Rand // of the story, which one goroutine tells
	store *mem.Store
	dec   *blobfmt.Decoder
	start time.Time

	ingesters []*ingester
	running   sync.WaitGroup

	mu         sync.Mutex
	objects    map[string]*object
	ever       map[string]bool // blobs by key and batch
	records    []*rec
	marks      []mark
	root       time.Time            // of the newest
	rooted     map[closed.Hash]bool // parts
	attrs      map[string]storage.Attrs
	touched    map[place]bool // by hand
	losses     []*loss
	hands      int
	lone       int
	totals     totals
	story      []string
	violations []string
	troubles   []string
}

func newWorld(seed uint64) *world {
	w := &world{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 17)),
		store: mem.New(mem.Options{}), dec: blobfmt.NewDecoder(1), start: time.Now(),
		objects: map[string]*object{}, ever: map[string]bool{}, rooted: map[closed.Hash]bool{},
		attrs: map[string]storage.Attrs{}, touched: map[place]bool{},
	}
	w.p = drawProfile(w.rng)
	for lane := range w.p.Ingesters {
		i := &ingester{w: w, lane: lane, turn: make(chan struct{}, 1), view: w.view(fmt.Sprint("ingester ", lane), w.p.Pause)}
		i.view.down = func() bool { return time.Now().After(i.down) && time.Now().Before(i.up) }
		w.ingesters = append(w.ingesters, i)
	}
	if w.p.Held {
		from := w.start.Add(w.between(0, 24*time.Hour))
		w.ingesters[0].down, w.ingesters[0].up = from, from.Add(48*time.Hour)
	}
	return w
}

func (w *world) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.rng.Int64N(int64(to-from)))
}

func (w *world) services() []string { return []string{"app", "web"}[:w.p.Services] }

// Run lets records come, days end, and jobs and readers meet. Then all is calm, and the store must be
// as the records that were sent say.
func (w *world) Run() {
	for d := range firstDays {
		for _, i := range w.ingesters {
			for range 1 + w.rng.IntN(4) {
				i.batch(horizon.DayOf(w.start) - horizon.Day(d) - 1)
			}
		}
	}
	for _, i := range w.ingesters {
		i.flush()
	}
	for n := range w.p.Rounds {
		time.Sleep(w.between(time.Minute, 14*time.Hour))
		w.round(n)
	}
	w.running.Wait()
	time.Sleep(15 * time.Minute)
	w.finish()
}

// round starts what meets: two jobs, readers, ingesters.
func (w *world) round(n int) {
	w.told("round %d", n)
	soon := func() time.Duration { return w.between(0, 20*w.p.Pause+time.Millisecond) }
	for _, i := range w.ingesters {
		for range w.rng.IntN(4) {
			i.batch(horizon.DayOf(time.Now()) - horizon.Day(w.rng.IntN(4)))
		}
		i.restart(w.rng.IntN(4) == 0)
		w.after(soon(), i.flush)
	}
	if w.p.Hands == 2 && w.rng.IntN(3) == 0 {
		kind := handsBetween[w.rng.IntN(len(handsBetween))]
		w.after(soon(), func() { w.hand(kind) })
	}
	for j := range 1 + w.rng.IntN(3) {
		w.after(soon(), w.drawJob(fmt.Sprintf("job %d.%d", n, j)))
	}
	for j := range 1 + w.rng.IntN(3) {
		w.after(2*soon(), w.drawRead(fmt.Sprintf("reader %d.%d", n, j)))
	}
}

// after calls do after a while, beside all else.
func (w *world) after(d time.Duration, do func()) {
	w.running.Go(func() {
		time.Sleep(d)
		do()
	})
}

// finish repairs all, lets the jobs do the rest, and looks at the end.
func (w *world) finish() {
	w.told("all is calm")
	for _, i := range w.ingesters {
		i.down, i.up = time.Time{}, time.Time{}
		for n := 0; n < 20 && (n == 0 || len(i.pending) > 0); n++ {
			i.flush()
		}
		if len(i.pending) > 0 {
			w.violation("ingester %d still has %d batches", i.lane, len(i.pending))
		}
	}
	time.Sleep(15 * time.Minute) // creates on their way end
	w.settle()
	w.look("end")
	if w.p.Hands == 1 && w.hand(handsAtEnd[w.rng.IntN(len(handsAtEnd))]) {
		w.look("after hands")
		w.accept(w.losses[len(w.losses)-1])
	}
}

// settle runs the jobs until there is nothing left to do.
func (w *world) settle() {
	w.told("the last jobs")
	for n := range 12 {
		before := w.totals
		w.apply(w.view(fmt.Sprint("last apply ", n), time.Millisecond), bg)
		w.byHand(w.view(fmt.Sprint("last close ", n), time.Millisecond), bg)
		w.compact(w.view(fmt.Sprint("last compact ", n), time.Millisecond), bg)
		time.Sleep(2 * grace)
		if n > 0 && before.Compacted == w.totals.Compacted && before.Deleted == w.totals.Deleted && before.Parts == w.totals.Parts {
			w.settled()
			return
		}
	}
	w.violation("there is no end of what the jobs do")
}

// ingester stores batches, in a lane. It has what it could not store, in order.
type ingester struct {
	w        *world
	lane     int
	view     *view
	down, up time.Time // the store is down for it in between
	writer   *blobwriter.Writer
	made     int

	turn    chan struct{} // held by a flush: a goroutine that waits for a mutex keeps time from passing
	pending []*batch      // of the flush
	mu      sync.Mutex
	planned []*batch // without a name
	again   bool     // it has lost what it knew of numbers
}

// batch is records of a service and an hour. It implements [blobwriter.Batch].
type batch struct {
	id       [16]byte
	service  string
	period   time.Time
	attempts int
	pin      []byte
	recs     []*rec
}

func (b *batch) ID() [16]byte      { return b.id }
func (b *batch) Service() string   { return b.service }
func (b *batch) Period() time.Time { return b.period }
func (b *batch) Attempts() int     { return b.attempts }
func (b *batch) Pin() []byte       { return b.pin }
func (b *batch) Walk(pin []byte)   { b.pin = pin }

func (b *batch) Each(_ context.Context, f func(line []byte, t int64, origin record.Origin, index uint32) error) error {
	var o record.Origin
	copy(o[:], b.id[:])
	for i, r := range b.recs {
		if err := f(r.line(), r.time, o, uint32(i)); err != nil {
			return err
		}
	}
	return nil
}

// batch makes a batch of records of a day.
func (i *ingester) batch(day horizon.Day) {
	w := i.w
	b := &batch{service: w.services()[w.rng.IntN(w.p.Services)]}
	i.made++
	binary.BigEndian.PutUint64(b.id[:], uint64(i.lane+1)<<32|uint64(i.made))
	b.period = day.Start().Add(time.Duration(w.p.Hours[w.rng.IntN(len(w.p.Hours))]) * time.Hour)
	at := b.period.UnixNano()
	for range 1 + w.rng.IntN(3) {
		at += int64(w.between(0, 15*time.Minute))
		w.mu.Lock()
		r := &rec{id: len(w.records), at: place{b.service, day}, time: at}
		w.records = append(w.records, r)
		w.mu.Unlock()
		b.recs = append(b.recs, r)
	}
	i.mu.Lock()
	i.planned = append(i.planned, b)
	i.mu.Unlock()
}

// restart has the ingester forget the numbers that it has used.
func (i *ingester) restart(again bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.again = i.again || again
}

// flush stores what there is. A later one stores what this one could not.
func (i *ingester) flush() {
	i.turn <- struct{}{}
	defer func() { <-i.turn }()
	i.mu.Lock()
	planned, again := i.planned, i.again
	i.planned, i.again = nil, false
	i.mu.Unlock()
	if again || i.writer == nil {
		i.writer = blobwriter.New(i.view, blobwriter.Options{}, nil)
		if err := i.writer.SetLane(i.lane); err != nil {
			i.w.violation("%v", err)
		}
	}
	for _, b := range planned {
		b.pin = i.writer.Plan(b.service, b.period)
	}
	i.pending = append(i.pending, planned...)
	i.pending = slices.DeleteFunc(i.pending, func(b *batch) bool {
		err := i.writer.Write(context.Background(), b)
		if b.attempts++; err != nil {
			i.w.told("%s: %v", i.view.actor, err)
		}
		return err == nil
	})
}
