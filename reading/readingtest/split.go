package readingtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading"
	"blobtail/reading/survey"
	"blobtail/record"
)

// split is a histogram by fields in words.
func split(t *testing.T, s reading.Source, a reading.Ask, by reading.Slices) string {
	t.Helper()
	h, out, err := s.Histogram(t.Context(), a, by)
	if err != nil {
		return told(out, err)
	}
	text, keys := fmt.Sprintf("by %s", h.By), map[string]bool{}
	for i, key := range h.Keys() {
		if keys[key] {
			t.Errorf("two values have the key %s: %+v", key, h.Values)
		}
		keys[key] = true
		text += fmt.Sprintf(", %s %d", key, h.Values[i].Count)
	}
	for i := range h.Buckets {
		b := &h.Buckets[i]
		text += fmt.Sprintf("; %s %d: %v and %d", time.Unix(0, b.Start).UTC().Format("15:04"), b.Total(), b.Parts, b.Others)
	}
	if h.Capped || h.Short > 0 {
		text += fmt.Sprintf(", capped, short by %d", h.Short)
	}
	return text + "; " + told(out, nil)
}

// A histogram by fields has the most frequent values of all records, and the numbers of each.
func testSplit(t *testing.T, open Open) {
	s := open(t, full(t))
	by := func(top int, fields ...string) reading.Slices {
		return reading.Slices{By: 30 * time.Minute, Split: fields, Top: top}
	}
	for _, c := range []struct {
		name string
		ask  reading.Ask
		by   reading.Slices
		want string
	}{
		{"a field", of("*"), by(0, "http.path"),
			"by 30m0s, /p0 10, /p1 10, /p2 10, (none) 1; 12:00 30: [10 10 10 0] and 0; 13:00 1: [0 0 0 1] and 0; 31 records"},
		{"a field, two values", of("*"), by(2, "http.path"),
			"by 30m0s, /p0 10, /p1 10; 12:00 30: [10 10] and 10; 13:00 1: [0 0] and 1; 31 records"},
		{"level", of("*"), by(2, "level"),
			"by 30m0s, info 24, error 4; 12:00 30: [24 3] and 3; 13:00 1: [0 1] and 0; 31 records"},
		{"service", of("*"), by(0, "service"),
			"by 30m0s, web 16, api 15; 12:00 30: [15 15] and 0; 13:00 1: [1 0] and 0; 31 records"},
		{"level and service", of("*"), by(3, "level", "service"),
			"by 30m0s, info / api 12, info / web 12, error / api 3; 12:00 30: [12 12 3] and 3; 13:00 1: [0 0 0] and 1; 31 records"},
		{"level and service of a text", with(of("*"), func(a *reading.Ask) { a.Texts = []string{"took 2"} }), by(0, "service", "level"),
			"by 30m0s, web / info 5, api / info 4, api / error 1, web / warn 1; 12:00 11: [5 4 1 1] and 0; 11 records"},
		{"two fields", of("web"), by(2, "level", "http.path"),
			"by 30m0s, info / /p0 4, info / /p1 4; 12:00 15: [4 4] and 7; 13:00 1: [0 0] and 1; 16 records"},
		{"a field of levels without a limit", with(of("*"), func(a *reading.Ask) { a.Levels, a.Limit = 1<<record.Error, 1 }), by(0, "service"),
			"by 30m0s, api 3, web 1; 12:00 3: [3 0] and 0; 13:00 1: [0 1] and 0; 4 records"},
		{"a field of messages", with(of("api"), func(a *reading.Ask) { a.Parse, a.Where = "<id> took <took> ms", "took > 250" }), by(1, "took"),
			"by 30m0s, 270 1; 12:00 2: [1] and 1; 2 records"},
		{"a field of LogQL", reading.Ask{LogQL: `{service="web"} | n > 24`, Range: reading.Always()}, by(0, "n"),
			"by 30m0s, 26 1, 28 1; 12:00 2: [1 1] and 0; 2 records"},
		{"unflushed records", with(of("*"), func(a *reading.Ask) { a.Live = reading.Only }), by(0, "level", "n"),
			"by 30m0s, error / (none) 1; 13:00 1: [1] and 0; 1 records"},
		{"no records", reading.Ask{Services: []string{"web"}, Range: reading.Range{From: 1, To: 2}}, by(0, "n"),
			"by 30m0s; 0 records"},
		{"a known and an unknown name", of("api", "nosuch"), by(0, "service"),
			"by 30m0s, api 15; 12:00 15: [15] and 0; 15 records, no nosuch"},
		{"an unknown name", of("nosuch"), by(0, "n"),
			"no service nosuch"},
	} {
		check(t, "split by "+c.name, split(t, s, c.ask, c.by), c.want)
	}
	testSplits(t, open)
}

