package buffer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// A follower gets exactly the records appended behind a position, for any position,
// stored or not, and also after a restart.
func TestFollow(t *testing.T) {
	dir, sink := t.TempDir(), &memSink{}
	p := start(t, dir, sink, buffer.Options{}, true)
	r := rand.New(rand.NewPCG(1, 2))
	q := everything()
	q.Newest = 1
	positions := []uint64{0}
	var sent [][]stored // between two positions
	accept := func() {
		tail := request(0, line{fmt.Sprint("s", r.IntN(3)), at(r.IntN(60)), noise(r, 300)}, line{"s1", at(r.IntN(60)), noise(r, 50)})
		p.accept(tail)
		var lines []stored
		for _, l := range tail.Lines {
			lines = append(lines, stored{text: string(tail.Data[l.Off : l.Off+l.Len])})
		}
		sent = append(sent, lines)
		_, at := snapshot(t, p.buf, q)
		positions = append(positions, at)
	}
	check := func(what string) {
		t.Helper()
		for i, after := range positions {
			q := everything()
			q.Follow, q.After = true, after
			l, err := p.buf.Live(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if l.Behind() && i > 0 {
				t.Errorf("%s: behind %x", what, after)
			}
			if l.Position() < positions[len(positions)-1] {
				t.Errorf("%s: the position went back", what)
			}
			var got, want []string
			for _, s := range each(t, l) {
				got = append(got, s.text)
			}
			l.Close()
			for _, lines := range sent[i:] {
				for _, s := range lines {
					want = append(want, s.text)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("%s, behind %x: %d lines, want %d", what, after, len(got), len(want))
			}
		}
	}
	for i := range 40 {
		accept()
		if i == 20 {
			p.flush()
		}
	}
	check("at once")
	p.stop()
	p = start(t, dir, sink, buffer.Options{}, true)
	check("after a restart")
	accept()
	check("and then")

	after := q
	after.Follow, after.Newest, after.After = true, 0, ^uint64(0)
	l, err := p.buf.Live(t.Context(), after)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !l.Behind() || len(each(t, l)) == 0 {
		t.Error("a position of another log is not told from ours")
	}
}

// A follower learns that records are missing from the log.
func TestFollowBehind(t *testing.T) {
	p := start(t, t.TempDir(), &memSink{}, buffer.Options{}, true)
	p.accept(request(0, line{"web", at(1), "first"}))
	_, position := snapshot(t, p.buf, everything())
	for i := range 10 {
		p.accept(request(0, line{"web", at(i), strings.Repeat("x", 30_000)}))
	}
	p.flush()
	testkit.Until(t, "only the active segment is held", func() bool { return p.log.Front() == p.log.Active() })
	_, late := snapshot(t, p.buf, everything())
	p.accept(request(0, line{"web", at(1), "last"}))
	for _, c := range []struct {
		after  uint64
		behind bool
	}{{position, true}, {late, false}} {
		q := everything()
		q.Follow, q.After = true, c.after
		l, err := p.buf.Live(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got := each(t, l)
		if l.Behind() != c.behind || !strings.Contains(got[len(got)-1].text+got[0].text, "last") {
			t.Errorf("after %x: behind %v, %d lines", c.after, l.Behind(), len(got))
		}
		l.Close()
	}
}

// A follower gets every run behind its position as long as that is remembered: at least
// the last 262,144. After that it learns that it is behind.
func TestFollowForgets(t *testing.T) {
	const services, requests = 5000, 60
	p := start(t, t.TempDir(), &memSink{}, buffer.Options{}, true)
	lines := make([]line, services)
	for i := range lines {
		lines[i] = line{fmt.Sprintf("service-%d", i), at(1), "x"}
	}
	r := request(0, lines...)
	var positions []uint64
	for range requests {
		l, err := p.buf.Live(t.Context(), buffer.LiveQuery{Match: func(string) bool { return false }})
		if err != nil {
			t.Fatal(err)
		}
		positions = append(positions, l.Position())
		l.Close()
		if _, err := p.buf.Accept(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, back := range []int{1, 2, 262144 / services, requests} {
		q := everything()
		q.Follow, q.After = true, positions[requests-back]
		q.Match = func(s string) bool { return s == "service-0" || s == "service-4999" }
		l, err := p.buf.Live(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got := each(t, l)
		if behind := back == requests; l.Behind() != behind || !behind && len(got) != 2*back {
			t.Errorf("%d requests back: behind %v, %d lines", back, l.Behind(), len(got))
		}
		l.Close()
	}
}

// A snapshot keeps the log from being deleted, but only until Close.
func TestLiveKeepsTheLog(t *testing.T) {
	sink := &memSink{}
	p := start(t, t.TempDir(), sink, buffer.Options{}, true)
	for i := range 20 {
		p.accept(request(0, line{"web", at(i), strings.Repeat("x", 30_000)}))
	}
	l, err := p.buf.Live(t.Context(), everything())
	if err != nil {
		t.Fatal(err)
	}
	p.flush()
	front := p.log.Front()
	if got := each(t, l); len(got) != 20 || p.log.Front() != front || front == p.log.Active() {
		t.Errorf("%d lines, the log begins at %d", len(got), p.log.Front())
	}
	l.Close()
	l.Close()
	if p.log.Front() != p.log.Active() {
		t.Errorf("after Close the log still begins at %d", p.log.Front())
	}
	if err := l.Each(t.Context(), nil); err == nil {
		t.Error("a closed snapshot is read")
	}
	p.audit()
}

// Damage costs only the damaged lines, and is reported.
func TestLiveOfDamage(t *testing.T) {
	dir, sink := t.TempDir(), &memSink{}
	sink.setRefuse(refuseAll)
	p := start(t, dir, sink, buffer.Options{}, true)
	for i := range 30 {
		p.accept(request(0, line{"web", at(1), fmt.Sprintf("n%d %s", i, strings.Repeat("x", 2000))}, line{"db", at(1), "x"}))
	}
	p.flushFor(100 * time.Millisecond) // some batches are cut
	p.accept(request(0, line{"web", at(2), "open"}))
	l, err := p.buf.Live(t.Context(), everything())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	spoil(t, dir, "n17 ")
	var got []stored
	var missing *buffer.MissingError
	if err := l.Each(t.Context(), collect(&got)); !errors.As(err, &missing) || missing.Runs != 1 {
		t.Errorf("Each: %v", err)
	}
	inOrder(t, got)
	if len(got) != 60 {
		t.Errorf("%d lines, want 60", len(got))
	}
	for _, newest := range []int{5, 59, 60, 61} {
		q := everything()
		q.Newest = newest
		l, err := p.buf.Live(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var some []stored
		err = l.Each(t.Context(), collect(&some))
		if want := min(newest, 60); len(some) != want || newest > 1 && !errors.As(err, &missing) {
			t.Errorf("newest %d: %d lines, %v", newest, len(some), err)
		}
		l.Close()
	}
}

// No call waits for longer than its context.
func TestLiveContext(t *testing.T) {
	p := start(t, t.TempDir(), &memSink{}, buffer.Options{}, false) // no replay
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.buf.Live(ctx, everything()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before the replay: %v", err)
	}
	p = start(t, t.TempDir(), &memSink{}, buffer.Options{}, true)
	for i := range 10 {
		p.accept(request(0, line{"web", at(i), "x"}))
	}
	l, err := p.buf.Live(t.Context(), everything())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Each(ctx, func(*record.Entry) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with an ended context: %v", err)
	}
	mine, n := errors.New("mine"), 0
	if err := l.Each(t.Context(), func(*record.Entry) error { n++; return mine }); !errors.Is(err, mine) || n != 1 {
		t.Errorf("when emit fails: %v after %d", err, n)
	}
}

// A parked copy is read under the identities that its batch had before, even for keys
// that were used again in it.
func TestLiveOfParked(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(3, 2))
	for range 3 { // no repeat is recognised
		p := start(t, dir, &memSink{}, buffer.Options{}, false)
		for range 30 {
			p.accept(randomRequest(r))
		}
		p.stop()
	}
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		sink.setRefuse(func(service string) error {
			if service != "good" {
				return errors.New("403")
			}
			return nil
		})
		o := buffer.Options{Soft: 64 << 10, Age: time.Second, Min: 1, Period: 15 * time.Minute}
		p := start(t, dir, sink, o, true)
		q := everything()
		q.Match = func(service string) bool { return service != "good" }
		before, _ := snapshot(t, p.buf, q)
		held, err := p.buf.Live(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			p.accept(request(0, line{"good", at(1), noise(r, 10_000)}))
			time.Sleep(300 * time.Millisecond)
		}
		if p.buf.Parked() == 0 {
			t.Fatal("nothing is parked")
		}
		after, _ := snapshot(t, p.buf, q)
		same(t, "parked", ordered(after), ordered(slices.Clone(before)))
		same(t, "held", each(t, held), before)
		p.stop()
		p = start(t, dir, sink, o, true)
		again, _ := snapshot(t, p.buf, q)
		same(t, "after a restart", ordered(again), ordered(slices.Clone(before)))
		held.Close()
		sink.setRefuse(nil)
		p.flush()
		var stored []stored
		for _, b := range sink.all() {
			if b.service != "good" {
				stored = append(stored, b.lines...)
			}
		}
		same(t, "stored", ordered(stored), ordered(before))
		p.stop()
	})
}

// A follower gets the identities that the blobs have, before the batch is stored and
// after that. This holds even for a key that came twice before the log was replayed, with
// other times.
func TestFollowOfKeysTwice(t *testing.T) {
	dir := t.TempDir()
	for life := range 3 {
		p := start(t, dir, &memSink{}, buffer.Options{}, false)
		for key := range byte(20) {
			r := request(1+key, line{"web", at(10*life + int(key)/2), fmt.Sprint("life ", life)})
			r.Sum = 5
			p.accept(r)
		}
		p.stop()
	}
	sink := &memSink{}
	sink.setRefuse(refuseAll)
	p := start(t, dir, sink, buffer.Options{}, true)
	q := everything()
	q.Follow = true
	before, _ := snapshot(t, p.buf, q)
	p.flushFor(50 * time.Millisecond)
	cut, _ := snapshot(t, p.buf, q)
	pins, err := p.buf.Live(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer pins.Close()
	sink.setRefuse(nil)
	p.flush()
	after, _ := snapshot(t, p.buf, q)
	want := sink.everything()
	if len(want) != 60 {
		t.Fatalf("%d lines", len(want))
	}
	same(t, "open", before, want)
	same(t, "cut", cut, want)
	same(t, "stored", after, want)
}
