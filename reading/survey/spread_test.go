package survey_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/budget"
	"blobtail/reading/survey"
)

// numbers are the numbers of some buckets in words.
func numbers(cells []survey.Cell) string {
	at := map[int64]int64{}
	for _, c := range cells {
		at[c.Start] += c.Count
	}
	text := ""
	for _, start := range slices.Sorted(func(yield func(int64) bool) {
		for start := range at {
			if !yield(start) {
				return
			}
		}
	}) {
		text += fmt.Sprintf(" %d:%d", start, at[start])
	}
	return text
}

// A spread counts each combination by time, the level as the record counts, and a field that is not
// there as one. Texts and numbers differ. Of long values the first bytes count.
func TestSpread(t *testing.T) {
	s := survey.NewSpread(survey.SpreadOptions{Fields: []string{"status", "level"}, Values: 10, Bytes: 1 << 20})
	for i, line := range []string{
		`{"ts":"2026-11-10T15:04:05.000000000Z","level":"info","service":"web","msg":"","status":200}`,
		`{"ts":"2026-11-10T15:04:05.000000000Z","level":"info","service":"web","msg":"","status":"200"}`,
		`{"ts":"2026-11-10T15:04:05.000000000Z","level":"loud","service":"web","msg":"","status":200}`,
		`{"ts":"2026-11-10T15:04:05.000000000Z","level":"info","service":"web","msg":""}`,
		`{"ts":"2026-11-10T15:04:05.000000000Z","level":"info","service":"web","msg":"","status":200}`,
		`{"ts":"2026-11-10T15:04:05.000000000Z","level":"info","service":"web","msg":"","status":"\"` + strings.Repeat("x", 300) + `"}`,
		`{"ts":"2026-11-10T15:04:05.000000000Z","level":"info","service":"web","msg":"","status":"\"` + strings.Repeat("x", 301) + `"}`,
	} {
		if err := s.Add(int64(i/3), []byte(line+"\n")); err != nil {
			t.Fatal(err)
		}
	}
	text, top := "", s.Top(3)
	for _, v := range top.All {
		text += fmt.Sprintf("%d of %.9q%s; ", v.Count, survey.Split(v.Text), numbers(v.Cells))
	}
	if want := `2 of ["\"\\\"xxxxxx" "\"info\""] 1:1 2:1; 2 of ["200" "\"info\""] 0:1 1:1; 1 of ["" "\"info\""] 1:1; `; text != want || s.Total != 7 || top.Distinct != 5 || top.Capped || top.Short != 0 {
		t.Errorf("%d records: %s\nnot %s\n%+v", s.Total, text, want, top)
	}
}

// drawn is a plain count of drawn values.
type drawn struct {
	counts map[string]int64
	cells  map[string][]survey.Cell
	n      int
}

// check compares the most frequent values of a spread with the plain count.
func (d *drawn) check(s *survey.Spread, most int) (survey.Shares, error) {
	var want []string
	for value := range d.counts {
		want = append(want, value)
	}
	slices.SortFunc(want, func(a, b string) int { return cmp.Or(cmp.Compare(d.counts[b], d.counts[a]), cmp.Compare(a, b)) })
	top := s.Top(most)
	if s.Total != int64(d.n) || top.Capped != (top.Distinct < len(d.counts)) && !top.Capped {
		return top, fmt.Errorf("%d records, %+v", s.Total, top)
	}
	for i, v := range top.All {
		real := d.counts[v.Text]
		if v.Count > real || v.Count < real-top.Short {
			return top, fmt.Errorf("%s has %d of %d, and %d may be missing", v.Text, v.Count, real, top.Short)
		}
		if top.Short == 0 && (v.Text != want[i] || numbers(v.Cells) != numbers(d.cells[v.Text])) {
			return top, fmt.Errorf("value %d is %s %s, not %s %s", i, v.Text, numbers(v.Cells), want[i], numbers(d.cells[want[i]]))
		}
	}
	for _, value := range want[:min(most, len(want))] { // one that is left out has few more than the last
		if !slices.ContainsFunc(top.All, func(v survey.Share) bool { return v.Text == value }) {
			last := int64(0)
			if len(top.All) == most {
				last = top.All[most-1].Count
			}
			if d.counts[value] > last+top.Short {
				return top, fmt.Errorf("%s with %d is missing, the last has %d, short by %d", value, d.counts[value], last, top.Short)
			}
		}
	}
	return top, nil
}

