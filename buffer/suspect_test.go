package buffer_test

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"blobtail/buffer"
	"blobtail/internal/testkit"
	"blobtail/wal"
)

// A record that cannot be is a reason to end, because another version may know
// better, but not for ever: after three starts the rest of the log is used.
func TestRecordThatEndsStarts(t *testing.T) {
	for name, garbage := range map[string]struct {
		typ     byte
		payload string
	}{
		"runs": {1, "\x00no run at all"}, "batch": {2, "\x01short"}, "commit": {4, "x"}, "parked": {5, "\xff\xff\xff\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, sink := t.TempDir(), &memSink{}
			p := start(t, dir, sink, buffer.Options{}, false)
			p.accept(request(0, line{"web", at(1), "before"}))
			if _, err := p.log.Append(garbage.typ, []byte(garbage.payload)); err != nil {
				t.Fatal(err)
			}
			p.accept(request(0, line{"web", at(2), "after"}))
			p.stop()
			for i := range 3 {
				if err := failingStart(t, dir, sink); err == nil || !strings.Contains(err.Error(), "replay the log: record of type") {
					t.Fatalf("start %d: %v", i+1, err)
				}
			}
			p = start(t, dir, sink, buffer.Options{}, true)
			p.flush()
			if n := len(sink.lines("web")); n != 2 {
				t.Errorf("%d lines, want both", n)
			}
			if kept, _ := filepath.Glob(filepath.Join(dir, "quarantine", "*.seg")); len(kept) != 1 {
				t.Errorf("in quarantine: %q", kept)
			}
		})
	}
}

// What a newer version wrote is never passed over.
func TestNewerRecord(t *testing.T) {
	run := []byte{2, 0, 0, 0, 4, 0} // its length, its flags
	run = append(binary.LittleEndian.AppendUint32([]byte{0}, crc32.Checksum(run, crc32.MakeTable(crc32.Castagnoli))), run...)
	for name, r := range map[string]struct {
		typ     byte
		payload []byte
	}{
		"type":               {77, []byte("from the future")},
		"flag of a record":   {1, []byte{64}},
		"flag of a run":      {1, run},
		"version of a batch": {2, []byte{3}},
		"version of a copy":  {5, []byte{1, 0, 0, 0, 3}},
		"flag of a commit":   {4, append(make([]byte, 16), 2)},
	} {
		dir, sink := t.TempDir(), &memSink{}
		p := start(t, dir, sink, buffer.Options{}, false)
		if _, err := p.log.Append(r.typ, r.payload); err != nil {
			t.Fatal(err)
		}
		p.accept(request(0, line{"web", at(2), "after"}))
		p.stop()
		for range 5 {
			if err := failingStart(t, dir, sink); err == nil || !strings.Contains(err.Error(), "newer version") {
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

// A batch at which the process panics is set aside after three starts; what else
// the log holds is stored.
func TestBatchThatEndsStarts(t *testing.T) {
	const env = "BLOBTAIL_TEST_PANIC_DIR"
	if dir := os.Getenv(env); dir != "" { // the process that panics
		p := start(t, dir, panickySink{&memSink{}}, buffer.Options{}, true)
		p.flush()
		return
	}
	dir := t.TempDir()
	p := start(t, dir, &memSink{}, buffer.Options{}, false)
	p.accept(request(0, line{"bad", at(1), "x"}, line{"good", at(1), "x"}))
	p.stop()
	for i := range 3 {
		child := exec.Command(os.Args[0], "-test.run", "^TestBatchThatEndsStarts$")
		child.Env = append(os.Environ(), env+"="+dir)
		out, err := child.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "panic: a bug") {
			t.Fatalf("start %d: %v\n%s", i+1, err, out)
		}
	}
	sink := &memSink{}
	p = start(t, dir, panickySink{sink}, buffer.Options{}, true)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	testkit.Until(t, "the log is replayed", p.buf.Replayed)
	p.accept(request(0, line{"good", at(2), "y"}))
	left, err := p.buf.Flush(ctx)
	if err == nil || left.Aside != 1 {
		t.Errorf("flush: %v, %+v; want one batch aside", err, left)
	}
	if got := sink.lines("good"); len(got) == 0 || got[len(got)-1].time != at(2) {
		t.Errorf("stored: %+v", sink.all())
	}
}

// A panic with the buffer locked must not be survived, as net/http would have it.
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
