package query

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"blobtail/catalog"
	"blobtail/record"
	"blobtail/storage"
)

const globChars = `*?[\`

// asked is a checked query. All plans of one query share it; only noStore changes
// after [Reader.prepare].
type asked struct {
	reader    *Reader
	query     Query
	match     *matcher
	services  []string // that the query's names and globs mean, in order
	stored    []string // all services of the store, if a glob had them listed
	bodies    []*body  // the unflushed records of the services
	view      *catalog.View
	began     time.Time // every listing of a plan is later
	compacted compacted
	noStore   error // the store does not exist, and that is a warning
}

// prepare checks a query and finds its services.
func (r *Reader) prepare(ctx context.Context, q Query) (*asked, error) {
	if q.Limit > 0 && q.First > 0 {
		return nil, &BadQueryError{errors.New("the newest and the oldest cannot be asked for at once")}
	}
	match, err := q.Filter.compile()
	if err != nil {
		return nil, &BadQueryError{err}
	}
	a := &asked{reader: r, query: q, match: match, began: time.Now()}
	if err := a.resolve(ctx); err != nil {
		return nil, err
	}
	a.bodies = q.bodies(func(service string) bool {
		_, wanted := slices.BinarySearch(a.services, service)
		return wanted
	})
	a.view = catalog.NewView(r.store, a.services, q.Expired)
	return a, nil
}

// Services are the names that the query's globs stand for, in order.
func (a *asked) Services() []string { return slices.Clone(a.services) }

// resolve turns the query's names and globs into services, sorted, each once.
func (a *asked) resolve(ctx context.Context) error {
	var all []string
	for _, name := range a.query.Services {
		if !strings.ContainsAny(name, globChars) {
			if !catalog.IsService(name) {
				return a.reader.noService(ctx, name)
			}
			a.services = append(a.services, name)
			continue
		}
		if !record.ValidPattern(name) {
			return &BadQueryError{fmt.Errorf("glob %q: %w", name, path.ErrBadPattern)}
		}
		if all == nil {
			var err error
			if a.stored, err = catalog.Services(ctx, a.reader.store); err != nil && !a.absent(err) {
				return err
			}
			all = slices.Clone(a.stored)
			for _, u := range a.query.Unflushed {
				all = slices.AppendSeq(all, maps.Keys(u.heads))
			}
		}
		n := len(a.services)
		for _, s := range all {
			if record.MatchService(name, s) {
				a.services = append(a.services, s)
			}
		}
		if len(a.services) == n {
			return &NoServiceError{Name: name}
		}
	}
	slices.Sort(a.services)
	a.services = slices.Compact(a.services)
	return nil
}

// absent reports whether an error means that the store does not exist, and unflushed
// records make that harmless: they may be the first of their ingester. It is noted
// for a warning, because a disk may be missing.
func (a *asked) absent(err error) bool {
	if !errors.Is(err, storage.ErrNotExist) || !slices.ContainsFunc(a.query.Unflushed, func(u *Unflushed) bool { return len(u.heads) > 0 }) {
		return false
	}
	if a.noStore == nil {
		a.noStore = fmt.Errorf("no blobs were read, for there is no store: %w", err)
	}
	return true
}

// mustExist fails for a service without stored or unflushed records, unless it had
// some and they have expired.
func (a *asked) mustExist(ctx context.Context, service string) error {
	_, dropped := a.view.Dropped(service)
	unflushed := slices.ContainsFunc(a.query.Unflushed, func(u *Unflushed) bool { return u.heads[service] != nil })
	if unflushed || slices.Contains(a.stored, service) || !dropped.Empty() {
		return nil
	}
	err := a.reader.noService(ctx, service)
	var none *NoServiceError
	if errors.As(err, &none) {
		// Its only day may have been deleted since the horizons were read.
		if err := a.view.Look(ctx); err != nil {
			return err
		}
		if _, dropped := a.view.Dropped(service); !dropped.Empty() {
			return nil
		}
	}
	return err
}

// noService makes the error for a name without records.
func (r *Reader) noService(ctx context.Context, name string) error {
	names, err := catalog.Services(ctx, r.store)
	if err != nil {
		return err
	}
	e := &NoServiceError{Name: name}
	folded := record.FoldService(name)
	for _, s := range names {
		switch {
		case s == name:
			return nil
		case s == folded:
			e.Near = s
		case e.Near == "" && (strings.HasPrefix(s, folded) || strings.HasPrefix(folded, s)):
			e.Near = s
		}
	}
	return e
}
