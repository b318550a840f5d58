package buffer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/storage/fsys"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// line is a record in the tests' model.
type line struct {
	service string
	time    int64
	text    string
}

func at(minute int) int64 {
	return time.Date(2026, 11, 20, 15, minute, 0, 0, time.UTC).UnixNano()
}

// request builds a source's request. As with a key, the end of its origin alone
// distinguishes it from other requests.
func request(origin byte, lines ...line) *record.Request {
	r := &record.Request{}
	if origin != 0 {
		r.Origin = record.Origin{0: origin, 6: origin, 15: 1}
	}
	for _, l := range lines {
		s := slices.Index(r.Services, l.service)
		if s < 0 {
			s = len(r.Services)
			r.Services = append(r.Services, l.service)
		}
		off := len(r.Data)
		r.Data = append(r.Data, `{"ts":"`...)
		r.Data = record.AppendTime(r.Data, l.time)
		r.Data = fmt.Appendf(r.Data, `","level":"info","service":"%s","msg":"%s"}`+"\n", l.service, l.text)
		r.Lines = append(r.Lines, record.Line{Time: l.time, Off: uint32(off), Len: uint32(len(r.Data) - off), Service: uint32(s)})
	}
	return r
}

// stored is a line that a sink received.
type stored struct {
	text   string
	time   int64
	origin record.Origin
	index  uint32
}

type storedBatch struct {
	id      [16]byte
	service string
	period  time.Time
	lines   []stored
}

// memSink keeps batches in memory. refuse decides which writes fail, and may be nil.
type memSink struct {
	refuse func(service string) error

	mu      sync.Mutex
	batches []storedBatch
	plans   int
}

func (s *memSink) Plan(service string, period time.Time) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans++
	return []byte{byte(s.plans)}
}

func (s *memSink) Write(ctx context.Context, b *buffer.Batch) error {
	s.mu.Lock()
	refuse := s.refuse
	s.mu.Unlock()
	if refuse != nil {
		if err := refuse(b.Service()); err != nil {
			return err
		}
	}
	out := storedBatch{id: b.ID(), service: b.Service(), period: b.Period()}
	err := b.Each(ctx, func(l []byte, t int64, origin record.Origin, index uint32) error {
		out.lines = append(out.lines, stored{string(l), t, origin, index})
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, out)
	return nil
}

func (s *memSink) setRefuse(f func(service string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = f
}

func (s *memSink) all() []storedBatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches)
}

// texts returns the stored lines of a service, in the order of the batches.
func (s *memSink) lines(service string) (out []stored) {
	for _, b := range s.all() {
		if b.service == service {
			out = append(out, b.lines...)
		}
	}
	return out
}

// process is one life of an ingester on a log directory.
type process struct {
	t    *testing.T
	buf  *buffer.Buffer
	log  *wal.Log
	stop func()
}

// start opens dir. If run is false, nothing is replayed, cut or stored.
func start(t *testing.T, dir string, sink buffer.Sink, o buffer.Options, run bool) *process {
	t.Helper()
	return startOn(t, nil, dir, sink, o, run)
}

// startOn is start on another disk, without ballast; nil is the host's.
func startOn(t *testing.T, disk fsys.FS, dir string, sink buffer.Sink, o buffer.Options, run bool) *process {
	t.Helper()
	wo := wal.Options{SegmentSize: 64 << 10, FS: disk}
	if disk != nil {
		wo.Reserve = -1
	}
	log, err := wal.Open(dir, wo)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, log: log, buf: buffer.New(log, sink, o)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	if run {
		go func() { done <- p.buf.Run(ctx) }()
	} else {
		done <- nil
	}
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := log.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	t.Cleanup(p.stop)
	return p
}

func (p *process) accept(r *record.Request) record.Receipt {
	p.t.Helper()
	receipt, err := p.buf.Accept(context.Background(), r)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := receipt.Wait(context.Background(), false); err != nil {
		p.t.Fatal(err)
	}
	return receipt
}

func (p *process) flush() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if left, err := p.buf.Flush(ctx); err != nil {
		p.t.Fatalf("flush: %v, left %+v", err, left)
	}
}

