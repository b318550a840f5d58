package repeats_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	uuid7 = "019aa1a0-0000-7000-8000-000000000001"
	plain = "abc"
)

// between holds the events at an ingester between two requests. After a restart the
// ingester remembers the contents of its log, including requests already in blobs.
var between = map[string]func(in *ingester){
	"nothing":           func(*ingester) {},
	"flush":             func(in *ingester) { in.Flush() },
	"restart":           (*ingester).restart,
	"flush and restart": func(in *ingester) { in.Flush(); in.restart() },
}

// lines is an NDJSON body with a third line that is two records to the lenient reading.
// All records have these times, with %d for a tenth of a second.
func lines(times string) string {
	at := func(n int, msg string) string {
		if times == "" {
			return fmt.Sprintf(`{"msg":"%s"}`, msg)
		}
		return fmt.Sprintf(`{"time":"`+times+`","msg":"%s"}`, n, msg)
	}
	return at(3, "a") + "\n" + at(4, "b") + "\n" + at(1, "c") + at(2, "d") + "\n" + at(5, "e") + "\n"
}

// A record that was answered as accepted is stored once, by either reading of the body.
// A repeat gets the first answer.
func TestAnotherReading(t *testing.T) {
	timed := lines("2026-11-20T14:59:00.%dZ")
	mixed := strings.Replace(timed, `"time":"2026-11-20T14:59:00.4Z",`, "", 1)
	for name, q := range map[string]request{
		"no key":          {body: timed},
		"UUIDv7":          {key: uuid7, body: timed},
		"UUIDv7, untimed": {key: uuid7, body: lines("")},
		"UUIDv7, mixed":   {key: uuid7, body: mixed},
		"any key":         {key: plain, body: timed},
		"any, untimed":    {key: plain, body: lines("")},
		"any, mixed":      {key: plain, body: mixed},
	} {
		for what, happens := range between {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				in := w.ingester(0)
				strict, loose := q, q
				strict.contentType, loose.contentType = ndjson, jsonCT
				for _, step := range []struct {
					q    request
					want answer
				}{
					{strict, answer{Accepted: 3, Rejected: 1}},
					{strict, answer{Accepted: 3, Rejected: 1, Duplicate: true}},
					{loose, answer{Accepted: 5}},
					{loose, answer{Accepted: 5, Duplicate: true}},
				} {
					if step.want == (answer{Accepted: 5}) {
						happens(in)
					}
					if got := in.post(step.q); got != step.want {
						t.Errorf("%s: %+v, want %+v", step.q.contentType, got, step.want)
					}
					w.clock = w.clock.Add(4 * time.Second)
				}
				if n := in.live(); what == "nothing" && n != 5 {
					t.Errorf("%d records in no blob, want 5", n)
				}
				if got := w.read(in); got != "a b c d e" {
					t.Errorf("read %q", got)
				}
			})
		}
	}
}

// The reverse: the lenient reading accepts records that the strict one rejects.
func TestLessOfABody(t *testing.T) {
	w := newWorld(t)
	in := w.ingester(0)
	body := lines("2026-11-20T14:59:00.%dZ")
	if got, want := in.post(request{contentType: jsonCT, body: body}), (answer{Accepted: 5}); got != want {
		t.Errorf("%+v", got)
	}
	if got, want := in.post(request{contentType: ndjson, body: body}), (answer{Accepted: 3, Rejected: 1}); got != want {
		t.Errorf("%+v", got)
	}
	if got := w.read(in); got != "a b c d e" {
		t.Errorf("read %q", got)
	}
}

// A record that was too far ahead, by the field that its sender names, is accepted when it is sent
// again a little later.
func TestTooFarAhead(t *testing.T) {
	for name, q := range map[string]request{
		"no key":       {},
		"whole second": {},
		"UUIDv7":       {key: uuid7},
		"any key":      {key: plain},
		"any, mixed":   {key: plain},
	} {
		for what, happens := range between {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				in := w.ingester(0)
				ahead := w.clock.Add(24*time.Hour + 2*time.Second).Format(time.RFC3339)
				first := `{"time":"2026-11-20T14:59:00.5Z","msg":"b"}`
				switch name {
				case "whole second":
					first = `{"time":"2026-11-20T14:59:00Z","msg":"b"}`
				case "any, mixed":
					first = `{"msg":"b"}`
				}
				q := request{contentType: ndjson, key: q.key, query: "?_time=time"}
				q.body = `{"time":"` + ahead + `","msg":"a"}` + "\n" + first
				for i, want := range []answer{
					{Accepted: 1, Rejected: 1},
					{Accepted: 2},
					{Accepted: 2, Duplicate: true},
				} {
					if i == 1 {
						happens(in)
					}
					if got := in.post(q); got != want {
						t.Errorf("request %d: %+v, want %+v", i, got, want)
					}
					w.clock = w.clock.Add(4 * time.Second)
				}
				if got := w.read(in); got != "a b" {
					t.Errorf("read %q", got)
				}
			})
		}
	}
}

