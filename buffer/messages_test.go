package buffer_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
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

// A server stops delivering if too many messages are not acknowledged. So batches are cut
// before they are due.
func TestManyMessages(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		srv, sink := &server{}, &memSink{}
		p := start(t, dir, sink, buffer.Options{Messages: srv}, true)
		defer p.stop()
		for i := range 10000 {
			r := message(0, fmt.Sprint("m", i), line{"web", at(1), "x"})
			r.Origin = origin.OfStream(time.Unix(0, 0), "LOGS", uint64(i))
			if _, err := p.buf.Accept(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		srv.mu.Lock()
		defer srv.mu.Unlock()
		if len(srv.stored) != 10000 {
			t.Errorf("%d of 10000 stored after a second", len(srv.stored))
		}
	})
}
