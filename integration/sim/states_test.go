package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/blobwriter"
	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/count"
	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
	logs "blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/record/origin"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/fsys/simdisk"
)

// A machine may crash at any operation of its disk, which holds the log and a dir
// store. From every state that a crash may leave, the next start loses nothing
// acknowledged by then and stores nothing twice.
func TestStates(t *testing.T) {
	first := testkit.Setting("BLOBTAIL_SIM_FIRST", 0)
	want, step := int64(testkit.Setting("BLOBTAIL_CRASH_STATES", testkit.Share(4_000, 400))), testkit.Share(1, 8)
	var seed, states, moments, parked atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for worker := range 2 {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for states.Load() < want && !t.Failed() {
					h := newHistory(uint64(first) + uint64(seed.Add(1)-1))
					synctest.Test(t, func(*testing.T) { h.happen() })
					parked.Add(int64(h.parked))
					for i := int(h.seed) % step; i < len(h.moments) && states.Load() < want; i += step {
						testkit.Collect(moments.Add(1))
						states.Add(int64(simdisk.Crashes))
						synctest.Test(t, func(t *testing.T) { h.crash(t, h.moments[i]) })
						h.moments[i] = nil // there are many
					}
				}
			})
		}
	})
	t.Logf("%d states: %d ways to crash at each of %d operations of %d runs, in which %d batches were parked",
		states.Load(), simdisk.Crashes, moments.Load(), seed.Load(), parked.Load())
}

// history is a run of an ingester on one disk, with the time of each promise.
type history struct {
	seed     uint64
	rng      *rand.Rand
	disk     *simdisk.Disk
	requests []*request
	messages int  // the first of the requests
	refuses  bool // the store refuses service a until the crash
	parked   int

	mu      sync.Mutex
	sent    []int // in order
	acked   []int
	moments []*moment
}

// moment is the disk before one operation, as a process sees it.
type moment struct {
	op          simdisk.Op
	disk        *simdisk.Disk
	sent, acked int
}

func newHistory(seed uint64) *history {
	h := &history{seed: seed, rng: rand.New(rand.NewPCG(seed, 11)), disk: simdisk.New(seed)}
	w := &world{p: profile{Services: 2, Periods: 1}}
	if h.refuses = seed%2 == 1; h.refuses {
		w.p.Rare = 3
	}
	h.messages = 5
	for i := range h.messages + 11 {
		s := w.compose(fmt.Sprintf("s%d", i), h.rng)
		switch {
		case i < h.messages:
			s.r.Origin = origin.OfStream(epoch, "logs", uint64(i))
		case h.rng.IntN(3) > 0:
			s.r.Origin = origin.OfBody("", "/ingest", 0, s.r.Data, epoch.UnixNano())
		}
		h.requests = append(h.requests, s)
	}
	return h
}

// happen runs two lives of an ingester and keeps the disk before each operation that
// changes it.
func (h *history) happen() {
	half := len(h.requests) / 2
	order := h.rng.Perm(len(h.requests))
	for _, part := range [][]int{order[:half], order[half:]} {
		h.disk.SetFault(h.keep)
		p, err := openOn(h.disk, h, h.refuses)
		if err != nil {
			panic(err) // nothing fails here
		}
		var wg sync.WaitGroup
		for c := range 2 {
			rng := rand.New(rand.NewPCG(h.rng.Uint64(), uint64(c)))
			wg.Go(func() {
				for j := c; j < len(part); j += 2 {
					time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
					h.send(p, part[j], rng.IntN(6) == 0)
				}
			})
		}
		wg.Wait()
		if h.rng.IntN(2) == 0 {
			time.Sleep(10 * time.Second) // everything is stored by then
		}
		h.parked += p.parked()
		next := h.disk.Kill() // it continues from this state
		p.kill()
		h.disk = next
	}
}

