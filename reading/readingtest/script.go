package readingtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading"
	"blobtail/record"
	"blobtail/storage/storagetest"
)

// A survey has the fields of all records, or of the newest.
func testSurvey(t *testing.T, open Open) {
	s := open(t, full(t))
	for _, c := range []struct {
		name string
		ask  reading.Ask
		o    reading.SurveyOptions
		want string
	}{
		{"all", of("*"), reading.SurveyOptions{Top: 2},
			`level is string in 31, 3 values [{info 24 string} {error 4 string}]; service is string in 31, 2 values [{web 16 string} {api 15 string}]; http is object in 30, 3 values [{{"path":"/p0"} 10 object} {{"path":"/p1"} 10 object}]; n is int in 30, 30 values [{0 1 int} {1 1 int}]; 31 looked at, newest false, of 31; 0 records`},
		{"the newest", of("*"), reading.SurveyOptions{Sample: 2, Top: 1},
			`level is string in 31, 3 values [{info 24 string}]; service is string in 31, 2 values [{web 16 string}]; http is object in 1, 1 values [{{"path":"/p2"} 1 object}]; n is int in 1, 1 values [{29 1 int}]; 2 looked at, newest true, of 31; 0 records, more`},
		{"one field", of("web", "nosuch"), reading.SurveyOptions{Fields: []string{"http.path"}},
			"http.path is string in 15, 3 values [{/p0 5 string} {/p1 5 string} {/p2 5 string}]; 16 looked at, newest false, of 16; 0 records, no nosuch"},
		{"a filter", with(of("*"), func(a *reading.Ask) { a.Where = "n > 27" }), reading.SurveyOptions{Fields: []string{"n", "level"}},
			"level is string in 2, 1 values [{info 2 string}]; n is int in 2, 2 values [{28 1 int} {29 1 int}]; 2 looked at, newest false, of 2; 0 records"},
		{"fields of messages", with(of("api"), func(a *reading.Ask) { a.Parse = "<id> took <took> ms" }), reading.SurveyOptions{Fields: []string{"took"}, Top: 1},
			"took is int in 15, 15 values [{10 1 int}]; 15 looked at, newest false, of 15; 0 records"},
		{"an unknown name", of("nosuch"), reading.SurveyOptions{},
			"no service nosuch"},
	} {
		f, out, err := s.Survey(t.Context(), c.ask, c.o)
		if err != nil {
			check(t, "survey of "+c.name, told(out, err), c.want)
			continue
		}
		text := ""
		for _, field := range f.Fields {
			text += fmt.Sprintf("%s is %s in %d, %d values %v; ", field.Name, field.Type, field.Present, field.Distinct, field.Values)
		}
		out.Records = 0
		check(t, "survey of "+c.name, fmt.Sprintf("%s%d looked at, newest %v, of %d; %s", text, f.Records, f.Newest, f.Of, told(out, nil)), c.want)
	}
}

// placeOf is the place of the record of web with a message that begins with a word.
func placeOf(t *testing.T, h *House, word string) (p reading.Place) {
	t.Helper()
	_, err := h.Reader().For(nil).Entries(t.Context(), with(of("web"), func(a *reading.Ask) { a.Words = []string{word} }), func(e *record.Entry) error {
		p = reading.Place{Service: "web", Time: e.Time, ID: e.ID}
		return nil
	})
	if err != nil || p.Service == "" {
		t.Fatalf("no record %s: %v", word, err)
	}
	return p
}

// around is a record and its neighbours in words.
func around(t *testing.T, s reading.Source, a reading.Ask, p reading.Place) string {
	t.Helper()
	n, out, err := s.Around(t.Context(), a, p)
	switch {
	case err != nil:
		return told(out, err)
	case n.Record == nil:
		return fmt.Sprintf("no record, %d neighbours", len(n.Before)+len(n.After))
	}
	var words []string
	for _, e := range slices.Concat(n.Before, []record.Entry{*n.Record}, n.After) {
		words = append(words, firsts(e.Line)...)
	}
	out.Records, out.More = 0, false
	return strings.Join(words, " ") + " (" + told(out, nil) + ")"
}

