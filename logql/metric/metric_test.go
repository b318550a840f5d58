package metric_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobtail/logql"
	"blobtail/logql/metric"
)

// parse returns the tree of a query with numbers.
func parse(t testing.TB, text string) logql.Metric {
	t.Helper()
	e, err := logql.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	m, ok := e.(logql.Metric)
	if !ok {
		t.Fatalf("%s is no query with numbers", text)
	}
	return m
}

// A sample of a test. Its labels are written like a=1,b=2; without one, it is of all services.
type sample struct {
	second float64
	value  float64
	labels string
}

func labels(text string) (all []metric.Label) {
	for pair := range strings.SplitSeq(text, ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			all = append(all, metric.Label{Name: name, Value: value})
		}
	}
	return all
}

// from fills each request with the samples that have the labels of its selector.
func from(samples []sample) func(context.Context, *metric.Request) error {
	return func(_ context.Context, r *metric.Request) error {
		for _, s := range samples {
			all := labels(s.labels)
			wanted := true
			for _, m := range r.Agg.Range.Log.Selector {
				wanted = wanted && slices.Contains(all, metric.Label{Name: m.Name, Value: m.Value})
			}
			if !wanted {
				continue
			}
			if err := r.Add(int64(s.second*1e9), s.value, s.labels, all); err != nil {
				return err
			}
		}
		return nil
	}
}

// spoken writes a result: {labels} time:value …; one series after another.
func spoken(r *metric.Result) string {
	var all []string
	for _, s := range r.Series {
		var b strings.Builder
		for _, l := range s.Labels {
			fmt.Fprintf(&b, "%s=%s ", l.Name, l.Value)
		}
		for at, v := range s.Points() {
			fmt.Fprintf(&b, "%v:%s ", float64(at)/1e9, strconv.FormatFloat(math.Round(v*1e9)/1e9, 'g', -1, 64))
		}
		all = append(all, strings.TrimSpace(b.String()))
	}
	return strings.Join(all, "; ")
}

// seconds is a grid, in seconds.
func seconds(start, end, step float64) metric.Grid {
	return metric.Grid{Start: int64(start * 1e9), End: int64(end * 1e9), Step: int64(step * 1e9)}
}

func evaluate(t *testing.T, text string, grid metric.Grid, samples []sample) string {
	t.Helper()
	r, err := metric.Evaluate(t.Context(), parse(t, text), grid, metric.Limits{}, from(samples))
	if err != nil {
		return "error: " + err.Error()
	}
	return spoken(r)
}

type row struct{ query, want string }

func check(t *testing.T, grid metric.Grid, samples []sample, rows []row) {
	t.Helper()
	for _, c := range rows {
		if got := evaluate(t, c.query, grid, samples); got != c.want {
			t.Errorf("%s\n\tis   %s\n\twant %s", c.query, got, c.want)
		}
	}
}

// The window of a point is [t - range, t), with any step and any range.
func TestWindows(t *testing.T) {
	var all []sample
	for i := range 20 {
		all = append(all, sample{float64(i), float64(i), "s=a"})
	}
	check(t, seconds(4, 12, 4), all, []row{
		{`sum_over_time({s="a"} | unwrap x [4s])`, "s=a 4:6 8:22 12:38"},
		{`sum_over_time({s="a"} | unwrap x [2s])`, "s=a 4:5 8:13 12:21"},
		{`sum_over_time({s="a"} | unwrap x [6s])`, "s=a 4:6 8:27 12:51"},
		{`sum_over_time({s="a"} | unwrap x [8s])`, "s=a 4:6 8:28 12:60"},
		{`sum_over_time({s="a"} | unwrap x [1h])`, "s=a 4:6 8:28 12:66"},
		{`sum_over_time({s="a"} | unwrap x [2s] offset 3s)`, "s=a 4:0 8:7 12:15"},
		{`sum_over_time({s="a"} | unwrap x [2s] offset -3s)`, "s=a 4:11 8:19 12:27"},
		{`count_over_time({s="a"}[4s])`, "s=a 4:4 8:4 12:4"},
		{`rate({s="a"}[4s])`, "s=a 4:1 8:1 12:1"},
		{`count_over_time({s="b"}[4s])`, ""},
	})
	check(t, seconds(9, 9, 0), all, []row{
		{`sum_over_time({s="a"} | unwrap x [4s])`, "s=a 9:26"},
		{`count_over_time({s="a"}[10s] offset 4s)`, "s=a 9:5"},
	})
}