// keep is a fault hook without faults. It is called one at a time.
func (h *history) keep(op simdisk.Op) error {
	switch op.Kind {
	case "read", "stat", "readdir":
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moments = append(h.moments, &moment{op, op.Fork(simdisk.Killed, 0), len(h.sent), len(h.acked)})
	return nil
}

// send hands a request over, and notes when it was acknowledged.
func (h *history) send(p *process, i int, stored bool) {
	r := h.requests[i].r
	if i < h.messages {
		r.Reply = reply(i, 0)
	}
	h.mu.Lock()
	h.sent = append(h.sent, i)
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	receipt, err := p.buf.Accept(ctx, &r)
	if err == nil && r.Reply == "" && receipt.Wait(ctx, stored) == nil {
		h.note(i)
	}
}

func (h *history) note(i int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acked = append(h.acked, i)
}

func (h *history) Found(string) {}

func (h *history) Dropped(string) {}

func (h *history) Stored(to string) {
	var i int
	if _, err := fmt.Sscanf(to, "%d.", &i); err == nil {
		h.note(i)
	}
}

// openOn starts an ingester with its log and store on one disk.
func openOn(disk *simdisk.Disk, told buffer.Messages, refuses bool) (*process, error) {
	blobs, err := dir.Open("/var/store", dir.Options{FS: disk, Create: true})
	if err != nil {
		return nil, err
	}
	log, err := wal.Open("/var/wal", wal.Options{FS: disk, SegmentSize: 1500, Reserve: -1})
	if err != nil {
		return nil, err
	}
	p := &process{log: log, ended: make(chan struct{})}
	o := buffer.Options{
		Size: 1500, Age: time.Second, Min: 200, MaxAge: 2 * time.Second, Soft: 4 << 10, Workers: 2, Messages: told,
	}
	var store blobwriter.Store = blobs
	if refuses {
		store, p.reg = refusing{blobs}, new(count.Registry)
		o.Soft, o.Metrics = 2000, p.reg
	}
	p.buf = buffer.New(log, sink{Writer: blobwriter.New(store, blobwriter.Options{}, nil)}, o)
	ctx, cancel := context.WithCancel(context.Background())
	p.end = cancel
	go func() {
		defer close(p.ended)
		_ = p.buf.Run(ctx) // a caller that waits for the buffer finds its error
	}()
	return p, nil
}

// refusing is a store that refuses the blobs of service a.
type refusing struct{ *dir.Store }

func (r refusing) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	if key[0] == 'a' {
		return errLost
	}
	return r.Store.Create(ctx, key, body, attrs)
}

// crash starts from each state that a crash at this moment may leave.
func (h *history) crash(t *testing.T, m *moment) {
	for c := range simdisk.Crashes {
		if err := h.start(m.disk.Fork(c, h.seed<<20+uint64(m.op.N)), m); err != nil {
			t.Errorf("violation: seed %d, crash %q before operation %d (%s %s): %v", h.seed, c, m.op.N, m.op.Kind, m.op.Path, err)
		}
	}
}

// start is the next start, on the disk as a crash left it. Clients and stream send unacknowledged
// requests and messages again, and everything must come out once.
func (h *history) start(disk *simdisk.Disk, m *moment) error {
	after := &history{requests: h.requests, messages: h.messages, sent: h.sent[:m.sent:m.sent], acked: h.acked[:m.acked:m.acked]}
	acked := map[int]bool{}
	for _, i := range after.acked {
		acked[i] = true
	}
	p, err := openOn(disk, after, false)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	for i := range h.requests {
		known := i < h.messages || m.op.N%2 == 0 && !h.requests[i].r.Origin.IsZero()
		if known && !acked[i] {
			after.send(p, i, false)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if left, ferr := p.buf.Flush(ctx); ferr != nil {
		err = fmt.Errorf("flush: %w, left %+v", ferr, left)
	}
	// Stored records are durable, and need no log any more.
	found := disk.Fork(simdisk.None, 0)
	p.kill()
	store, oerr := dir.Open("/var/store", dir.Options{FS: found})
	if oerr != nil {
		return errors.Join(err, oerr)
	}
	return errors.Join(err, after.verify(store))
}

// verify compares the contents of the store with the promises.
func (h *history) verify(store *dir.Store) error {
	var ledger check.Ledger
	taken := map[record.Origin]int{}
	for _, i := range h.sent {
		for j, l := range h.requests[i].r.Lines {
			ledger.Sent(h.requests[i].ids[j], h.requests[i].r.Services[l.Service], l.Time)
		}
		taken[h.requests[i].r.Origin]++
	}
	messages := 0
	for _, i := range h.acked {
		ledger.Acked(h.requests[i].ids...)
		if i < h.messages {
			messages++
		}
	}
	var errs []error
	if messages < h.messages {
		errs = append(errs, fmt.Errorf("only %d of %d messages are acknowledged", messages, h.messages))
	}
	var out bytes.Buffer
	errs = append(errs, readAll(store, nil, &out))
	_, err := ledger.Verify(&out)
	look := newInspector(taken)
	for b, err := range store.List(context.Background(), "", "") {
		if err != nil {
			return err
		}
		r, err := store.Get(context.Background(), b.Key, 0, -1)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(r)
		errs = append(errs, err, r.Close())
		errs = append(errs, look.blob(b.Key, body, b.Attrs)...)
	}
	return errors.Join(append(errs, err)...)
}

// readAll prints the whole contents of a store, by a clock; nil: that of the host.
func readAll(store storage.BlobStore, now func() time.Time, out *bytes.Buffer) error {
	reader := logs.New(store, logs.Options{Now: now})
	plan, err := reader.Plan(context.Background(), logs.Query{Services: []string{"*"}, Range: logs.Always()})
	var none *logs.NoServiceError
	if errors.As(err, &none) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("plan a read: %w", err)
	}
	sum, err := plan.Read(context.Background(), func(lines []byte) error {
		out.Write(lines)
		return nil
	})
	if err == nil && !sum.Complete() {
		err = errors.Join(sum.Problems...)
	}
	return err
}
