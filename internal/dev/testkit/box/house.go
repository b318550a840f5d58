// Package box has ingesters in the test's process.
//
// A [Process] is one start of an ingester: its log, buffer, writer of blobs and of the tail, its
// lease, and the handler that answers readers. It is made of the parts that cmd/ingest has, on any
// disk and stores. A [Wire] carries questions between readers and processes, with faults.
//
// [New] makes a [House]: a store in memory, and ingesters with real logs on simulated disks, which
// answer over a wire. An [Ingester] accepts requests, is killed, and starts again on its log. Its
// clock is that of the test: in a bubble of testing/synctest time is virtual.
package box

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/origin"
	"blobtail/storage"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// StoreID is the id of the store of every house.
const StoreID = "0123456789abcdef0123456789abcdef"

// ErrCut is the error of calls to the tables by an ingester that is cut off from them.
var ErrCut = errors.New("the ingester is cut off from the tables")

// logDir is the directory of a log on its disk.
const logDir = "/var/wal"

// House is a store with ingesters.
type House struct {
	// Store has the blobs and tables, without faults.
	Store *mem.Store
	Wire  *Wire
	// Ahead is how far the clocks of the store and the ingesters are ahead of the test's.
	Ahead time.Duration

	t      testing.TB
	mu     sync.Mutex
	all    []*Ingester
	faults storagetest.Script
	begun  bool // an ingester has been started
	sent   int
}

// New makes a store with so many ingesters, which do not run. They end with the test.
func New(t testing.TB, ingesters int) *House {
	h := &House{Store: mem.New(mem.Options{}), Wire: &Wire{}, t: t}
	for range ingesters {
		h.Add()
	}
	t.Cleanup(h.Stop)
	return h
}

// Over makes a house over a copy of the store of another one, with the wire to its ingesters, and
// without any of its own.
func (h *House) Over(store *mem.Store) *House {
	return &House{Store: store, Wire: h.Wire, Ahead: h.Ahead, t: h.t, begun: true}
}

// Add makes an ingester with an empty disk, which does not run. It stores records only if it is told
// to.
func (h *House) Add() *Ingester {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.all)
	in := &Ingester{house: h, Host: fmt.Sprintf("i%d", n), Segment: 64 << 10, disk: simdisk.New(uint64(n))}
	in.Blobs, in.Tables = storagetest.Faulty(h.Store, h.script), storagetest.FaultyTables(h.Store, in.script)
	in.Lease = lease.Options{
		ID: fmt.Sprintf("%08x", n+1), Lane: n, Address: "http://" + in.Host, Host: in.Host, Dir: logDir,
		StoreID: func() (string, error) { return StoreID, nil }, Now: h.Now,
	}
	in.Buffer = buffer.Options{Size: 1 << 30, Min: 1, Age: time.Hour, MaxAge: time.Hour}
	in.Live.HTTP = h.Wire.Client()
	h.all = append(h.all, in)
	return in
}

// Ingester returns the n-th ingester.
func (h *House) Ingester(n int) *Ingester {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[n]
}

// Stop kills all ingesters that run.
func (h *House) Stop() {
	for _, in := range h.all {
		if in.Process() != nil {
			in.Kill()
		}
	}
}

// Now is the time by the clocks of the store and the ingesters.
func (h *House) Now() time.Time { return time.Now().Add(h.Ahead) }

// Faults has a script decide about each request of readers and ingesters to the store; nil:
// all succeed.
func (h *House) Faults(script storagetest.Script) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = script
}

// Faulty is the store with its faults.
func (h *House) Faulty() (storage.BlobStore, storage.TableStore) {
	return storagetest.Faulty(h.Store, h.script), storagetest.FaultyTables(h.Store, h.script)
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

// List lists the rows of the ingesters, with the time to judge them by.
func (h *House) List(ctx context.Context) ([]lease.Ingester, time.Time, error) {
	_, tables := h.Faulty()
	rows, err := lease.List(ctx, tables, "")
	return rows, h.Now(), err
}

// Logs are the options of a reader that finds all ingesters by their rows.
func (h *House) Logs(blobs *blobs.Reader) unflushed.Options {
	return unflushed.Options{Blobs: blobs, Ingesters: h.List, Announced: h.Wire.Client(), Store: h.storeID}
}

// storeID returns the id of the store, which its first ingester made.
func (h *House) storeID(context.Context) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.begun {
		return "", nil
	}
	return StoreID, nil
}

