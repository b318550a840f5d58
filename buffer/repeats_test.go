package buffer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// A repeat is recognised while it is remembered, also after a restart. A key with another
// body is refused.
func TestRepeats(t *testing.T) {
	dir, sink := t.TempDir(), &memSink{}
	p := start(t, dir, sink, buffer.Options{}, true)
	r := request(7, line{"web", at(1), "once"})
	r.Sum = 99
	if p.accept(r).Duplicate {
		t.Error("the first is called a duplicate")
	}
	again := p.accept(r)
	if !again.Duplicate {
		t.Error("the repeat is not recognised")
	}
	if err := again.Wait(context.Background(), true); err != nil || len(sink.all()) != 1 {
		t.Errorf("a repeat that waits for its blob: %v, %d batches", err, len(sink.all()))
	}
	r.Sum = 98
	if _, err := p.buf.Accept(context.Background(), r); !errors.Is(err, record.ErrKeyReused) {
		t.Errorf("the key with another body: %v", err)
	}
	p.stop()

	p = start(t, dir, sink, buffer.Options{}, true)
	p.flush() // waits for the replay
	r.Sum = 99
	if !p.accept(r).Duplicate {
		t.Error("after a restart the repeat is not recognised")
	}
	p.flush()
	if n := len(sink.lines("web")); n != 1 {
		t.Errorf("%d lines stored, want 1", n)
	}
}

// A copy may come before the log is replayed, and is not recognised then. It is dropped
// if both are in one batch. A line that only shares the identity is kept.
func TestCopiesInOneBatch(t *testing.T) {
	dir, sink := t.TempDir(), &memSink{}
	p := start(t, dir, sink, buffer.Options{}, false)
	p.accept(request(7, line{"web", at(1), "a"}, line{"web", at(2), "b"}))
	p.stop()
	p = start(t, dir, sink, buffer.Options{}, false)
	p.accept(request(7, line{"web", at(1), "a"}, line{"web", at(2), "b"}))
	p.stop()
	p = start(t, dir, sink, buffer.Options{}, false)
	p.accept(request(7, line{"web", at(1), "other"}, line{"web", at(2), "b"}))
	p.stop()
	p = start(t, dir, sink, buffer.Options{}, true)
	p.flush()
	seen := map[string]bool{}
	for _, b := range sink.all() {
		checkOrder(t, b)
		for _, l := range b.lines {
			id := fmt.Sprint(l.origin, l.index)
			if seen[id] {
				t.Errorf("identity %s stands twice", id)
			}
			seen[id] = true
		}
	}
	if n := len(sink.lines("web")); n != 3 {
		t.Errorf("%d lines, want the 2 of the copies once and what differs of the other", n)
	}
}

// Repeats that wait for their blobs do not make a blob each.
func TestRepeatsThatWait(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		p := start(t, dir, sink, buffer.Options{}, true)
		defer p.stop()
		p.accept(request(7, line{"web", at(1), "once"}))
		began := time.Now()
		for i := range 40 {
			p.accept(request(0, line{"web", at(1), fmt.Sprint(i)}))
			if err := p.accept(request(7, line{"web", at(1), "once"})).Wait(t.Context(), true); err != nil {
				t.Fatal(err)
			}
		}
		if n, s := len(sink.all()), time.Since(began).Seconds(); float64(n) > s+2 {
			t.Errorf("%d batches in %.1f s", n, s)
		}
	})
}

// A lost request must be accepted when its client sends it again.
func TestLostIsTakenAgain(t *testing.T) {
	dir, sink := t.TempDir(), &memSink{}
	sink.setRefuse(refuseAll)
	p := start(t, dir, sink, buffer.Options{}, true)
	p.accept(request(6, line{"web", at(1), "whole"}))
	p.accept(request(7, line{"web", at(1), "damaged"}))
	p.accept(request(8, line{"web", at(1), "whole too"}))
	p.flushFor(200 * time.Millisecond)
	spoil(t, dir, "damaged")
	sink.setRefuse(nil)
	p.flushFor(testkit.Patience)
	for origin := range byte(3) {
		again := p.accept(request(6+origin, line{"web", at(1), "again"}))
		if want := origin != 1; again.Duplicate != want {
			t.Errorf("request %d: duplicate %v", 6+origin, again.Duplicate)
		}
		if err := again.Wait(t.Context(), true); err != nil {
			t.Error(err)
		}
	}
	if got := sink.lines("web"); len(got) != 3 {
		t.Errorf("stored %+v", got)
	}
}

// A batch that is set aside fails no caller that waits for another batch.
func TestRepeatsBesideABatchSetAside(t *testing.T) {
	sink := &memSink{}
	sink.setRefuse(func(service string) error {
		if service == "bad" {
			return buffer.ErrAside
		}
		return nil
	})
	p := start(t, t.TempDir(), sink, buffer.Options{}, true)
	p.accept(request(1, line{"bad", at(1), "x"}))
	p.accept(request(0, line{"web", at(1), strings.Repeat("x", 70_000)})) // the next segment
	p.accept(request(2, line{"web", at(2), "x"}))
	p.flushFor(testkit.Patience)
	if err := p.accept(request(2, line{"web", at(2), "x"})).Wait(t.Context(), true); err != nil {
		t.Errorf("a repeat of what is stored: %v", err)
	}
	if err := p.accept(request(1, line{"bad", at(1), "x"})).Wait(t.Context(), true); err == nil {
		t.Error("a repeat of what is set aside is said to be stored")
	}
	p.audit()
}
