package lease_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
	"blobtail/storage"
	"blobtail/storage/fsys"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/mem"
)

// floorOf is the floor in the notes on a disk, and whether they say that the row holds.
func floorOf(t *testing.T, disk fsys.FS) (floor time.Time, holding bool) {
	t.Helper()
	text, err := fsys.ReadFile(disk, filepath.Join(logDir, "lease"))
	if err != nil {
		return time.Time{}, false
	}
	var n struct {
		State lease.State
		Floor time.Time
	}
	if err := json.Unmarshal(text, &n); err != nil {
		t.Fatal(err)
	}
	return n.Floor, n.State == lease.Holding || !n.Floor.IsZero()
}

// mortal is the log of an ingester that starts and dies at any moment. Its tables lose writes,
// carry them out without an answer, or much later.
type mortal struct {
	t     *testing.T
	seed  uint64
	store *mem.Store

	mu       sync.Mutex
	rng      *rand.Rand
	life     *life
	away     bool
	late     []storage.Row
	log      map[int]int64 // times of the unflushed records
	acked    map[int]bool
	next     int
	tight    int // checks that found a floor of some minutes ago
	reported bool
}

// life is one process.
type life struct {
	l     *mortal
	a     *lease.Announcer
	disk  *simdisk.Disk
	left  atomic.Pointer[simdisk.Disk] // once it is dead
	ended chan struct{}
	end   context.CancelFunc
	ready time.Time // when its log is read
	storage.TableStore
}

var errDead = errors.New("the process is dead")

// die ends the process at this very moment.
func (p *life) die(disk *simdisk.Disk) {
	if p.left.CompareAndSwap(nil, disk) {
		p.end()
	}
}

func (p *life) dead() bool { return p.left.Load() != nil }

// Swap implements [storage.TableStore].
func (p *life) Swap(ctx context.Context, table, partition string, row storage.Row) (string, error) {
	l := p.l
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.rng.IntN(20)
	switch {
	case p.dead():
		return "", errDead
	case l.away || k == 0:
		return "", errors.New("lost")
	case k == 1:
		p.die(p.disk.Fork(simdisk.Killed, 0))
		return "", errDead
	case k < 4:
		l.late = append(l.late, row)
		return "", errors.New("no answer, and it comes later")
	}
	version, err := l.apply(row)
	switch {
	case k == 4:
		p.die(p.disk.Fork(simdisk.Killed, 0))
		return "", errDead
	case k < 7 && err == nil:
		return "", errors.New("no answer")
	}
	return version, err
}

// Scan implements [storage.TableStore].
func (p *life) Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[storage.Row, error] {
	p.l.mu.Lock()
	gone := p.dead() || p.l.away
	p.l.mu.Unlock()
	if gone {
		return func(yield func(storage.Row, error) bool) { yield(storage.Row{}, errors.New("away")) }
	}
	return p.TableStore.Scan(ctx, table, partition, from, to, limit, props...)
}

// apply carries out a write. l.mu is held.
func (l *mortal) apply(row storage.Row) (string, error) {
	version, err := l.store.Swap(context.Background(), lease.Table, lease.Partition, row)
	if err != nil {
		return "", err
	}
	disk := l.life.left.Load()
	if disk == nil {
		disk = l.life.disk.Fork(simdisk.Killed, 0)
	}
	floor, holding := floorOf(l.t, disk)
	if r := l.row(); r.Process == l.life.a.Process() && r.State == lease.Holding && holding && r.Floor.After(floor) {
		l.fail("the row has the floor %v, above that of the file, %v", r.Floor, floor)
	}
	l.check("a write of the row")
	return version, nil
}

func (l *mortal) row() lease.Ingester {
	rows, err := lease.List(context.Background(), l.store, "")
	if err != nil || len(rows) != 1 {
		return lease.Ingester{}
	}
	return rows[0]
}

func (l *mortal) fail(format string, args ...any) {
	if !l.reported {
		l.t.Errorf("seed %d, after %v: %s", l.seed, time.Since(epoch), fmt.Sprintf(format, args...))
	}
	l.reported = true
}

// check looks whether a reader of the row would miss an acknowledged record. l.mu is held.
func (l *mortal) check(when string) {
	r := l.row()
	if r.State == lease.Holding && time.Since(r.Floor) < 20*time.Minute {
		l.tight++
	}
	for n := range l.acked {
		at, there := l.log[n]
		if there && (r.State != lease.Holding || r.Spares(at+1)) {
			l.fail("%s: the log has an acknowledged record of %v, and the row says %s, floor %v", when, time.Unix(0, at).UTC(), r.State, r.Floor)
		}
	}
}

