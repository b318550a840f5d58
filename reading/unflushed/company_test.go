package unflushed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/blobwriter"
	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
	"blobtail/reading/unflushed/live/peers"
	"blobtail/record"
	"blobtail/record/origin"
	"blobtail/storage"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
	"blobtail/tailindex"
)

// storeID is the id of the store of every company.
const storeID = "0123456789abcdef0123456789abcdef"

// company is some ingesters of one store in one process, with the records sent and
// acknowledged. Its time is the test's.
type company struct {
	t      *testing.T
	store  *mem.Store
	faults storagetest.Script // of the store, as readers and ingesters see it
	wire   *wire
	all    []*ingester
	added  int
	guard  func(*http.Request) (live.Reader, error) // of the ingesters; nil: all may read all
	ahead  time.Duration                            // how far the clocks of store, ingesters and senders are ahead of ours

	mu     sync.Mutex
	made   bool // an ingester has been started
	sent   int
	asked  []int                  // the limits of questions to ingesters
	ledger map[string]*sentRecord // by the name in the message
}

type sentRecord struct {
	name, service, level string
	time                 int64
	length               int       // of its line
	sent, acked          time.Time // acked is zero until it is
	copied               bool      // two ingesters may have it
}

func newCompany(t *testing.T, ingesters int) *company {
	c := &company{t: t, store: mem.New(mem.Options{}), wire: &wire{hosts: map[string]*host{}}, ledger: map[string]*sentRecord{}}
	for range ingesters {
		c.all = append(c.all, c.add())
	}
	return c
}

// add makes an ingester with an empty disk, which does not run.
func (c *company) add() *ingester {
	n := c.added
	c.added++
	return &ingester{
		c: c, n: n, disk: simdisk.New(uint64(n)), id: fmt.Sprintf("%08x", n+1),
		host: fmt.Sprintf("i%d", n), segment: 8 << 10, size: 64 << 10, age: 20 * time.Second,
	}
}

// tables and blobs are the store with its faults.
func (c *company) script(op storagetest.Op, key string) storagetest.Fault {
	c.mu.Lock()
	f := c.faults
	c.mu.Unlock()
	if f == nil {
		return storagetest.Fault{}
	}
	return f(op, key)
}

func (c *company) setFaults(f storagetest.Script) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = f
}

// ingester is one of a company. The fields of the process are set while it runs.
type ingester struct {
	c       *company
	n       int
	disk    *simdisk.Disk
	id      string
	host    string
	segment int64
	size    int64
	age     time.Duration // of the records when they are flushed
	cut     atomic.Bool   // off from the tables
	effort  bool          // best effort only

	mu        sync.Mutex     // guards buf
	buf       *buffer.Buffer // nil: it does not run
	log       *wal.Log
	announcer *lease.Announcer
	dead      *atomic.Bool
	end       context.CancelFunc
	running   *sync.WaitGroup
}

// sink is the sink of cmd/ingest.
type sink struct {
	*blobwriter.Writer
	newest *live.Newest
}

func (s sink) Write(ctx context.Context, b *buffer.Batch) error {
	err := s.Writer.Write(ctx, b)
	if err == nil {
		s.newest.Note(b.Service(), blobwriter.Key(b), b.ID())
	}
	return err
}

// journal is the journal of cmd/ingest.
type journal struct {
	buf *buffer.Buffer
	c   *company
}

func (j journal) Open(ctx context.Context, q live.LogQuery) (live.Held, error) {
	j.c.mu.Lock()
	j.c.asked = append(j.c.asked, q.Newest)
	j.c.mu.Unlock()
	held, err := j.buf.Live(ctx, buffer.LiveQuery(q))
	if err != nil {
		return nil, err // not a nil *Live, which is no nil Held
	}
	return held, nil
}

var errGone = errors.New("the process is gone")

// mortalTables are tables that a process reaches while it lives and is not cut off.
type mortalTables struct {
	storage.TableStore
	dead, cut *atomic.Bool
}

var errCut = errors.New("the process is cut off from the tables")

func (m mortalTables) Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[storage.Row, error] {
	if m.cut.Load() {
		return func(yield func(storage.Row, error) bool) { yield(storage.Row{}, errCut) }
	}
	return m.TableStore.Scan(ctx, table, partition, from, to, limit, props...)
}

func (m mortalTables) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	if m.dead.Load() || m.cut.Load() {
		return errGone
	}
	return m.TableStore.Upsert(ctx, table, partition, rows)
}