// Each aggregation over time makes its number of the samples.
func TestRangeAggregations(t *testing.T) {
	all := []sample{{1, 4, "s=a"}, {2, 2, "s=a,t=x"}, {2, 1, "s=a"}, {3, 6, "s=a"}, {5, 3, "s=b"}, {11, 7, "s=a"}}
	check(t, seconds(10, 20, 10), all, []row{
		{`count_over_time({s="a"}[10s])`, "s=a 10:3 20:1; s=a t=x 10:1"},
		{`rate({s="a"}[10s])`, "s=a 10:0.3 20:0.1; s=a t=x 10:0.1"},
		{`rate({s="a"} | unwrap x [10s])`, "s=a 10:1.1 20:0.7; s=a t=x 10:0.2"},
		{`bytes_over_time({s="a"}[10s])`, "s=a 10:11 20:7; s=a t=x 10:2"},
		{`bytes_rate({s="a"}[10s])`, "s=a 10:1.1 20:0.7; s=a t=x 10:0.2"},
		{`sum_over_time({s="a"} | unwrap x [10s])`, "s=a 10:11 20:7; s=a t=x 10:2"},
		{`avg_over_time({s="a"} | unwrap x [10s])`, "s=a 10:3.666666667 20:7; s=a t=x 10:2"},
		{`avg_over_time({s="a"} | unwrap x [10s]) by ()`, "10:3.25 20:7"},
		{`avg_over_time({s="a"} | unwrap x [10s]) without (t)`, "s=a 10:3.25 20:7"},
		{`min_over_time({s="a"} | unwrap x [10s]) by (s)`, "s=a 10:1 20:7"},
		{`max_over_time({s="a"} | unwrap x [10s]) by (s)`, "s=a 10:6 20:7"},
		{`first_over_time({s="a"} | unwrap x [10s]) by (s)`, "s=a 10:4 20:7"},
		{`last_over_time({s="a"} | unwrap x [10s]) by (s)`, "s=a 10:6 20:7"},
		{`stdvar_over_time({s="a"} | unwrap x [10s]) by (s)`, "s=a 10:3.6875 20:0"},
		{`stddev_over_time({s="a"} | unwrap x [10s]) by (s)`, "s=a 10:1.920286437 20:0"},
		{`quantile_over_time(0.5, {s="a"} | unwrap x [10s]) by (s)`, "s=a 10:3 20:7"},
		{`quantile_over_time(0, {s="a"} | unwrap x [10s]) by (s)`, "s=a 10:1 20:7"},
		{`quantile_over_time(1, {s="a"} | unwrap x [10s]) by (s)`, "s=a 10:6 20:7"},
		{`quantile_over_time(0.9, {s="a"} | unwrap x [10s]) by (s)`, "s=a 10:5.4 20:7"},
		{`quantile_over_time(1.5, {s="a"} | unwrap x [10s]) by (s)`, "s=a 10:+Inf 20:+Inf"},
		{`absent_over_time({s="b"}[10s])`, "s=b 20:1"},
		{`absent_over_time({s="c", t=~"x", u="1", u="2", v=""}[10s])`, "s=c 10:1 20:1"},
	})
}

// A counter that is set back to a smaller value has counted on from 0.
func TestRateCounter(t *testing.T) {
	all := []sample{{1, 10, "s=a"}, {3, 20, "s=a"}, {5, 4, "s=a"}, {7, 8, "s=a"}, {9, 12, "s=a"}}
	check(t, seconds(10, 10, 0), all, []row{
		// 10, 4, 4 and 4 in 8 seconds; 1 second before and behind at that speed.
		{`rate_counter({s="a"} | unwrap x [10s])`, "s=a 10:2.75"},
		{`rate_counter({s="a"} | unwrap x [2s])`, "s=a 10:0"},
		// From 8 to 12 in 2 seconds; 1 second behind, and 1 before.
		{`rate_counter({s="a"} | unwrap x [4s])`, "s=a 10:2"},
	})
	check(t, seconds(10, 10, 0), []sample{{4, 1, "s=a"}, {5, 3, "s=a"}}, []row{
		// Half a second before, since 0 was then; half a second behind, since the next value is not
		// known.
		{`rate_counter({s="a"} | unwrap x [10s])`, "s=a 10:0.4"},
	})
	check(t, seconds(10, 10, 0), []sample{{4, 1, "s=a"}, {4, 3, "s=a"}}, []row{
		{`rate_counter({s="a"} | unwrap x [10s])`, "s=a 10:0"},
	})
}

