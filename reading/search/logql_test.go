package search_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading"
	"blobtail/reading/readingtest"
	"blobtail/reading/search"
)

// The LogQL of a query wants the records that the query wants, or says which terms are left out, and
// then it lacks none of them.
func TestLogQL(t *testing.T) {
	text, err := os.ReadFile("testdata/logql.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(strings.TrimSuffix(string(text), "\n"), "\n")
	head, tail, _ := strings.Cut(rest, "\n# terms\n")
	oddFields, oddTerms := strings.Split(head, "\n"), strings.Split(tail, "\n")
	h := readingtest.New(t, 1)
	levels := []string{"info", "error", "warn", "debug", "critical", "trace", "odd"}
	services := []string{"web", "orders", "web-2"}
	var lines []readingtest.Line
	for i, fields := range oddFields {
		lines = append(lines, readingtest.Line{
			Time: time.Date(2026, 11, 20, 12, 0, i, 0, time.UTC), Level: levels[i%7], Service: services[i%3],
			Msg: fmt.Sprintf("m%d", i), Fields: fields,
		})
	}
	lines = append(lines, readingtest.Line{Time: lines[0].Time, Service: "web-2", Msg: "m99"})
	h.Send(0, lines...)
	h.Flush()
	store := h.Reader().For(nil)
	found := func(a reading.Ask) (all []string) {
		t.Helper()
		a.Range = reading.Always()
		if _, err := store.Records(t.Context(), a, func(lines []byte) error {
			for line := range strings.Lines(string(lines)) {
				var r struct{ Msg string }
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					return err
				}
				all = append(all, r.Msg)
			}
			return nil
		}); err != nil && !errors.As(err, new(*reading.NoneChosenError)) {
			t.Fatalf("%+v: %v", a, err)
		}
		return all
	}
	draw, exact, some := rand.New(rand.NewPCG(1, 57)), 0, 0
	for i := range 600 {
		var terms []string
		if i < 2*len(oddTerms) {
			terms = []string{[...]string{"", "-"}[i%2] + oddTerms[i/2]}
		}
		for i >= 2*len(oddTerms) && len(terms) < 2+draw.IntN(2) {
			terms = append(terms, [...]string{"", "-", "NOT "}[draw.IntN(3)]+oddTerms[draw.IntN(len(oddTerms))])
		}
		line, fold, within := strings.Join(terms, " "), draw.IntN(4) == 0, [][]string{nil, nil, {"web", "orders"}}[draw.IntN(3)]
		a := reading.Ask{Services: within, Fold: fold}
		if within == nil {
			a.Services = []string{"*"}
		}
		if a.Search(line) != nil {
			continue // as two levels are
		}
		q, err := search.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		text, notes := q.LogQL(fold, within)
		want, got := found(a), found(reading.Ask{LogQL: text})
		lacks := slices.DeleteFunc(slices.Clone(want), func(m string) bool { return slices.Contains(got, m) })
		left := slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "left out: ") })
		if len(lacks) > 0 || !left && len(got) != len(want) {
			t.Errorf("%s (fold %v, within %v)\nfinds %q\n%s\nfinds %q, left out: %v", line, fold, within, want, text, got, left)
		}
		if !left {
			exact++
			some += min(1, len(want))
		}
	}
	if t.Log(exact, some); exact < 150 || some < 100 {
		t.Errorf("%d questions have an exact LogQL, %d of them with records", exact, some)
	}
}