// Around a record are those next to it, of its service or of all.
func testAround(t *testing.T, open Open) {
	h := full(t)
	s := open(t, h)
	p := placeOf(t, h, "m10")
	p.Before, p.After = 2, 3
	check(t, "around", around(t, s, of("web"), p), "m6 m8 m10 m12 m14 m16 (0 records)")
	p.Others = true
	check(t, "around among all", around(t, s, of("web"), p), "m8 m9 m10 m11 m12 m13 (0 records)")
	late := placeOf(t, h, "late")
	late.Before, late.After = 1, 1
	check(t, "around the last one", around(t, s, of("web"), late), "m28 late (0 records)")
	late.Before = 0
	check(t, "the last one alone", around(t, s, of("web"), late), "late (0 records)")
	gone := p
	gone.Time = 7
	check(t, "around none", around(t, s, of("web"), gone), "no record, 0 neighbours")
	gone = p
	gone.Service, gone.Others = "nosuch", false
	check(t, "around one of no service", around(t, s, of("nosuch"), gone), "no service nosuch")
}

// once follows a question until all existing records have been emitted.
func once(t *testing.T, s reading.Source, a reading.Ask, after *reading.Cursor) (string, reading.Cursor) {
	t.Helper()
	var words []string
	text := ""
	cursor, err := s.Follow(t.Context(), a, reading.FollowOptions{
		After: after, Once: true,
		Emit: func(lines []byte) error {
			words = append(words, firsts(lines)...)
			return nil
		},
		Report: func(r *reading.Report) {
			for _, none := range r.Absent {
				text += ", no " + none.Name
			}
			for _, problem := range r.Problems {
				text += ", problem: " + problem.Error()
			}
		},
	})
	if err != nil {
		text += ", " + told(nil, err)
	}
	slices.Sort(words) // those of one moment may come in any order
	return strings.Join(words, " ") + text, cursor
}

// until follows a question until so many records have been emitted, and for a moment more.
func until(t *testing.T, s reading.Source, a reading.Ask, n int) reading.Cursor {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cursor, err := s.Follow(ctx, a, reading.FollowOptions{Emit: func(lines []byte) error {
		if n -= bytes.Count(lines, []byte("\n")); n <= 0 {
			time.AfterFunc(500*time.Millisecond, cancel) // it has looked for more then
		}
		return nil
	}})
	if n != 0 || !errors.Is(err, context.Canceled) {
		t.Fatalf("%d records more than there are, %v", n, err)
	}
	return cursor
}

// A follower begins with the newest records, or at the begin of a range, and goes on by its cursor.
func testFollow(t *testing.T, open Open) {
	h := full(t)
	s := open(t, h)
	got, _ := once(t, s, with(of("*"), func(a *reading.Ask) { a.Limit = 2 }), nil)
	check(t, "the newest", got, "late m29")
	cursor := until(t, s, with(of("*"), func(a *reading.Ask) { a.Limit = 2 }), 2)
	got, _ = once(t, s, of("*"), &cursor)
	check(t, "nothing since", got, "")
	h.Send(0, Line{Time: noon.Add(2 * time.Hour), Service: "web", Msg: "new"}, Line{Time: noon.Add(2 * time.Hour), Service: "fresh", Msg: "fresh"})
	got, next := once(t, s, of("*"), &cursor)
	check(t, "since then", got, "fresh new")
	h.Flush()
	h.Send(0, Line{Time: noon, Service: "web", Level: "error", Msg: "old"}, Line{Service: "web", Msg: "info"})
	got, _ = once(t, s, with(of("*"), func(a *reading.Ask) { a.Levels = 1 << record.Error }), &next)
	check(t, "since then, of a level", got, "old")
	from := reading.Range{From: noon.Add(time.Hour).UnixNano(), To: reading.Newest}
	got, _ = once(t, s, reading.Ask{Services: []string{"web"}, Range: from}, nil)
	check(t, "of a range", got, "info late new")
	got, _ = once(t, s, reading.Ask{LogQL: `{service=~"w.*"} |= "late"`, Range: from}, nil)
	check(t, "of LogQL", got, "late")
	got, _ = once(t, s, with(of("web", "nosuch"), func(a *reading.Ask) { a.Limit = 1 }), nil)
	check(t, "an unknown name beside another", got, "info, no nosuch")
	got, _ = once(t, s, with(of("nosuch"), func(a *reading.Ask) { a.Limit = 1 }), nil)
	check(t, "an unknown name", got, ", no service nosuch")
}

