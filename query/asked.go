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
	"blobtail/internal/budget"
	"blobtail/internal/spelling"
	"blobtail/record"
	"blobtail/storage"
)

// isGlob reports whether a name of a query stands for the services that match it.
func isGlob(name string) bool { return strings.ContainsAny(name, `*?[\`) }

// asked is a checked query. All plans of one query share it; only found and noStore
// change after [Reader.prepare].
type asked struct {
	reader   *Reader
	query    Query
	match    *Matcher
	services []string // that the query's names and globs mean, in order
	stored   []string // all services of the store, if a glob had them listed
	bodies   []*body  // the unflushed records of the services
	view     *catalog.View
	began    time.Time // every listing of a plan is later
	found    []found   // by service, in all listings
	noStore  error     // the store does not exist, and that is a warning
	unknown  []error   // a [*NoServiceError] for each name without records, next to others
}

// found counts the listed objects of a service.
type found struct {
	any     bool   // an object, a blob or not
	foreign int64  // objects that are no blobs
	first   string // of these
}

// prepare checks a query and finds its services, among the stored ones if these are known.
func (r *Reader) prepare(ctx context.Context, q Query, stored []string) (*asked, error) {
	if q.Limit > 0 && q.First > 0 {
		return nil, badQuery("the newest and the oldest cannot be asked for at once")
	}
	for _, name := range q.Services {
		if !record.ValidPattern(name) && isGlob(name) {
			return nil, badQuery("glob %q: %w", name, path.ErrBadPattern)
		}
	}
	match, err := q.Filter.Matcher(budget.Of(ctx))
	if err != nil {
		return nil, err
	}
	a := &asked{reader: r, query: q, match: match, stored: stored, began: time.Now()}
	var unknown []string
	if a.services, unknown, err = resolve(ctx, q.Services, a.listServices); err != nil {
		return nil, err
	}
	for _, name := range unknown {
		if err := r.noService(ctx, name); err != nil {
			if _, ok := errors.AsType[*NoServiceError](err); !ok || len(a.services) == 0 {
				return nil, err
			}
			a.unknown = append(a.unknown, err)
		}
	}
	for _, u := range q.Unflushed {
		for _, b := range u.bodies {
			if _, wanted := slices.BinarySearch(a.services, b.Name.Service); wanted {
				a.bodies = append(a.bodies, b)
			}
		}
	}
	a.found = make([]found, len(a.services))
	a.view = catalog.NewView(r.store, a.services, q.Expired)
	return a, nil
}

// listServices lists the services of the store and of the unflushed records, for globs.
func (a *asked) listServices(ctx context.Context) (all []string, err error) {
	if a.stored == nil {
		if a.stored, err = catalog.Services(ctx, a.reader.store); err != nil && !a.absent(err) {
			return nil, err
		}
	}
	all = slices.Clone(a.stored)
	for _, u := range a.query.Unflushed {
		all = slices.AppendSeq(all, maps.Keys(u.heads))
	}
	return all, nil
}

// Services resolves names and globs to services. A name stands for itself, whether or
// not anything is stored under it; a glob for the matching services of the store.
func (r *Reader) Services(ctx context.Context, names []string) ([]string, error) {
	services, _, err := resolve(ctx, names, func(ctx context.Context) ([]string, error) { return catalog.Services(ctx, r.store) })
	return services, err
}

// resolve turns names and globs into services, sorted, each once. unknown are those that
// mean none. It calls list, at most once, for the services that globs may match.
func resolve(ctx context.Context, names []string, list func(context.Context) ([]string, error)) (services, unknown []string, err error) {
	var all []string
	for _, name := range names {
		n, glob := len(services), isGlob(name)
		if glob && all == nil {
			if all, err = list(ctx); err != nil {
				return nil, nil, err
			}
		}
		if !glob && catalog.IsService(name) {
			services = append(services, name)
		}
		if glob {
			if err := ctx.Err(); err != nil { // globs and services are many at times
				return nil, nil, err
			}
			for _, s := range all {
				if record.MatchService(name, s) {
					services = append(services, s)
				}
			}
		}
		if len(services) == n {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(services)
	return slices.Compact(services), unknown, nil
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

// none finds the services without stored or unflushed records, except those whose
// records have expired, and adds their errors to problems. It fails if no service is left.
func (a *asked) none(ctx context.Context, problems *[]error) error {
	left, stored := len(a.services), []string(nil)
	for i := range a.services {
		err := a.noneOf(ctx, i)
		if none, ok := errors.AsType[*NoServiceError](err); ok {
			if stored == nil {
				stored = none.Stored
			}
			none.Stored = stored // one list for all
			a.unknown = append(a.unknown, none)
			left--
		} else if err != nil {
			return err
		}
	}
	if left == 0 && len(a.unknown) > 0 {
		return a.unknown[0]
	}
	*problems = append(*problems, a.unknown...)
	return nil
}

// noneOf fails for a service without stored or unflushed records, unless it had some and
// they have expired.
func (a *asked) noneOf(ctx context.Context, i int) error {
	service := a.services[i]
	_, dropped := a.view.Dropped(service)
	unflushed := slices.ContainsFunc(a.query.Unflushed, func(u *Unflushed) bool { return u.heads[service] != nil })
	if a.found[i].any || unflushed || slices.Contains(a.stored, service) || !dropped.Empty() {
		return nil
	}
	err := a.reader.noService(ctx, service)
	if err == nil {
		return nil
	}
	// Its only day may have been deleted since the horizons were read.
	if lerr := a.view.Look(ctx); lerr != nil {
		return lerr
	}
	if _, dropped = a.view.Dropped(service); dropped.Empty() {
		return err
	}
	return nil
}

// tellFound warns of foreign objects, and of a store that does not exist.
func (a *asked) tellFound(sum *Summary) {
	if a.noStore != nil {
		sum.Warnings = append(sum.Warnings, a.noStore)
	}
	for i, f := range a.found {
		if f.foreign > 0 {
			sum.Warnings = append(sum.Warnings,
				fmt.Errorf("%s/: %d objects are no blobs of ours and were left out, such as %s", a.services[i], f.foreign, f.first))
		}
	}
}

// noService makes the error for a name or a glob without records.
func (r *Reader) noService(ctx context.Context, name string) error {
	if isGlob(name) {
		return &NoServiceError{Name: name}
	}
	// Mostly the service has records, only none in the range. Listing all services takes longer.
	if catalog.IsService(name) {
		for _, err := range r.store.Dirs(ctx, name+"/") {
			if err == nil {
				return nil
			}
			break
		}
	}
	names, err := catalog.Services(ctx, r.store)
	if errors.Is(err, storage.ErrUnauthorized) && catalog.IsService(name) {
		return &NoServiceError{Name: name} // a reader of some services alone
	}
	if err != nil {
		return err
	}
	if slices.Contains(names, name) {
		return nil
	}
	return &NoServiceError{Name: name, Near: spelling.Near(record.FoldService(name), names), Stored: names}
}
