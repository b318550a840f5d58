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
)

// Open makes a source over a house, for the holder of a token that may read some services; none:
// for somebody who may read everything.
type Open func(t *testing.T, h *House, read ...string) reading.Source

// Run puts fixed questions to a source and compares the answers with the ones that are right. Each
// implementation of [reading.Source] runs it.
func Run(t *testing.T, open Open) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Open)
	}{
		{"Records", testRecords},
		{"Without", testWithout},
		{"Split", testSplit},
		{"Edges", testEdges},
		{"Tail", testTail},
		{"Numbers", testNumbers},
		{"Survey", testSurvey},
		{"Patterns", testPatterns},
		{"Around", testAround},
		{"Follow", testFollow},
		{"FollowOn", testFollowOn},
		{"Lists", testLists},
		{"Bodies", testBodies},
		{"Refusals", testRefusals},
		{"Stopped", testStopped},
		{"Killed", testKilled},
		{"Damaged", testDamaged},
		{"Token", testToken},
		{"Cancelled", testCancelled},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open) })
	}
}

// noon is the time of the first record of a full house.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// full is a house with 30 records in blobs, one a minute, by turns of web and api, and with one of web
// that is in no blob.
func full(t *testing.T) *House {
	h := New(t, 1)
	var lines []Line
	for i := range 30 {
		lines = append(lines, Line{
			Time: noon.Add(time.Duration(i) * time.Minute), Service: []string{"web", "api"}[i%2], Level: map[int]string{3: "error", 6: "warn"}[i%10],
			Msg: fmt.Sprintf("m%d took %d ms", i, i*10), Fields: fmt.Sprintf(`"n":%d,"http":{"path":"/p%d"}`, i, i%3),
		})
	}
	h.Send(0, lines...)
	h.Flush()
	h.Send(0, Line{Time: noon.Add(time.Hour), Service: "web", Level: "error", Msg: "late"})
	return h
}

// hour is the hour of the records in blobs.
func hour() reading.Range {
	return reading.Range{From: noon.UnixNano(), To: noon.Add(time.Hour).UnixNano()}
}

// of is a question for services at all times.
func of(services ...string) reading.Ask {
	return reading.Ask{Services: services, Range: reading.Always()}
}

// with returns a question with a change.
func with(a reading.Ask, change func(a *reading.Ask)) reading.Ask {
	change(&a)
	return a
}

// firsts are the first words of the messages of lines.
func firsts(lines []byte) (words []string) {
	for line := range bytes.Lines(lines) {
		msg, _ := record.Lookup(line, "msg")
		word, _, _ := strings.Cut(strings.Trim(string(msg), `"`), " ")
		words = append(words, word)
	}
	return words
}

// told puts an outcome into words.
func told(out *reading.Outcome, err error) string {
	none, isNone := errors.AsType[*reading.NoServiceError](err)
	switch {
	case isNone:
		return "no service " + none.Name
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case err != nil:
		return "error"
	}
	text := fmt.Sprint(out.Records, " records")
	if out.More {
		text += ", more"
	}
	for _, none := range out.Absent {
		text += ", no " + none.Name
	}
	for _, note := range out.Notes {
		text += ", note: " + note
	}
	for _, warning := range out.Warnings {
		text += ", warning: " + warning.Error()
	}
	if !out.Complete() {
		text += fmt.Sprintf(", incomplete for %d reasons", len(out.Problems()))
	}
	return text
}

// read reads the records of a question, as their first words and an outcome in words.
func read(t *testing.T, s reading.Source, a reading.Ask) string {
	t.Helper()
	var words []string
	out, err := s.Records(t.Context(), a, func(lines []byte) error {
		words = append(words, firsts(lines)...)
		return nil
	})
	return strings.Join(append(words, "("+told(out, err)+")"), " ")
}

// check compares an answer with the right one.
func check(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n\t%s\nright is\n\t%s", what, got, want)
	}
}

