package unflushed

import (
	"context"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"blobtail/reading/unflushed/live"
	"blobtail/record"
	"blobtail/tailindex"
)

// Holds reports whether ingesters, or else the tables of the tail, have records of a service, of
// any times and levels. An error means that nobody can tell.
func (r *Reader) Holds(ctx context.Context, service string) (bool, error) {
	found, err := r.oneHeld(ctx, []string{service})
	return found != "", err
}

// oneHeld is Holds for several names and globs: a service with records, or "".
func (r *Reader) oneHeld(ctx context.Context, names []string) (service string, err error) {
	if r.asks() {
		list, wide := askable(names)
		ask, asked := live.Query{Service: list, From: math.MinInt64, To: math.MaxInt64, Newest: 1}, newSift(names)
		if wide {
			ask.Newest = 0 // the newest may be of another service
		}
		err = r.held(ctx, ask, func(name string) bool {
			service = name
			return false
		}, asked)
		if service != "" || err == io.EOF {
			return service, nil
		}
	}
	rows, err := r.rows(ctx, names, tablePatience, func(ctx context.Context, service string) ([]tailindex.Row, error) {
		return r.o.Tail.Newest(ctx, service, false, 1)
	})
	if len(rows) == 0 {
		return "", err
	}
	return rows[0].Service, err
}

// held passes on the services of the records that ingesters hold, until more returns false. The
// error is io.EOF if all answered to their ends.
func (r *Reader) held(ctx context.Context, q live.Query, more func(service string) bool, asked *sift) error {
	answers, h, err := r.answers(ctx, q, r.survey(ctx, nil))
	if err != nil {
		return err
	}
	all := newTogether(answers)
	defer func() {
		for _, a := range answers {
			a.Close()
		}
	}()
	for len(answers) > 0 {
		e, err := all.Next()
		if err != nil {
			break
		}
		if name, ok := record.LineService(e.Line); ok && asked.has(e.Line) && !more(string(name)) {
			return nil
		}
	}
	for _, one := range all.all {
		if one.end != io.EOF {
			return one.end
		}
	}
	for _, err := range h.errs {
		return err
	}
	return io.EOF
}

// holding returns those of some names and globs that Holds reports. It asks once for all that it
// does not report.
func (r *Reader) holding(ctx context.Context, names []string) map[string]bool {
	found := map[string]bool{}
	for left := slices.Clone(names); len(left) > 0; {
		service, _ := r.oneHeld(ctx, left)
		if service == "" {
			break // nor is it known, if nobody can tell
		}
		before := len(left)
		left = slices.DeleteFunc(left, func(name string) bool {
			if !record.MatchService(name, service) {
				return false
			}
			found[name] = true
			return true
		})
		if len(left) == before {
			break
		}
	}
	return found
}

// namesPatience bounds the search for names: it helps after a mistake, and nobody waits for
// gigabytes.
const namesPatience = time.Second

// Services names services that ingesters hold records of, in order. whole says that they are all:
// no ingester is missing, and there were not too many records to look at in a second. An error
// means that no ingester can be asked.
func (r *Reader) Services(ctx context.Context) (names []string, whole bool, err error) {
	if !r.asks() {
		return nil, false, ErrNobody
	}
	ctx, cancel := context.WithTimeout(ctx, namesPatience)
	defer cancel()
	found := make(map[string]bool)
	err = r.held(ctx, live.Query{Service: "*,_*", From: math.MinInt64, To: math.MaxInt64}, func(name string) bool {
		found[name] = true
		return true
	}, nil)
	if len(found) == 0 && err != nil && err != io.EOF {
		return nil, false, err
	}
	return slices.Sorted(maps.Keys(found)), err == io.EOF, nil
}