// testSplits compares splits of drawn records with a plain count.
func testSplits(t *testing.T, open Open) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	h := New(t, 2)
	values := []string{"", `"a":1`, `"a":"1"`, `"a":1.0`, `"a":null`, `"a":""`, `"a":"(none)"`, `"a":{"b":"x,y"}`, `"a":[1]`, `"a":true`, `"a.b":"dot"`, `"a":"\"1\""`, `"a":"x / y"`, `"a,c":"comma"`}
	send := func(n int) {
		var lines []Line
		for range n {
			fields := values[rng.IntN(len(values))]
			if fields != "" {
				fields += ","
			}
			lines = append(lines, Line{
				Time: noon.Add(time.Duration(rng.IntN(7200)) * time.Second), Service: []string{"web", "api", "db"}[rng.IntN(3)],
				Level: []string{"info", "warn", "error", "loud"}[rng.IntN(4)], Msg: fmt.Sprint("m", rng.IntN(9)), Fields: fmt.Sprintf(`%s"n":%d`, fields, rng.IntN(4)),
			})
		}
		h.Send(rng.IntN(2), lines...)
	}
	for range 4 {
		send(80)
		h.Flush()
	}
	send(60)
	s := open(t, h)
	kolkata := time.FixedZone("+05:30", 19800)
	fields := []string{"a", "a.b", "n", "level", "service", "a,c", "msg", "nosuch"}
	for range 60 {
		a := of([]string{"*", "web", "w*"}[rng.IntN(3)])
		if rng.IntN(2) == 0 {
			a.Range = reading.Range{From: noon.Add(time.Duration(rng.IntN(60)) * time.Minute).UnixNano(), To: noon.Add(time.Duration(60+rng.IntN(60)) * time.Minute).UnixNano()}
		}
		switch rng.IntN(4) {
		case 0:
			a.Levels = 1<<record.Error | 1<<record.Other
		case 1:
			a.Texts = []string{"m1"}
		case 2:
			a.Where, a.Without = "n > 1", []string{"m2"}
		}
		by := reading.Slices{By: []time.Duration{time.Minute, 17 * time.Second, time.Hour}[rng.IntN(3)], Top: 1 + rng.IntN(9), Zone: []*time.Location{nil, kolkata}[rng.IntN(2)]}
		by.Split = []string{fields[rng.IntN(len(fields))]}
		if other := fields[rng.IntN(len(fields))]; other != by.Split[0] {
			by.Split = append(by.Split, other)
		}
		got, want := split(t, s, a, by), plainSplit(t, s, a, by)
		if text, _, _ := strings.Cut(got, "; 0 records"); !strings.HasPrefix(got, want) && text != want {
			t.Fatalf("seed %d: split by %q, top %d, of %+v\n%s\nand by a plain count\n%s", seed, by.Split, by.Top, a, got, want)
		}
	}
}

// plainSplit counts the records of a question one by one.
func plainSplit(t *testing.T, s reading.Source, a reading.Ask, by reading.Slices) string {
	t.Helper()
	cut := reading.Buckets{Length: by.By, Zone: by.Zone}
	counts, cells, starts := map[string]int64{}, map[int64]map[string]int64{}, []int64{}
	_, err := s.Records(t.Context(), a, func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			var whole map[string]json.RawMessage
			if err := json.Unmarshal(line, &whole); err != nil {
				return err
			}
			var texts []string
			for _, name := range by.Split {
				value, ok := whole[name]
				if outer, inner, dotted := strings.Cut(name, "."); !ok && dotted {
					var object map[string]json.RawMessage
					_ = json.Unmarshal(whole[outer], &object) // it may be none
					value = object[inner]
				}
				if name == "level" {
					value = []byte(`"` + record.LevelOf(bytes.Trim(value, `"`)).String() + `"`)
				}
				texts = append(texts, string(value))
			}
			ns, _ := record.LineTime(line)
			start, text := cut.Start(ns), survey.Join(texts)
			if cells[start] == nil {
				cells[start] = map[string]int64{}
				starts = append(starts, start)
			}
			counts[text]++
			cells[start][text]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h := &reading.Histogram{}
	for text, n := range counts {
		h.Values = append(h.Values, survey.Value{Text: text, Count: n})
	}
	slices.SortFunc(h.Values, func(a, b survey.Value) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text)) })
	h.Values = h.Values[:min(by.Top, len(h.Values))]
	text := fmt.Sprintf("by %s", by.By)
	for i, key := range h.Keys() {
		text += fmt.Sprintf(", %s %d", key, h.Values[i].Count)
	}
	slices.Sort(starts)
	for _, start := range starts {
		parts, others, total := make([]int64, len(h.Values)), int64(0), int64(0)
		for value, n := range cells[start] {
			total += n
			if i := slices.IndexFunc(h.Values, func(v survey.Value) bool { return v.Text == value }); i >= 0 {
				parts[i] = n
			} else {
				others += n
			}
		}
		text += fmt.Sprintf("; %s %d: %v and %d", time.Unix(0, start).UTC().Format("15:04"), total, parts, others)
	}
	return text
}
