package metric_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// drawNode makes an expression, at most so deep.
func drawNode(rng *rand.Rand, depth int) node {
	switch n := rng.IntN(10); {
	case depth == 0 || n < 3:
		return drawSpan(rng)
	case n < 7:
		return drawFold(rng, depth)
	case n == 7 && rng.IntN(3) == 0:
		return constant(of(rng, 0, 1, 2.5, 7))
	}
	return drawBoth(rng, depth)
}

func drawGrouping(rng *rand.Rand, words ...string) grouping {
	var names []string
	for range rng.IntN(3) {
		name := drawName(rng)
		if rng.IntN(3) == 0 {
			name = "service_name" // so that operators find partners
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return grouping{of(rng, words...), names}
}

func drawSpan(rng *rand.Rand) node {
	s := &span{
		op: of(rng, "count_over_time", "count_over_time", "rate", "bytes_over_time", "bytes_rate", "absent_over_time", "rate_counter",
			"sum_over_time", "avg_over_time", "min_over_time", "max_over_time", "first_over_time", "last_over_time", "stddev_over_time", "stdvar_over_time", "quantile_over_time"),
		service: of(rng, "", "", "", "web", "web", "web", "web", "api", "api", "missing"),
		stages:  drawStages(rng),
		window:  of(rng, time.Second, 7*time.Second, 10*time.Second, time.Minute, 90*time.Second, 5*time.Minute, 10*time.Minute, time.Hour, time.Hour),
		param:   of(rng, 0, 0.25, 0.5, 0.99, 1, 2),
		behind:  rng.IntN(4) == 0,
	}
	if rng.IntN(5) == 0 {
		s.offset = of(rng, time.Second, time.Minute, -time.Minute, 13*time.Second)
	}
	switch s.op {
	case "count_over_time", "bytes_over_time", "bytes_rate", "absent_over_time":
		return s
	case "rate":
		if rng.IntN(2) == 0 {
			return s
		}
	case "rate_counter", "sum_over_time":
	default:
		if rng.IntN(2) == 0 {
			s.by = drawGrouping(rng, "by", "without")
		}
	}
	switch rng.IntN(6) {
	case 0:
		s.unwrap, s.convert = "took", "duration"
	case 1:
		s.unwrap, s.convert = "size", "bytes"
	default:
		s.unwrap = of(rng, "v", "v", "v", "v", "status", "n", "http_code")
	}
	s.clean = rng.IntN(5) > 0
	return s
}

func drawFold(rng *rand.Rand, depth int) node {
	f := &fold{
		op: of(rng, "sum", "sum", "count", "avg", "min", "max", "stddev", "stdvar", "topk", "bottomk", "approx_topk", "sort", "sort_desc"),
		k:  1 + rng.IntN(4), ahead: rng.IntN(2) == 0, of: drawNode(rng, depth-1),
	}
	if !strings.HasPrefix(f.op, "sort") && f.op != "approx_topk" && rng.IntN(4) > 0 {
		f.by = drawGrouping(rng, "by", "by", "without")
	}
	for f.of.scalar() {
		f.of = drawNode(rng, depth-1)
	}
	return f
}

func drawBoth(rng *rand.Rand, depth int) node {
	b := &both{op: of(rng, "+", "-", "*", "/", "%", "^", "==", "!=", ">", ">=", "<", "<=", "and", "or", "unless")}
	b.left, b.right = drawNode(rng, depth-1), drawNode(rng, depth-1)
	set := b.binds() < 3
	if !set && rng.IntN(3) == 0 {
		b.right = number(of(rng, 0, 1, 2, -3, 0.5))
	} else if !set && rng.IntN(6) == 0 {
		b.left = number(of(rng, 0, 1, 2, -3, 0.5))
	}
	for set && b.left.scalar() {
		b.left = drawNode(rng, depth-1)
	}
	for set && b.right.scalar() {
		b.right = drawNode(rng, depth-1)
	}
	b.bool = b.compares() && rng.IntN(3) == 0
	if !b.left.scalar() && !b.right.scalar() && rng.IntN(2) == 0 {
		b.by = drawGrouping(rng, "on", "ignoring")
	}
	return b
}
