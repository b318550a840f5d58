package buffer_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/internal/count"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/record/origin"
)

// server records the outcomes of messages.
type server struct {
	mu                     sync.Mutex
	found, stored, dropped []string
}

func (s *server) note(to *[]string, reply string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*to = append(*to, reply)
}

func (s *server) Found(reply string)   { s.note(&s.found, reply) }
func (s *server) Stored(reply string)  { s.note(&s.stored, reply) }
func (s *server) Dropped(reply string) { s.note(&s.dropped, reply) }

// want compares the recorded outcomes with the expected ones, and clears them.
func (s *server) want(t *testing.T, found, stored, dropped []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range []struct {
		name      string
		got, want []string
	}{{"found", s.found, found}, {"stored", s.stored, stored}, {"dropped", s.dropped, dropped}} {
		slices.Sort(w.got)
		if !slices.Equal(w.got, w.want) {
			t.Errorf("%s: %q, want %q", w.name, w.got, w.want)
		}
	}
	s.found, s.stored, s.dropped = nil, nil, nil
}

func message(origin byte, reply string, lines ...line) *record.Request {
	r := request(origin, lines...)
	r.Reply = reply
	return r
}

// A message is stored when all its records are, in any batches, and not before.
func TestMessageStored(t *testing.T) {
	srv, sink := &server{}, &memSink{}
	p := start(t, t.TempDir(), sink, buffer.Options{Messages: srv}, true)
	sink.setRefuse(func(s string) error {
		if s == "db" {
			return errors.New("not now")
		}
		return nil
	})
	p.accept(message(1, "m1", line{"web", at(1), "a"}, line{"db", at(1), "b"}))
	p.accept(message(2, "m2", line{"web", at(2), "c"}))
	p.accept(message(3, "m3"))
	p.flushAllBut(1)
	srv.want(t, nil, []string{"m2", "m3"}, nil)
	sink.setRefuse(nil)
	p.flush()
	srv.want(t, nil, []string{"m1"}, nil)
}

// A message that comes again before it is stored is not stored twice; the server is
// answered on the newest reply. After that it is accepted as new.
func TestRedelivery(t *testing.T) {
	srv, sink := &server{}, &memSink{}
	p := start(t, t.TempDir(), sink, buffer.Options{Messages: srv}, true)
	if p.accept(message(1, "m1", line{"web", at(1), "a"})).Duplicate {
		t.Error("the first is a duplicate")
	}
	if !p.accept(message(1, "m1-again", line{"web", at(1), "a"})).Duplicate {
		t.Error("the second is none")
	}
	srv.want(t, nil, nil, []string{"m1"})
	other := message(1, "m2", line{"web", at(1), "b"})
	other.Sum = 5
	if _, err := p.buf.Accept(t.Context(), other); !errors.Is(err, record.ErrKeyReused) {
		t.Errorf("another message of the same key: %v", err)
	}
	p.flush()
	srv.want(t, nil, []string{"m1-again"}, nil)
	if p.accept(message(1, "m1-late", line{"web", at(1), "a"})).Duplicate {
		t.Error("answered as a duplicate of one that is gone")
	}
	p.flush()
	srv.want(t, nil, []string{"m1-late"}, nil)
	if n := len(sink.lines("web")); n != 2 {
		t.Errorf("%d lines, want both copies: a reader drops one", n)
	}
}

// A start omits a message that no batch record names, and it is delivered again. If batch
// records name all of it, it is stored and acknowledged. If they name a part, that part
// is stored and the message is delivered again.
func TestMessagesAfterARestart(t *testing.T) {
	dir, srv, sink := t.TempDir(), &server{}, &memSink{}
	o := buffer.Options{Messages: srv, Size: 300}
	sink.setRefuse(func(string) error { return errors.New("not now") })
	p := start(t, dir, sink, o, true)
	long := fmt.Sprintf("%0300d", 1)
	p.accept(message(1, "whole", line{"web", at(1), long}))
	p.accept(message(2, "part", line{"web", at(2), long}, line{"db", at(2), "b"}))
	p.accept(message(3, "none", line{"db", at(3), "c"}))
	p.accept(request(4, line{"db", at(4), "by HTTP"}))
	p.stop()
	srv.want(t, nil, nil, []string{"none", "part"})

	sink.setRefuse(nil)
	p = start(t, dir, sink, o, true)
	p.flush()
	srv.want(t, []string{"whole"}, []string{"whole"}, []string{"none", "part"})
	if got := sink.lines("db"); len(got) != 1 || got[0].time != at(4) {
		t.Errorf("db: %+v, want what came by HTTP", got)
	}
	p.accept(message(2, "part-again", line{"web", at(2), long}, line{"db", at(2), "b"}))
	p.flush()
	srv.want(t, nil, []string{"part-again"}, nil)
	p.stop()

	// The process may have ended between the commit and the acknowledgement.
	p = start(t, dir, sink, o, true)
	p.flush()
	srv.want(t, nil, []string{"part-again"}, nil)
}

// offer accepts messages of one record each, with numbers from first on, of a service.
func offer(p *process, service string, first, n int) {
	for i := first; i < first+n; i++ {
		r := message(0, fmt.Sprint("m", i), line{service, at(1), "x"})
		r.Origin = origin.OfStream(time.Unix(0, 0), "LOGS", uint64(i))
		if _, err := p.buf.Accept(p.t.Context(), r); err != nil {
			p.t.Fatal(err)
		}
	}
}

// A message takes memory until it is stored. So batches are cut before they are due: those with
// the most messages, until half of the messages are in cut ones. The others wait until they are
// due, because each blob costs a request.
func TestManyMessages(t *testing.T) {
	testkit.FullOnly(t, "100,000 messages")
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		srv, sink := &server{}, &memSink{}
		p := start(t, dir, sink, buffer.Options{Messages: srv}, true)
		defer p.stop()
		offer(p, "small", 0, 30_000)
		offer(p, "large", 30_000, 69_999)
		time.Sleep(time.Second)
		srv.want(t, nil, nil, nil)
		offer(p, "large", 99_999, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		srv.mu.Lock()
		defer srv.mu.Unlock()
		if len(srv.stored) != 70_000 || slices.Contains(srv.stored, "m0") {
			t.Errorf("%d of 100000 stored after a second, want those of the large service", len(srv.stored))
		}
	})
}

// A server that soon delivers no more gets acknowledgements. But while messages of cut batches are
// not stored, no more batches are cut for it: their acknowledgements are on the way.
func TestCrowded(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		srv, sink := &server{}, &memSink{}
		var crowded atomic.Bool
		reg := new(count.Registry)
		p := start(t, dir, sink, buffer.Options{Messages: srv, Crowded: crowded.Load, Metrics: reg}, true)
		defer p.stop()
		offer(p, "small", 0, 10)
		offer(p, "large", 10, 30)
		time.Sleep(time.Second)
		srv.want(t, nil, nil, nil)
		sink.setRefuse(func(string) error { return errors.New("not now") })
		crowded.Store(true)
		time.Sleep(3 * time.Second)
		if got := cuts(t, reg); !maps.Equal(got, map[string]float64{"messages": 1}) {
			t.Errorf("cut %v while no batch is stored, want the large one", got)
		}
		sink.setRefuse(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := cuts(t, reg); !maps.Equal(got, map[string]float64{"messages": 2}) {
			t.Errorf("cut %v", got)
		}
		srv.mu.Lock()
		defer srv.mu.Unlock()
		if len(srv.stored) != 40 {
			t.Errorf("%d of 40 stored", len(srv.stored))
		}
	})
}