// Lines of several requests, services and hours, out of order, become one batch per
// service and period. They are in order, numbered by their places in their request.
func TestFlush(t *testing.T) {
	sink := &memSink{}
	p := start(t, t.TempDir(), sink, buffer.Options{}, true)
	p.accept(request(2, line{"web", at(3), "c"}, line{"db", at(1), "x"}, line{"web", at(1), "a"}, line{"web", at(61), "late"}, line{"web", at(1), "b"}))
	p.accept(request(1, line{"web", at(3), "c0"}, line{"web", at(2), "between"}))
	p.flush()

	var got []string
	for _, b := range sink.all() {
		for _, l := range b.lines {
			got = append(got, fmt.Sprintf("%s %s %d/%d %s", b.service, b.period.Format("15:04"), l.origin[0], l.index, textOf(l.text)))
		}
	}
	slices.Sort(got)
	want := []string{
		`db 15:00 2/1 x"}`,
		`web 15:00 1/0 c0"}`,
		`web 15:00 1/1 between"}`,
		`web 15:00 2/0 c"}`,
		`web 15:00 2/2 a"}`,
		`web 15:00 2/4 b"}`,
		`web 16:00 2/3 late"}`,
	}
	for i := range got {
		got[i] = strings.TrimSpace(got[i])
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q\nwant %q", got, want)
	}
	for _, b := range sink.all() {
		checkOrder(t, b)
	}
	if len(sink.all()) != 3 {
		t.Errorf("%d batches, want 3", len(sink.all()))
	}
}

func checkOrder(t *testing.T, b storedBatch) {
	t.Helper()
	for i := 1; i < len(b.lines); i++ {
		x, y := b.lines[i-1], b.lines[i]
		if x.time > y.time || x.time == y.time && (bytes.Compare(x.origin[:], y.origin[:]) > 0 ||
			x.origin == y.origin && x.index >= y.index) {
			t.Errorf("%s: line %d is out of order: %+v before %+v", b.service, i, x, y)
		}
	}
}

// The next start finds acknowledged records that are not stored. If their batch was cut,
// it keeps its id.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	down := errors.New("store is down")
	dead := &memSink{refuse: func(string) error { return down }}
	p := start(t, dir, dead, buffer.Options{}, true)
	p.accept(request(1, line{"web", at(1), "cut"}))
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if left, err := p.buf.Flush(ctx); err == nil || left.Records != 1 {
		t.Fatalf("flush against a dead store: %v, left %+v", err, left)
	}
	p.accept(request(2, line{"web", at(2), "open"}))
	p.stop()

	// The same log again: the batch is still the same.
	var ids [][16]byte
	for range 2 {
		sink := &memSink{}
		p = start(t, copyDir(t, dir), sink, buffer.Options{}, true)
		p.flush()
		p.stop()
		if got := sink.lines("web"); len(got) != 2 {
			t.Fatalf("after a restart: %d lines, want 2", len(got))
		}
		for _, b := range sink.all() {
			if len(b.lines) == 1 && b.lines[0].time == at(1) {
				ids = append(ids, b.id)
			}
		}
	}
	if len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("the cut batch came back as %x", ids)
	}
}

func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// The clock decides when a batch is due. A batch of at least Min bytes is cut at Age, and
// a small one at MaxAge. If a caller waits for it, a batch is cut within a second.
func TestAges(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		p := start(t, dir, sink, buffer.Options{Min: 200}, true)
		defer p.stop()
		p.accept(request(0, line{"small", at(1), "x"}))
		p.accept(request(0, line{"large", at(1), string(bytes.Repeat([]byte("x"), 200))}))
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if n := len(sink.all()); n != 0 {
			t.Errorf("after 59 s: %d batches", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(sink.lines("large")) != 1 || len(sink.lines("small")) != 0 {
			t.Errorf("after 61 s: %+v", sink.all())
		}
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		if len(sink.lines("small")) != 1 {
			t.Errorf("after 5 min: %+v", sink.all())
		}
		began := time.Now()
		receipt := p.accept(request(0, line{"wanted", at(1), "x"}))
		if err := receipt.Wait(context.Background(), true); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 1500*time.Millisecond || len(sink.lines("wanted")) != 1 {
			t.Errorf("a request that waits for its blob waited %v", d)
		}
	})
}

