package buffer_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/count"
	"blobtail/record"
	"blobtail/record/origin"
)

// counted returns a counter of a registry.
func counted(t *testing.T, reg *count.Registry, name string) int {
	t.Helper()
	n, ok := count.Read(reg.Page())[name]
	if !ok {
		t.Fatalf("there is no metric %s", name)
	}
	return int(n)
}

// Expired records are not kept. All others have the same identities as without expiry. Otherwise
// no reader could recognise a copy that another ingester accepted before it knew the horizon.
func TestExpiredIsLeftOut(t *testing.T) {
	old := func(service string, period time.Time) bool { return service == "s1" && period.Minute() < 30 }
	reg, tail := new(count.Registry), &toldAll{}
	all, some := &memSink{}, &memSink{}
	o := buffer.Options{Period: 15 * time.Minute}
	p := start(t, t.TempDir(), all, o, true)
	o.Expired, o.Metrics, o.Tail = old, reg, tail
	q := start(t, t.TempDir(), some, o, true)
	r := rand.New(rand.NewPCG(1, 2))
	answered := 0
	for i := range 300 {
		req := randomRequest(r)
		req.Origin = origin.OfBody("", "/ingest", 0, fmt.Append(nil, i), 0)
		p.accept(req)
		answered += q.accept(req).Expired
	}
	p.flush()
	q.flush()
	want, left := []stored{}, 0
	for _, b := range all.all() {
		if old(b.service, b.period) {
			left += len(b.lines)
			continue
		}
		want = append(want, b.lines...)
	}
	same(t, "stored", some.everything(), ordered(want))
	same(t, "told", ordered(slices.Clone(tail.lines)), ordered(want))
	if got := counted(t, reg, "blobtail_records_expired_total"); left == 0 || got != left || answered != left {
		t.Errorf("%d have expired; %d are counted, senders were told of %d", left, got, answered)
	}
	if got := counted(t, reg, "blobtail_buffer_records_total"); got != len(want) {
		t.Errorf("%d records are counted as taken, want %d", got, len(want))
	}
}

// Rejected lines may expire too. Their sender is only informed that they were rejected.
func TestExpiredRejects(t *testing.T) {
	sink := &memSink{}
	p := start(t, t.TempDir(), sink, buffer.Options{Expired: func(string, time.Time) bool { return true }}, true)
	receipt := p.accept(request(1, line{"web", at(1), "a"}, line{record.RejectedService, at(1), "b"}))
	if receipt.Expired != 1 {
		t.Errorf("%d records, want 1", receipt.Expired)
	}
}

// The ingester logs no request with expired records alone. Still it answers the request, and
// acknowledges a message.
func TestExpiredWhole(t *testing.T) {
	srv, sink := &server{}, &memSink{}
	p := start(t, t.TempDir(), sink, buffer.Options{Messages: srv, Expired: func(string, time.Time) bool { return true }}, true)
	size := p.log.Size()
	for range 2 {
		receipt := p.accept(request(1, line{"web", at(1), "a"}, line{"db", at(1), "b"}))
		if receipt.Expired != 2 || receipt.Duplicate {
			t.Errorf("%+v", receipt)
		}
		if err := receipt.Wait(t.Context(), true); err != nil {
			t.Error(err)
		}
	}
	p.accept(message(2, "m", line{"web", at(1), "a"}))
	srv.want(t, nil, []string{"m"}, nil)
	p.flush()
	if len(sink.all()) > 0 || p.log.Size() != size {
		t.Errorf("%d batches; the log grew from %d to %d bytes", len(sink.all()), size, p.log.Size())
	}
}

// A full log has no room for other records, and needs none for expired ones.
func TestExpiredWhileFull(t *testing.T) {
	srv := &server{}
	old := func(_ string, period time.Time) bool { return period.Hour() < 16 }
	p := start(t, t.TempDir(), &memSink{}, buffer.Options{Messages: srv, Expired: old, Max: 1}, false)
	for name, r := range map[string]*record.Request{
		"kept":  request(1, line{"web", at(61), "a"}),
		"mixed": request(2, line{"web", at(1), "a"}, line{"db", at(60), "b"}),
	} {
		if _, err := p.buf.Accept(t.Context(), r); !errors.Is(err, record.ErrFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if receipt := p.accept(message(3, "m", line{"web", at(1), "a"}, line{"db", at(59), "b"})); receipt.Expired != 2 {
		t.Errorf("%+v", receipt)
	}
	srv.want(t, nil, []string{"m"}, nil)
}

// A batch that expires during its wait for the store is done with. All waiting callers
// are answered, and the log releases it, also after a restart.
func TestBatchExpires(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		reg, srv, sink := new(count.Registry), &server{}, &memSink{}
		sink.setRefuse(refuseAll)
		p := start(t, dir, sink, buffer.Options{Messages: srv, Metrics: reg}, true)
		receipt := p.accept(request(1, line{"web", at(1), strings.Repeat("a", 100_000)}, line{"web", at(2), "b"}))
		p.accept(message(2, "m", line{"web", at(3), "c"}))
		p.flushFor(time.Minute)
		srv.want(t, nil, nil, nil)
		sink.setRefuse(expireAll)
		if err := receipt.Wait(t.Context(), true); err != nil {
			t.Error(err)
		}
		p.flush()
		srv.want(t, nil, []string{"m"}, nil)
		if n, batches := counted(t, reg, "blobtail_records_expired_total"), counted(t, reg, "blobtail_batches_expired_total"); n != 3 || batches != 1 {
			t.Errorf("%d records and %d batches are counted", n, batches)
		}
		if n := counted(t, reg, "blobtail_buffer_batches_stored_total"); n != 0 {
			t.Errorf("%d batches are counted as stored", n)
		}
		time.Sleep(time.Second)
		if front, active := p.log.Front(), p.log.Active(); front != active {
			t.Errorf("the log keeps segments %d to %d", front, active)
		}
		p.audit()
		p.stop()
		sink.setRefuse(nil)
		p = start(t, dir, sink, buffer.Options{}, true)
		p.flush()
		if len(sink.all()) != 0 {
			t.Error("stored after all")
		}
		p.stop()
	})
}

