package buffer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/record"
	"blobtail/storage/fsys/simdisk"
)

func noise(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return string(b)
}

// The store refuses a service. Again and again, that must not keep the log from being
// freed. The service must not lose its place, its identities or its messages, at any end
// of the process.
func TestParking(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const soft = 256 << 10
		srv, sink := &server{}, &memSink{}
		bad := func(service string) error {
			if service == "bad" {
				return errors.New("403")
			}
			return nil
		}
		sink.setRefuse(bad)
		o := buffer.Options{Messages: srv, Soft: soft, Age: 5 * time.Second, Min: 1, MaxAge: 5 * time.Second}
		p := start(t, dir, sink, o, true)
		p.accept(message(9, "m", line{"bad", at(1), "by message"}))
		p.accept(request(8, line{"bad", at(1), "with a key"}))
		p.accept(request(0, line{"bad", at(1), "without"}))
		p.accept(request(7, line{"bad", at(1), "twice"}, line{"good", at(1), "a"}))
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 400 {
			p.accept(request(0, line{"good", at(i % 60), noise(r, 10_000)}))
			time.Sleep(200 * time.Millisecond)
			if size := p.log.Size(); size > 2*soft {
				t.Fatalf("the log has %d bytes after %d requests", size, i)
			}
			if i%100 == 50 {
				p.stop()
				p = start(t, dir, sink, o, true)
			}
		}
		sink.setRefuse(nil)
		p.flush()
		got := sink.lines("bad")
		if len(got) != 4 {
			t.Fatalf("stored of the bad service: %+v", got)
		}
		origins := map[string]bool{}
		for _, l := range got {
			origins[l.origin.String()] = true
			if strings.Contains(l.text, "with a key") && l.origin[0] != 8 {
				t.Errorf("another identity: %+v", l)
			}
		}
		if len(origins) != 4 {
			t.Errorf("identities %v", origins)
		}
		if n := len(sink.lines("good")); n != 401 {
			t.Errorf("good: %d lines", n)
		}
		p.stop()
	})
}

// The same for a service with uploads that hang: an attempt is ended if it holds the
// front.
func TestParkingOfWhatHangs(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const soft = 256 << 10
		sink := &memSink{}
		hangs := true
		slow := &slowSink{memSink: sink, delay: 4 * time.Minute, before: func(service string, begin bool) error {
			if hangs && service == "bad" {
				return errors.New("timed out")
			}
			return nil
		}}
		p := start(t, dir, slow, buffer.Options{Soft: soft, Age: 5 * time.Second, Min: 1, MaxAge: 5 * time.Second}, true)
		defer p.stop()
		for i := range 5 {
			p.accept(request(0, line{"bad", at(10 * i), "x"}))
		}
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 1000 {
			p.accept(request(0, line{"good", at(i % 60), noise(r, 10_000)}))
			time.Sleep(200 * time.Millisecond)
			if size := p.log.Size(); size > 6*soft {
				t.Fatalf("the log has %d bytes after %d requests", size, i)
			}
		}
		slow.mu.Lock()
		hangs = false
		slow.mu.Unlock()
		p.flush()
		if bad, good := len(sink.lines("bad")), len(sink.lines("good")); bad != 5 || good != 1000 {
			t.Errorf("%d and %d lines", bad, good)
		}
	})
}

// The identity that comes from a place must outlive the place.
func TestParkingKeepsPlaces(t *testing.T) {
	origins := func(park bool) string {
		dir, sink := t.TempDir(), &memSink{}
		var out string
		synctest.Test(t, func(t *testing.T) {
			sink.setRefuse(func(service string) error {
				if service == "bad" {
					return errors.New("403")
				}
				return nil
			})
			soft := int64(1 << 30)
			if park {
				soft = 64 << 10
			}
			p := start(t, dir, sink, buffer.Options{Soft: soft, Age: time.Second, Min: 1}, true)
			p.accept(request(0, line{"bad", at(1), "one"}, line{"bad", at(2), "two"}))
			r := p.accept(request(0, line{"bad", at(1), "three"}))
			_ = r
			segment, _ := p.log.Segment(p.log.Front())
			for range 60 {
				p.accept(request(0, line{"good", at(1), fmt.Sprintf("%010000d", 1)}))
				time.Sleep(300 * time.Millisecond)
			}
			if parked := p.log.Front() != segment.Number; parked != park {
				t.Errorf("parked: %v, want %v", parked, park)
			}
			sink.setRefuse(nil)
			p.flush()
			for _, l := range sink.lines("bad") {
				// The segment differs from run to run, the place in it does not.
				out += fmt.Sprintf("%x %d %s", l.origin[11:], l.index, l.text)
				if string(l.origin[6:11]) != string(segment.Random[:5]) {
					t.Errorf("not the place where it came in: %v", l.origin)
				}
			}
			p.stop()
		})
		return out
	}
	if with, without := origins(true), origins(false); with != without || with == "" {
		t.Errorf("parked\n%s\nnot parked\n%s", with, without)
	}
}

// In an outage of the whole store copying gains nothing.
func TestNoParkingInAnOutage(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		sink.setRefuse(func(string) error { return errors.New("down") })
		p := start(t, dir, sink, buffer.Options{Soft: 128 << 10, Age: time.Second, Min: 1}, true)
		r := rand.New(rand.NewPCG(1, 2))
		sent := int64(0)
		for i := range 100 {
			p.accept(request(0, line{fmt.Sprint("s", i%3), at(i % 60), noise(r, 10_000)}))
			sent += 10_000
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Minute)
		if written := int64(p.log.Active()) << 16; written > sent*11/10+2<<16 {
			t.Errorf("%d bytes written for %d that came", written, sent)
		}
		sink.setRefuse(nil)
		p.flush()
		p.stop()
	})
}