// Records come in order, by each part of a question.
func testRecords(t *testing.T, open Open) {
	s := open(t, full(t))
	early, all := reading.Ask{Services: []string{"*"}, Range: hour()}, of("*")
	for _, c := range []struct {
		name string
		ask  reading.Ask
		want string
	}{
		{"the newest", with(early, func(a *reading.Ask) { a.Limit = 3 }),
			"m27 m28 m29 (3 records, more)"},
		{"the newest, newest first", with(all, func(a *reading.Ask) { a.Limit, a.Reverse = 3, true }),
			"late m29 m28 (3 records, more)"},
		{"the oldest", with(all, func(a *reading.Ask) { a.First = 2 }),
			"m0 m1 (2 records, more)"},
		{"the oldest, newest first", with(all, func(a *reading.Ask) { a.First, a.Reverse = 2, true }),
			"m1 m0 (2 records, more)"},
		{"more than there are", with(of("web"), func(a *reading.Ask) { a.Limit, a.Where = 5, "n > 24" }),
			"m26 m28 (2 records)"},
		{"a range", reading.Ask{Services: []string{"api"}, Range: reading.Range{From: noon.Add(time.Minute).UnixNano(), To: noon.Add(5 * time.Minute).UnixNano()}},
			"m1 m3 (2 records)"},
		{"an empty range", reading.Ask{Services: []string{"api"}, Range: reading.Range{From: 1, To: 2}},
			"(0 records)"},
		{"levels", with(all, func(a *reading.Ask) { a.Levels = 1 << record.Error }),
			"m3 m13 m23 late (4 records)"},
		{"not levels", with(all, func(a *reading.Ask) { a.NotLevels = 1<<record.Info | 1<<record.Warn }),
			"m3 m13 m23 late (4 records)"},
		{"levels and not levels", with(all, func(a *reading.Ask) { a.Levels, a.NotLevels = 1<<record.Warn|1<<record.Error, 1<<record.Error }),
			"m6 m16 m26 (3 records)"},
		{"a text", with(all, func(a *reading.Ask) { a.Texts = []string{"took 20"} }),
			"m2 m20 (2 records)"},
		{"a word", with(all, func(a *reading.Ask) { a.Words = []string{"20"} }),
			"m2 m20 (2 records)"},
		{"two texts, folded", with(all, func(a *reading.Ask) { a.Texts, a.Fold = []string{"TOOK", "M7"}, true }),
			"m7 (1 records)"},
		{"an expression", with(all, func(a *reading.Ask) { a.Exprs = []string{"^m[12] "} }),
			"m1 m2 (2 records)"},
		{"an expression in a line", with(all, func(a *reading.Ask) { a.Exprs = []string{"m[12] took"} }),
			"m1 m2 (2 records)"},
		{"not", with(all, func(a *reading.Ask) { a.Texts, a.Not = []string{"took"}, true }),
			"late (1 records)"},
		{"a condition", with(all, func(a *reading.Ask) { a.Where = `http.path == "/p1" and n < 10` }),
			"m1 m4 m7 (3 records)"},
		{"a condition over a field that there is not", with(of("api"), func(a *reading.Ask) { a.Where = "nosuch > 1" }),
			`(0 records, note: where: no record has the field "nosuch"; there are http, level, msg, n, service, ts)`},
		{"fields of a pattern", with(all, func(a *reading.Ask) { a.Parse, a.Where = "<id> took <took> ms", "took > 270" }),
			"m28 m29 (2 records)"},
		{"LogQL", reading.Ask{LogQL: `{service="web"} |= "took" | n > 24`, Range: reading.Always()},
			"m26 m28 (2 records)"},
		{"LogQL with a limit", reading.Ask{LogQL: `{service=~"a.*|w.*"}`, Range: reading.Always(), Limit: 2},
			"m29 late (2 records, more)"},
		{"LogQL that chooses no service", reading.Ask{LogQL: `{service=~"x.*"}`, Range: reading.Always()},
			"(error)"},
		{"LogQL of a name that there is not", reading.Ask{LogQL: `{service="nosuch"}`, Range: reading.Always()},
			"(no service nosuch)"},
		{"an unknown name", of("nosuch"),
			"(no service nosuch)"},
		{"unknown names", of("nosuch", "other"),
			"(no service nosuch)"},
		{"a known and an unknown name", with(of("web", "nosuch"), func(a *reading.Ask) { a.Limit = 1 }),
			"late (1 records, more, no nosuch)"},
		{"a known name and a glob without a match", with(of("web", "x*"), func(a *reading.Ask) { a.Limit = 1 }),
			"late (1 records, more)"},
		{"a glob without a match", of("x*"),
			"(no service x*)"},
		{"an unknown name and a glob without a match", of("nosuch", "x*"),
			"(no service nosuch)"},
		{"blobs", with(of("web"), func(a *reading.Ask) { a.Live, a.Limit = reading.Off, 1 }),
			"m28 (1 records, more, warning: live: off, so no ingester is asked: records that are in no blob yet are not in this read)"},
		{"unflushed records", with(all, func(a *reading.Ask) { a.Live = reading.Only }),
			"late (1 records)"},
		{"unflushed records of a service without", with(of("api"), func(a *reading.Ask) { a.Live = reading.Only }),
			"(0 records)"},
	} {
		check(t, c.name, read(t, s, c.ask), c.want)
	}
}