// start starts a process on a disk.
func (l *mortal) start(disk *simdisk.Disk) {
	p := &life{l: l, disk: disk, TableStore: l.store, ended: make(chan struct{}), ready: time.Now().Add(time.Duration(l.rng.IntN(4)) * time.Second)}
	ctx, end := context.WithCancel(context.Background())
	p.end = end
	var err error
	locked := func() func() { l.mu.Lock(); return l.mu.Unlock }
	p.a, err = lease.New(p, lease.Options{
		FS: disk, Dir: logDir, ID: "0badcafe", IdleAfter: time.Minute,
		Replayed: func() bool { return !time.Now().Before(p.ready) },
		Oldest: func() (time.Time, bool) {
			defer locked()()
			return epoch, len(l.log) > 0 && !time.Now().Before(p.ready)
		},
		Earliest: func() (earliest int64, some bool) {
			defer locked()()
			earliest = math.MaxInt64
			for _, at := range l.log {
				earliest = min(earliest, at)
			}
			return earliest, len(l.log) > 0
		},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(l.rng.Uint64(), 1)) // of the disk, which does one thing at a time
	disk.SetFault(func(op simdisk.Op) error {
		if rng.IntN(150) == 0 {
			p.die(op.Fork(simdisk.Killed, 0))
		}
		if p.dead() {
			return simdisk.ErrKilled
		}
		return nil
	})
	l.life = p
	go func() {
		p.a.Run(ctx)
		close(p.ended)
	}()
}

// send sends a record. Most are of now.
func (l *mortal) send() {
	now := time.Now()
	l.mu.Lock()
	p := l.life
	ages := []time.Duration{0, 0, time.Minute, 10 * time.Minute, 30 * time.Minute, 3 * time.Hour, 30 * time.Hour, 2000 * time.Hour, -time.Minute}
	at := now.Add(-ages[l.rng.IntN(len(ages))] - time.Duration(l.rng.Int64N(int64(5*time.Minute)))).UnixNano()
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
	defer cancel()
	leave, err := p.a.Enter(ctx, at)
	if err != nil {
		return
	}
	l.mu.Lock() // no time passes before leave: that of a bubble stands still while another waits for it
	defer l.mu.Unlock()
	if !p.dead() {
		l.next++
		l.log[l.next] = at
		l.acked[l.next] = true
		l.check("an acknowledgement")
	}
	leave()
}

// flush stores records.
func (l *mortal) flush(all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range l.next + 1 {
		if _, there := l.log[n]; there && (all || l.rng.IntN(3) > 0) {
			delete(l.log, n)
		}
	}
}

// rise ends the process if it is not dead, and starts another.
func (l *mortal) rise() {
	l.mu.Lock()
	p := l.life
	p.die(p.disk.Fork(simdisk.Killed, 0))
	l.mu.Unlock()
	<-p.ended
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start(p.left.Load())
}

// stop ends the process in order.
func (l *mortal) stop() {
	l.mu.Lock()
	p := l.life
	p.end()
	l.mu.Unlock()
	<-p.ended
	l.mu.Lock()
	empty := len(l.log) == 0
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = p.a.Stop(ctx, empty)
}

func (l *mortal) step() {
	l.mu.Lock()
	k, pause, n := l.rng.IntN(100), time.Duration(l.rng.Int64N(int64(4*time.Second))), 0
	if len(l.late) > 0 {
		n = l.rng.IntN(len(l.late))
	}
	dead := l.life.dead()
	l.mu.Unlock()
	time.Sleep(pause)
	switch {
	case dead && k < 30, k < 2:
		l.rise()
	case dead:
	case k < 55:
		l.send()
	case k < 70:
		l.flush(false)
	case k < 74: // long enough for a log without records to be idle
		l.flush(k%2 == 0)
		time.Sleep(90 * time.Second)
	case k < 77:
		l.flush(l.seed%2 == 0)
		l.stop()
		l.rise()
	case k < 83:
		l.mu.Lock()
		l.away = !l.away
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k >= 83 && len(l.late) > 0 {
		row := l.late[n]
		l.late = slices.Delete(l.late, n, n+1)
		_, _ = l.apply(row)
	}
	l.check("a step")
}

// Anything may fail, and the process may die at any moment. Still the row says that the ingester
// holds each acknowledged record that is in no blob, and its floor is not above the record's time.
// The floor of the file is never below that of the row.
func TestFloorWorlds(t *testing.T) {
	tight, seeds := 0, testkit.Portion(10_000, 250, 25)
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			l := &mortal{t: t, seed: seed, store: mem.New(mem.Options{}), rng: rand.New(rand.NewPCG(seed, 35)), log: map[int]int64{}, acked: map[int]bool{}}
			l.mu.Lock()
			l.start(logDisk(t))
			l.mu.Unlock()
			for range 150 {
				l.step()
			}
			l.mu.Lock()
			p := l.life
			p.die(p.disk.Fork(simdisk.Killed, 0))
			tight += l.tight
			l.mu.Unlock()
			<-p.ended
			time.Sleep(time.Minute)
		})
		if t.Failed() {
			return
		}
	}
	if tight < 20*seeds {
		t.Errorf("the floor was near to now only %d times: it never rises", tight)
	}
	t.Logf("%d looks at a floor near to now", tight)
}
