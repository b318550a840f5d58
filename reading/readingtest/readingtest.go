// Package readingtest has a store with ingesters in the test's process, for tests of servers, and
// the tests that every [reading.Source] passes.
//
// [New] makes a [House]: a store in memory, and ingesters with real logs on simulated disks,
// which answer readers over a wire in memory. [House.Send] has an ingester accept records,
// [House.Flush] writes them to blobs, and [House.Kill] ends an ingester with the records that
// are in no blob yet. [House.Reader] reads all of it. [House.Damage], [House.Compact] and
// [House.Faults] change the store.
//
// [Run] puts fixed questions to a source over such houses, and knows the right answers.
package readingtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobwriter"
	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/lease"
	"blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
	"blobtail/reading/unflushed/live/peers"
	"blobtail/record"
	"blobtail/record/origin"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// storeID is the id of the store.
const storeID = "0123456789abcdef0123456789abcdef"

// House is a store with ingesters.
type House struct {
	// Store has the blobs and tables, without faults.
	Store *mem.Store

	t         testing.TB
	wire      *wire
	ingesters []*ingester
	mu        sync.Mutex
	faults    storagetest.Script
	sent      int
}

// New makes a store with so many running ingesters. They end with the test. An ingester
// flushes only if [House.Flush] is called.
func New(t testing.TB, ingesters int) *House {
	h := &House{t: t, Store: mem.New(mem.Options{}), wire: &wire{hosts: map[string]*host{}}}
	for n := range ingesters {
		h.ingesters = append(h.ingesters, &ingester{house: h, n: n, disk: simdisk.New(uint64(n))})
		h.Start(n)
	}
	t.Cleanup(func() {
		for n, in := range h.ingesters {
			if in.buf != nil {
				h.Kill(n)
			}
		}
	})
	return h
}

// Faults has a script decide about each request of readers and ingesters to the store; nil:
// all succeed.
func (h *House) Faults(script storagetest.Script) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = script
}

func (h *House) script(op storagetest.Op, key string) storagetest.Fault {
	h.mu.Lock()
	f := h.faults
	h.mu.Unlock()
	if f == nil {
		return storagetest.Fault{}
	}
	return f(op, key)
}

// Reader reads the store and the ingesters. A change is made to the options of its reader of
// logs.
func (h *House) Reader(change ...func(*unflushed.Options)) *reading.Reader {
	return h.ReaderWith(reading.Options{}, change...)
}

// ReaderWith is Reader with further options, but for Blobs and Logs.
func (h *House) ReaderWith(of reading.Options, change ...func(*unflushed.Options)) *reading.Reader {
	return h.ReaderOf(of, blobs.Options{Workers: 2}, change...)
}

// ReaderOf is ReaderWith with options of its reader of blobs.
func (h *House) ReaderOf(of reading.Options, ofBlobs blobs.Options, change ...func(*unflushed.Options)) *reading.Reader {
	blobs := blobs.New(storagetest.Faulty(h.Store, h.script), ofBlobs)
	o := unflushed.Options{
		Blobs: blobs, Announced: &http.Client{Transport: h.wire}, Pace: 20 * time.Millisecond,
		Store:     func(context.Context) (string, error) { return storeID, nil },
		Ingesters: func(ctx context.Context) ([]lease.Ingester, time.Time, error) { return h.List(ctx) },
	}
	for _, f := range change {
		f(&o)
	}
	of.Blobs, of.Logs, of.Ingesters = blobs, unflushed.New(o), h.ingestersOf
	return reading.New(of)
}

// List lists the rows of the ingesters, with the time to judge them by.
func (h *House) List(ctx context.Context) ([]lease.Ingester, time.Time, error) {
	rows, err := lease.List(ctx, storagetest.FaultyTables(h.Store, h.script), "")
	return rows, time.Now(), err
}

// ingestersOf is List as a reader has it.
func (h *House) ingestersOf(ctx context.Context) (rows []lease.Ingester, now time.Time, unread, err error) {
	rows, now, err = h.List(ctx)
	unread, err = lease.Unread(err)
	return rows, now, unread, err
}

// ingester is one of a house. buf is nil while it does not run.
type ingester struct {
	house     *House
	n         int
	disk      *simdisk.Disk
	buf       *buffer.Buffer
	log       *wal.Log
	announcer *lease.Announcer
	dead      *atomic.Bool
	end       context.CancelFunc
	running   *sync.WaitGroup
}

