package wal_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/buffer/wal"
	"blobtail/storage/fsys"
)

// entry is a record in a test's memory.
type entry struct {
	typ     byte
	pos     wal.Pos
	payload []byte
}

func open(t testing.TB, dir string, o wal.Options) *wal.Log {
	t.Helper()
	l, err := wal.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// fill appends n records of lengths from 0 to most.
func fill(t testing.TB, l *wal.Log, rng *rand.Rand, n, most int) []entry {
	t.Helper()
	var out []entry
	for range n {
		e := entry{typ: byte(1 + rng.IntN(255)), payload: random(rng, rng.IntN(most+1))}
		rng.IntN(len(e.payload) + 1) // the scenes of the tests depend on this draw
		pos, err := l.Append(e.typ, e.payload)
		if err != nil {
			t.Fatal(err)
		}
		e.pos = pos
		out = append(out, e)
	}
	if n > 0 {
		if err := l.Sync(out[n-1].pos); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		if i%8 == 0 && i+8 <= n {
			binary.LittleEndian.PutUint64(b[i:], rng.Uint64())
		} else if i >= n&^7 {
			b[i] = byte(rng.Uint32())
		}
	}
	return b
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// replay collects the records of a log, and its damage.
func replay(t testing.TB, l *wal.Log) (out []entry, bad []*wal.CorruptError) {
	t.Helper()
	for r, err := range l.Replay(context.Background()) {
		var c *wal.CorruptError
		switch {
		case errors.As(err, &c):
			bad = append(bad, c)
		case err != nil:
			t.Fatal(err)
		default:
			if s, ok := l.Segment(r.Pos.Segment()); !ok || s != *r.Segment {
				t.Fatalf("segment of %x: %v and %v", r.Pos, s, *r.Segment)
			}
			out = append(out, entry{r.Type, r.Pos, bytes.Clone(r.Payload)})
		}
	}
	return out, bad
}

func same(a, b entry) bool {
	return a.typ == b.typ && a.pos == b.pos && bytes.Equal(a.payload, b.payload)
}

func check(t testing.TB, got, want []entry) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !same(got[i], want[i]) {
			t.Fatalf("%d records, want %d; the first difference is at %d", len(got), len(want), i)
		}
	}
}

