package buffer_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"blobtail/buffer"
	"blobtail/record"
)

// withOutcome sets the outcome of a request that accepted some of the texts. The outcome
// alone must distinguish it from another request of its origin.
func withOutcome(r *record.Request) *record.Request {
	r.Outcome = record.Outcome{Accepted: uint32(len(r.Lines)), Sum: 1}
	for i := range r.Lines {
		for _, c := range r.Data[r.Lines[i].Off:][:r.Lines[i].Len] {
			r.Outcome.Sum = r.Outcome.Sum*31 + uint64(c)
		}
		r.Outcome.Sum = r.Outcome.Sum*31 + uint64(r.Index(uint32(i)))
	}
	return r
}

// Requests come under one origin, with any outcomes and any events in between. The lines
// of every request are stored, each identity once in a blob. Readers and followers get
// the identities that the blobs have.
func TestOutcomes(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 5))
			dir, sink := t.TempDir(), &memSink{}
			sink.setRefuse(refuseAll)
			want := map[string]bool{}
			send := func(p *process) {
				q := withOutcome(someOf(r, byte(1+r.IntN(10))))
				for _, l := range q.Lines {
					want[string(q.Data[l.Off:l.Off+l.Len])] = true
				}
				if p.accept(q); !p.buf.Replayed() {
					return
				}
				if again := p.accept(q); !again.Duplicate {
					t.Error("a repeat of this outcome is not known")
				}
			}
			for range 3 {
				p := start(t, dir, sink, buffer.Options{Size: 20_000}, r.IntN(3) > 0)
				for range 20 {
					send(p)
				}
				p.stop()
			}
			p := start(t, dir, sink, buffer.Options{Size: 20_000}, true)
			p.flushFor(1)
			for range 20 {
				send(p)
			}
			got, _ := snapshot(t, p.buf, everything())
			q := everything()
			q.Follow = true
			follows, _ := snapshot(t, p.buf, q)
			sink.setRefuse(nil)
			p.flush()
			stored := sink.everything()
			same(t, "the snapshot", ordered(got), stored)
			same(t, "who follows", ordered(follows), stored)
			there := map[string]bool{}
			for _, l := range stored {
				there[l.text] = true
			}
			for text := range want {
				if !there[text] {
					t.Errorf("%s was accepted and is not stored", text)
				}
			}
			for _, b := range sink.all() {
				checkOrder(t, b)
				ids := map[string]bool{}
				for _, l := range b.lines {
					id := fmt.Sprint(l.origin, l.index)
					if ids[id] {
						t.Errorf("%s stands twice in a blob", id)
					}
					ids[id] = true
				}
			}
		})
	}
}

// If a key's records have no times, the repeat is requested again with the times of the
// first request. The repeat may have any origin, and there may be a restart.
func TestEarlierTimes(t *testing.T) {
	dir, sink := t.TempDir(), &memSink{}
	p := start(t, dir, sink, buffer.Options{}, true)
	p.flush()
	keyed := func(origin byte, time int64, text string) *record.Request {
		r := withOutcome(request(7, line{"web", time, text}))
		r.Origin[0] = origin // the origin has the record's time
		r.Sum, r.DefaultTime = 99, time
		return r
	}
	first := keyed(7, at(1), "x")
	p.accept(first)
	for life := range 2 {
		_, err := p.buf.Accept(t.Context(), keyed(8, at(2), "x"))
		var earlier *record.EarlierError
		if !errors.As(err, &earlier) || earlier.Origin != first.Origin || earlier.DefaultTime != at(1) {
			t.Fatalf("%v", err)
		}
		if !p.accept(keyed(7, at(1), "x")).Duplicate {
			t.Error("with the time of then it is not known")
		}
		if life == 1 {
			break
		}
		p.flush()
		p.stop()
		p = start(t, dir, sink, buffer.Options{}, true)
		for !p.buf.Replayed() {
			p.flushFor(1)
		}
	}
	other := keyed(9, at(3), "x")
	other.Sum = 98
	if p.accept(other).Duplicate {
		t.Error("another body under the key, with another time, is not new")
	}
	other.Origin, other.Sum = first.Origin, 97
	if _, err := p.buf.Accept(t.Context(), other); !errors.Is(err, record.ErrKeyReused) {
		t.Errorf("another body under the origin: %v", err)
	}
}

// The same for messages.
func TestMessagesWithAnotherOutcome(t *testing.T) {
	sink, srv := &memSink{}, &server{}
	p := start(t, t.TempDir(), sink, buffer.Options{Messages: srv}, true)
	p.flush()
	keyed := func(reply string, lines ...line) *record.Request {
		r := withOutcome(message(7, reply, lines...))
		r.Sum, r.DefaultTime = 99, at(1)
		return r
	}
	p.accept(keyed("m1", line{"web", at(1), "a"}))
	if r := p.accept(keyed("m2", line{"web", at(1), "a"}, line{"web", at(2), "b"})); r.Duplicate {
		t.Error("another outcome is taken for a repeat")
	}
	later := keyed("m3", line{"web", at(3), "a"})
	later.DefaultTime = at(3)
	var earlier *record.EarlierError
	if _, err := p.buf.Accept(t.Context(), later); !errors.As(err, &earlier) || earlier.DefaultTime != at(1) {
		t.Errorf("%v", err)
	}
	p.flush()
	var texts []string
	for _, l := range sink.lines("web") {
		texts = append(texts, textOf(l.text))
	}
	if !slices.Equal(texts, []string{"a\"}\n", "b\"}\n"}) {
		t.Errorf("stored %q", texts)
	}
	p.audit()
}