// A follower that goes on emits each record once, in whatever pieces it follows.
func testFollowOn(t *testing.T, open Open) {
	h := full(t)
	s := open(t, h)
	var all []string
	var after *reading.Cursor
	for round := range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		end := fmt.Sprint("end", round)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for i := range 5 {
				h.Send(0, Line{Service: "web", Msg: fmt.Sprintf("r%d-%d", round, i)})
			}
			h.Send(0, Line{Service: "web", Msg: end})
		}()
		a := of("web")
		if after == nil {
			a.Range.From = noon.Add(time.Hour).UnixNano()
		}
		cursor, err := s.Follow(ctx, a, reading.FollowOptions{After: after, Emit: func(lines []byte) error {
			all = append(all, firsts(lines)...)
			if slices.Contains(all, end) && len(all) == 1+6*(round+1) {
				cancel()
			}
			return nil
		}})
		<-sent
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("round %d: %v, %q", round, err, all)
		}
		after = &cursor
	}
	slices.Sort(all)
	check(t, "followed", strings.Join(all, " "), "end0 end1 end2 late r0-0 r0-1 r0-2 r0-3 r0-4 r1-0 r1-1 r1-2 r1-3 r1-4 r2-0 r2-1 r2-2 r2-3 r2-4")
}

// Lists have all services, their days and their blobs, the names, and the ingesters.
func testLists(t *testing.T, open Open) {
	h := full(t)
	s := open(t, h)
	list, out, err := s.Services(t.Context(), of("*"))
	check(t, "services", services(list)+told(out, err), "api 15 in 1 blobs and 0; web 15 in 1 blobs and 1; 2 records")
	list, out, err = s.Services(t.Context(), reading.Ask{Services: []string{"*"}, Range: reading.Range{From: noon.Add(time.Hour).UnixNano(), To: reading.Newest}})
	check(t, "services of a range", services(list)+told(out, err), "web 0 in 0 blobs and 1; 1 records")
	for _, c := range []struct {
		ask         reading.Ask
		days, blobs string
	}{
		{of("*"), "api 2026-11-20: 15 in 1 blobs from 12:01; web 2026-11-20: 15 in 1 blobs from 12:00; 1 unflushed; 0 records",
			"15 of api; 15 of web; 1 unflushed; 0 records"},
		{of("api", "nosuch"), "api 2026-11-20: 15 in 1 blobs from 12:01; 0 unflushed; 0 records, no nosuch",
			"15 of api; 0 unflushed; 0 records, no nosuch"},
		{of("nosuch"), "0 unflushed; no service nosuch",
			"0 unflushed; no service nosuch"},
		{with(of("web"), func(a *reading.Ask) { a.Live = reading.Off }), "web 2026-11-20: 15 in 1 blobs from 12:00; 0 unflushed; 0 records, warning: live: off, so no ingester is asked: records that are in no blob yet are not in this read",
			"15 of web; 0 unflushed; 0 records, warning: live: off, so no ingester is asked: records that are in no blob yet are not in this read"},
		{reading.Ask{Services: []string{"web"}, Range: reading.Range{From: 1, To: 2}}, "0 unflushed; 0 records",
			"0 unflushed; 0 records"},
	} {
		days, out, err := s.Days(t.Context(), c.ask)
		check(t, fmt.Sprint("days of ", c.ask.Services), listed(days, true)+told(out, err), c.days)
		blobs, out, err := s.Blobs(t.Context(), c.ask)
		check(t, fmt.Sprint("blobs of ", c.ask.Services), listed(blobs, false)+told(out, err), c.blobs)
	}
	names, err := s.Names(t.Context())
	check(t, "names", fmt.Sprint(names, err), "[api web] <nil>")
	rows, now, unread, err := s.Ingesters(t.Context())
	if err != nil || unread != nil || len(rows) != 1 || rows[0].ID != "00000001" || rows[0].Host != "i0" || now.Before(rows[0].At) {
		t.Errorf("ingesters: %+v, %v, %v, %v", rows, now, unread, err)
	}
}

