package metric_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/logql/metric"
	"blobtail/logql/stage"
	"blobtail/record"
)

// counts fills requests with numbers of records by time, service and level, as an index has them.
// It counts the requests for which that will do, and scans the records for the others.
func counts(w *world, indexed *int) func(context.Context, *metric.Request) error {
	return func(ctx context.Context, r *metric.Request) error {
		s, err := stage.View{Lines: w.lines}.Sampler(&r.Agg.Range, r.Wanted())
		if err != nil {
			return err
		}
		by, ok := r.Index()
		sel := s.Selection()
		if !ok || !sel.All {
			return scan(w)(ctx, r)
		}
		*indexed++
		type bucket struct {
			start   int64
			service string
			level   record.Level
		}
		all := map[bucket]int64{}
		for _, rec := range w.items {
			level := record.LevelOf([]byte(rec.level))
			if rec.time >= r.From && rec.time < r.To && sel.Service(rec.service) && sel.Levels[level] {
				all[bucket{rec.time - rec.time%int64(by), rec.service, level}]++
			}
		}
		for b, n := range all { // in any order
			series := s.Series(b.service, b.level)
			if err := r.AddCount(b.start, n, series.Key, series.Labels); err != nil {
				return err
			}
		}
		return nil
	}
}

// drawIndexed makes a query that indexes often answer.
func drawIndexed(rng *rand.Rand) node {
	s := &span{
		op:      of(rng, "count_over_time", "count_over_time", "rate", "absent_over_time"),
		service: of(rng, "", "web", "api", "missing"),
		window:  time.Duration(1+rng.IntN(4)) * of(rng, time.Minute, time.Minute, time.Hour, time.Second),
		offset:  time.Duration(rng.IntN(3)-1) * time.Minute * time.Duration(rng.IntN(2)),
	}
	for range rng.IntN(3) {
		switch rng.IntN(4) {
		case 0:
			s.stages = append(s.stages, plain{"|= ``", func(*work) bool { return true }})
		case 1:
			s.stages = append(s.stages, plain{"| drop __error__ |= ``", func(w *work) bool { w.failed = ""; return true }})
		case 2:
			name := of(rng, "level", "detected_level")
			s.stages = append(s.stages, plain{`| ` + name + `="error"`, func(w *work) bool { v, _ := w.get(name); return v == "error" }})
		case 3:
			s.stages = append(s.stages, plain{`| detected_level=~"info|unknown|warn"`, func(w *work) bool {
				return strings.Contains("info unknown warn", w.detected())
			}})
		}
	}
	names := []string{"level", "detected_level", "service_name", "status"}[:rng.IntN(13)/3]
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	if rng.IntN(4) == 0 {
		return s
	}
	return &fold{op: of(rng, "sum", "sum", "sum", "max", "count"), by: grouping{of(rng, "by", "by", "without"), names}, of: s}
}

// Numbers of records make the same points as the records.
func TestCountsOfAnIndex(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 3))
	queries, indexed, answered := testkit.Portion(20_000, 5000, 1000), 0, 0
	const start = int64(1_795_323_600_000_000_000)
	for asked := 0; asked < queries; {
		items := drawItems(rng, start)
		for range min(50, queries-asked) {
			asked++
			n, w := drawIndexed(rng), &world{items: items, lines: rng.IntN(2) == 0}
			at := items[rng.IntN(len(items))].time + rng.Int64N(int64(3*time.Minute))
			g := metric.At(at)
			if rng.IntN(3) > 0 {
				step := int64(1+rng.IntN(3)) * of(rng, int64(time.Minute), int64(time.Minute), int64(time.Hour), int64(time.Second))
				g = metric.Align(at, at+rng.Int64N(6)*step, step)
			}
			o := judge(t, n, w, g, counts(w, &indexed))
			if o.diff != "" {
				t.Fatalf("seed %d, lines %v, grid %v: %s\n%s\n%s", seed, w.lines, g, n.text(0), o.diff, story(items))
			}
			answered += min(1, o.series)
		}
	}
	t.Logf("%d queries, %d have series, %d of counts; seed %d", queries, answered, indexed, seed)
	if indexed < queries/4 || answered < queries/3 {
		t.Error("too few queries are answered by counts")
	}
}