// A tail begins with the newest records.
func testTail(t *testing.T, open Open) {
	s := open(t, full(t))
	var tail []string
	out, err := s.Tail(t.Context(), with(of("*"), func(a *reading.Ask) { a.Limit = 2 }), func(lines []byte) error {
		tail = append(tail, firsts(lines)...)
		return nil
	})
	check(t, "tail", fmt.Sprint(tail, " ", told(out, err)), "[m29 late] 2 records, more")
}

// Counts, histograms and tables have the numbers of all records.
func testNumbers(t *testing.T, open Open) {
	s := open(t, full(t))
	for _, c := range []struct {
		name                    string
		ask                     reading.Ask
		count, histogram, given string
	}{
		{"all", of("*"), "31 records",
			"by 30m0s: 30 at 12:00 with 3 errors, 1 at 13:00 with 1 errors, from 12:00 to 13:00, 31 records",
			"by 20m0s: 20 at 12:00 with 2 errors, 10 at 12:20 with 1 errors, 1 at 13:00 with 1 errors, from 12:00 to 13:00, 31 records"},
		{"an hour", reading.Ask{Services: []string{"web"}, Range: hour()}, "15 records",
			"by 30m0s: 15 at 12:00 with 0 errors, from 12:00 to 12:28, 15 records",
			"by 20m0s: 10 at 12:00 with 0 errors, 5 at 12:20 with 0 errors, from 12:00 to 12:28, 15 records"},
		{"a limit", with(of("*"), func(a *reading.Ask) { a.Limit = 4 }), "4 records, more",
			"by 30m0s: 30 at 12:00 with 3 errors, 1 at 13:00 with 1 errors, from 12:00 to 13:00, 31 records",
			"by 20m0s: 20 at 12:00 with 2 errors, 10 at 12:20 with 1 errors, 1 at 13:00 with 1 errors, from 12:00 to 13:00, 31 records"},
		{"a level", with(of("*"), func(a *reading.Ask) { a.Levels = 1 << record.Warn }), "3 records",
			"by 10m0s: 1 at 12:00 with 0 errors, 1 at 12:10 with 0 errors, 1 at 12:20 with 0 errors, from 12:00 to 12:29, 3 records",
			"by 20m0s: 2 at 12:00 with 0 errors, 1 at 12:20 with 0 errors, from 12:00 to 12:29, 3 records"},
		{"a text", with(of("*"), func(a *reading.Ask) { a.Texts = []string{"took 20"} }), "2 records",
			"by 30m0s: 2 at 12:00 with 0 errors, from 12:00 to 13:00, 2 records",
			"by 20m0s: 1 at 12:00 with 0 errors, 1 at 12:20 with 0 errors, from 12:00 to 13:00, 2 records"},
		{"LogQL", reading.Ask{LogQL: `{service="web"} |= "late"`, Range: reading.Always()}, "1 records",
			"by 30m0s: 1 at 13:00 with 1 errors, from 12:00 to 13:00, 1 records",
			"by 20m0s: 1 at 13:00 with 1 errors, from 12:00 to 13:00, 1 records"},
		{"unflushed records", with(of("*"), func(a *reading.Ask) { a.Live = reading.Only }), "1 records",
			"by 1s: 1 at 13:00 with 1 errors, from 13:00 to 13:00, 1 records",
			"by 20m0s: 1 at 13:00 with 1 errors, from 13:00 to 13:00, 1 records"},
		{"a known and an unknown name", of("api", "nosuch"), "15 records, no nosuch",
			"by 10m0s: 5 at 12:00 with 1 errors, 5 at 12:10 with 1 errors, 5 at 12:20 with 1 errors, from 12:01 to 12:29, 15 records, no nosuch",
			"by 20m0s: 10 at 12:00 with 2 errors, 5 at 12:20 with 1 errors, from 12:01 to 12:29, 15 records, no nosuch"},
		{"an unknown name", of("nosuch"), "no service nosuch",
			"no service nosuch",
			"no service nosuch"},
		{"an empty range", reading.Ask{Services: []string{"web"}, Range: reading.Range{From: 1, To: 2}}, "0 records",
			"by 1m0s: 0 records",
			"by 20m0s: 0 records"},
	} {
		check(t, "count of "+c.name, told(s.Count(t.Context(), c.ask)), c.count)
		check(t, "histogram of "+c.name, histogram(t, s, c.ask, reading.Slices{Most: 3}), c.histogram)
		check(t, "histogram by 20 minutes of "+c.name, histogram(t, s, c.ask, reading.Slices{By: 20 * time.Minute, Zone: time.UTC}), c.given)
	}
	for _, c := range []struct {
		name  string
		table reading.Table
		want  string
	}{
		{"points", reading.Table{LogQL: `sum by (service) (count_over_time({service=~".+"}[30m]))`, Range: hour(), Step: 30 * time.Minute},
			"service=api 12:30 15 ; service=web 12:30 15 0 records"},
		{"one point", reading.Table{LogQL: `sum by (level) (count_over_time({service=~".+"}[2h]))`, Range: reading.Range{From: hour().From, To: noon.Add(61 * time.Minute).UnixNano()}},
			"level=error 13:01 4 ; level=info 13:01 24 ; level=warn 13:01 3 0 records"},
		{"fields", reading.Table{LogQL: `max(max_over_time({service="api"} | unwrap n [1h]))`, Range: hour()},
			"13:00 29 0 records"},
		{"a number", reading.Table{LogQL: `1 + 1`, Range: hour()},
			"13:00 2 0 records"},
		{"no service", reading.Table{LogQL: `count_over_time({service="nosuch"}[1h])`, Range: hour()},
			"0 records"},
	} {
		check(t, "table of "+c.name, table(t, s, c.table), c.want)
	}
}

