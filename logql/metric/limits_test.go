package metric_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/logql"
	"blobtail/logql/metric"
)

// fails evaluates a query that must fail with an error that says so.
func fails(t *testing.T, text string, g metric.Grid, l metric.Limits, fill func(context.Context, *metric.Request) error, says string) {
	t.Helper()
	_, err := metric.Evaluate(t.Context(), parse(t, text), g, l, fill)
	if bad := (*metric.Error)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v, want %s", text, err, says)
	}
}

func TestBadGrids(t *testing.T) {
	none := from(nil)
	for _, c := range []struct {
		grid metric.Grid
		says string
	}{
		{seconds(10, 9, 1), "end timestamp must not be before or equal to start time"},
		{seconds(10, 20, 0), "zero or negative query resolution step widths are not accepted"},
		{seconds(10, 20, -1), "zero or negative query resolution step widths are not accepted"},
		{seconds(0, 11_001, 1), "exceeded maximum resolution of 11,000 points per time series. Try increasing the value of the step parameter"},
		{metric.Grid{Start: math.MinInt64, End: math.MaxInt64, Step: 1 << 60}, "292 years"},
		{metric.At(math.MinInt64), "leaves the years from 1678 to 2262"},
	} {
		fails(t, `count_over_time({}[1m])`, c.grid, metric.Limits{}, none, c.says)
	}
	fails(t, `count_over_time({}[1m] offset -1h)`, metric.At(math.MaxInt64), metric.Limits{}, none, "leaves the years")
	fails(t, `count_over_time({}[1m] offset 1h)`, metric.At(math.MinInt64+int64(time.Hour)), metric.Limits{}, none, "leaves the years")
	if _, err := metric.Evaluate(t.Context(), parse(t, `count_over_time({}[1m])`), seconds(0, 11_000, 1), metric.Limits{}, none); err != nil {
		t.Error(err)
	}
}

func TestAlign(t *testing.T) {
	for _, c := range []struct{ start, end, step, first, last, n int64 }{
		{7, 23, 5, 5, 20, 4}, {5, 20, 5, 5, 20, 4}, {-7, 3, 5, -10, 0, 3}, {7, 8, 5, 5, 5, 1},
	} {
		g := metric.Align(c.start, c.end, c.step)
		if g.Start != c.first || g.End != c.last || int64(g.Len()) != c.n || g.Time(g.Len()-1) != c.last {
			t.Errorf("%v: %v", c, g)
		}
	}
}

