package metric

import (
	"slices"

	"blobtail/logql"
)

// plan makes the requests of an expression. Names are the labels that the operations around it
// need. Group is the grouping that one of them makes of the series anyway; nil: none.
func (q *Query) plan(e logql.Metric, names []string, group *logql.Grouping) error {
	switch e := e.(type) {
	case *logql.Number, *logql.Vector:
		return nil
	case *logql.RangeAgg:
		return q.request(e, names, group)
	case *logql.VectorAgg:
		names, group, err := within(e, names)
		if err != nil {
			return err
		}
		return q.plan(e.Of, names, group)
	case *logql.Binary:
		if m := e.Matching; m != nil && m.On {
			names = slices.Concat(names, m.Labels)
		}
		if err := checkBinary(e); err != nil {
			return err
		}
		if err := q.plan(e.Left, names, nil); err != nil {
			return err
		}
		return q.plan(e.Right, names, nil)
	}
	return errorf("blobtail cannot evaluate %s", e)
}

// within returns the names and the grouping for the operand of an aggregation over series.
func within(a *logql.VectorAgg, names []string) ([]string, *logql.Grouping, error) {
	g := a.Grouping
	if g == nil {
		g = &logql.Grouping{}
	}
	switch a.Op {
	case "topk", "bottomk", "approx_topk", "sort", "sort_desc":
		if !g.Without {
			names = slices.Concat(names, g.Labels)
		}
		return names, nil, nil
	case "sum", "count", "avg", "min", "max", "stddev", "stdvar":
	default:
		return nil, nil, errorf("blobtail does not have %s", a.Op)
	}
	if g.Without {
		names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(g.Labels, n) })
	} else {
		names = g.Labels
	}
	if inner, ok := a.Of.(*logql.RangeAgg); ok && slices.Contains(sameBefore(a.Op), inner.Op) {
		return names, g, nil
	}
	return names, nil, nil
}

// sameBefore are the range aggregations that an aggregation over series may compute from the
// samples of all series together, with the same result.
func sameBefore(op logql.VectorOp) []logql.RangeOp {
	switch op {
	case "sum":
		return []logql.RangeOp{"count_over_time", "rate", "bytes_over_time", "bytes_rate", "sum_over_time"}
	case "min":
		return []logql.RangeOp{"min_over_time"}
	case "max":
		return []logql.RangeOp{"max_over_time"}
	}
	return nil
}

func (q *Query) request(a *logql.RangeAgg, names []string, group *logql.Grouping) error {
	op, err := operationOf(a)
	if err != nil {
		return err
	}
	geo, err := q.grid.geometry(a.Range.Window, a.Range.Offset)
	if err != nil {
		return err
	}
	if g := a.Grouping; g != nil {
		if group = g; !g.Without {
			names = g.Labels
		}
	}
	if a.Op == "absent_over_time" {
		group, names = &logql.Grouping{}, nil
	}
	if u := a.Range.Unwrap; u != nil && a.Grouping == nil {
		names, group = lacking(names, group, u.Label)
	}
	names = slices.Clone(names)
	slices.Sort(names)
	r := &Request{
		Agg: a, From: geo.from, To: geo.to, Group: group, Names: slices.Compact(names),
		op: op, geo: geo, allows: q.allows, byKey: map[string]*column{}, byLabs: map[string]*column{},
	}
	q.requests = append(q.requests, r)
	q.of[a] = r
	return nil
}

// lacking takes the unwrapped label from the needs of a query: the series do not have it.
func lacking(names []string, g *logql.Grouping, label string) ([]string, *logql.Grouping) {
	is := func(name string) bool { return name == label }
	names = slices.DeleteFunc(slices.Clone(names), is)
	if g == nil || g.Without {
		return names, g
	}
	return names, &logql.Grouping{Labels: slices.DeleteFunc(slices.Clone(g.Labels), is)}
}