func TestVectorAggregations(t *testing.T) {
	all := []sample{
		{1, 1, "s=a,l=x"}, {1, 2, "s=a,l=y"}, {1, 6, "s=b,l=x"}, {1, 6, "s=b,l=y"}, {1, 6, "s=b"},
		{11, 5, "s=a,l=x"}, {11, math.NaN(), "s=a,l=y"}, {11, math.NaN(), "s=b,l=y"},
	}
	const of = `(sum_over_time({} | unwrap x [10s]))`
	check(t, seconds(10, 20, 10), all, []row{
		{`sum` + of, "10:21 20:NaN"},
		{`sum by (s)` + of, "s=a 10:3 20:NaN; s=b 10:18 20:NaN"},
		{`sum without (l)` + of, "s=a 10:3 20:NaN; s=b 10:18 20:NaN"},
		{`sum by (l)` + of, "10:6; l=x 10:7 20:5; l=y 10:8 20:NaN"},
		{`sum by (nothing)` + of, "10:21 20:NaN"},
		{`count` + of, "10:5 20:3"},
		{`avg` + of, "10:4.2 20:NaN"},
		{`min` + of, "10:1 20:5"},
		{`max` + of, "10:6 20:5"},
		{`max by (s)` + of, "s=a 10:2 20:5; s=b 10:6 20:NaN"},
		{`stdvar` + of, "10:4.96 20:NaN"},
		{`stddev by (s)` + of, "s=a 10:0.5 20:NaN; s=b 10:0 20:NaN"},
		// Equal values are in the order of their labels, NaN is last.
		{`topk(1, ` + of + `)`, "l=x s=a 20:5; l=x s=b 10:6"},
		{`topk(2, ` + of + `)`, "l=x s=a 20:5; l=x s=b 10:6; l=y s=a 20:NaN; l=y s=b 10:6"},
		{`bottomk(1, ` + of + `)`, "l=x s=a 10:1 20:5"},
		{`approx_topk(1, ` + of + `)`, "l=x s=a 20:5; l=x s=b 10:6"},
		{`topk by (s) (1, ` + of + `)`, "l=x s=a 20:5; l=x s=b 10:6; l=y s=a 10:2; l=y s=b 20:NaN"},
		{`topk(9, ` + of + `)`, "l=x s=a 10:1 20:5; l=x s=b 10:6; l=y s=a 10:2 20:NaN; l=y s=b 10:6 20:NaN; s=b 10:6"},
		{`sort` + of, "l=x s=a 10:1 20:5; l=x s=b 10:6; l=y s=a 10:2 20:NaN; l=y s=b 10:6 20:NaN; s=b 10:6"},
		{`sum(topk by (s) (1, ` + of + `))`, "10:8 20:NaN"},
	})
	check(t, seconds(10, 10, 0), all, []row{
		{`sort` + of, "l=x s=a 10:1; l=y s=a 10:2; l=x s=b 10:6; l=y s=b 10:6; s=b 10:6"},
		{`sort_desc` + of, "l=x s=b 10:6; l=y s=b 10:6; s=b 10:6; l=y s=a 10:2; l=x s=a 10:1"},
		{`topk(3, ` + of + `)`, "l=x s=b 10:6; l=y s=b 10:6; s=b 10:6"},
		{`bottomk(2, ` + of + `)`, "l=x s=a 10:1; l=y s=a 10:2"},
	})
	check(t, seconds(20, 20, 0), all, []row{
		{`sort` + of, "l=x s=a 20:5; l=y s=a 20:NaN; l=y s=b 20:NaN"},
		{`sort_desc` + of, "l=x s=a 20:5; l=y s=a 20:NaN; l=y s=b 20:NaN"},
	})
}