func TestTooMuch(t *testing.T) {
	many := func(n int) func(context.Context, *metric.Request) error {
		return func(_ context.Context, r *metric.Request) error {
			for i := range n {
				id := fmt.Sprint("path=", i)
				if err := r.Add(int64(i), 1, id, labels(id)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	at := metric.At(1e9)
	const all = `count_over_time({}[1s])`
	fails(t, all, at, metric.Limits{}, many(501), "maximum number of series (500) reached for a single query")
	fails(t, all, at, metric.Limits{Series: 2}, many(3), "maximum number of series (2) reached")
	fails(t, all, at, metric.Limits{}, many(200_000), "more than 2,000,000 cells")
	fails(t, `sum(count_over_time({}[3s]))`, metric.Grid{Start: 1e9, End: 2e9, Step: 1e6}, metric.Limits{Cells: 1000}, many(1), "more than 1,000 cells")
	fails(t, `quantile_over_time(0.5, {} | unwrap x [1s]) by ()`, at, metric.Limits{Samples: 1000}, many(1001), "more than 1,000 samples")
	for _, text := range []string{`sum(` + all + `)`, `topk(10, ` + all + `)`, `count(` + all + `)`, `avg_over_time({} | unwrap x [1s]) by ()`} {
		r, err := metric.Evaluate(t.Context(), parse(t, text), at, metric.Limits{}, many(20_000))
		if err != nil || len(r.Series) == 0 || len(r.Series) > 10 {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	// Two thousand series of a point each.
	fails(t, `sum by (path) (count_over_time({}[1ns])) or vector(1)`, metric.Grid{Start: 1, End: 2001, Step: 1}, metric.Limits{}, many(2000), "maximum number of series")
}

func TestFailedRecords(t *testing.T) {
	all := []sample{{1, 1, "s=a"}, {2, 1, "s=b,__error__=JSONParserErr"}, {30, 1, "s=c,__error__=LabelFilterErr"}}
	fails(t, `sum(count_over_time({}[10s]))`, metric.At(10e9), metric.Limits{}, from(all),
		`pipeline error: 'JSONParserErr' for series: '{__error__="JSONParserErr", s="b"}'`)
	// Records that no window has do not matter.
	check(t, seconds(40, 40, 0), all, []row{{`sum(count_over_time({}[5s]))`, ""}})
}

// Errors of the caller come back as they are, and the context ends a computation.
func TestErrorsOfOthers(t *testing.T) {
	own := errors.New("no storage")
	_, err := metric.Evaluate(t.Context(), parse(t, `count_over_time({}[1m])`), metric.At(0), metric.Limits{}, func(context.Context, *metric.Request) error { return own })
	if err != own {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := metric.Evaluate(ctx, parse(t, `vector(1)`), metric.At(0), metric.Limits{}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Trees that the parser does not make are refused, not evaluated.
func TestBadTrees(t *testing.T) {
	log := logql.LogRange{Log: &logql.LogExpr{}, Window: time.Minute}
	n, v := &logql.Number{Value: 1}, &logql.Vector{Value: 1}
	for _, c := range []struct {
		tree logql.Metric
		says string
	}{
		{&logql.RangeAgg{Op: "sum_over_time", Range: log}, "invalid aggregation sum_over_time without unwrap"},
		{&logql.RangeAgg{Op: "mad_over_time", Range: log}, "does not have mad_over_time"},
		{&logql.RangeAgg{Op: "rate", Range: logql.LogRange{Log: &logql.LogExpr{}}}, "must be more than 0"},
		{&logql.VectorAgg{Op: "group", Of: v}, "does not have group"},
		{&logql.VectorAgg{Op: "sum", Of: n}, "is a number"},
		{&logql.Binary{Op: "and", Left: n, Right: v}, "needs series on both sides"},
		{&logql.Binary{Op: "or", Left: v, Right: &logql.Binary{Op: "+", Left: n, Right: n}}, "needs series on both sides"},
		{&logql.Binary{Op: "atan2", Left: n, Right: n}, "does not have the operator atan2"},
		{&logql.Binary{Op: "+", Bool: true, Left: n, Right: n}, "bool modifier can only be used on comparison operators"},
	} {
		_, err := metric.Evaluate(t.Context(), c.tree, metric.At(1e18), metric.Limits{}, from(nil))
		if bad := (*metric.Error)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
}

// A request takes counts only if they give its points.
func TestCountsAreRefused(t *testing.T) {
	for text, want := range map[string]bool{
		`count_over_time({}[1m])`:             true,
		`rate({}[1m])`:                        true,
		`absent_over_time({}[1m])`:            true,
		`rate({} | unwrap x [1m])`:            false,
		`absent_over_time({} | unwrap x[1m])`: false,
		`bytes_over_time({}[1m])`:             false,
		`sum_over_time({} | unwrap x [1m])`:   false,
	} {
		q, err := metric.Compile(parse(t, text), metric.At(1e18), metric.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		r := q.Requests()[0]
		_, ok := r.Index()
		if err := r.AddCount(1e18-1, 1, "", nil); ok != want || (err == nil) != want {
			t.Errorf("%s: %v, %v", text, ok, err)
		}
	}
}

// Which buckets of an index are as long as can be.
func TestBuckets(t *testing.T) {
	for _, c := range []struct {
		start, end, step, window, offset time.Duration
		by                               time.Duration
		ok                               bool
	}{
		{3 * time.Hour, 6 * time.Hour, time.Minute, time.Minute, 0, time.Minute, true},
		{3 * time.Hour, 6 * time.Hour, time.Hour, time.Hour, 0, time.Hour, true},
		{3 * time.Hour, 6 * time.Hour, time.Hour, 90 * time.Minute, 0, 30 * time.Minute, true},
		{3 * time.Hour, 6 * time.Hour, time.Hour, time.Hour, 10 * time.Minute, 10 * time.Minute, true},
		{3 * time.Hour, 6 * time.Hour, time.Hour, time.Hour, time.Second, time.Second, false},
		{3*time.Hour + 1, 6 * time.Hour, time.Hour, time.Hour, 0, 1, false},
		{48 * time.Hour, 480 * time.Hour, 48 * time.Hour, 168 * time.Hour, 0, 24 * time.Hour, true},
		{14 * time.Hour, 70 * time.Hour, 7 * time.Hour, 7 * time.Hour, 0, time.Hour, true},
		{3*time.Hour + 1, 3*time.Hour + 1, 0, 17 * time.Second, 3, 24 * time.Hour, true},
	} {
		e := &logql.RangeAgg{Op: "count_over_time", Range: logql.LogRange{Log: &logql.LogExpr{}, Window: c.window, Offset: c.offset}}
		q, err := metric.Compile(e, metric.Grid{Start: int64(c.start), End: int64(c.end), Step: int64(c.step)}, metric.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if by, ok := q.Requests()[0].Index(); by != c.by || ok != c.ok {
			t.Errorf("%v: %s, %v", c, by, ok)
		}
	}
}

// A query holds no more than 120 MiB, with any samples.
func TestMemory(t *testing.T) {
	testkit.FullOnly(t, "the race detector needs memory of its own")
	const most = 120 << 20
	wide := metric.Align(int64(time.Hour), int64(12*time.Hour), int64(10*time.Second))
	for _, c := range []struct {
		query  string
		grid   metric.Grid
		series int
		long   int // bytes of a label
	}{
		{`count_over_time({}[1m])`, wide, 450, 10},
		{`avg_over_time({} | unwrap x [90s])`, wide, 220, 10},
		{`stddev_over_time({} | unwrap x [1m])`, wide, 240, 10},
		{`rate_counter({} | unwrap x [1m])`, wide, 160, 10},
		{`quantile_over_time(0.5, {} | unwrap x [1h])`, wide, 250, 10},
		{`sum by (path) (count_over_time({}[1h]))`, metric.At(int64(2 * time.Hour)), 100_000, 10},
		{`count(count_over_time({}[1h]))`, metric.At(int64(2 * time.Hour)), 1000, 10_000},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		q, err := metric.Compile(parse(t, c.query), c.grid, metric.Limits{Series: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		r := q.Requests()[0]
		n := 0
		padding := strings.Repeat("x", c.long)
		keys := make([]string, c.series)
		all := make([][]metric.Label, c.series)
		for i := range keys {
			keys[i] = fmt.Sprint("path=", i, padding)
			all[i] = labels(keys[i])
		}
		for at := r.From; at < r.To && err == nil; at += int64(10 * time.Second) {
			for i := 0; i < c.series && err == nil; i++ {
				err = r.Add(at, float64(n), keys[i], all[i])
				n++
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		var res *metric.Result
		if err == nil {
			res, err = q.Result(t.Context())
		}
		t.Logf("%s: %d samples, %d MiB, %v", c.query, n, held>>20, err)
		if held > most {
			t.Errorf("%s holds %d MiB", c.query, held>>20)
		}
		runtime.KeepAlive(res)
	}
}
