package newest

import (
	"context"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"blobtail/newest/live"
	"blobtail/record"
	"blobtail/tailindex"
)

// Holds reports whether ingesters, or else the tables of the tail, have records of a
// service, whatever their times and levels. An error means that nobody can tell.
func (r *Reader) Holds(ctx context.Context, service string) (bool, error) {
	if r.asks() {
		name, _ := askable([]string{service})
		answer, err := r.ask(ctx, live.Query{Service: name, From: math.MinInt64, To: math.MaxInt64, Newest: 1}, r.survey(ctx, nil))
		if err == nil {
			defer answer.Close()
			if _, err = answer.Next(); err == nil {
				return true, nil
			}
		}
		if err == io.EOF {
			return false, nil
		}
	}
	rows, err := r.rows(ctx, []string{service}, tablePatience, func(ctx context.Context, service string) ([]tailindex.Row, error) {
		return r.o.Tail.Newest(ctx, service, false, 1)
	})
	return len(rows) > 0, err
}

// namesPatience bounds the search for names: it helps after a mistake, and nobody waits for
// gigabytes.
const namesPatience = time.Second

// Services names services that ingesters hold records of, in order: all of them, unless
// there are too many records to look at in a second. An error means that no ingester can be
// asked.
func (r *Reader) Services(ctx context.Context) ([]string, error) {
	if !r.asks() {
		return nil, ErrNobody
	}
	ctx, cancel := context.WithTimeout(ctx, namesPatience)
	defer cancel()
	answer, err := r.ask(ctx, live.Query{Service: "*,_*", From: math.MinInt64, To: math.MaxInt64}, r.survey(ctx, nil))
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	found := make(map[string]bool)
	for {
		e, err := answer.Next()
		if err != nil {
			return slices.Sorted(maps.Keys(found)), nil
		}
		if name, ok := record.LineService(e.Line); ok && !found[string(name)] {
			found[string(name)] = true
		}
	}
}