// Whatever the bounds, a spread agrees with a plain count, or says by how much it may differ, and so does
// one that is joined of slices.
func TestSpreadBounded(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	exact, capped, short := 0, 0, 0
	for round := range 36 {
		// Few values, many with frequent ones among them, and many that are all rare.
		kind := round % 3
		distinct, records, most := []int{1, 4000, 4000}[kind]+rng.IntN([]int{300, 9000, 9000}[kind]), 5000+rng.IntN(5000), 1+rng.IntN([]int{8, 1, 8}[kind])
		o := survey.SpreadOptions{Values: 1001 + rng.IntN(1000), Bytes: 200_000 + rng.Int64N(1<<20)}
		if kind == 0 {
			o = survey.SpreadOptions{Values: 5000, Bytes: 4 << 20}
		}
		s, d := survey.NewSpread(o), drawn{map[string]int64{}, map[string][]survey.Cell{}, records}
		whole, pieces := s, 1+rng.IntN(5)
		if round < 18 {
			pieces = 0
		}
		next := func() { // joins the piece to the whole
			if err := whole.Join(sent(t, s)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range records {
			if pieces > 0 && rng.IntN(records) < pieces || i == 0 && pieces > 0 {
				if i > 0 {
					next()
				}
				s = survey.NewSpread(o)
			}
			value := fmt.Sprint(rng.IntN(distinct))
			if kind != 2 && rng.IntN(3) == 0 {
				value = fmt.Sprint("often", rng.IntN(1+round%2))
			}
			d.counts[value]++
			d.cells[value] = append(d.cells[value], survey.Cell{Start: int64(i / 1000), Count: 1})
			if err := s.Count(int64(i/1000), []byte(value), 1); err != nil {
				t.Fatal(err)
			}
		}
		if pieces > 0 {
			next()
		}
		top, err := d.check(whole, most)
		if err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, round, err)
		}
		switch {
		case top.Short > 0:
			short++
		case top.Capped:
			capped++
		default:
			exact++
		}
	}
	t.Logf("%d of few values, %d of many and right, %d short; seed %d", exact, capped, short, seed)
	if exact == 0 || capped == 0 || short == 0 {
		t.Error("the rounds are all alike")
	}
}

// The memory of a spread is that of its query: values are forgotten when it is short, and numbers by
// time that cannot be forgotten end the query.
func TestSpreadBudget(t *testing.T) {
	begin := func() (context.Context, *budget.Budget) {
		return budget.NewPool(budget.Limits{Query: 3 << 20, Sure: 3 << 20}).Begin(context.Background())
	}
	_, b := begin()
	s := survey.NewSpread(survey.SpreadOptions{Values: 1 << 20, Bytes: 1 << 30, Budget: b})
	for i := range 50_000 {
		for _, value := range []string{fmt.Sprint(i), "often"} {
			if err := s.Count(int64(i/100), []byte(value), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if top := s.Top(1); top.All[0].Text != "often" || top.All[0].Count != 50_000 || !top.Capped || top.Short != 0 {
		t.Errorf("%+v", top)
	}
	b.End()
	_, b = begin()
	defer b.End()
	s = survey.NewSpread(survey.SpreadOptions{Values: 1 << 20, Bytes: 1 << 30, Budget: b})
	var err error
	for i := 0; err == nil && i < 200_000; i++ {
		err = s.Count(int64(i), []byte("often"), 1)
	}
	if _, ok := errors.AsType[*budget.Error](err); !ok {
		t.Errorf("the numbers of 200,000 buckets: %v", err)
	}
}

func BenchmarkSpread(b *testing.B) {
	for name, fields := range map[string][]string{"one": {"path"}, "two": {"level", "status"}} {
		b.Run(name, func(b *testing.B) {
			line := []byte(`{"ts":"2026-11-20T12:00:00.000000000Z","level":"info","service":"web","msg":"a message of some words","status":200,"path":"/a/b"}` + "\n")
			s := survey.NewSpread(survey.SpreadOptions{Fields: fields, Values: 1000, Bytes: 1 << 20})
			for i := 0; b.Loop(); i++ {
				if err := s.Add(int64(i/100_000), line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