// histogram is a histogram in words.
func histogram(t *testing.T, s reading.Source, a reading.Ask, by reading.Slices) string {
	t.Helper()
	h, out, err := s.Histogram(t.Context(), a, by)
	if err != nil {
		return told(out, err)
	}
	text := fmt.Sprintf("by %s:", h.By)
	for _, b := range h.Buckets {
		n := int64(0)
		for _, of := range b.Levels {
			n += of
		}
		text += fmt.Sprintf(" %d at %s with %d errors,", n, time.Unix(0, b.Start).UTC().Format("15:04"), b.Levels[record.Error])
	}
	if h.Any {
		text += fmt.Sprintf(" from %s to %s,", time.Unix(0, h.First).UTC().Format("15:04"), time.Unix(0, h.Last).UTC().Format("15:04"))
	}
	return text + " " + told(out, nil)
}

// table is a table in words.
func table(t *testing.T, s reading.Source, of reading.Table) string {
	t.Helper()
	rows, out, err := s.Table(t.Context(), of)
	if err != nil {
		return told(out, err)
	}
	var texts []string
	for _, row := range rows {
		text := ""
		for _, l := range row.Labels {
			text += l.Name + "=" + l.Value + " "
		}
		for _, p := range row.Points {
			text += fmt.Sprintf("%s %v ", time.Unix(0, p.Time).UTC().Format("15:04"), p.Value)
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	out.Records = 0 // a source may count rows, or the records that it read
	return strings.Join(texts, "; ") + told(out, nil)
}
