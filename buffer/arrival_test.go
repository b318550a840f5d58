package buffer_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/internal/count"
)

// age returns the age of the buffer's oldest record, and compares its two sources.
func age(t *testing.T, p *process, reg *count.Registry) time.Duration {
	t.Helper()
	shown, ok := count.Read(reg.Page())["blobtail_oldest_unflushed_seconds"]
	if !ok {
		shown = -1
	}
	since, ok := p.buf.Oldest()
	if !ok {
		if shown != 0 {
			t.Errorf("nothing is unflushed, and the metric says %v", shown)
		}
		return -1
	}
	is := time.Since(since)
	if v := time.Duration(shown * float64(time.Second)); v < is-time.Second || v > is+time.Second {
		t.Errorf("the metric says %v, Oldest %v", v, is)
	}
	return is
}

func about(got, want time.Duration) bool { return got >= want && got < want+1500*time.Millisecond }

// The age of the oldest unflushed record outlives restarts. Its batch may be open, cut or
// parked, and the log may have lost its front.
func TestAgeOutlivesRestarts(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		sink.setRefuse(func(service string) error {
			if service == "bad" {
				return errors.New("403")
			}
			return nil
		})
		var reg *count.Registry
		var p *process
		life := func(o buffer.Options) {
			if p != nil {
				p.stop()
			}
			reg = new(count.Registry)
			o.Metrics = reg
			p = start(t, dir, sink, o, true)
			synctest.Wait()
			time.Sleep(time.Second)
		}
		open := buffer.Options{Age: time.Hour, MaxAge: 2 * time.Hour}
		life(open)
		if got := age(t, p, reg); got != -1 {
			t.Fatalf("nothing was sent, and something waits since %v", got)
		}
		begun := time.Now()
		p.accept(request(7, line{"bad", at(1), "first"}))
		for range 5 {
			time.Sleep(time.Minute)
			p.accept(request(0, line{"bad", at(2), "later"}))
			life(open)
			if got := age(t, p, reg); !about(got, time.Since(begun)) {
				t.Errorf("open: %v, want %v", got, time.Since(begun))
			}
		}
		p.flushFor(time.Second)
		life(open)
		if got := age(t, p, reg); !about(got, time.Since(begun)) {
			t.Errorf("cut: %v, want %v", got, time.Since(begun))
		}
		park := buffer.Options{Soft: 64 << 10, Age: time.Second, Min: 1}
		life(park)
		r := newRand(1)
		for range 2 { // copies of copies too
			for range 100 {
				p.accept(request(0, line{"good", at(1), noise(r, 10_000)}))
				time.Sleep(300 * time.Millisecond)
			}
			if p.buf.Parked() == 0 {
				t.Fatal("nothing is parked")
			}
			life(park)
			if got := age(t, p, reg); !about(got, time.Since(begun)) {
				t.Errorf("parked: %v, want %v", got, time.Since(begun))
			}
		}
		sink.setRefuse(nil)
		p.flush()
		if got := age(t, p, reg); got != -1 {
			t.Errorf("all is stored, and something waits since %v", got)
		}
		p.stop()
	})
}

// Records that were old before a restart are cut at once after it. So a process stores
// its batches even if it restarts before any batch is due.
func TestOldBatchesAreCutAfterRestarts(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		o := buffer.Options{Age: time.Minute, Min: 1 << 20, MaxAge: 5 * time.Minute}
		begun := time.Now()
		p := start(t, dir, sink, o, true)
		p.accept(request(0, line{"web", at(1), "a"}))
		for len(sink.all()) == 0 && time.Since(begun) < time.Hour {
			time.Sleep(2 * time.Minute)
			p.stop()
			p = start(t, dir, sink, o, true)
			time.Sleep(time.Second)
		}
		if took := time.Since(begun); took > 7*time.Minute {
			t.Errorf("stored after %v", took)
		}
		p.stop()
	})
}

// A clock that is set back between two lives makes no record younger than now.
func TestAgesAfterTheClockWasSetBack(t *testing.T) {
	dir := t.TempDir()
	write := func(when time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(when)
			p := start(t, dir, &memSink{}, buffer.Options{}, false)
			p.accept(request(0, line{"web", at(1), "x"}))
			p.stop()
		})
	}
	read := func(when time.Duration, want time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(when)
			sink := &memSink{}
			sink.setRefuse(refuseAll)
			reg := new(count.Registry)
			p := start(t, dir, sink, buffer.Options{Metrics: reg}, true)
			synctest.Wait()
			if got := age(t, p, reg); !about(got, want) {
				t.Errorf("%v after the zero hour: an age of %v, want %v", when, got, want)
			}
			time.Sleep(10 * time.Second)
			if got := age(t, p, reg); !about(got, want+10*time.Second) {
				t.Errorf("10 s later: an age of %v, want 10 s more than %v", got, want)
			}
			p.stop()
		})
	}
	write(2 * time.Hour) // each world begins at the same hour
	read(time.Hour, 0)
	read(3*time.Hour, time.Hour)
}
