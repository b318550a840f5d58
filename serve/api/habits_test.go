package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading/form"
	"blobtail/reading/readingtest"
)

// The searches of package search find over HTTP what their table says: in the records, their number, the
// histogram, facets and patterns, and in a tail. The errors say what to type, and where.
func TestHabits(t *testing.T) {
	text, err := os.ReadFile("../../reading/search/testdata/records.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	h := readingtest.New(t, 1)
	number := map[string]int{}
	var lines []readingtest.Line
	for line := range strings.Lines(string(text)) {
		var r struct {
			TS                  time.Time
			Level, Service, Msg string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(line, `"msg":`)
		msg := json.NewDecoder(strings.NewReader(rest))
		if _, err := msg.Token(); err != nil {
			t.Fatal(err)
		}
		fields := strings.TrimSuffix(strings.TrimPrefix(rest[msg.InputOffset():], ","), "}\n")
		lines = append(lines, readingtest.Line{Time: r.TS, Level: r.Level, Service: r.Service, Msg: r.Msg, Fields: fields})
		number[line] = len(lines)
	}
	h.Send(0, lines[:70]...)
	h.Flush()
	h.Send(0, lines[70:]...) // in no blob
	s := serve(t, h)
	of := func(lines string) (all []int) {
		for line := range strings.Lines(lines) {
			all = append(all, number[line])
		}
		slices.Sort(all)
		return all
	}
	if a := s.get("records?service=*&limit=0"); !slices.Equal(of(a.body), of(string(text))) {
		t.Fatalf("the store has others: %s", a.body)
	}
	text, err = os.ReadFile("../../reading/search/testdata/habits.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		var c struct {
			Of, Q, Say  string
			Fold, Found bool
			Want        []int
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		n++
		ask := url.Values{"service": {"*"}, "q": {c.Q}}
		if c.Fold {
			ask.Set("fold", "1")
		}
		to := func(route string) string { return route + "?" + ask.Encode() }
		a := s.get(to("records") + "&limit=0")
		if !c.Found {
			var problem form.Problem
			if err := json.Unmarshal([]byte(a.body), &problem); err != nil || a.status != http.StatusBadRequest {
				t.Errorf("%s: %d %s", c.Q, a.status, a.body)
			}
			if !strings.Contains(problem.Detail, c.Say) || !strings.Contains(problem.Detail, "q: column ") {
				t.Errorf("%s: %s, want %s", c.Q, problem.Detail, c.Say)
			}
			continue
		}
		if got := of(a.body); a.status != http.StatusOK || !slices.Equal(got, c.Want) {
			t.Errorf("%s: %s: %d, records %v, want %v", c.Of, c.Q, a.status, got, c.Want)
		}
		if got := object[form.Count](s, to("count")); got.Records != int64(len(c.Want)) || !got.Complete {
			t.Errorf("%s: %+v, want %d", c.Q, got, len(c.Want))
		}
		if n%4 == 0 {
			wantsAll(t, s, c.Q, to, len(c.Want))
		}
	}
	if n < 150 {
		t.Errorf("%d searches", n)
	}
}

// wantsAll asks the other routes for the number of records.
func wantsAll(t *testing.T, s *server, q string, to func(route string) string, want int) {
	t.Helper()
	total := int64(0)
	for _, b := range object[form.Histogram](s, to("histogram")).Buckets {
		total += b.Total
	}
	if total != int64(want) {
		t.Errorf("%s: a histogram of %d, want %d", q, total, want)
	}
	if got := object[form.Facets](s, to("facets")).Basis.Records; got != int64(want) {
		t.Errorf("%s: facets of %d, want %d", q, got, want)
	}
	if got := object[form.Patterns](s, to("patterns")).Basis.Records; got != int64(want) {
		t.Errorf("%s: patterns of %d, want %d", q, got, want)
	}
	tail := s.get(to("tail") + "&once=1&n=1000&from=2026-11-20")
	if got := strings.Count(tail.body, `"msg":`); tail.status != http.StatusOK || got != want {
		t.Errorf("%s: a tail of %d, want %d: %d %.900s", q, got, want, tail.status, tail.body)
	}
}