func expireAll(string) error { return fmt.Errorf("%w: dropped", buffer.ErrExpired) }

// The next process handles the batches of an earlier one. It may be the first that can
// acknowledge a message.
func TestExpiredBefore(t *testing.T) {
	dir := t.TempDir()
	srv, sink := &server{}, &memSink{refuse: expireAll}
	p := start(t, dir, sink, buffer.Options{}, true) // of a process without Messages
	p.accept(message(1, "m", line{"web", at(1), "a"}))
	p.accept(request(2, line{"db", at(1), "b"}))
	p.flush()
	p.stop()
	sink.setRefuse(nil)
	p = start(t, dir, sink, buffer.Options{Messages: srv}, true)
	p.flush()
	srv.want(t, nil, []string{"m"}, nil)
	if len(sink.all()) != 0 {
		t.Errorf("%d batches stored", len(sink.all()))
	}
}

// A parked batch expires like any other. After a restart its messages are no longer
// known; they come again, and expire on their own.
func TestParkedBatchExpires(t *testing.T) {
	t.Run("at once", func(t *testing.T) { parkedBatchExpires(t, false) })
	t.Run("after a restart", func(t *testing.T) { parkedBatchExpires(t, true) })
}

func parkedBatchExpires(t *testing.T, restart bool) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const soft = 256 << 10
		srv, sink := &server{}, &memSink{}
		bad := func(err error) func(string) error {
			return func(service string) error {
				if service == "bad" {
					return err
				}
				return nil
			}
		}
		sink.setRefuse(bad(errors.New("403")))
		o := buffer.Options{Messages: srv, Soft: soft, Age: 5 * time.Second, Min: 1, MaxAge: 5 * time.Second}
		p := start(t, dir, sink, o, true)
		p.accept(message(9, "m", line{"bad", at(1), "by message"}))
		p.accept(request(8, line{"bad", at(1), "with a key"}))
		r := newRand(1)
		for i := range 100 {
			p.accept(request(0, line{"good", at(i % 60), noise(r, 10_000)}))
			time.Sleep(200 * time.Millisecond)
		}
		if p.buf.Parked() == 0 {
			t.Fatal("nothing was parked")
		}
		if restart {
			p.stop()
			p = start(t, dir, sink, o, true)
		}
		sink.setRefuse(bad(fmt.Errorf("%w: dropped", buffer.ErrExpired)))
		p.flush()
		time.Sleep(time.Second)
		p.audit()
		if front, active := p.log.Front(), p.log.Active(); front != active {
			t.Errorf("the log keeps segments %d to %d", front, active)
		}
		if n := len(sink.lines("bad")); n > 0 {
			t.Errorf("%d lines stored", n)
		}
		if n := len(sink.lines("good")); n != 100 {
			t.Errorf("%d of the others stored", n)
		}
		if !restart && !slices.Contains(srv.stored, "m") {
			t.Error("the message is not acknowledged")
		}
		p.stop()
	})
}

// A commit record with an unknown flag may be one that requires the batch to be kept.
func TestNewerCommit(t *testing.T) {
	dir := t.TempDir()
	log, err := wal.Open(dir, wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(4, append(make([]byte, 16), 2)); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if log, err = wal.Open(dir, wal.Options{}); err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := buffer.New(log, &memSink{}, buffer.Options{}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("%v", err)
	}
}

// BenchmarkAcceptExpired measures the check of each run, with horizons of some hundred
// services.
func BenchmarkAcceptExpired(b *testing.B) {
	first := map[string]time.Time{}
	for i := range 300 {
		first[fmt.Sprint("service-", i)] = time.Unix(0, at(0)).AddDate(0, 0, -30)
	}
	expired := func(service string, period time.Time) bool { return period.Before(first[service]) }
	benchmarkAccept(b, buffer.Options{Expired: expired})
}
