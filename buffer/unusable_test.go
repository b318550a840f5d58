package buffer_test

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/count"
	"blobtail/internal/dev/testkit"
	"blobtail/storage"
)

// An unreadable record is left out, and its segment is kept. The rest of the log is
// stored.
func TestUnusableRecord(t *testing.T) {
	for name, garbage := range map[string]struct {
		typ     byte
		payload string
	}{
		"runs": {1, "\x20\x02no run at all"}, "batch": {2, "\x01short"}, "commit": {4, "x"}, "parked": {5, "\xff\xff\xff\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, sink := t.TempDir(), &memSink{}
			p := start(t, dir, sink, buffer.Options{}, false)
			p.accept(request(0, line{"web", at(1), "before"}))
			for range 2 {
				if _, err := p.log.Append(garbage.typ, []byte(garbage.payload)); err != nil {
					t.Fatal(err)
				}
				p.accept(request(0, line{"web", at(2), "after"}))
			}
			p.stop()
			reg := new(count.Registry)
			p = start(t, dir, sink, buffer.Options{Metrics: reg}, true)
			p.flush()
			if n := len(sink.lines("web")); n != 3 {
				t.Errorf("%d lines, want 3", n)
			}
			if n := counted(t, reg, "blobtail_buffer_log_damaged_total"); n != 2 {
				t.Errorf("%d records counted as damage, want 2", n)
			}
			if kept, _ := filepath.Glob(filepath.Join(dir, "quarantine", "*.seg")); len(kept) != 1 {
				t.Errorf("in quarantine: %q", kept)
			}
		})
	}
}

// A panic over a record of the log ends the replay, and the next one leaves the record
// out.
func TestPanicInReplay(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, &memSink{}, buffer.Options{}, false)
	p.accept(request(0, line{"web", at(1), "x"}))
	p.stop()
	log, err := wal.Open(dir, wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var told strings.Builder
	b := buffer.New(log, &memSink{}, buffer.Options{Log: zerolog.New(&told)})
	records := 0
	for rec, err := range log.Replay(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		first, second := buffer.GuardedTwice(b, rec)
		if first == nil || second != nil || !strings.Contains(told.String(), "panic: runtime error") {
			t.Errorf("%v, %v; logged %q", first, second, told.String())
		}
		records++
	}
	if kept, _ := filepath.Glob(filepath.Join(dir, "quarantine", "*.seg")); len(kept) != 1 || records != 1 {
		t.Errorf("%d records; in quarantine: %q", records, kept)
	}
}

// A record of a newer version is never skipped, and neither is one that only versions before commit
// a960ca37 wrote.
func TestRecordsOfOthers(t *testing.T) {
	const newer, older = "newer version", "a version before commit a960ca37 wrote it"
	run := []byte{2, 0, 0, 0, 4, 0} // its length, its flags
	run = append(binary.LittleEndian.AppendUint32(nil, crc32.Checksum(run, crc32.MakeTable(crc32.Castagnoli))), run...)
	for name, r := range map[string]struct {
		typ     byte
		payload []byte
		want    string
	}{
		"type":               {77, []byte("from the future"), newer},
		"flag of a record":   {1, []byte{64}, newer},
		"flag of a run":      {1, append([]byte{32, 2}, run...), newer},
		"version of a batch": {2, []byte{3}, newer},
		"version of a copy":  {5, []byte{1, 0, 0, 0, 3}, newer},
		"flag of a commit":   {4, append(make([]byte, 16), 2), newer},
		"no arrival":         {1, append([]byte{0}, run...), older},
	} {
		dir, sink := t.TempDir(), &memSink{}
		p := start(t, dir, sink, buffer.Options{}, false)
		if _, err := p.log.Append(r.typ, r.payload); err != nil {
			t.Fatal(err)
		}
		p.accept(request(0, line{"web", at(2), "after"}))
		p.stop()
		for range 5 {
			err := failingStart(t, dir, sink)
			if err == nil || !strings.Contains(err.Error(), r.want) || errors.Is(err, storage.ErrOlder) != (r.want == older) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

func failingStart(t *testing.T, dir string, sink buffer.Sink) error {
	t.Helper()
	log, err := wal.Open(dir, wal.Options{SegmentSize: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	return buffer.New(log, sink, buffer.Options{}).Run(ctx)
}

// panickySink panics over one service.
type panickySink struct{ *memSink }

func (s panickySink) Write(ctx context.Context, b *buffer.Batch) error {
	if b.Service() == "bad" {
		panic("a bug")
	}
	return s.memSink.Write(ctx, b)
}

// A batch that makes the sink panic is set aside until the next start, which tries it
// again. The other batches are stored.
func TestBatchThatPanics(t *testing.T) {
	dir, sink := t.TempDir(), &memSink{}
	p := start(t, dir, panickySink{sink}, buffer.Options{}, true)
	p.accept(request(0, line{"bad", at(1), "x"}, line{"good", at(1), "x"}))
	for i := range 2 {
		left, err := p.buf.Flush(t.Context())
		if err == nil || left.Aside != 1 {
			t.Errorf("flush %d: %v, %+v; want one batch aside", i, err, left)
		}
		p.accept(request(0, line{"good", at(2 + i), "y"}))
		p.stop()
		p = start(t, dir, panickySink{sink}, buffer.Options{}, true)
	}
	p.stop()
	p = start(t, dir, sink, buffer.Options{}, true) // a version without the bug
	p.flush()
	if bad, good := len(sink.lines("bad")), len(sink.lines("good")); bad != 1 || good != 3 {
		t.Errorf("%d bad and %d good lines stored, want 1 and 3", bad, good)
	}
}

// A panic with the buffer locked must end the process, though net/http would survive it.
func TestPanicInAccept(t *testing.T) {
	const env = "BLOBTAIL_TEST_PANIC_ACCEPT"
	if dir := os.Getenv(env); dir != "" { // the process that panics
		p := start(t, dir, &memSink{}, buffer.Options{Messages: panickyServer{}}, true)
		func() {
			defer func() { _ = recover() }()
			p.accept(message(1, "m1", line{"web", at(1), "x"}))
			p.accept(message(1, "m2", line{"web", at(1), "x"}))
		}()
		select {} // it must have ended before
	}
	child := exec.Command(os.Args[0], "-test.run", "^TestPanicInAccept$")
	child.Env = append(os.Environ(), env+"="+t.TempDir())
	if out, err := child.CombinedOutput(); err == nil || !strings.Contains(string(out), "panic: a bug, in") {
		t.Errorf("%v\n%s", err, out)
	}
}

type panickyServer struct{}

func (panickyServer) Dropped(string) { panic("a bug") }
func (panickyServer) Found(string)   {}
func (panickyServer) Stored(string)  {}