func (m mortalTables) Swap(ctx context.Context, table, partition string, row storage.Row) (string, error) {
	if m.dead.Load() || m.cut.Load() {
		return "", errGone
	}
	return m.TableStore.Swap(ctx, table, partition, row)
}

type mortalBlobs struct {
	storage.BlobStore
	dead *atomic.Bool
}

func (m mortalBlobs) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	if m.dead.Load() {
		return errGone
	}
	return m.BlobStore.Create(ctx, key, body, attrs)
}

func (c *company) faulty() (storage.BlobStore, storage.TableStore) {
	return storagetest.Faulty(c.store, c.script), storagetest.FaultyTables(c.store, c.script)
}

func (c *company) now() time.Time { return time.Now().Add(c.ahead) }

// start runs the ingester on the contents of its disk.
func (in *ingester) start() {
	t := in.c.t
	t.Helper()
	in.c.mu.Lock()
	in.c.made = true
	in.c.mu.Unlock()
	log, err := wal.Open("/var/wal", wal.Options{FS: in.disk, SegmentSize: in.segment, Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	dead := &atomic.Bool{}
	blobs, tables := in.c.faulty()
	mortal := mortalTables{tables, dead, &in.cut}
	writer := blobwriter.New(mortalBlobs{blobs, dead}, blobwriter.Options{}, nil)
	if err := writer.SetLane(in.n); err != nil {
		t.Fatal(err)
	}
	told := &teller{}
	newest := &live.Newest{}
	buf := buffer.New(log, sink{writer, newest}, buffer.Options{Tail: told, Size: in.size, Min: 1, Age: in.age, MaxAge: in.age})
	announcer, err := lease.New(mortal, lease.Options{
		ID: in.id, Lane: in.n, Address: "http://" + in.host, Host: in.host, BestEffort: in.effort, FS: in.disk, Dir: "/var/wal",
		StoreID: func() (string, error) { return storeID, nil },
		Oldest:  buf.Oldest, Earliest: buf.Earliest, Replayed: buf.Replayed, Now: in.c.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	list := func(ctx context.Context) ([]lease.Ingester, error) { return lease.List(ctx, mortal, "") }
	others := peers.New(peers.Options{Self: announcer.ID, List: list, Now: in.c.now})
	told.w = tailindex.NewWriter(mortal, tailindex.Options{Process: announcer.Process(), Lane: announcer.Lane, Durable: buf.Durable, Now: in.c.now})
	handler := live.NewHandler(live.Options{
		Self:    func() live.Self { return live.Self{ID: announcer.ID(), Process: announcer.Process(), Store: storeID} },
		Journal: journal{buf, in.c}, Newest: newest, HTTP: &http.Client{Transport: in.c.wire}, Peers: others.Roll,
		Guard: in.c.guard, Token: "peer",
	})
	ctx, cancel := context.WithCancel(context.Background())
	in.log, in.announcer, in.dead, in.end, in.running = log, announcer, dead, cancel, &sync.WaitGroup{}
	in.running.Go(func() { _ = buf.Run(ctx) }) // its error is the end of the disk
	in.running.Go(func() { announcer.Run(ctx) })
	in.running.Go(func() { others.Run(ctx) })
	in.running.Go(func() { _ = told.w.Run(ctx) })
	in.c.wire.up(in.host, handler)
	in.set(buf)
}

func (in *ingester) set(buf *buffer.Buffer) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.buf = buf
}

// runs returns the buffer, nil if no process runs.
func (in *ingester) runs() *buffer.Buffer {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.buf
}

type teller struct{ w *tailindex.Writer }

func (t *teller) Accepted(mark uint64, run *record.Run) { t.w.Accepted(mark, run) }

// kill ends the process as SIGKILL does.
func (in *ingester) kill() {
	in.set(nil)
	in.c.wire.down(in.host)
	in.dead.Store(true)
	in.disk.SetFault(func(simdisk.Op) error { return simdisk.ErrKilled })
	in.end()
	in.running.Wait()
	_ = in.log.Close() // of a dead disk
	in.disk = in.disk.Kill()
}

// drain flushes all records and ends, as for a scale-down.
func (in *ingester) drain() {
	buf := in.runs()
	in.set(nil)
	if _, err := buf.Flush(context.Background()); err != nil {
		in.c.t.Errorf("drain: %v", err)
	}
	in.c.wire.down(in.host)
	in.end()
	in.running.Wait()
	if err := in.announcer.Stop(context.Background(), true); err != nil {
		in.c.t.Errorf("drain: %v", err)
	}
	if err := in.log.Close(); err != nil {
		in.c.t.Errorf("drain: %v", err)
	}
}

// stop ends all processes.
func (c *company) stop() {
	for _, in := range c.all {
		if in.runs() != nil {
			in.kill()
		}
	}
}

// line is one record to be sent, at a time relative to now.
type line struct {
	service, level string
	at             time.Duration
	pad            int
}

// request makes a request of lines and notes them as sent.
func (c *company) request(lines ...line) (*record.Request, []*sentRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &record.Request{}
	var all []*sentRecord
	for _, l := range lines {
		s := -1
		for i, name := range r.Services {
			if name == l.service {
				s = i
			}
		}
		if s < 0 {
			s = len(r.Services)
			r.Services = append(r.Services, l.service)
		}
		if l.level == "" {
			l.level = "info"
		}
		c.sent++
		sent := &sentRecord{name: fmt.Sprintf("r%d", c.sent), service: l.service, level: l.level, time: c.now().Add(l.at).UnixNano() + int64(c.sent), sent: time.Now()}
		off := len(r.Data)
		r.Data = append(r.Data, `{"ts":"`...)
		r.Data = record.AppendTime(r.Data, sent.time)
		r.Data = fmt.Appendf(r.Data, `","level":"%s","service":"%s","msg":"%s %s"}`+"\n", l.level, l.service, sent.name, strings.Repeat("x", l.pad))
		r.Lines = append(r.Lines, record.Line{Time: sent.time, Off: uint32(off), Len: uint32(len(r.Data) - off), Service: uint32(s)})
		sent.length = len(r.Data) - off
		c.ledger[sent.name] = sent
		all = append(all, sent)
	}
	r.Origin = origin.OfBody("", "/ingest", 0, r.Data, all[0].time)
	return r, all
}

// accept hands a request to an ingester; with ack it waits for the acknowledgement and
// notes it.
func (in *ingester) accept(r *record.Request, all []*sentRecord, ack bool) error {
	buf := in.runs()
	if buf == nil {
		return errGone
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	copied := *r
	leave, err := in.announcer.Enter(ctx, r.Earliest())
	if err != nil {
		return err
	}
	receipt, err := buf.Accept(ctx, &copied)
	leave()
	if err != nil {
		return err
	}
	if !ack {
		return nil
	}
	if err := receipt.Wait(ctx, false); err != nil {
		return err
	}
	in.c.acked(all)
	return nil
}

func (c *company) acked(all []*sentRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range all {
		if s.acked.IsZero() {
			s.acked = time.Now()
		}
	}
}

// send sends lines and waits for their acknowledgement.
func (in *ingester) send(lines ...line) []*sentRecord {
	in.c.t.Helper()
	r, all := in.c.request(lines...)
	if err := in.accept(r, all, true); err != nil {
		in.c.t.Fatal(err)
	}
	return all
}

// ackedNow has the acknowledged records of matching services, by name.
func (c *company) ackedNow(match func(*sentRecord) bool) map[string]*sentRecord {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := map[string]*sentRecord{}
	for name, s := range c.ledger {
		if !s.acked.IsZero() && match(s) {
			got[name] = s
		}
	}
	return got
}

// nameOf is the name in the message of a line.
func nameOf(line []byte) string {
	_, rest, _ := bytes.Cut(line, []byte(`"msg":"`))
	name, _, _ := bytes.Cut(rest, []byte(" "))
	return string(name)
}

// reader is a reader of the company's store; change may take parts away.
func (c *company) reader(change ...func(*unflushed.Options)) *unflushed.Reader {
	store, tables := c.faulty()
	o := unflushed.Options{
		Blobs: blobs.New(store, blobs.Options{Workers: 2}), Tail: tailindex.NewReader(tables, tailindex.Options{Now: c.now}),
		Ingesters: c.list, Announced: &http.Client{Transport: c.wire}, Store: c.storeID,
	}
	for _, f := range change {
		f(&o)
	}
	return unflushed.New(o)
}

// storeID returns the id of the store, which its first ingester made.
func (c *company) storeID(context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.made {
		return "", nil
	}
	return storeID, nil
}

// list lists the rows of the ingesters.
func (c *company) list(ctx context.Context) ([]lease.Ingester, time.Time, error) {
	_, tables := c.faulty()
	rows, err := lease.List(ctx, tables, "")
	return rows, c.now(), err
}

func withoutLive(o *unflushed.Options) { o.Live, o.Announced = nil, nil }

// byTables has the operator want no ingester to be asked.
func byTables(o *unflushed.Options) { o.Off = true }

// always is a query for all of some services.
func always(services ...string) blobs.Query {
	return blobs.Query{Services: services, Range: blobs.Always()}
}
