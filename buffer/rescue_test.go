package buffer_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/fsys/simdisk"
)

// A batch with a rotten run is taken apart, and that is logged. The rest of it is stored,
// now or by the next start. Other batches continue.
func TestRot(t *testing.T) {
	t.Run("now", func(t *testing.T) { rot(t, true) })
	t.Run("by the next start", func(t *testing.T) { rot(t, false) })
}

func rot(t *testing.T, now bool) {
	dir, sink := t.TempDir(), &memSink{}
	p := start(t, dir, sink, buffer.Options{}, true)
	sink.setRefuse(func(string) error { return errors.New("not now") })
	p.accept(request(0, line{"web", at(1), "something to damage"}))
	p.accept(request(0, line{"web", at(2), "fine too"}))
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	p.buf.Flush(ctx)
	files, _ := filepath.Glob(filepath.Join(dir, "*.seg"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, []byte("something")); i >= 0 {
			damage(t, f, int64(i))
		}
	}
	sink.setRefuse(nil)
	p.accept(request(0, line{"db", at(1), "fine"}))
	ctx, cancel = context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	left, err := p.buf.Flush(ctx)
	if err == nil || left.Aside != 1 {
		t.Errorf("flush: %v, %+v; want one batch set aside", err, left)
	}
	if len(sink.lines("db")) != 1 || len(sink.lines("web")) != 0 {
		t.Errorf("stored %+v", sink.all())
	}
	if kept, _ := filepath.Glob(filepath.Join(dir, "quarantine", "*.seg")); len(kept) != 1 {
		t.Errorf("in quarantine: %q", kept)
	}
	if now {
		p.flush()
	}
	p.stop()
	p = start(t, dir, sink, buffer.Options{}, true)
	p.flush()
	if got := sink.lines("web"); len(got) != 1 || got[0].time != at(2) {
		t.Errorf("stored %+v, want the line that is not damaged", got)
	}
	testkit.Until(t, "only the active segment is held", func() bool { return p.log.Front() == p.log.Active() })
}

func damage(t *testing.T, file string, off int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{'S'}, off); err != nil {
		t.Fatal(err)
	}
}

// A segment that is truncated under a running process is rot too. It is not tried for
// ever, and the next start continues with the rest.
func TestCutShort(t *testing.T) {
	dir, sink := t.TempDir(), &memSink{}
	sink.setRefuse(func(string) error { return errors.New("not now") })
	p := start(t, dir, sink, buffer.Options{}, true)
	p.accept(request(0, line{"web", at(1), "kept"}))
	p.accept(request(0, line{"web", at(2), "lost"}))
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	p.buf.Flush(ctx)
	files, _ := filepath.Glob(filepath.Join(dir, "*.seg"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, []byte("lost")); i >= 0 {
			if err := os.Truncate(f, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	sink.setRefuse(nil)
	ctx, cancel = context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	if left, err := p.buf.Flush(ctx); err == nil || left.Aside != 1 {
		t.Errorf("flush: %v, %+v; want one batch set aside", err, left)
	}
	p.stop()
	p = start(t, dir, sink, buffer.Options{}, true)
	p.flush()
	if got := sink.lines("web"); len(got) != 1 || got[0].time != at(1) {
		t.Errorf("after a restart: stored %+v", got)
	}
}

// refuseAll is a store that refuses everything.
func refuseAll(string) error { return errors.New("not now") }

// flushFor flushes for a short time.
func (p *process) flushFor(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	_, _ = p.buf.Flush(ctx)
}

// flushAllBut flushes until that many batches are left, which the store refuses.
func (p *process) flushAllBut(batches int) {
	p.t.Helper()
	testkit.Until(p.t, "the other batches are stored", func() bool {
		ctx, cancel := context.WithTimeout(p.t.Context(), 50*time.Millisecond)
		defer cancel()
		left, _ := p.buf.Flush(ctx)
		return left.Batches == batches
	})
}

// spoil damages every occurrence of text in the log's files.
func spoil(t *testing.T, dir, text string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.seg"))
	found := false
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, []byte(text)); i >= 0 {
			found = true
			damage(t, f, int64(i))
		}
	}
	if !found {
		t.Fatalf("%q is not in the log", text)
	}
}

func (p *process) audit() {
	p.t.Helper()
	if err := p.buf.Audit(); err != nil {
		p.t.Error(err)
	}
}

// Several rotten batches of one service are cut anew, in the arrival order of their runs.
// The new batches are no larger than others, and their records keep their age.
func TestRescueOfSeveral(t *testing.T) {
	t.Run("into one batch", func(t *testing.T) { rescueSeveral(t, 1<<20) })
	t.Run("into several", func(t *testing.T) { rescueSeveral(t, 1000) })
}

func rescueSeveral(t *testing.T, most int64) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		sink.setRefuse(refuseAll)
		p := start(t, dir, sink, buffer.Options{Workers: 1, Size: most, MaxAge: time.Hour}, true)
		defer p.stop()
		for i := range 6 {
			p.accept(request(0, line{"web", at(i), "bad" + string(rune('A'+i))}))
			p.accept(request(0, line{"web", at(i), noise(newRand(1), 700)}))
			p.flushFor(100 * time.Millisecond)
		}
		since, _ := p.buf.Oldest()
		for i := range 6 {
			spoil(t, dir, "bad"+string(rune('A'+i)))
		}
		time.Sleep(time.Minute)
		sink.setRefuse(nil)
		for range 20 {
			p.accept(request(0, line{"web", at(30), "young"}))
			time.Sleep(300 * time.Millisecond)
			p.audit()
			if now, ok := p.buf.Oldest(); ok && now.Before(since) {
				t.Errorf("oldest %v, was %v", now, since)
			}
		}
		p.flushFor(time.Hour)
		p.flush()
		for _, b := range sink.all() {
			size := int64(0)
			for _, l := range b.lines {
				size += int64(len(l.text))
			}
			if size > 2*most {
				t.Errorf("a batch of %d bytes", size)
			}
		}
		if n := len(sink.lines("web")); n != 26 {
			t.Errorf("%d lines, want 26", n)
		}
	})
}

