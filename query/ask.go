package query

import (
	"context"
	"slices"
	"strings"

	"blobtail/catalog"
	"blobtail/record"
	"blobtail/storage/mem"
)

// Services resolves names and globs to services. A name stands for itself, whether or
// not anything is stored under it; a glob for the matching services of the store.
func (r *Reader) Services(ctx context.Context, names []string) ([]string, error) {
	var out, all []string
	for _, name := range names {
		if !strings.ContainsAny(name, globChars) {
			if catalog.IsService(name) {
				out = append(out, name)
			}
			continue
		}
		if all == nil {
			var err error
			if all, err = catalog.Services(ctx, r.store); err != nil {
				return nil, err
			}
		}
		for _, s := range all {
			if record.MatchService(name, s) {
				out = append(out, s)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Matcher is a compiled [Filter]. It may be used by several goroutines at once.
type Matcher struct{ m *matcher }

// Matcher compiles the filter; an error is a [*BadQueryError].
func (f Filter) Matcher() (*Matcher, error) {
	m, err := f.compile()
	if err != nil {
		return nil, &BadQueryError{err}
	}
	return &Matcher{m}, nil
}

// Line reports whether the filter accepts a line, which ends in a newline.
func (m *Matcher) Line(line []byte) bool {
	low := line
	if m.m.fold && len(m.m.texts) > 0 {
		low = make([]byte, len(line))
		foldASCII(low, line)
	}
	want, _ := m.m.line(line, low)
	return want
}

// Floor is the time of the oldest of the newest q.Limit unflushed records, if there
// are as many. No older record can be in the result of q.
func (q *Query) Floor(ctx context.Context) (t int64, ok bool, err error) {
	if q.Limit <= 0 || len(q.Unflushed) == 0 {
		return 0, false, nil
	}
	m, err := q.Filter.compile()
	if err != nil {
		return 0, false, &BadQueryError{err}
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
