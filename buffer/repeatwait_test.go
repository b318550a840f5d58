package buffer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// refuses returns a sink that refuses the services whose names begin so.
func refuses(prefix string) func(service string) error {
	return func(service string) error {
		if strings.HasPrefix(service, prefix) {
			return errors.New("409 BlobImmutableDueToPolicy")
		}
		return nil
	}
}

// isStored waits for a second of virtual time until a repeat of r is stored.
func (p *process) isStored(r *record.Request) bool {
	p.t.Helper()
	receipt := p.accept(r)
	if !receipt.Duplicate {
		p.t.Fatal("not a repeat")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := receipt.Wait(ctx, true)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		p.t.Error(err)
	}
	return err == nil
}

// A repeat that waits for blobs waits for those of its first request: one that is stored is
// answered at once, and other batches are not cut. It is the same after a restart.
func TestRepeatWaitsForItsBatches(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{refuse: refuses("bad")}
		o := buffer.Options{MaxAge: 100 * time.Hour, Age: 100 * time.Hour}
		p := start(t, dir, sink, o, true)
		stored := request(1, line{"web", at(1), "a"}, line{"db", at(1), "a"})
		both := request(2, line{"web", at(2), "b"}, line{"bad", at(2), "b"})
		open := request(3, line{"web", at(3), "c"}, line{"web", at(63), "c"})
		if err := p.accept(stored).Wait(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		p.accept(both)
		p.accept(open)
		for i := range byte(50) {
			p.accept(request(10+i, line{fmt.Sprint("other", i), at(1), "x"}, line{"web", at(120 + int(i)), "x"}))
		}
		for life := range 2 {
			before := len(sink.all())
			if begun := time.Now(); !p.isStored(stored) || time.Since(begun) > 0 {
				t.Errorf("life %d: the repeat of a stored request waits", life)
			}
			if len(sink.all()) != before {
				t.Errorf("life %d: %d batches of others are stored", life, len(sink.all())-before)
			}
			p.stop()
			p = start(t, dir, sink, o, true)
			synctest.Wait()
		}
		defer func() { p.stop() }()
		before := len(sink.all())
		if p.isStored(both) {
			t.Error("one of its services cannot be stored, and the repeat is answered")
		}
		if n := len(sink.all()) - before; n != 1 || len(sink.lines("web")) != 3 {
			t.Errorf("%d batches, %d lines of web: its hour of web alone is stored", n, len(sink.lines("web")))
		}
		if !p.isStored(open) || len(sink.all()) != before+2 {
			t.Errorf("%d batches of another hour are stored, want 1", len(sink.all())-before-1)
		}
		sink.setRefuse(nil)
		time.Sleep(20 * time.Second)
		if !p.isStored(both) {
			t.Error("all of its services are stored, and the repeat waits")
		}
	})
}

// Whatever happens meanwhile, a repeat is answered if and only if all of its records are stored or
// can be: services come and go, batches are parked, the log moves on, and the process restarts.
func TestRepeatsWaitRight(t *testing.T) {
	parked := 0
	for seed := range uint64(testkit.Share(12, 3)) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) { parked += repeatsWaitRight(t, dir, seed) })
	}
	if parked == 0 {
		t.Error("no repeat came while a batch was parked")
	}
}

func repeatsWaitRight(t *testing.T, dir string, seed uint64) (parked int) {
	r, sink := newRand(seed), &memSink{refuse: refuses("bad")}
	o := buffer.Options{MaxAge: time.Duration(1+r.IntN(20)) * time.Second, Soft: 150 << 10, Size: 40 << 10}
	p := start(t, dir, sink, o, true)
	defer func() { p.stop() }()
	var sent []*record.Request
	for n := range 120 {
		var lines []line
		for range 1 + r.IntN(3) {
			service := []string{"web", "db", "cron", "bad1", "bad2"}[r.IntN(3+2*r.IntN(2)*r.IntN(2))]
			lines = append(lines, line{service, at(r.IntN(180)), fmt.Sprintf("%d.%d %s", n, len(lines), noise(r, 1+r.IntN(3000)))})
		}
		req := request(byte(n+1), lines...)
		p.accept(req)
		sent = append(sent, req)
		time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
		if r.IntN(40) == 0 {
			p.stop()
			o.Period = []time.Duration{time.Hour, 30 * time.Minute}[r.IntN(2)]
			p = start(t, dir, sink, o, true)
		}
		if r.IntN(3) > 0 {
			continue
		}
		synctest.Wait()
		again := sent[r.IntN(len(sent))]
		receipt := p.accept(again)
		if !receipt.Duplicate {
			continue // its segment was deleted before a restart
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		err := receipt.Wait(ctx, true)
		cancel()
		lacks := 0
		for i := range again.Lines {
			l := &again.Lines[i]
			text := string(again.Data[l.Off : l.Off+l.Len])
			if !slices.ContainsFunc(sink.lines(again.Services[l.Service]), func(s stored) bool { return s.text == text }) {
				lacks++
			}
		}
		if (err == nil) != (lacks == 0) {
			t.Fatalf("seed %d, request %d of %d: %d of %d lines are not stored, and its repeat: %v", seed, again.Origin[0], n, lacks, len(again.Lines), err)
		}
		p.audit()
		parked += p.buf.Parked()
	}
	return parked
}