// Rescued records keep their age: readers rely on Oldest.
func TestRescueKeepsAge(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		sink.setRefuse(refuseAll)
		p := start(t, dir, sink, buffer.Options{MaxAge: time.Hour}, true)
		defer p.stop()
		p.accept(request(0, line{"web", at(1), "damaged"}))
		p.accept(request(0, line{"web", at(1), "whole"}))
		since, _ := p.buf.Oldest()
		p.flushFor(time.Second)
		spoil(t, dir, "damaged")
		sink.setRefuse(nil)
		time.Sleep(2 * time.Minute)
		if len(sink.all()) > 0 {
			t.Fatalf("stored before it is of age: %+v", sink.all())
		}
		if now, ok := p.buf.Oldest(); !ok || now != since {
			t.Errorf("oldest %v, was %v", now, since)
		}
	})
}

// A run that is unreadable now is not lost: the disk may recover.
func TestRescueWhileReadsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, sink := simdisk.New(1), &memSink{}
		sink.setRefuse(refuseAll)
		p := startOn(t, disk, "/wal", sink, buffer.Options{}, true)
		defer p.stop()
		p.accept(request(0, line{"web", at(1), "damaged"}))
		p.accept(request(0, line{"web", at(2), "whole"}))
		p.flushFor(time.Second)
		file := spoilOn(t, disk, "damaged")
		reads := 0
		disk.SetFault(func(op simdisk.Op) error {
			if op.Kind == "read" && op.Path == file {
				if reads++; reads > 2 && reads < 12 { // the batch's record and runs, then one run alone
					return errors.New("input/output error")
				}
			}
			return nil
		})
		sink.setRefuse(nil)
		time.Sleep(5 * time.Minute)
		p.flush()
		if got := sink.lines("web"); len(got) != 1 || got[0].time != at(2) {
			t.Errorf("stored %+v, want the line that is whole", got)
		}
		p.audit()
	})
}

// The attempt to park a batch may be the first to detect its rot.
func TestRotMetByParking(t *testing.T) { parkedRot(t, false) }

// A copy may rot too. Its whole runs continue under a new id, also after a restart.
func TestRotOfACopy(t *testing.T) { parkedRot(t, true) }

func parkedRot(t *testing.T, copied bool) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const soft = 256 << 10
		sink := &memSink{}
		sink.setRefuse(func(service string) error {
			if service == "bad" {
				return errors.New("403")
			}
			return nil
		})
		o := buffer.Options{Soft: soft, Age: 5 * time.Second, Min: 1, MaxAge: 5 * time.Second}
		p := start(t, dir, sink, o, true)
		p.accept(request(0, line{"bad", at(1), "damaged"}))
		p.accept(request(0, line{"bad", at(1), "whole"}))
		p.flushFor(time.Second)
		if !copied {
			spoil(t, dir, "damaged")
		}
		r, spoilt := newRand(1), !copied
		for range 300 {
			p.accept(request(0, line{"good", at(1), noise(r, 10_000)}))
			time.Sleep(200 * time.Millisecond)
			if !spoilt && p.buf.Parked() == 1 {
				spoil(t, dir, "damaged")
				spoilt = true
			}
			if size := p.log.Size(); size > 2*soft {
				t.Fatalf("the log has %d bytes", size)
			}
			p.audit()
		}
		p.stop()
		sink.setRefuse(nil)
		p = start(t, dir, sink, o, true)
		p.flush()
		p.audit()
		p.stop()
		if got := sink.lines("bad"); len(got) != 1 || !strings.Contains(got[0].text, "whole") {
			t.Errorf("stored %+v", got)
		}
	})
}

// spoilOn is spoil on a simulated disk; it returns the file.
func spoilOn(t *testing.T, disk *simdisk.Disk, text string) string {
	t.Helper()
	entries, err := disk.ReadDir("/wal")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".seg") {
			continue
		}
		f, err := disk.OpenFile(filepath.Join("/wal", name), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1<<20)
		n, _ := f.ReadAt(b, 0)
		if i := bytes.Index(b[:n], []byte(text)); i >= 0 {
			_, err = f.WriteAt([]byte{'X'}, int64(i))
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			return filepath.Join("/wal", name)
		}
		_ = f.Close()
	}
	t.Fatalf("%q is not in the log", text)
	return ""
}