// A service in trouble gets one batch at a time, and few while they hang. When it works
// again, the others follow at once.
func TestTrouble(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		down, tries, under, most := true, 0, 0, 0
		slow := &slowSink{memSink: sink, before: func(service string, begin bool) error {
			if service != "bad" {
				return nil
			}
			if !begin {
				under--
				return nil
			}
			tries++
			under++
			most = max(most, under)
			if down {
				return errors.New("hangs, then fails")
			}
			return nil
		}, delay: 30 * time.Second}
		p := start(t, dir, slow, buffer.Options{Age: time.Second, Min: 1}, true)
		defer p.stop()
		for i := range 120 { // 20 hours make as many batches
			p.accept(request(0, line{"bad", at(i * 10), "x"}, line{"good", at(i * 10), "x"}))
		}
		time.Sleep(3 * time.Second)
		if n := len(sink.lines("good")); n != 120 {
			t.Errorf("%d of 120 of the good service after 3 s", n)
		}
		time.Sleep(time.Hour)
		slow.mu.Lock()
		if most > 4 || tries > 600 {
			t.Errorf("%d tries in an hour, %d at once", tries, most)
		}
		down = false
		slow.delay = 0
		slow.mu.Unlock()
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if left, err := p.buf.Flush(ctx); err != nil || time.Since(began) > 90*time.Second {
			t.Errorf("flush: %v, %+v after %v", err, left, time.Since(began))
		}
	})
}

// slowSink calls before for each write, and delays the ones that it refuses.
type slowSink struct {
	*memSink
	before func(service string, begin bool) error
	delay  time.Duration
}

func (s *slowSink) Write(ctx context.Context, b *buffer.Batch) error {
	s.mu.Lock()
	err, delay := s.before(b.Service(), true), s.delay
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = s.before(b.Service(), false)
	}()
	if err != nil {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
		return err
	}
	return s.memSink.Write(ctx, b)
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }

// A disk may be full long before the log is over its soft limit. Then too, one refused
// service must not block the others.
func TestParkingOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		sink.setRefuse(func(service string) error {
			if service == "bad" {
				return errors.New("403")
			}
			return nil
		})
		var p *process
		full := func() bool { return p.log.Size() > 400<<10 }
		o := buffer.Options{Full: full, Age: time.Second, Min: 1, MaxAge: time.Second}
		p = start(t, dir, sink, o, false)
		p.stop()
		p = start(t, dir, sink, o, true)
		defer p.stop()
		r, refused := newRand(1), 0
		for i := range 300 {
			service := "good"
			if i%7 == 0 && i < 70 {
				service = "bad"
			}
			if _, err := p.buf.Accept(t.Context(), request(0, line{service, at(i % 60), noise(r, 10_000)})); errors.Is(err, record.ErrFull) {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			p.audit()
		}
		if refused > 20 {
			t.Errorf("%d of 300 refused", refused)
		}
	})
}

// If the log refuses a copy, the batch is not read again and again for it.
func TestCopiesThatDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, sink := simdisk.New(1), &memSink{}
		sink.setRefuse(func(service string) error {
			if service == "bad" {
				return errors.New("403")
			}
			return nil
		})
		p := startOn(t, disk, "/wal", sink, buffer.Options{Soft: 100 << 10, MaxAge: time.Hour}, true)
		defer p.stop()
		p.accept(request(0, line{"bad", at(1), noise(newRand(1), 9000)}))
		for range 16 {
			p.accept(request(0, line{"good", at(1), noise(newRand(1), 10_000)}))
		}
		fill(t, disk, 3000)
		p.flushFor(time.Second)
		reads := 0
		disk.SetFault(func(op simdisk.Op) error {
			if op.Kind == "read" {
				reads++
			}
			return nil
		})
		time.Sleep(10 * time.Minute)
		disk.SetFault(nil)
		if reads > 100 || p.log.Front() == p.log.Active() {
			t.Errorf("%d reads in ten minutes", reads)
		}
		disk.SetRoom(0)
		time.Sleep(time.Minute)
		if p.buf.Parked() != 1 {
			t.Error("not parked when there is room again")
		}
		p.audit()
	})
}

// fill leaves the given room on a disk.
func fill(t *testing.T, disk *simdisk.Disk, room int64) {
	t.Helper()
	const large = 1 << 40
	disk.SetRoom(large)
	free, err := disk.Free("/wal")
	if err != nil {
		t.Fatal(err)
	}
	disk.SetRoom(large - free + room)
}

// Batches that cannot be cut on a full disk use up no names.
func TestFullDiskCostsNoNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, sink := simdisk.New(1), &memSink{}
		p := startOn(t, disk, "/wal", sink, buffer.Options{Age: time.Second, Min: 1}, true)
		defer p.stop()
		p.accept(request(0, line{"web", at(1), "x"}))
		fill(t, disk, 10)
		time.Sleep(10 * time.Minute)
		disk.SetRoom(0)
		p.flush()
		p.audit()
		if sink.plans != 1 || len(sink.lines("web")) != 1 {
			t.Errorf("%d names for %+v", sink.plans, sink.all())
		}
	})
}
