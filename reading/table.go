package reading

import (
	"context"
	"errors"
	"time"

	"blobtail/logql"
	"blobtail/logql/metric"
)

// A Table is a question in LogQL with numbers as its answer, in text form.
type Table struct {
	LogQL string
	Range Range
	// Step is the distance of points; 0: there is one point, at the end of the range.
	Step time.Duration
}

// Row is a series of a table: its labels in order, and its points in order of time.
type Row struct {
	Labels []Label
	Points []Point
}

// Label is a name with its value.
type Label = metric.Label

// Point is a number at a time, in ns.
type Point struct {
	Time  int64
	Value float64
}

// Grid are the times of the points of a table.
func (t *Table) Grid() metric.Grid {
	if t.Step == 0 {
		return metric.At(t.Range.To - t.Range.To%int64(time.Millisecond)) // as Loki's API tells times
	}
	return metric.Align(t.Range.From, t.Range.To, int64(t.Step))
}

// IsTable reports whether a query in LogQL has numbers as its answer, and not lines. An error is
// an [*AskError].
func IsTable(query string) (bool, error) {
	e, err := logql.Parse(query)
	if err != nil {
		return false, &AskError{"logql", err}
	}
	_, ok := e.(logql.Metric)
	return ok, nil
}

// Table implements [Source].
func (s *Store) Table(ctx context.Context, t Table) ([]Row, *Outcome, error) {
	e, err := logql.Parse(t.LogQL)
	if err != nil {
		return nil, &Outcome{}, &AskError{"logql", err}
	}
	numbers, ok := e.(logql.Metric)
	if !ok {
		return nil, &Outcome{}, &AskError{"logql", errors.New("it selects lines, and has no numbers")}
	}
	res, out, err := s.Numbers(ctx, Numbers{Expr: numbers, Text: t.LogQL, Grid: t.Grid()})
	if mistake, ok := errors.AsType[*AskError](err); ok {
		err = &AskError{"logql", logql.Locate(t.LogQL, mistake.Err)}
	}
	if err = mistaken(err); err != nil {
		return nil, out, err
	}
	rows := make([]Row, 0, len(res.Series))
	for i := range res.Series {
		row := Row{Labels: res.Series[i].Labels}
		for at, v := range res.Series[i].Points() {
			row.Points = append(row.Points, Point{at, v})
		}
		rows = append(rows, row)
	}
	return rows, out, nil
}

// mistaken is an error of a query that is none of a store as an [*AskError].
func mistaken(err error) error {
	if wrong, ok := errors.AsType[*metric.Error](err); ok {
		return &AskError{"logql", wrong}
	}
	return err
}
