package readingtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"blobtail/reading"
)

// An error of emit ends a read or a follower, and is returned as it is.
func testStopped(t *testing.T, open Open) {
	s := open(t, full(t))
	enough := errors.New("enough")
	stop := func([]byte) error { return enough }
	if _, err := s.Records(t.Context(), of("*"), stop); err != enough {
		t.Errorf("records: %v", err)
	}
	if _, err := s.Tail(t.Context(), with(of("*"), func(a *reading.Ask) { a.Limit = 5 }), stop); err != enough {
		t.Errorf("tail: %v", err)
	}
	if _, err := s.Follow(t.Context(), with(of("*"), func(a *reading.Ask) { a.Limit = 5 }), reading.FollowOptions{Emit: stop}); err != enough {
		t.Errorf("follow: %v", err)
	}
}

// outcomes are the outcomes of all questions that have one, by their names.
func outcomes(ctx context.Context, s reading.Source, a reading.Ask, p reading.Place) map[string]string {
	silent := func([]byte) error { return nil }
	all := map[string]string{}
	note := func(what string, out *reading.Outcome, err error) {
		switch {
		case err != nil:
			all[what] = told(out, err)
		case out.Complete():
			all[what] = "complete"
		default:
			all[what] = "incomplete"
		}
	}
	out, err := s.Records(ctx, a, silent)
	note("records", out, err)
	out, err = s.Records(ctx, with(a, func(a *reading.Ask) { a.Limit = 1000 }), silent)
	note("newest", out, err)
	out, err = s.Tail(ctx, with(a, func(a *reading.Ask) { a.Limit = 1000 }), silent)
	note("tail", out, err)
	out, err = s.Count(ctx, with(a, func(a *reading.Ask) { a.Texts = []string{"m"} }))
	note("count", out, err)
	_, out, err = s.Histogram(ctx, with(a, func(a *reading.Ask) { a.Texts = []string{"m"} }), reading.Slices{})
	note("histogram", out, err)
	_, out, err = s.Histogram(ctx, a, reading.Slices{Split: []string{"level", "n"}})
	note("split", out, err)
	_, out, err = s.Histogram(ctx, a, reading.Slices{By: time.Second, Split: []string{"level", "service"}})
	note("split by index", out, err)
	_, out, err = s.Table(ctx, reading.Table{LogQL: `sum(count_over_time({service=~".+"} |= "m" [2h]))`, Range: reading.Range{From: noon.UnixNano(), To: noon.Add(2 * time.Hour).UnixNano()}})
	note("table", out, err)
	_, out, err = s.Survey(ctx, a, reading.SurveyOptions{})
	note("survey", out, err)
	_, out, err = s.Patterns(ctx, a, reading.PatternOptions{Against: &reading.Range{From: reading.Oldest, To: noon.UnixNano()}})
	note("patterns", out, err)
	_, out, err = s.Around(ctx, a, p)
	note("around", out, err)
	_, out, err = s.Services(ctx, a)
	note("services", out, err)
	_, out, err = s.Days(ctx, a)
	note("days", out, err)
	_, out, err = s.Blobs(ctx, a)
	note("blobs", out, err)
	return all
}

// compare compares the outcomes of all questions with the right one, but for some.
func compare(t *testing.T, got map[string]string, want string, but map[string]string) {
	t.Helper()
	for what, told := range got {
		right, ok := but[what]
		if !ok {
			right = want
		}
		check(t, what, told, right)
	}
}

// While an ingester is away with its records, no answer is complete, and a service that only it may
// have is not absent.
func testKilled(t *testing.T, open Open) {
	h := New(t, 2)
	h.Send(0, Line{Time: noon, Service: "web", Msg: "m1"}, Line{Time: noon.Add(time.Minute), Service: "web", Msg: "m2"})
	h.Flush()
	h.Send(1, Line{Time: noon.Add(time.Hour), Service: "gone", Msg: "m3"})
	s := open(t, h)
	p := placeOf(t, h, "m1")
	p.Before, p.After, p.Others = 5, 5, true
	compare(t, outcomes(t.Context(), s, of("*"), p), "complete", nil)
	h.Kill(1)
	compare(t, outcomes(t.Context(), s, of("*"), p), "incomplete", nil)
	compare(t, outcomes(t.Context(), s, with(of("*"), func(a *reading.Ask) { a.Live = reading.Off }), p), "complete", map[string]string{"table": "incomplete"})
	out, err := s.Records(t.Context(), of("web"), func([]byte) error { return nil })
	if err != nil || len(out.Problems()) != 1 || !strings.Contains(out.Problems()[0].Error(), "i1") {
		t.Errorf("the problem of the ingester i1: %v, %v", out.Problems(), err)
	}
	for _, name := range []string{"gone", "nosuch"} {
		out, err := s.Count(t.Context(), of(name))
		if err != nil || out.Complete() || len(out.Absent) > 0 || out.Records != 0 {
			t.Errorf("count of %s: %s", name, told(out, err))
		}
		out, err = s.Count(t.Context(), of("web", name))
		if err != nil || out.Complete() || len(out.Absent) > 0 || out.Records != 2 {
			t.Errorf("count of web and %s: %s", name, told(out, err))
		}
	}
	h.Start(1) // its row is of its last start for a moment
	for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		if out, err := s.Count(t.Context(), of("*")); err == nil && out.Complete() {
			break
		}
	}
	compare(t, outcomes(t.Context(), s, of("*"), p), "complete", nil)
}

