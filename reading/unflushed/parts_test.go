package unflushed_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
)

func entryAt(ns int64, origin byte, service string) record.Entry {
	line := fmt.Appendf(nil, `{"ts":"%s","level":"info","service":"%s","msg":"%d"}`+"\n", record.AppendTime(nil, ns), service, origin)
	return record.Entry{Time: ns, ID: record.ID{Origin: record.Origin{15: origin}, Index: 7}, Line: line}
}

func sameCursor(x, y unflushed.Cursor) bool {
	return x.Last.Compare(&y.Last) == 0 && maps.Equal(x.Positions, y.Positions)
}

func TestCursorText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 300 {
		c := unflushed.Cursor{Last: record.Entry{Time: int64(rng.Uint64()), ID: record.ID{Index: rng.Uint32()}}}
		for i := range c.Last.ID.Origin {
			c.Last.ID.Origin[i] = byte(rng.Uint32())
		}
		for range n % 5 * n {
			if c.Positions == nil {
				c.Positions = live.Positions{}
			}
			c.Positions[fmt.Sprintf("%08x", rng.Uint32())] = rng.Uint64()
		}
		for len(c.Positions) > 1024 {
			for id := range c.Positions {
				delete(c.Positions, id)
				break
			}
		}
		got, err := unflushed.ParseCursor(" " + c.String() + "\n")
		if err != nil || !sameCursor(got, c) {
			t.Fatalf("%+v becomes %+v, %v", c, got, err)
		}
		if strings.Trim(c.String(), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Errorf("%s has to be quoted", c)
		}
	}
	for _, id := range []string{"", "x", "0badcafe0", "0BADCAFE", "../../.."} { // of no ingester
		c := unflushed.Cursor{Positions: live.Positions{id: 1}}
		if got, err := unflushed.ParseCursor(c.String()); err != nil || len(got.Positions) != 0 {
			t.Errorf("%q becomes %+v, %v", id, got, err)
		}
	}
}

func TestCursorGarbage(t *testing.T) {
	good := unflushed.Cursor{Positions: live.Positions{"0badcafe": 1}}.String()
	for _, text := range []string{"", " ", "x", "=", good + "A", good[1:], good[:len(good)-1], good + "=", strings.Repeat("A", 100),
		base64.RawURLEncoding.EncodeToString(make([]byte, 29)), "2026-11-20T15:04:05Z", "http://10.0.0.4:8514"} {
		if c, err := unflushed.ParseCursor(text); err == nil || !strings.Contains(err.Error(), "it is no cursor") {
			t.Errorf("%q is read as %+v, %v", text, c, err)
		}
	}
	if _, err := unflushed.ParseCursor(base64.RawURLEncoding.EncodeToString(slices.Concat([]byte{2}, make([]byte, 100)))); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("the next form is refused with %v", err)
	}
	if _, err := unflushed.ParseCursor(base64.RawURLEncoding.EncodeToString(slices.Concat([]byte{1}, make([]byte, 28+12*1025)))); err == nil {
		t.Error("a cursor of more ingesters than a question may have is read")
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(unflushed.Cursor{}.String())
	f.Add(unflushed.Cursor{Last: record.Entry{Time: math.MaxInt64}, Positions: live.Positions{"0badcafe": math.MaxUint64, "00000000": 0}}.String())
	f.Fuzz(func(t *testing.T, text string) {
		c, err := unflushed.ParseCursor(text)
		if err != nil {
			return
		}
		again, err := unflushed.ParseCursor(c.String())
		if err != nil || !sameCursor(c, again) {
			t.Errorf("%q is %+v and then %+v, %v", text, c, again, err)
		}
		if _, err := live.ParsePositions(c.Positions.String()); err != nil {
			t.Errorf("%q has positions that no ingester takes: %v", text, err)
		}
	})
}

func TestSeen(t *testing.T) {
	at := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	now := at.UnixNano()
	s := unflushed.NewSeen(100)
	first := entryAt(now, 1, "web")
	other := entryAt(now, 1, "db") // of the same request
	for i, e := range []*record.Entry{&first, &other} {
		if !s.Add(e, at) || s.Add(e, at) {
			t.Errorf("record %d is not new once", i)
		}
	}
	for i := range 2 { // two without identity
		e := entryAt(now, byte(i), "web")
		e.ID = record.ID{}
		if !s.Add(&e, at) || s.Add(&e, at) {
			t.Errorf("record %d without identity is not new once", i)
		}
	}
	ahead := entryAt(now+int64(time.Hour), 1, "web")
	if !s.Add(&ahead, at) {
		t.Error("a record of the future is known")
	}
	for i := range int64(1000) {
		e := entryAt(now+i+1, 2, "web")
		if !s.Add(&e, at) || s.Add(&e, at) {
			t.Fatalf("record %d is not new once", i)
		}
		if s.Len() > 220 {
			t.Fatalf("%d are remembered", s.Len())
		}
	}
	if f := s.Forgotten(); f < now+700 || f > now+1000 {
		t.Errorf("it has forgotten up to %d", f-now)
	}
	for i := s.Forgotten() - now + 1; i <= 1000; i++ {
		if e := entryAt(now+i, 2, "web"); s.Add(&e, at) {
			t.Errorf("record %d is forgotten", i)
		}
	}
	if s.Add(&ahead, at) {
		t.Error("the record of the future is forgotten")
	}
}

func TestOrder(t *testing.T) {
	at := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	ns := at.UnixNano()
	o := unflushed.NewOrder(time.Second)
	take := func(after time.Duration, all bool) (times []int64) {
		for _, e := range o.Take(at.Add(after), ns+int64(after), all) {
			times = append(times, e.Time-ns)
		}
		return times
	}
	want := func(got []int64, want ...int64) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	o.Add(entryAt(ns+5, 1, "web"), at)
	o.Add(entryAt(ns+3, 1, "web"), at.Add(500*time.Millisecond))
	want(take(900*time.Millisecond, false))
	o.Add(entryAt(ns+9, 1, "web"), at.Add(950*time.Millisecond))
	want(take(time.Second, false), 3, 5) // one that has waited releases all before it
	hour := int64(time.Hour)
	o.Add(entryAt(ns+hour, 1, "web"), at)
	want(take(1100*time.Millisecond, false), hour) // and releases no earlier record
	want(take(1950*time.Millisecond, false), 9)
	o.Add(entryAt(ns+1, 1, "web"), at.Add(2*time.Second)) // late
	want(take(2100*time.Millisecond, false))
	want(take(3*time.Second, false), 1)
	o.Add(entryAt(ns+2*hour, 1, "web"), at.Add(3*time.Second))
	o.Add(entryAt(ns+8, 1, "web"), at.Add(3*time.Second))
	want(take(3*time.Second, true), 8, 2*hour)
	want(take(time.Hour, true))
}