// services is a list of services in words.
func services(list []reading.Service) (text string) {
	for i := range list {
		s := &list[i]
		text += fmt.Sprintf("%s %d in %d blobs and %d; ", s.Name, s.Records, s.Blobs, s.Unflushed)
	}
	return text
}

// listed is a list of days or blobs in words. Unflushed records may be told for each service and day,
// or for all of them.
func listed(list []reading.Listed, days bool) (text string) {
	unflushed := int64(0)
	for i := range list {
		l := &list[i]
		unflushed += l.Unflushed
		switch {
		case days:
			text += fmt.Sprintf("%s %s: %d in %d blobs from %s; ", l.Service, l.Name, l.Records, l.Blobs, time.Unix(0, l.First).UTC().Format("15:04"))
		case l.Name != "":
			text += fmt.Sprintf("%d of %s; ", l.Records, l.Service)
		}
	}
	return text + fmt.Sprintf("%d unflushed; ", unflushed)
}

// A body is as it is stored. If it is damaged, the rest comes with a problem.
func testBodies(t *testing.T, open Open) {
	h := full(t)
	s := open(t, h)
	key := h.Blobs("web")[0]
	body, warning, err := s.Body(t.Context(), key)
	if err != nil || warning != nil || !bytes.Equal(body, storagetest.Body(t, h.Store, key)) {
		t.Errorf("body: %d bytes, %v, %v", len(body), warning, err)
	}
	missing := strings.Replace(key, "web/", "gone/", 1)
	for _, key := range []string{missing, "nosuch", "_store"} {
		_, _, err = s.Body(t.Context(), key)
		if none, ok := errors.AsType[*reading.NoBlobError](err); !ok || none.Key != key {
			t.Errorf("body of %s: %v", key, err)
		}
	}
	h.Damage(key)
	_, _, err = s.Body(t.Context(), key)
	if problem, ok := errors.AsType[*reading.Problem](err); err != nil && (!ok || problem.Blob != key) {
		t.Errorf("body of a damaged blob: %T %v", err, err)
	}
}

// A question that cannot be answered is an error, and nothing is emitted.
func testRefusals(t *testing.T, open Open) {
	s := open(t, full(t))
	for name, a := range map[string]reading.Ask{
		"a condition":   with(of("web"), func(a *reading.Ask) { a.Where = "n >" }),
		"an expression": with(of("web"), func(a *reading.Ask) { a.Exprs = []string{"("} }),
		"LogQL":         {LogQL: `{service=`, Range: reading.Always()},
		"numbers":       {LogQL: `rate({service="web"}[1m])`, Range: reading.Always()},
		"a pattern":     with(of("web"), func(a *reading.Ask) { a.Parse = "nothing" }),
	} {
		check(t, name, read(t, s, a), "(error)")
		check(t, "count by "+name, told(s.Count(t.Context(), a)), "error")
		got, _ := once(t, s, a, nil)
		check(t, "follower by "+name, got, ", error")
	}
	for _, text := range []string{`count_over_time({service="web"}`, `{service="web"}`} {
		check(t, text, table(t, s, reading.Table{LogQL: text, Range: hour()}), "error")
	}
}