// Answers that need a damaged blob are incomplete, and have the rest.
func testDamaged(t *testing.T, open Open) {
	h := full(t)
	s := open(t, h)
	p := placeOf(t, h, "m10")
	p.Before, p.After = 5, 5
	h.Damage(h.Blobs("api")[0])
	p.Others = true
	// Lists rest on names and properties, and not on what is in a blob.
	compare(t, outcomes(t.Context(), s, of("*"), p), "incomplete", map[string]string{"services": "complete", "days": "complete", "blobs": "complete"})
	check(t, "the rest", read(t, s, with(of("*"), func(a *reading.Ask) { a.Where = "n >= 20 or n == nil" })), "m20 m22 m24 m26 m28 late (6 records, incomplete for 1 reasons)")
	check(t, "another service", told(s.Count(t.Context(), of("web"))), "16 records")
}

// What the holder of a token may not read does not exist for it.
func testToken(t *testing.T, open Open) {
	h := full(t)
	h.Send(0, Line{Time: noon.Add(time.Hour), Service: "hidden", Msg: "hidden"})
	s := open(t, h, "web", "fresh-*")
	newest := func(services ...string) reading.Ask {
		return with(of(services...), func(a *reading.Ask) { a.Limit = 2 })
	}
	for _, c := range []struct {
		ask  reading.Ask
		want string
	}{
		{newest("*"), "m28 late (2 records, more)"},
		{newest("web", "api"), "m28 late (2 records, more, no api)"},
		{newest("hidden"), "(no service hidden)"},
		{newest("a*", "hid*"), "(no service a*)"},
		{newest("web", "a*"), "m28 late (2 records, more)"},
		{reading.Ask{LogQL: `{service=~".+"} | n > 25 or n < 1`, Range: reading.Always()}, "m0 m26 m28 (3 records)"},
	} {
		check(t, fmt.Sprint(c.ask.Services, c.ask.LogQL), read(t, s, c.ask), c.want)
	}
	check(t, "count", told(s.Count(t.Context(), of("*"))), "16 records")
	check(t, "histogram", histogram(t, s, of("*"), reading.Slices{By: 24 * time.Hour}), "by 24h0m0s: 16 at 00:00 with 1 errors, from 12:00 to 13:00, 16 records")
	check(t, "split", split(t, s, of("*"), reading.Slices{By: 24 * time.Hour, Split: []string{"service"}}), "by 24h0m0s, web 16; 00:00 16: [16] and 0; 16 records")
	check(t, "split by a field", split(t, s, of("*"), reading.Slices{By: 24 * time.Hour, Split: []string{"service", "nosuch"}}), "by 24h0m0s, web / (none) 16; 00:00 16: [16] and 0; 16 records")
	check(t, "table", table(t, s, reading.Table{LogQL: `sum by (service) (count_over_time({service=~".+"}[2h]))`, Range: reading.Range{From: 0, To: noon.Add(2 * time.Hour).UnixNano()}}), "service=web 14:00 16 0 records")
	list, out, err := s.Services(t.Context(), of("*"))
	check(t, "services", services(list)+told(out, err), "web 15 in 1 blobs and 1; 1 records")
	days, out, err := s.Days(t.Context(), of("*"))
	check(t, "days", listed(days, true)+told(out, err), "web 2026-11-20: 15 in 1 blobs from 12:00; 1 unflushed; 0 records")
	names, err := s.Names(t.Context())
	check(t, "names", fmt.Sprint(names, err), "[web] <nil>")
	_, _, err = s.Body(t.Context(), h.Blobs("api")[0])
	if _, none := errors.AsType[*reading.NoBlobError](err); !none {
		t.Errorf("body of a service that is hidden: %v", err)
	}
	h.Send(0, Line{Service: "fresh-1", Msg: "fresh"})
	got, _ := once(t, s, newest("*"), nil)
	check(t, "follower", got, "fresh late")
}

// A question whose context has ended has no answer.
func testCancelled(t *testing.T, open Open) {
	h := full(t)
	s := open(t, h)
	p := placeOf(t, h, "m10")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	compare(t, outcomes(ctx, s, of("*"), p), "cancelled", nil)
	_, err := s.Follow(ctx, of("*"), reading.FollowOptions{Emit: func([]byte) error { return nil }})
	check(t, "follow", told(nil, err), "cancelled")
	_, err = s.Names(ctx)
	check(t, "names", told(nil, err), "cancelled")
	_, _, err = s.Body(ctx, h.Blobs("web")[0])
	check(t, "body", told(nil, err), "cancelled")
	_, _, _, err = s.Ingesters(ctx)
	check(t, "ingesters", told(nil, err), "cancelled")
}
