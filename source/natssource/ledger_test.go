package natssource

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestPlaceOf(t *testing.T) {
	want := place{seq: 7, delivery: 9, delivered: 2, sent: 1794323045900000000}
	for _, tt := range []struct {
		reply string
		ok    bool
	}{
		{"$JS.ACK.LOGS.blobtail.2.7.9.1794323045900000000.3", true},
		{"$JS.ACK._.hash.LOGS.blobtail.2.7.9.1794323045900000000.3", true},
		{"$JS.ACK.hub.hash.LOGS.blobtail.2.7.9.1794323045900000000.3.random", true},
		{"", false},
		{"_INBOX.x", false},
		{"$JS.ACK.LOGS.blobtail.2.7.9.1794323045900000000", false},
		{"$JS.ACK.hash.LOGS.blobtail.2.7.9.1794323045900000000.3", false},
		{"$JS.ACK.LOGS.blobtail.2.x.9.1794323045900000000.3", false},
		{"$JS.ACK.LOGS.blobtail.2.-7.9.1794323045900000000.3", false},
		{"$JS.ACK.a.b.c.d.e.f.g.h.i.j.k.l.m.n", false},
	} {
		p, ok := placeOf(tt.reply)
		if ok != tt.ok || ok && p != want {
			t.Errorf("%s: %+v %v", tt.reply, p, ok)
		}
	}
}

func FuzzPlaceOf(f *testing.F) {
	f.Add("$JS.ACK.LOGS.blobtail.2.7.9.1794323045900000000.3")
	f.Add("$JS.ACK.hub.hash.LOGS.blobtail.2.7.9.1794323045900000000.3.random")
	f.Fuzz(func(t *testing.T, reply string) {
		p, ok := placeOf(reply)
		if !ok {
			return
		}
		again, ok := placeOf(fmt.Sprintf("$JS.ACK.s.c.%d.%d.%d.%d.0", p.delivered, p.seq, p.delivery, p.sent))
		if !ok || again != p {
			t.Errorf("%q: %+v, then %+v", reply, p, again)
		}
	})
}

// A message found before the first check belongs to the stream that existed when it
// was sent.
func TestLedgerOfAnotherStream(t *testing.T) {
	created := time.Unix(1000, 0)
	reply := func(seq int, at time.Time) string {
		return fmt.Sprintf("$JS.ACK.LOGS.blobtail.1.%d.%d.%d.0", seq, seq, at.UnixNano())
	}
	l := newLedger(func() {})
	old, ours := reply(1, created.Add(-time.Second)), reply(2, created.Add(time.Second))
	l.found(old)
	l.found(ours)
	if l.current(created) {
		t.Error("the first stream is no other")
	}
	l.found(reply(3, created.Add(-time.Minute)))
	var acknowledged []string
	for _, r := range []string{old, ours, reply(3, created.Add(-time.Minute))} {
		l.stored(r)
	}
	for _, x := range l.queue {
		acknowledged = append(acknowledged, x.reply)
	}
	if !slices.Equal(acknowledged, []string{ours}) {
		t.Errorf("acknowledged %v", acknowledged)
	}
	l.delivered(created, place{seq: 5, sent: created.Add(time.Minute).UnixNano()}, reply(5, created.Add(time.Minute)), time.Now())
	if !l.current(created.Add(time.Hour)) || l.len() != 0 {
		t.Errorf("%d messages of a stream that is gone", l.len())
	}
	if l.delivered(created, place{seq: 6}, reply(6, created), time.Now()); l.len() != 0 {
		t.Error("a message of a stream that is gone is noted")
	}
}

// Acknowledgements that a consumer does not answer hold up none of another one, however many there
// are.
func TestLanes(t *testing.T) {
	created := time.Unix(1000, 0)
	l := newLedger(func() {})
	l.current(created)
	store := func(consumer string, seq int) (reply string) {
		reply = fmt.Sprintf("$JS.ACK.LOGS.%s.1.%d.%d.%d.0", consumer, seq, seq, created.UnixNano())
		l.found(reply)
		l.stored(reply)
		return reply
	}
	const silent = 3 * window
	for i := range silent {
		store("blobtail-0", 1+i)
	}
	l.confirm()
	for l.send() {
	}
	for i := range 10 {
		reply := store("blobtail-1", silent+1+i)
		for l.send() {
		}
		sent := settlement{}
		for _, x := range l.onTheWay {
			if x.reply == reply {
				sent = x
			}
		}
		if sent.id == 0 {
			t.Fatalf("%s is not sent", reply)
		}
		l.arrive(sent)
	}
	if len(l.onTheWay) != window || l.waiting() != silent {
		t.Errorf("%d are on the way, want %d; %d wait, want %d", len(l.onTheWay), window, l.waiting(), silent)
	}
	for round := 0; l.waiting() > 0; round++ { // all are sent in turn
		for _, x := range l.onTheWay {
			l.arrive(x)
		}
		for l.send() {
		}
		if round > silent {
			t.Fatalf("%d are never sent", l.waiting())
		}
	}
	if len(l.lanes) != 0 {
		t.Errorf("%d lanes are kept", len(l.lanes))
	}
}

// Signs of life are sent for each message in turn, and only so many at a time.
func TestQuiet(t *testing.T) {
	l := newLedger(func() {})
	begun := time.Unix(1000, 0)
	for i := range 10 {
		l.delivered(time.Time{}, place{seq: uint64(i), sent: 1}, fmt.Sprint(i), begun)
	}
	half := begun.Add(time.Minute)
	if got := l.quiet(begun, half, 4); len(got) != 0 {
		t.Errorf("%v are not quiet", got)
	}
	var all []string
	for range 3 {
		all = append(all, l.quiet(half, half, 4)...)
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 10 || len(l.quiet(half, half, 4)) != 0 {
		t.Errorf("%v", all)
	}
}
