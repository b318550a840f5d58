package metric_test

import (
	"context"
	"testing"
	"time"

	"blobtail/logql"
	"blobtail/logql/metric"
)

// An evaluation of any query on any grid ends soon, and has points of the grid only.
func FuzzEvaluate(f *testing.F) {
	for _, text := range []string{
		`sum by (a) (count_over_time({}[1m])) / ignoring (b) rate({}[1h] offset -5m)`,
		`topk(3, quantile_over_time(0.9, {} | unwrap x [90s]) without (a)) > bool 2 ^ -1`,
		`rate_counter({} | unwrap x [7s]) or on () absent_over_time({a="1"}[1d]) unless vector(1)`,
		`stddev(stdvar_over_time({} | unwrap x [1y]) by (a, b)) % 0`,
	} {
		f.Add(text, int64(0), int64(time.Hour), int64(time.Minute))
		f.Add(text, int64(-5), int64(-5), int64(0))
	}
	f.Fuzz(func(t *testing.T, text string, start, end, step int64) {
		e, err := logql.Parse(text)
		if err != nil {
			t.Skip()
		}
		m, ok := e.(logql.Metric)
		if !ok {
			t.Skip()
		}
		g := metric.Grid{Start: start, End: end, Step: step}
		began := time.Now()
		r, err := metric.Evaluate(t.Context(), m, g, metric.Limits{Cells: 20_000, Points: 200}, func(_ context.Context, r *metric.Request) error {
			for i := range int64(50) {
				at := r.From + i*((r.To-r.From)/50)
				if err := r.Add(at, float64(i%7)-2, "k", []metric.Label{{Name: "a", Value: "1"}}); err != nil {
					return err
				}
				if err := r.Add(at, float64(i), "l", []metric.Label{{Name: "b", Value: "2"}, {Name: "a", Value: "2"}}); err != nil {
					return err
				}
			}
			return nil
		})
		if took := time.Since(began); took > 10*time.Second {
			t.Fatalf("%s took %s", text, took)
		}
		if err != nil {
			return
		}
		for _, s := range r.Series {
			n := 0
			for at := range s.Points() {
				n++
				if at < g.Start || at > g.End || g.Step > 0 && (at-g.Start)%g.Step != 0 {
					t.Fatalf("%s has a point at %d", text, at)
				}
			}
			if n == 0 {
				t.Fatalf("%s has a series without points", text)
			}
		}
	})
}