// Start starts an ingester on the log of its disk.
func (h *House) Start(n int) {
	h.t.Helper()
	in := h.ingesters[n]
	log, err := wal.Open("/var/wal", wal.Options{FS: in.disk, SegmentSize: 64 << 10, Reserve: -1})
	if err != nil {
		h.t.Fatal(err)
	}
	dead := &atomic.Bool{}
	tables := mortalTables{storagetest.FaultyTables(h.Store, h.script), dead}
	writer := blobwriter.New(mortalBlobs{storagetest.Faulty(h.Store, h.script), dead}, blobwriter.Options{}, nil)
	if err := writer.SetLane(n); err != nil {
		h.t.Fatal(err)
	}
	newest := &live.Newest{}
	buf := buffer.New(log, sink{writer, newest}, buffer.Options{Size: 1 << 30, Min: 1, Age: time.Hour, MaxAge: time.Hour})
	announcer, err := lease.New(tables, lease.Options{
		ID: fmt.Sprintf("%08x", n+1), Lane: n, Address: fmt.Sprintf("http://i%d", n), Host: fmt.Sprintf("i%d", n), FS: in.disk, Dir: "/var/wal",
		StoreID: func() (string, error) { return storeID, nil }, Oldest: buf.Oldest, Earliest: buf.Earliest, Replayed: buf.Replayed, Now: time.Now,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	list := func(ctx context.Context) ([]lease.Ingester, error) { return lease.List(ctx, tables, "") }
	others := peers.New(peers.Options{Self: announcer.ID, List: list, Now: time.Now})
	handler := live.NewHandler(live.Options{
		Self:    func() live.Self { return live.Self{ID: announcer.ID(), Process: announcer.Process(), Store: storeID} },
		Journal: journal{buf}, Newest: newest, HTTP: &http.Client{Transport: h.wire}, Peers: others.Roll,
	})
	ctx, cancel := context.WithCancel(context.Background())
	in.log, in.announcer, in.dead, in.end, in.running, in.buf = log, announcer, dead, cancel, &sync.WaitGroup{}, buf
	in.running.Go(func() { _ = buf.Run(ctx) }) // its error is the end of the disk
	in.running.Go(func() { announcer.Run(ctx) })
	in.running.Go(func() { others.Run(ctx) })
	h.wire.up(fmt.Sprintf("i%d", n), handler)
}

// Kill ends an ingester as SIGKILL does. Its records stay on its disk.
func (h *House) Kill(n int) {
	in := h.ingesters[n]
	h.wire.down(fmt.Sprintf("i%d", n))
	in.dead.Store(true)
	in.disk.SetFault(func(simdisk.Op) error { return simdisk.ErrKilled })
	in.end()
	in.running.Wait()
	_ = in.log.Close() // of a dead disk
	in.disk, in.buf = in.disk.Kill(), nil
}

// Running reports whether an ingester runs.
func (h *House) Running(n int) bool { return h.ingesters[n].buf != nil }

// Flush writes all records of all ingesters to blobs.
func (h *House) Flush() {
	h.t.Helper()
	for _, in := range h.ingesters {
		if in.buf == nil {
			continue
		}
		if _, err := in.buf.Flush(context.Background()); err != nil {
			h.t.Fatal(err)
		}
	}
}

// Line is a record to be sent.
type Line struct {
	Time    time.Time // zero: now
	Level   string    // "": info
	Service string
	Msg     string
	Fields  string // further members as JSON, such as `"status":502,"path":"/basket"`
}

// Send has ingester n accept lines as one request, and waits for the acknowledgement.
func (h *House) Send(n int, lines ...Line) {
	h.t.Helper()
	if err := h.Accept(n, lines...); err != nil {
		h.t.Fatal(err)
	}
}

// Accept is Send with the error.
func (h *House) Accept(n int, lines ...Line) error {
	r := h.request(lines)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	in := h.ingesters[n]
	leave, err := in.announcer.Enter(ctx, r.Earliest())
	if err != nil {
		return err
	}
	receipt, err := in.buf.Accept(ctx, r)
	leave()
	if err != nil {
		return err
	}
	return receipt.Wait(ctx, false)
}

func (h *House) request(lines []Line) *record.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, parser, now := &record.Request{}, record.NewParser(), time.Now()
	places := map[string]int{}
	for _, l := range lines {
		h.sent++
		if l.Time.IsZero() {
			l.Time = now
		}
		if l.Level == "" {
			l.Level = "info"
		}
		place, ok := places[l.Service]
		if !ok {
			place = len(r.Services)
			places[l.Service], r.Services = place, append(r.Services, l.Service)
		}
		off, at := len(r.Data), l.Time.UnixNano()
		if l.Fields != "" {
			l.Fields = "," + l.Fields
		}
		source := fmt.Sprintf(`{"ts":%q,"level":%q,"msg":"%s"%s}`, record.AppendTime(nil, at), l.Level, record.AppendEscaped(nil, []byte(l.Msg)), l.Fields)
		if _, err := parser.Scan([]byte(source)); err != nil {
			h.t.Fatalf("%s: %v", source, err)
		}
		r.Data, _ = parser.AppendLine(r.Data, &record.Defaults{Service: l.Service, Time: at})
		r.Lines = append(r.Lines, record.Line{Time: at, Off: uint32(off), Len: uint32(len(r.Data) - off), Service: uint32(place)})
	}
	body := fmt.Appendf(nil, "%d %s", h.sent, r.Data) // each request is another one
	r.Origin = origin.OfBody("", "/ingest", 0, body, now.UnixNano())
	return r
}

// Blobs are the keys of the blobs of a service, in order.
func (h *House) Blobs(service string) (keys []string) {
	h.t.Helper()
	for b, err := range h.Store.List(context.Background(), service+"/", "") {
		if err != nil {
			h.t.Fatal(err)
		}
		if strings.HasSuffix(b.Key, ".log") {
			keys = append(keys, b.Key)
		}
	}
	return keys
}

// Compact replaces the blobs of each past hour by one, and deletes them.
func (h *House) Compact() {
	h.t.Helper()
	for range 2 { // the second run deletes
		result, err := compact.Run(context.Background(), h.Store, compact.Options{Grace: -1, Closed: -1, Log: zerolog.Nop()})
		if err != nil || len(result.Problems) > 0 {
			h.t.Fatalf("compaction fails: %v %v", err, result.Problems)
		}
	}
}

// Copy returns a house with a copy of the store, as it is now, and without ingesters of its own. Its
// readers reach those of h.
func (h *House) Copy() *House {
	h.t.Helper()
	ctx, c := context.Background(), &House{t: h.t, Store: mem.New(mem.Options{}), wire: h.wire}
	for row, err := range h.Store.Scan(ctx, lease.Table, lease.Partition, "", "", 0) {
		if err == nil {
			err = c.Store.Upsert(ctx, lease.Table, lease.Partition, []storage.Row{row})
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
	for b, err := range h.Store.List(ctx, "", "") {
		if err != nil {
			h.t.Fatal(err)
		}
		r, err := h.Store.Get(ctx, b.Key, 0, -1)
		if err != nil {
			h.t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err = errors.Join(err, c.Store.Create(ctx, b.Key, body, b.Attrs)); err != nil {
			h.t.Fatal(err)
		}
	}
	return c
}

// Damage changes a byte in the middle of a blob.
func (h *House) Damage(key string) {
	h.t.Helper()
	ctx := context.Background()
	was, err := h.Store.Stat(ctx, key)
	if err != nil {
		h.t.Fatal(err)
	}
	r, err := h.Store.Get(ctx, key, 0, -1)
	if err != nil {
		h.t.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		h.t.Fatal(err)
	}
	body[len(body)/4] ^= 0x55
	if err := errors.Join(h.Store.Delete(ctx, was), h.Store.Create(ctx, key, body, was.Attrs)); err != nil {
		h.t.Fatal(err)
	}
}

var errGone = errors.New("the process is gone")

// mortalTables and mortalBlobs are the store as a process reaches it while it lives.
type mortalTables struct {
	storage.TableStore
	dead *atomic.Bool
}

func (m mortalTables) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	if m.dead.Load() {
		return errGone
	}
	return m.TableStore.Upsert(ctx, table, partition, rows)
}

func (m mortalTables) Swap(ctx context.Context, table, partition string, row storage.Row) (string, error) {
	if m.dead.Load() {
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
type journal struct{ buf *buffer.Buffer }

func (j journal) Open(ctx context.Context, q live.LogQuery) (live.Held, error) {
	held, err := j.buf.Live(ctx, buffer.LiveQuery(q))
	if err != nil {
		return nil, err // not a nil *Live, which is no nil Held
	}
	return held, nil
}