// Two ingesters that read a body in two ways give each record the same identity.
func TestTwoIngesters(t *testing.T) {
	for name, q := range map[string]request{"no key": {}, "UUIDv7": {key: uuid7}, "any key": {key: plain}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a, b := w.ingester(0), w.ingester(1)
			q.body, q.contentType = lines("2026-11-20T14:59:00.%dZ"), ndjson
			if got, want := a.post(q), (answer{Accepted: 3, Rejected: 1}); got != want {
				t.Errorf("%+v", got)
			}
			q.contentType = jsonCT
			if got, want := b.post(q), (answer{Accepted: 5}); got != want {
				t.Errorf("%+v", got)
			}
			if got := w.read(a, b); got != "a b c d e" {
				t.Errorf("read %q", got)
			}
		})
	}
}

// A repeat of an accepted request is not answered as expired, though its day has been
// dropped since. All records of another outcome are.
func TestDroppedBetween(t *testing.T) {
	for what, happens := range between {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			in := w.ingester(0)
			q := request{contentType: ndjson, body: lines("2026-11-20T14:59:00.%dZ")}
			in.post(q)
			happens(in)
			w.keeps = w.clock
			if got, want := in.post(q), (answer{Accepted: 3, Rejected: 1, Duplicate: true}); got != want {
				t.Errorf("the repeat: %+v", got)
			}
			q.contentType = jsonCT
			if got, want := in.post(q), (answer{Expired: 5}); got != want {
				t.Errorf("another outcome: %+v", got)
			}
		})
	}
}

// Records that had expired at the first request stay expired in the answer.
func TestExpiredAtFirst(t *testing.T) {
	w := newWorld(t)
	in := w.ingester(0)
	w.keeps = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	q := request{contentType: ndjson, body: `{"time":"2026-11-19T10:00:00Z","msg":"a"}` + "\n" + `{"time":"2026-11-20T10:00:00Z","msg":"b"}` + "\nx"}
	want := answer{Accepted: 1, Rejected: 1, Expired: 1}
	if got := in.post(q); got != want {
		t.Errorf("%+v", got)
	}
	want.Duplicate = true
	for range 2 {
		if got := in.post(q); got != want {
			t.Errorf("again %+v", got)
		}
		w.keeps = time.Time{}
		in.restart()
	}
}

// Equal bodies of two senders are two events. A sender's next connection does not make
// another sender. A key overrides an address.
func TestSenders(t *testing.T) {
	body := `{"time":"2026-11-20T14:59:00.5Z","msg":"a"}`
	for _, c := range []struct {
		name, key, other string
		duplicate        bool
		want             string
	}{
		{"another port", "", "10.0.0.1:2000", true, "a"},
		{"another address", "", "10.0.0.2:1000", false, "a a"},
		{"another address of version 6", "", "[2001:db8::1]:1000", false, "a a"},
		{"another address, a key", uuid7, "10.0.0.2:1000", true, "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			in := w.ingester(0)
			in.post(request{contentType: ndjson, key: c.key, body: body, from: "10.0.0.1:1000"})
			if got := in.post(request{contentType: ndjson, key: c.key, body: body, from: c.other}); got.Duplicate != c.duplicate {
				t.Errorf("%+v", got)
			}
			if got := w.read(in); got != c.want {
				t.Errorf("read %q, want %q", got, c.want)
			}
		})
	}
}

// The same key with another body is refused as before, also with another outcome.
func TestKeyReused(t *testing.T) {
	for _, key := range []string{uuid7, plain} {
		w := newWorld(t)
		in := w.ingester(0)
		q := request{contentType: ndjson, key: key, body: lines("")}
		in.post(q)
		q.contentType = jsonCT
		in.post(q)
		q.body += "{}"
		if status, _ := in.try(q); status != 422 {
			t.Errorf("key %s: status %d", key, status)
		}
	}
}
