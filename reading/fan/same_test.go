package fan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/reading/readingtest"
	"blobtail/record"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// drawn fills a house with records of some hours: many of equal times, copies, late ones, and some in no
// blob.
func drawn(t *testing.T, rng *rand.Rand) *readingtest.House {
	h := readingtest.New(t, 2)
	number := 0
	send := func(n, hours int) {
		var lines []readingtest.Line
		for range n {
			at := noon.Add(time.Duration(rng.IntN(hours*60)) * time.Minute)
			if rng.IntN(3) == 0 {
				at = at.Truncate(time.Hour).Add(time.Duration(rng.IntN(5) - 2)) // also before the hour
			}
			long := strings.Repeat(string(rune('a'+number%26)), rng.IntN(200))
			msg := fmt.Sprintf("m%d took %d ms %s", number, rng.IntN(50), long)
			if number%9 == 0 {
				msg = fmt.Sprintf(`{"took":%d}`, number) // the workers have a form for it, and the asker has none
			}
			lines = append(lines, readingtest.Line{
				Time: at, Service: []string{"web", "api", "db"}[rng.IntN(3)], Level: []string{"info", "warn", "error"}[rng.IntN(3)],
				Msg: msg, Fields: fields(rng, number),
			})
			number++
		}
		h.Send(rng.IntN(2), lines...)
	}
	for range 3 + rng.IntN(3) {
		send(60+rng.IntN(200), 6)
		if rng.IntN(2) == 0 {
			send(40, 6)
		}
		h.Flush()
	}
	if rng.IntN(3) > 0 {
		send(1+rng.IntN(20), 1+rng.IntN(8))
	}
	return h
}

