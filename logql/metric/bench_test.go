package metric_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"blobtail/logql/metric"
)

// The cost of a sample, and of the points: 2,000,000 samples of 6 hours in 10 series.
func BenchmarkSamples(b *testing.B) {
	const n, span = 2_000_000, int64(6 * time.Hour)
	var keys []string
	var all [][]metric.Label
	for i := range 10 {
		keys = append(keys, fmt.Sprint("key ", i))
		all = append(all, []metric.Label{{Name: "path", Value: fmt.Sprint("/", i)}})
	}
	for _, text := range []string{
		`sum by (path) (count_over_time({}[1m]))`,
		`sum by (path) (rate({}[1h]))`,
		`max_over_time({} | unwrap x [1m])`,
		`sum_over_time({} | unwrap x [1m])`,
		`stddev_over_time({} | unwrap x [5m])`,
	} {
		b.Run(text, func(b *testing.B) {
			e := parse(b, text)
			g := metric.Align(0, span, int64(time.Minute))
			b.ReportAllocs()
			for b.Loop() {
				q, err := metric.Compile(e, g, metric.Limits{})
				if err != nil {
					b.Fatal(err)
				}
				r := q.Requests()[0]
				for i := range n {
					if err := r.Add(int64(i)*(span/n), float64(i%1000), keys[i*7%10], all[i*7%10]); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := q.Result(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/sample")
		})
	}
}

// Records through the sampler of a pipeline into a request: 100,000 of them.
func BenchmarkRecords(b *testing.B) {
	const n = 100_000
	rng := rand.New(rand.NewPCG(1, 1))
	var items []*item
	for i := range n {
		r := &item{
			time: int64(i) * int64(10*time.Millisecond), level: "info", service: "web",
			msg: "GET /basket/" + fmt.Sprint(rng.IntN(1000)), fields: []field{{"status", of[any](rng, 200.0, 404.0, 500.0)},
				{"took", fmt.Sprint(rng.IntN(900), "ms")}, {"user", fmt.Sprint("u", rng.IntN(100))}},
		}
		r.store()
		items = append(items, r)
	}
	for _, text := range []string{
		`sum by (level) (count_over_time({service_name="web"} |= "basket/1" [1m]))`,
		`sum by (status) (count_over_time({service_name="web"}[1m]))`,
		`quantile_over_time(0.99, {service_name="web"} | unwrap duration(took) [1m]) by (status)`,
		`sum by (status) (rate({service_name="web"} | json | status >= 400 [1m]))`,
	} {
		b.Run(text, func(b *testing.B) {
			e, g := parse(b, text), metric.Align(0, n*int64(10*time.Millisecond), int64(time.Minute))
			b.ReportAllocs()
			for b.Loop() {
				r, err := metric.Evaluate(b.Context(), e, g, metric.Limits{}, scan(&world{items: items}))
				if err != nil || len(r.Series) == 0 {
					b.Fatal(err, r)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
		})
	}
}

// The quantiles of windows that share nearly all of their samples: a million of them.
func BenchmarkQuantile(b *testing.B) {
	const n, span = 1_000_000, int64(24 * time.Hour)
	e := parse(b, `quantile_over_time(0.99, {} | unwrap x [6h])`)
	for b.Loop() {
		q, err := metric.Compile(e, metric.Align(0, span, int64(15*time.Second)), metric.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		r := q.Requests()[0]
		for i := range n {
			if err := r.Add(int64(i)*(span/n), float64(i*7919%10007), "k", nil); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := q.Result(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// Counts of an index, by the minute of 6 hours and of 7 levels.
func BenchmarkCounts(b *testing.B) {
	const span = int64(6 * time.Hour)
	levels := []string{"trace", "debug", "info", "warn", "error", "critical", "unknown"}
	e := parse(b, `sum by (level) (count_over_time({service_name="web"}[1m]))`)
	for b.Loop() {
		q, err := metric.Compile(e, metric.Align(0, span, int64(time.Minute)), metric.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		r := q.Requests()[0]
		for ns := int64(0); ns < span; ns += int64(time.Minute) {
			for i, l := range levels {
				if err := r.AddCount(ns, int64(i)+1, l, []metric.Label{{Name: "level", Value: l}}); err != nil {
					b.Fatal(err)
				}
			}
		}
		if _, err := q.Result(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// A thousand series: each point has the best ten of them.
func BenchmarkTop(b *testing.B) {
	e := parse(b, `topk(10, sum by (path) (rate({}[5m])))`)
	g := metric.Align(0, int64(6*time.Hour), int64(time.Minute))
	for b.Loop() {
		q, err := metric.Compile(e, g, metric.Limits{Series: 1000})
		if err != nil {
			b.Fatal(err)
		}
		r := q.Requests()[0]
		for m := range 360 {
			for i := range 1000 {
				path := fmt.Sprint(i)
				if err := r.Add(int64(m)*int64(time.Minute), 1, path, []metric.Label{{Name: "path", Value: path}}); err != nil {
					b.Fatal(err)
				}
			}
		}
		if _, err := q.Result(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