// Line is a record to be sent.
type Line struct {
	Time    time.Time // zero: now
	Level   string    // "": info
	Service string
	Msg     string
	Fields  string // further members as JSON, such as `"status":502,"path":"/basket"`
}

// Request makes a request, another one with each call.
func (h *House) Request(lines ...Line) *record.Request {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	r, parser, now := &record.Request{}, meaning.NewReader(), h.Now()
	places := map[string]int{}
	for _, l := range lines {
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
		msg := record.AppendEscaped(nil, []byte(l.Msg))
		source := fmt.Sprintf(`{"ts":%q,"level":%q,"msg":"%s"%s}`, record.AppendTime(nil, at), l.Level, msg, l.Fields)
		if _, err := parser.Scan([]byte(source)); err != nil {
			h.t.Fatalf("%s: %v", source, err)
		}
		r.Data, _ = parser.AppendLine(r.Data, &meaning.Defaults{Service: l.Service, Time: at})
		r.Lines = append(r.Lines, record.Line{Time: at, Off: uint32(off), Len: uint32(len(r.Data) - off), Service: uint32(place)})
	}
	h.sent++
	body := fmt.Appendf(nil, "%d %s", h.sent, r.Data)
	r.Origin = origin.OfBody("", "/ingest", 0, body, now.UnixNano())
	return r
}

// Ingester is a log on a simulated disk, with or without a running process. Its options are those
// of the next start.
type Ingester struct {
	Options
	Host    string
	Segment int64
	// Cut has the ingester off from the tables.
	Cut atomic.Bool

	house *House
	disk  *simdisk.Disk
	port  *Port
	mu    sync.Mutex // guards proc
	proc  *Process   // nil: it does not run
}

// script is that of the house, for the calls of an ingester to the tables.
func (in *Ingester) script(op storagetest.Op, key string) storagetest.Fault {
	if in.Cut.Load() {
		return storagetest.Fault{Before: ErrCut}
	}
	return in.house.script(op, key)
}

// Start starts a process on the contents of the disk.
func (in *Ingester) Start() {
	h := in.house
	h.t.Helper()
	h.mu.Lock()
	h.begun = true
	h.mu.Unlock()
	log, err := wal.Open(logDir, wal.Options{FS: in.disk, SegmentSize: in.Segment, Reserve: -1})
	if err != nil {
		h.t.Fatal(err)
	}
	in.Lease.FS = in.disk
	p, err := NewProcess(log, in.Options)
	if err != nil {
		h.t.Fatal(err)
	}
	p.Run()
	in.port = h.Wire.Up(in.Host, p.Handler)
	in.set(p)
}

func (in *Ingester) set(p *Process) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.proc = p
}

// Process returns the running process; nil: there is none.
func (in *Ingester) Process() *Process {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.proc
}

// Kill ends the process as SIGKILL does. Its records stay on the disk.
func (in *Ingester) Kill() {
	p := in.Process()
	in.set(nil)
	in.port.Close()
	p.dead.Store(true) // before its disk fails: it could tell of that
	in.disk.SetFault(func(simdisk.Op) error { return simdisk.ErrKilled })
	p.End()
	_ = p.Wait() // of a dead disk
	in.disk = in.disk.Kill()
}

// Drain flushes all records and ends the process, as for a scale-down.
func (in *Ingester) Drain() {
	p := in.Process()
	in.set(nil)
	_, err := p.Buffer.Flush(context.Background())
	in.port.Close()
	p.end()
	p.running.Wait()
	if err := errors.Join(err, p.Announcer.Stop(context.Background(), true), p.Log.Close()); err != nil {
		in.house.t.Errorf("drain: %v", err)
	}
}

// Flush puts all records of the running ingesters into blobs.
func (h *House) Flush() {
	h.t.Helper()
	for _, in := range h.all {
		if in.Process() != nil {
			in.Flush()
		}
	}
}

// Flush puts all records of a running ingester into blobs.
func (in *Ingester) Flush() {
	in.house.t.Helper()
	if left, err := in.Process().Buffer.Flush(context.Background()); err != nil {
		in.house.t.Errorf("flush: %v, left %+v", err, left)
	}
}

// Accept hands a request to the process. With wait it waits up to 10 s for the acknowledgement.
func (in *Ingester) Accept(r *record.Request, wait bool) error {
	p := in.Process()
	if p == nil {
		return ErrGone
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	receipt, err := p.Accept(ctx, r)
	if err != nil || !wait {
		return err
	}
	return receipt.Wait(ctx, false)
}