func fields(rng *rand.Rand, number int) string {
	all := []string{
		fmt.Sprintf(`"n":%d`, number%17), fmt.Sprintf(`"v":%v`, rng.NormFloat64()*1000), fmt.Sprintf(`"path":"/p%d"`, rng.IntN(9)),
	}
	if rng.IntN(3) == 0 {
		more := []string{
			`"a":1`, `"a":"1"`, `"a":null`, `"a":{"b":"x,y"}`, `"a":"\"1\""`,
			fmt.Sprintf(`"f%d":true`, rng.IntN(9)), `"v":"Inf"`, `"v":1e300`,
		}
		all = append(all, more[rng.IntN(len(more))])
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return strings.Join(all, ",")
}

// draw draws a question.
func draw(rng *rand.Rand) reading.Ask {
	services := [][]string{{"*"}, {"web"}, {"web", "nosuch"}, {"a*", "db"}}[rng.IntN(4)]
	a := reading.Ask{Services: services, Range: reading.Always(), Reverse: rng.IntN(2) == 0}
	at := func() int64 {
		ns := noon.Add(time.Duration(rng.IntN(6*60)) * time.Minute).UnixNano()
		if rng.IntN(2) == 0 {
			ns = time.Unix(0, ns).Truncate(time.Hour).UnixNano() + int64(rng.IntN(4))
		}
		return ns
	}
	switch rng.IntN(4) {
	case 0:
		a.Range.From = at()
	case 1:
		a.Range.To = at()
	case 2:
		a.Range.From = at()
		a.Range.To = a.Range.From + int64(time.Hour)*int64(1+rng.IntN(4))
	}
	switch rng.IntN(9) {
	case 0:
		a.Texts = []string{"took 1"}
	case 1:
		a.Levels = 1 << record.Error
	case 2:
		a.Where = "n > 3"
	case 3:
		a.Parse, a.Where = "<id> took <took> ms <_>", "took > 20"
	case 4:
		a.Services, a.LogQL = nil, `{service=~"web|api"} |= "took" | n > 2`
	case 5:
		a.Exprs, a.Not = []string{"took [0-4]"}, true
	case 6:
		a.Live = reading.Off
	case 7:
		a.Where = []string{"nosuch > 3", "f3 == 1", "a > 0"}[rng.IntN(3)]
	}
	switch rng.IntN(4) {
	case 0:
		a.Limit = 1 + rng.IntN(500)
	case 1:
		a.First = 1 + rng.IntN(500)
	}
	return a
}

// between draws one or two of the places of some records to be the edges of a question.
func between(rng *rand.Rand, a *reading.Ask, keys []record.Key) {
	i, j := rng.IntN(len(keys)), rng.IntN(len(keys))
	if i > j {
		i, j = j, i
	}
	if a.Edges.After = &keys[i]; i < j && rng.IntN(2) == 0 {
		a.Edges.Before = &keys[j]
	} else if rng.IntN(2) == 0 {
		a.Edges = blobs.Edges{Before: &keys[j]}
	}
}

// moreOf is what an answer up to a limit tells of further records, as far as that is certain: if none are
// left, it may say that there are.
func moreOf(t *testing.T, s reading.Source, a reading.Ask, out *reading.Outcome) bool {
	t.Helper()
	if limit := int64(a.Limit + a.First); limit > 0 && out.Records == limit {
		a.Limit, a.First = 0, 0
		all, err := s.Count(t.Context(), a)
		if err != nil || all.Records > limit && !out.More {
			t.Errorf("more is %v of %d records: %v", out.More, all.Records, err)
		}
		return true
	}
	return out.More
}

// entries is what said asks for to have records with their ids.
const entries = -1

// listed are the records of an answer, or its entries with their ids.
func listed(t *testing.T, s reading.Source, a reading.Ask, what int) (text string, out *reading.Outcome, err error) {
	t.Helper()
	if what == entries {
		out, err = s.(*reading.Store).Entries(t.Context(), a, func(e *record.Entry) error {
			text += string(e.AppendMarked(nil))
			return nil
		})
		return text, out, err
	}
	out, err = s.Records(t.Context(), a, func(lines []byte) error { text += string(lines); return nil })
	return text, out, err
}

// said is the answer of a source in words.
func said(t *testing.T, s reading.Source, a reading.Ask, what int) string {
	t.Helper()
	text := ""
	var out *reading.Outcome
	var err error
	switch what {
	case 0, entries:
		text, out, err = listed(t, s, a, what)
	case 1:
		out, err = s.Count(t.Context(), a)
	case 2, 3, 4:
		var h *reading.Histogram
		by := []time.Duration{time.Minute, 7 * time.Second, time.Hour}[what%3]
		h, out, err = s.Histogram(t.Context(), a, reading.Slices{By: by, Zone: time.UTC})
		if err == nil {
			text = strings.ReplaceAll(fmt.Sprint(*h), "} {", "}\n{") + "\n"
		}
	default:
		text, out, err = joint(t, s, a, what)
	}
	if err != nil {
		return fmt.Sprintf("%T %v", err, err)
	}
	var absent []string
	for _, none := range out.Absent {
		absent = append(absent, none.Name)
	}
	if what > 1 && !a.ReadsLines() { // indexes count, unless blobs share records
		out.Examined = 0
	}
	return fmt.Sprintf("%scomplete %v %v, %d records, %d unflushed, examined %d, bytes %d, more %v, absent %v, warnings %v",
		text, out.Complete(), out.Problems(), out.Records, out.Unflushed, out.Examined, out.Bytes, moreOf(t, s, a, out),
		absent, out.Warnings)
}

// joint is the answer to a question that is joined of states, in words.
func joint(t *testing.T, s reading.Source, a reading.Ask, what int) (text string, out *reading.Outcome, err error) {
	t.Helper()
	var answer any
	rng := rand.New(rand.NewPCG(uint64(what), 2))
	pick := func(all ...string) string { return all[rng.IntN(len(all))] }
	switch what % 4 {
	case 0:
		lengths := []time.Duration{time.Minute, 17 * time.Second, 24 * time.Hour, 0}
		by := reading.Slices{By: lengths[rng.IntN(4)], Top: rng.IntN(9), Zone: time.UTC}
		if rng.IntN(2) == 0 {
			by.Zone = time.FixedZone("+05:30", 19800)
		}
		if err := by.ReadSplit(pick("level", "service,level", "a", "n,path", "service", "v", "took")); err != nil {
			t.Fatal(err)
		}
		answer, out, err = s.Histogram(t.Context(), a, by)
	case 1:
		fields := [][]string{nil, {"level"}, {"path", "service", "v"}, {"nosuch"}}
		o := reading.SurveyOptions{Top: rng.IntN(5), Fields: fields[rng.IntN(4)]}
		answer, out, err = s.Survey(t.Context(), a, o)
	case 2:
		o := reading.PatternOptions{Top: rng.IntN(5)}
		if rng.IntN(2) == 0 {
			end := noon.Add(time.Duration(rng.IntN(3*3600)) * time.Second)
			o.Against = &reading.Range{From: noon.UnixNano(), To: end.UnixNano()}
		}
		answer, out, err = s.Patterns(t.Context(), a, o)
	default:
		day := reading.Range{From: noon.UnixNano(), To: noon.Add(6 * time.Hour).UnixNano()}
		table := reading.Table{LogQL: numbers(pick), Range: day}
		table.Step = []time.Duration{0, time.Minute, 13 * time.Minute, time.Hour}[rng.IntN(4)]
		answer, out, err = s.Table(t.Context(), table)
	}
	if err != nil {
		return "", out, err
	}
	if table, ok := answer.([]reading.Row); ok {
		for _, row := range table { // with numbers that JSON has not
			text += fmt.Sprintln(row)
		}
		return text, out, nil
	}
	b, err := json.MarshalIndent(answer, "", " ")
	return string(b), out, err
}

// numbers draws a query.
func numbers(pick func(...string) string) string {
	over := pick("1m", "10m", "1h", "7m", "5h")
	selector := pick(`{service=~".+"}`, `{service="web"}`,
		`{service=~"web|db"} | level=~"info|error"`, `{service=~".+"} |= "took"`)
	op := pick("sum_over_time", "avg_over_time", "min_over_time",
		"max_over_time", "first_over_time", "last_over_time", "rate", "stddev_over_time")
	skip := pick(` | __error__=""`, ` | __error__=""`, "")
	numbers := fmt.Sprintf(`%s(%s | unwrap %s%s [%s])`, op, selector, pick("v", "v", "n"), skip, over)
	op = pick("count_over_time", "rate", "bytes_over_time", "bytes_rate", "absent_over_time")
	records := fmt.Sprintf(`%s(%s [%s]%s)`, op, selector, over, pick("", " offset 10m", " offset -10m"))
	return pick(numbers, "quantile_over_time(0.5, "+selector+" | unwrap n [1h])",
		"sum by (path) ("+numbers+")", "avg by (level) ("+numbers+")", "topk(2, "+records+")", records,
		"sum by (service, level) ("+records+")", "sum("+records+" / 3) / sum("+numbers+")")
}

// A shared store answers as the store does, whatever its workers do.
func TestSame(t *testing.T) {
	rounds, asked := 40, int64(0)
	if testing.Short() {
		rounds = 6
	}
	for round := 0; round < rounds && !t.Failed(); round++ {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			h := drawn(t, rng)
			c := newCrew(t, h, []int{1, 3, 16}[round%3], mixed(seed))
			alone, shared := h.Reader().For(nil), h.ReaderWith(reading.Options{Sharing: c.open(int64(500 + rng.IntN(4000)))}).For(nil)
			var keys []record.Key
			_, err := alone.Entries(t.Context(), all("*"), func(e *record.Entry) error {
				keys = append(keys, e.Key())
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for range 15 {
				a, what := draw(rng), rng.IntN(6)-1
				if rng.IntN(2) == 0 {
					what = 5 + rng.IntN(1<<20)
				}
				if what < 1 && len(keys) > 0 && rng.IntN(4) == 0 {
					between(rng, &a, keys)
				}
				want, got := said(t, alone, a, what), said(t, shared, a, what)
				if want != got {
					t.Fatalf("%d of %+v:\n%s\nalone:\n%s", what, a, differ(got, want), differ(want, got))
				}
			}
			asked += c.asked.Load()
		})
	}
	if asked < int64(rounds) {
		t.Errorf("workers were asked for %d parts", asked)
	}
}

// Workers know no edges: a part that has one within is read here, whoever else is free.
func TestEdges(t *testing.T) {
	h := readingtest.New(t, 1)
	for hour := range 6 {
		var lines []readingtest.Line
		for i := range 120 { // a dozen of each time
			at := noon.Add(time.Duration(hour)*time.Hour + time.Duration(i/12)*time.Minute)
			lines = append(lines, readingtest.Line{Time: at, Service: "web", Msg: fmt.Sprint("m", hour, " ", i)})
		}
		h.Send(0, lines...)
		h.Flush()
	}
	c := newCrew(t, h, 3, nil)
	alone := h.Reader().For(nil)
	shared := countingReader(h, new(atomic.Int64), time.Millisecond, reading.Options{Sharing: c.open(500)}).For(nil) // workers are first
	var keys []record.Key
	_, err := alone.Entries(t.Context(), all("web"), func(e *record.Entry) error { keys = append(keys, e.Key()); return nil })
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		a := all("web")
		if a.Reverse = i%2 == 0; a.Reverse {
			a.Edges.After = &keys[7*i%200]
		} else {
			a.Edges.Before = &keys[len(keys)-1-7*i%200]
		}
		if want, got := said(t, alone, a, -1), said(t, shared, a, -1); want != got {
			t.Fatalf("%+v:\n%s\nalone:\n%s", a.Edges, differ(got, want), differ(want, got))
		}
	}
	if c.asked.Load() == 0 {
		t.Error("no worker was asked")
	}
}

// differ is the lines of a text around the first that another one lacks.
func differ(text, other string) string {
	a, b := strings.Split(text, "\n"), strings.Split(other, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d of %d: %s\n%s", i, len(a), a[i], strings.Join(slices.Clip(a[max(0, len(a)-1):]), "\n"))
		}
	}
	return fmt.Sprintf("%d lines", len(a))
}