func segmentFiles(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A log that is opened again and again keeps all records in order. Some records are
// smaller and some larger than a segment, a copy buffer or a window.
func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	rng := newRand(1)
	var want []entry
	for i := range 8 {
		l := open(t, dir, wal.Options{SegmentSize: 64 << 10})
		got, bad := replay(t, l)
		check(t, got, want)
		if len(bad) > 0 {
			t.Fatal(bad[0])
		}
		most := []int{20, 3000, 100 << 10, wal.ScanWindow + 5000}[i%4]
		want = append(want, fill(t, l, rng, 3+50_000/most, most)...)
		for _, e := range want {
			b := make([]byte, len(e.payload))
			if err := l.ReadAt(b, e.pos); err != nil || !bytes.Equal(b, e.payload) {
				t.Fatalf("read %x: %v", e.pos, err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.IsSortedFunc(want, func(a, b entry) int { return int(int64(a.pos) - int64(b.pos)) }) {
		t.Error("positions do not grow")
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", info.Mode(), err)
	}
}

// A process that restarts over and over leaves no files behind, but its numbers grow.
func TestReopenEmpty(t *testing.T) {
	dir := t.TempDir()
	for i := range uint32(20) {
		l := open(t, dir, wal.Options{})
		if l.Active() != i+1 || l.Front() != i+1 {
			t.Fatalf("open %d: front %d, active %d", i, l.Front(), l.Active())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if files := segmentFiles(t, dir); len(files) != 1 {
		t.Errorf("left: %v", files)
	}
}

func TestSecondOpenIsRefused(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{})
	_, err := wal.Open(dir, wal.Options{})
	var locked *wal.LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() || locked.Dir != dir {
		t.Fatalf("second open: %v", err)
	}
	want := fmt.Sprintf("log directory %s is in use by process %d; every ingester needs its own --wal", dir, os.Getpid())
	if err.Error() != want {
		t.Errorf("says %q", err)
	}
	if pid := wal.Holder(dir); pid != os.Getpid() {
		t.Errorf("Holder = %d", pid)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if pid := wal.Holder(dir) + wal.Holder(dir+"/nowhere"); pid != 0 {
		t.Errorf("Holder of a closed log = %d", pid)
	}
	open(t, dir, wal.Options{})
}

func TestClosed(t *testing.T) {
	l := open(t, t.TempDir(), wal.Options{})
	e := fill(t, l, newRand(1), 1, 10)[0]
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if _, err := l.Append(1, nil); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if err := l.Sync(e.pos); err != nil {
		t.Errorf("sync of what is durable: %v", err)
	}
	if err := l.RemoveFront(); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("remove: %v", err)
	}
	if err := l.ReadAt(make([]byte, 1), e.pos); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("read: %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	l := open(t, t.TempDir(), wal.Options{})
	if _, err := l.Append(0, []byte("x")); err == nil {
		t.Error("type 0 was taken")
	}
	pos, err := l.Append(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(pos); err != nil {
		t.Errorf("sync of an empty record: %v", err)
	}
	for _, p := range []wal.Pos{0, 1, pos + 16, pos + 1<<32} {
		if l.Sync(p) == nil {
			t.Errorf("sync of %x, which is no position", p)
		}
	}
	if err := l.ReadAt(make([]byte, 1), pos+1<<32); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read of a segment to come: %v", err)
	}
	e := fill(t, l, newRand(1), 1, 0)[0]
	if err := l.ReadAt(make([]byte, 100), e.pos-16); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read beyond the end: %v", err)
	}
}

// A record goes into the segment if it fits, exactly.
func TestRoll(t *testing.T) {
	dir := t.TempDir()
	const size = 1024
	l := open(t, dir, wal.Options{SegmentSize: size})
	for _, c := range []struct {
		length  int
		segment uint32
	}{
		{100, 1},             // ends at 128 + 16 + 100, aligned: 248
		{size - 248 - 16, 1}, // ends at 1024
		{0, 2},               // ends at 144
		{size - 144 - 15, 3}, // one byte too many for 2
		{size, 4},            // too long for any
		{size * 3, 5},        // the same
		{1, 6},               // after a record that is too long
		{size - 128 - 16, 7}, // just fits an empty one
	} {
		pos, err := l.Append(9, make([]byte, c.length))
		if err != nil {
			t.Fatal(err)
		}
		if pos.Segment() != c.segment {
			t.Errorf("%d bytes went to segment %d at %d, want segment %d", c.length, pos.Segment(), pos.Offset(), c.segment)
		}
	}
	checked(t, l) // writes the held records
	if l.Active() != 7 || len(segmentFiles(t, dir)) != 7 {
		t.Errorf("active %d, files %v", l.Active(), segmentFiles(t, dir))
	}
	total := int64(0)
	for _, name := range segmentFiles(t, dir) {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if d := l.Size() - total; d < 0 || d > 7*8 {
		t.Errorf("size %d, on disk %d", l.Size(), total)
	}
}

func TestRemoveFront(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{SegmentSize: 500})
	want := fill(t, l, newRand(1), 300, 200) // in more segments than are kept open
	_ = l.Close()
	l = open(t, dir, wal.Options{SegmentSize: 500})
	for l.Front() != l.Active() {
		front, size := l.Front(), l.Size()
		info, _ := l.Segment(front)
		if err := l.RemoveFront(); err != nil {
			t.Fatal(err)
		}
		if l.Front() <= front || l.Size() != size-info.Size {
			t.Fatalf("front %d after %d, size %d after %d", l.Front(), front, l.Size(), size)
		}
		var rest []entry
		for _, e := range want {
			err := l.ReadAt(make([]byte, len(e.payload)), e.pos)
			if e.pos.Segment() > front {
				rest = append(rest, e)
			}
			if gone := e.pos.Segment() <= front; gone != errors.Is(err, fs.ErrNotExist) || (!gone && err != nil) {
				t.Fatalf("read in segment %d with front %d: %v", e.pos.Segment(), l.Front(), err)
			}
		}
		got, bad := replay(t, l)
		check(t, got, rest)
		if len(bad) != 0 {
			t.Fatal(bad[0])
		}
		if _, ok := l.Segment(front); ok {
			t.Errorf("segment %d is still described", front)
		}
	}
	if err := l.RemoveFront(); !errors.Is(err, wal.ErrActive) {
		t.Errorf("the active segment: %v", err)
	}
}

// Replay continues during appends and removals of the front, and shows only the records
// that Open found. There are more segments than are kept open.
func TestReplayWhileInUse(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{SegmentSize: 500})
	want := fill(t, l, newRand(1), 200, 300)
	_ = l.Close()
	l = open(t, dir, wal.Options{SegmentSize: 500})
	var done sync.WaitGroup
	done.Go(func() { fill(t, l, newRand(2), 200, 300) })
	done.Go(func() {
		for range 10 {
			if err := l.RemoveFront(); err != nil {
				t.Error(err)
			}
		}
	})
	done.Go(func() {
		for _, e := range want {
			b := make([]byte, len(e.payload))
			if err := l.ReadAt(b, e.pos); err == nil && !bytes.Equal(b, e.payload) || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("read %x: %v", e.pos, err)
			}
		}
	})
	at := 0
	for r, err := range l.Replay(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		for at < len(want) && want[at].pos < r.Pos {
			at++ // removed
		}
		if at == len(want) || !same(entry{r.Type, r.Pos, r.Payload}, want[at]) {
			t.Fatalf("record at %x is not what was appended there", r.Pos)
		}
	}
	done.Wait()
	if at != len(want)-1 {
		t.Errorf("replay ended at record %d of %d", at, len(want))
	}
}

func TestReplayEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{})
	fill(t, l, newRand(1), 10, 10)
	_ = l.Close()
	l = open(t, dir, wal.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	for _, err := range l.Replay(ctx) {
		n++
		if n == 3 {
			cancel()
		}
		if n > 3 && !errors.Is(err, context.Canceled) {
			t.Fatalf("step %d: %v", n, err)
		}
	}
	if n != 4 {
		t.Errorf("%d steps", n)
	}
}

// Replay holds a window, or one record if that is longer, for a log of any length.
func TestReplayIsBounded(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{})
	const largest = 3 << 20
	part := make([]byte, largest)
	for i := range 12 {
		for range 100 {
			if _, err := l.Append(1, part[:4000]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Append(2, part[:largest-i]); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.Close()
	l = open(t, dir, wal.Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, bytes := 0, 0
	for r, err := range l.Replay(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		bytes += len(r.Payload)
	}
	runtime.ReadMemStats(&after)
	if n != 12*101 || bytes < 12*(largest-12)+12*400_000 {
		t.Errorf("%d records, %d bytes", n, bytes)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > largest+2*wal.ScanWindow {
		t.Errorf("replay allocated %d bytes", used)
	}
}

// slow is a file system with a slow fsync, as on a real disk. It counts the fsyncs of
// files.
type slow struct {
	fsys.FS
	syncs *atomic.Int64
	takes time.Duration
}

type slowFile struct {
	fsys.File
	slow
}

func (s slow) OpenFile(name string, flag int, perm fs.FileMode) (fsys.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	return slowFile{f, s}, err
}

func (f slowFile) Sync() error {
	f.syncs.Add(1)
	time.Sleep(f.takes)
	return f.File.Sync()
}

// One fsync serves all waiting callers.
func TestGroupCommit(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		syncs := new(atomic.Int64)
		// One segment: virtual time stands still while others wait for the lock of a roll.
		l := open(t, dir, wal.Options{FS: slow{fsys.OS(), syncs, 2 * time.Millisecond}})
		const writers, each = 64, 20
		var done sync.WaitGroup
		for w := range writers {
			done.Go(func() {
				rng := newRand(uint64(w))
				for range each {
					fill(t, l, rng, 1, 1000)
				}
			})
		}
		done.Wait()
		if n := syncs.Load(); n == 0 || n > writers*each/8 {
			t.Errorf("%d fsyncs for %d records", n, writers*each)
		}
		_ = l.Close()
		got, _ := replay(t, open(t, dir, wal.Options{}))
		if len(got) != writers*each {
			t.Errorf("%d records", len(got))
		}
	})
}

// Damage is logged. A zero logger is silent, and neither panics.
func TestLogger(t *testing.T) {
	var out strings.Builder
	for _, log := range []zerolog.Logger{{}, zerolog.New(&out)} {
		dir := t.TempDir()
		fill(t, open(t, dir, wal.Options{Log: log}), newRand(1), 5, 100)
		f, err := os.OpenFile(segmentFiles(t, dir)[0], os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("torn"); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		open(t, copied, wal.Options{Log: log})
	}
	for _, want := range []string{`"offset":`, `"bytes":`, `00000001.torn`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
}
