package metric_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/logql/metric"
	"blobtail/logql/stage"
)

// scan fills requests with the samples of records, as a reader of blobs does.
func scan(w *world) func(context.Context, *metric.Request) error {
	return func(_ context.Context, r *metric.Request) error {
		s, err := stage.View{Lines: w.lines}.Sampler(&r.Agg.Range, r.Wanted())
		if err != nil {
			return err
		}
		for _, rec := range w.items {
			if !r.Wants(rec.time) {
				continue
			}
			v, series, ok, err := s.Sample([]byte(rec.line + "\n"))
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if err := r.Add(rec.time, v, series.Key, series.Labels); err != nil {
				return err
			}
		}
		return nil
	}
}

// expect is the second evaluator: the values of each series by their times.
func expect(n node, w *world, g metric.Grid) (map[string]map[int64]float64, error) {
	want := map[string]map[int64]float64{}
	for ns := g.Start; ns <= g.End; ns += max(g.Step, 1) {
		a, err := n.at(w, ns, nil)
		if err != nil {
			return nil, err
		}
		if n.scalar() {
			a.all = map[string]one{"": {nil, a.number}}
		}
		for _, s := range a.all {
			k := id(s.labels)
			if want[k] == nil {
				want[k] = map[int64]float64{}
			}
			want[k][ns] = s.v
		}
	}
	return want, nil
}

// found is a result in the form of expect.
func found(t *testing.T, r *metric.Result) map[string]map[int64]float64 {
	all := map[string]map[int64]float64{}
	for _, s := range r.Series {
		labels := map[string]string{}
		for i, l := range s.Labels {
			labels[l.Name] = l.Value
			if i > 0 && s.Labels[i-1].Name >= l.Name {
				t.Fatalf("labels out of order: %v", s.Labels)
			}
		}
		if all[id(labels)] != nil {
			t.Fatalf("two series of %v", labels)
		}
		all[id(labels)] = maps.Collect(s.Points())
	}
	return all
}

// near reports whether two values are equal, but for the order in which they were added up.
func near(a, b float64) bool {
	switch {
	case math.IsNaN(a) || math.IsNaN(b):
		return math.IsNaN(a) == math.IsNaN(b)
	case a == b:
		return true
	}
	return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b), 1)
}

// differs tells where two results differ; "" if nowhere.
func differs(got, want map[string]map[int64]float64) string {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		for _, ns := range slices.Sorted(maps.Keys(want[k])) {
			v, ok := got[k][ns]
			if w := want[k][ns]; !ok || !near(v, w) {
				return fmt.Sprintf("%q at %d: %v (%v), want %v", k, ns, v, ok, w)
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		for ns, v := range got[k] {
			if _, ok := want[k][ns]; !ok {
				return fmt.Sprintf("%q at %d: %v, want none", k, ns, v)
			}
		}
	}
	return ""
}

// drawGrid makes a grid about the times of records.
func drawGrid(rng *rand.Rand, items []*item, start int64) metric.Grid {
	at := start + rng.Int64N(300)*1e9
	if rng.IntN(3) > 0 {
		at = items[(len(items)+rng.IntN(len(items)))/2].time + of(rng, int64(0), 1, 1e9, 30e9)
	}
	if rng.IntN(4) == 0 {
		return metric.At(at)
	}
	step := of(rng, int64(1e9), 3e9, 10e9, 60e9, 90e9, 1800e9)
	if rng.IntN(2) == 0 {
		return metric.Align(at, at+rng.Int64N(8)*step, step)
	}
	return metric.Grid{Start: at, End: at + rng.Int64N(8*step), Step: step}
}

// A verdict compares the answers of both evaluators to a query.
type verdict struct {
	diff            string // where they differ; "" if nowhere
	series          int
	failed, unclear bool
}

func judge(t *testing.T, n node, w *world, g metric.Grid, fill func(context.Context, *metric.Request) error) verdict {
	want, wrong := expect(n, w, g)
	if w.unclear {
		return verdict{unclear: true}
	}
	r, err := metric.Evaluate(t.Context(), parse(t, n.text(0)), g, metric.Limits{}, fill)
	if (err != nil) != (wrong != nil) {
		return verdict{diff: fmt.Sprintf("error %v, want %v", err, wrong)}
	}
	if err != nil {
		return verdict{failed: true}
	}
	return verdict{diff: differs(found(t, r), want), series: len(want)}
}

// shrink leaves records out as long as the rest fails.
func shrink(items []*item, fails func([]*item) bool) []*item {
	for i := 0; i < len(items); {
		if rest := slices.Delete(slices.Clone(items), i, i+1); fails(rest) {
			items = rest
		} else {
			i++
		}
	}
	return items
}

// Queries agree with the second evaluator, in both views.
func TestOracle(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	queries := testkit.Portion(20_000, 5000, 1000)
	var answered, failed, ranges, unclear int
	ops := map[string]int{}
	const start = int64(1_795_323_600_000_000_000)
	for asked := 0; asked < queries; {
		items := drawItems(rng, start)
		for range min(50, queries-asked) {
			asked++
			w := &world{items: items, lines: rng.IntN(2) == 0}
			n := drawNode(rng, 3)
			g := drawGrid(rng, items, start)
			text := n.text(0)
			o := judge(t, n, w, g, scan(w))
			if o.diff != "" {
				again := func(rest []*item) verdict {
					w := &world{items: rest, lines: w.lines}
					return judge(t, n, w, g, scan(w))
				}
				less := shrink(items, func(rest []*item) bool { return again(rest).diff != "" })
				o = again(less)
				t.Fatalf("seed %d, lines %v, grid %v: %s\n%s\n%s", seed, w.lines, g, text, o.diff, story(less))
			}
			for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
				ops[word]++
			}
			switch {
			case o.unclear:
				unclear++
				continue
			case o.failed:
				failed++
				continue
			}
			if o.series > 0 {
				answered++
			}
			if g.Len() > 1 {
				ranges++
			}
		}
	}
	t.Logf("%d queries: %d have series, %d fail, %d are of several points, %d depend on rounding; words %v; seed %d", queries, answered, failed, ranges, unclear, ops, seed)
	if answered < queries/4 {
		t.Error("too few queries have series")
	}
}

func story(items []*item) string {
	var b strings.Builder
	for _, r := range items {
		fmt.Fprintf(&b, "%d %s\n", r.time, r.line)
	}
	return b.String()
}