// A tick looks at many open batches in parts, between which requests come in and cut batches. All are
// cut, and each record is stored once.
func TestAgesOfManyBatches(t *testing.T) {
	const hours = 3500
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		p := start(t, dir, sink, buffer.Options{Size: 2000}, true)
		defer p.stop()
		lines := make([]line, hours)
		for i := range lines {
			lines[i] = line{"web", at(60 * i), "x"}
		}
		p.accept(request(0, lines...))
		time.Sleep(5*time.Minute - time.Second)
		large := string(bytes.Repeat([]byte("x"), 2000))
		var senders sync.WaitGroup
		for i := range 100 {
			senders.Go(func() {
				time.Sleep(time.Second + time.Duration(i%8)*250*time.Millisecond/8) // about the tick
				p.accept(request(byte(1+i), line{"web", at(60 * 35 * i), large}, line{"web", at(60 * (hours + i)), "new"}))
			})
		}
		senders.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		times := map[int64]int{}
		for _, l := range sink.lines("web") {
			times[l.time]++
		}
		if len(times) != hours {
			t.Errorf("records of %d hours are stored, want %d", len(times), hours)
		}
		p.flush()
		if n := len(sink.lines("web")); n != hours+200 {
			t.Errorf("%d records are stored, want %d", n, hours+200)
		}
	})
}

// A service does not delay others if all its writes fail. Its batch is stored once the store
// accepts it.
func TestFailingService(t *testing.T) {
	var mu sync.Mutex
	refused := true
	sink := &memSink{}
	sink.refuse = func(service string) error {
		mu.Lock()
		defer mu.Unlock()
		if service == "bad" && refused {
			return errors.New("403")
		}
		return nil
	}
	p := start(t, t.TempDir(), sink, buffer.Options{Workers: 2}, true)
	for i := range 20 {
		p.accept(request(0, line{"bad", at(i), "x"}, line{"good", at(i), "x"}))
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		p.buf.Flush(ctx)
		cancel()
	}
	testkit.Until(t, "all records of good are stored", func() bool { return len(sink.lines("good")) >= 20 })
	mu.Lock()
	refused = false
	mu.Unlock()
	p.flush()
	if n := len(sink.lines("bad")); n != 20 {
		t.Errorf("bad: %d of 20", n)
	}
}

// The log releases the stored records: after a flush only the active segment and a
// remainder that it cannot free are left.
func TestLogIsFreed(t *testing.T) {
	sink := &memSink{}
	p := start(t, t.TempDir(), sink, buffer.Options{}, true)
	text := string(bytes.Repeat([]byte("x"), 1000))
	for i := range 500 {
		p.accept(request(0, line{"web", at(i % 60), text}))
	}
	if size := p.log.Size(); size < 500_000 {
		t.Fatalf("log of %d bytes", size)
	}
	p.flush()
	testkit.Until(t, "only the active segment is held", func() bool { return p.log.Front() == p.log.Active() })
	if size := p.log.Size(); size > 128<<10 {
		t.Errorf("log of %d bytes after a flush", size)
	}
}

// While the disk is full no request is accepted, and all records are stored before they
// are due. The segment that is not full is deleted too.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		var full atomic.Bool
		p := start(t, dir, sink, buffer.Options{Full: full.Load}, true)
		defer p.stop()
		p.accept(request(0, line{"web", at(1), "x"}))
		full.Store(true)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if _, err := p.buf.Accept(t.Context(), request(0, line{"web", at(1), "y"})); !errors.Is(err, record.ErrFull) {
			t.Errorf("accept on a full disk: %v", err)
		}
		if len(sink.lines("web")) != 1 {
			t.Errorf("stored: %+v", sink.all())
		}
		if size := p.log.Size(); size > 200 {
			t.Errorf("the log still has %d bytes", size)
		}
		full.Store(false)
		time.Sleep(2 * time.Second)
		p.accept(request(0, line{"web", at(1), "y"}))
	})
}

// If its directory was removed, a log fails before it acknowledges a record that no start
// will find.
func TestLogRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	log, err := wal.Open(dir, wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	buf := buffer.New(log, &memSink{}, buffer.Options{})
	done := make(chan error, 1)
	go func() { done <- buf.Run(t.Context()) }()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, wal.ErrFailed) {
		t.Errorf("Run: %v", err)
	}
	if _, err := buf.Accept(t.Context(), request(0, line{"web", at(1), "x"})); err == nil || buf.Ready() == nil {
		t.Error("records are still taken")
	}
	_ = log.Close()
}