func TestOperators(t *testing.T) {
	check(t, seconds(10, 20, 10), nil, []row{
		{`1`, "10:1 20:1"},
		{`1 + 2 * 3`, "10:7 20:7"},
		{`(1 + 2) * 3`, "10:9 20:9"},
		{`2 ^ 3 ^ 2`, "10:512 20:512"},
		{`-7 % 3`, "10:-1 20:-1"},
		{`7 - 2 - 1`, "10:4 20:4"},
		{`1 / 0`, "10:+Inf 20:+Inf"},
		{`0 / 0`, "10:NaN 20:NaN"},
		{`5 % 0`, "10:NaN 20:NaN"},
		{`2 > bool 1`, "10:1 20:1"},
		{`vector(1) + vector(1)`, "10:2 20:2"},
		{`vector(3) > 2`, "10:3 20:3"},
		{`2 < vector(3)`, "10:3 20:3"},
		{`vector(3) < 2`, ""},
		{`vector(3) < bool 2`, "10:0 20:0"},
		{`vector(0) / vector(0) == vector(0) / vector(0)`, ""},
		{`vector(1) or vector(2)`, "10:1 20:1"},
		{`vector(1) and vector(2)`, "10:1 20:1"},
		{`vector(1) unless vector(2)`, ""},
	})
	all := []sample{{1, 1, "s=a,l=x"}, {1, 2, "s=a,l=y"}, {1, 6, "s=b,l=x"}, {11, 5, "s=a,l=x"}, {11, 0, "s=a,l=y"}}
	const a, b, both = `sum_over_time({s="a"} | unwrap x [10s])`, `sum_over_time({s="b"} | unwrap x [10s])`, `sum_over_time({} | unwrap x [10s])`
	check(t, seconds(10, 20, 10), all, []row{
		{a + ` / ` + a, "l=x s=a 10:1 20:1; l=y s=a 10:1 20:NaN"},
		{`1 / ` + a, "l=x s=a 10:1 20:0.2; l=y s=a 10:0.5 20:+Inf"},
		{a + ` + ` + b, ""},
		{a + ` + on (l) ` + b, "l=x 10:7"},
		{a + ` + ignoring (s) ` + b, "l=x 10:7"},
		{a + ` + on () ` + b, `error: multiple matches for labels: several series on the left side match {}; name more labels in on (…), or aggregate first`},
		{b + ` + on () ` + a, `error: multiple matches for labels: several series on the right side match {}; name more labels in on (…), or aggregate first`},
		{a + ` > 1`, "l=x s=a 20:5; l=y s=a 10:2"},
		{a + ` > bool 1`, "l=x s=a 10:0 20:1; l=y s=a 10:1 20:0"},
		{a + ` >= on (l) ` + b, ""},
		{a + ` != on (l) ` + b, "l=x 10:1"},
		{a + ` != bool on (l) ` + b, "l=x 10:1"},
		{both + ` and on (l) ` + b, "l=x s=a 10:1; l=x s=b 10:6"},
		{both + ` and ` + b, "l=x s=b 10:6"},
		{both + ` unless on (l) ` + b, "l=x s=a 20:5; l=y s=a 10:2 20:0"},
		{both + ` unless ` + b, "l=x s=a 10:1 20:5; l=y s=a 10:2 20:0"},
		{b + ` or ` + a, "l=x s=a 10:1 20:5; l=x s=b 10:6; l=y s=a 10:2 20:0"},
		{b + ` or on (l) ` + a, "l=x s=a 20:5; l=x s=b 10:6; l=y s=a 10:2 20:0"},
		{b + ` or on () ` + both, "l=x s=a 20:5; l=x s=b 10:6; l=y s=a 20:0"},
		{`sum(` + a + `) / on () ` + b, "10:0.5"},
	})
}

// A Request asks for few labels if the query needs no more.
func TestRequests(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{`count_over_time({}[1m])`, "all []"},
		{`sum(count_over_time({}[1m]))`, "by () []"},
		{`sum by (b, a) (count_over_time({}[1m]))`, "by (b, a) [a b]"},
		{`sum without (a) (count_over_time({}[1m]))`, "without (a) []"},
		{`count by (a) (count_over_time({}[1m]))`, "all [a]"},
		{`max by (a) (sum by (a, b) (rate({}[1m])))`, "by (a, b) [a b]"},
		{`max by (a) (max_over_time({} | unwrap x [1m]))`, "by (a) [a]"},
		{`max by (a) (max_over_time({} | unwrap x [1m]) by (b))`, "by (b) [b]"},
		{`min by (a) (max_over_time({} | unwrap x [1m]))`, "all [a]"},
		{`topk by (a) (3, count_over_time({}[1m]))`, "all [a]"},
		{`sum without (a) (topk by (a, b) (3, count_over_time({}[1m])))`, "all [a b]"},
		{`sum by (a) (count_over_time({}[1m]) / on (b) vector(1))`, "all [a b]"},
		{`absent_over_time({a="1"}[1m])`, "by () []"},
		{`sum by (a) (quantile_over_time(0.5, {} | unwrap x [1m]) without (b))`, "without (b) [a]"},
	} {
		q, err := metric.Compile(parse(t, c.query), metric.At(1e18), metric.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		r := q.Requests()[0]
		got := "all"
		if r.Group != nil {
			got = r.Group.String()
		}
		if got += fmt.Sprint(" ", r.Names); got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
		if r.From != 1e18-int64(time.Minute) || r.To != 1e18 {
			t.Errorf("%s: from %d to %d", c.query, r.From, r.To)
		}
	}
}
