package reading

import (
	"context"
	"errors"
	"time"

	"blobtail/internal/budget"
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

// numbers is the question of a table. An error is an [*AskError].
func (t *Table) numbers() (Numbers, error) {
	e, err := logql.Parse(t.LogQL)
	if err != nil {
		return Numbers{}, &AskError{"logql", err}
	}
	numbers, ok := e.(logql.Metric)
	if !ok {
		return Numbers{}, &AskError{"logql", errors.New("it selects lines, and has no numbers")}
	}
	return Numbers{Expr: numbers, Grid: t.Grid()}, nil
}

// Reads is the range of the records that a table needs.
func (t *Table) Reads() (Range, error) {
	q, err := t.compile(nil)
	if err != nil {
		return Range{}, err
	}
	rng := Range{From: Newest, To: Oldest}
	for _, r := range q.Requests() {
		rng.From, rng.To = min(rng.From, r.From), max(rng.To, r.To)
	}
	return rng, nil
}

// compile is the query of a table, without samples.
func (t *Table) compile(made *budget.Budget) (*metric.Query, error) {
	n, err := t.numbers()
	if err != nil {
		return nil, err
	}
	q, err := metric.Compile(n.Expr, n.Grid, metric.Limits{Budget: made})
	return q, t.mistake(err)
}

// mistake is an error about a table as a [Source] has it.
func (t *Table) mistake(err error) error {
	if mistake, ok := errors.AsType[*AskError](err); ok {
		return &AskError{"logql", logql.Locate(t.LogQL, mistake.Err)}
	}
	if wrong, ok := errors.AsType[*metric.Error](err); ok {
		return &AskError{"logql", wrong}
	}
	return err
}

// Table implements [Source].
func (s *Store) Table(ctx context.Context, t Table) ([]Row, *Outcome, error) {
	q, out, err := s.table(ctx, t, Ask{Range: Always()})
	if err != nil {
		return nil, out, err
	}
	rows, err := q.rows(ctx)
	return rows, out, err
}

// table has the samples of the records of a question without services.
func (s *Store) table(ctx context.Context, t Table, of Ask) (*tabling, *Outcome, error) {
	n, err := t.numbers()
	if err != nil {
		return nil, &Outcome{}, err
	}
	q, out, err := s.query(ctx, n, of)
	return &tabling{&t, q}, out, t.mistake(err)
}

// tabling is the state of a table.
type tabling struct {
	of *Table
	*metric.Query
}

// join implements [partial].
func (t *tabling) join(_ context.Context, next partial) error {
	return t.of.mistake(t.Join(next.(*tabling).Query))
}

// rows are the rows of the table.
func (t *tabling) rows(ctx context.Context) ([]Row, error) {
	res, err := t.Result(ctx)
	if err != nil {
		return nil, t.of.mistake(err)
	}
	rows := make([]Row, 0, len(res.Series))
	for i := range res.Series {
		row := Row{Labels: res.Series[i].Labels}
		for at, v := range res.Series[i].Points() {
			row.Points = append(row.Points, Point{at, v})
		}
		rows = append(rows, row)
	}
	return rows, nil
}
