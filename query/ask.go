package query

import (
	"context"
	"slices"

	"blobtail/catalog"
	"blobtail/record"
	"blobtail/storage/mem"
)

// Services resolves names and globs to services. A name stands for itself, whether or
// not anything is stored under it; a glob for the matching services of the store.
func (r *Reader) Services(ctx context.Context, names []string) ([]string, error) {
	services, _, err := resolve(ctx, names, func(ctx context.Context) ([]string, error) { return catalog.Services(ctx, r.store) })
	return services, err
}

// Floor is the time of the oldest of the newest q.Limit unflushed records, if there
// are as many. No older record can be in the result of q.
func (q *Query) Floor(ctx context.Context) (t int64, ok bool, err error) {
	if q.Limit <= 0 || len(q.Unflushed) == 0 {
		return 0, false, nil
	}
	m, err := q.Filter.Matcher()
	if err != nil {
		return 0, false, err
	}
	a := &asked{reader: Without(Options{}), query: *q, match: m, view: catalog.NewView(nil, nil, q.Expired)}
	a.bodies = q.bodies(func(service string) bool {
		return slices.ContainsFunc(q.Services, func(name string) bool { return record.MatchService(name, service) })
	})
	n, _, oldest, err := a.newestBodies(ctx)
	return oldest, err == nil && n >= q.Limit, err
}

// Without returns a reader of no blobs, for unflushed records alone.
func Without(o Options) *Reader { return New(mem.New(mem.Options{}), o) }
