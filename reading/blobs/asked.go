package blobs

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
	"blobtail/catalog/horizon"
	"blobtail/internal/budget"
	"blobtail/internal/spelling"
	"blobtail/internal/units"
	"blobtail/record"
	"blobtail/storage"
)

// isGlob reports whether a name of a query stands for the services that match it.
func isGlob(name string) bool { return strings.ContainsAny(name, `*?[\`) }

// asked is a checked query. All plans of one query share it; only found, noStore and names
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
	unknown  []string  // names and globs that mean no service
	names    []string  // all services of the store, listed when there was one without records
	cool     *coolReads
	vouched  vouching
	doubts   []doubt
	back     int64                        // all since was listed
	met      [][]horizon.Day              // by service: days that can be closed, of which something was listed
	days     []map[horizon.Day]*collected // by service, if it reads in windows
	part     bool                         // of a plan, which tells the rest of the whole
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
	a := &asked{reader: r, query: q, match: match, stored: stored, began: time.Now().Add(-q.Aged), cool: r.Together(q).cool}
	if a.services, a.unknown, err = resolve(ctx, &q, a.listServices); err != nil {
		return nil, err
	}
	if len(a.services) == 0 {
		if err := a.none(ctx, new(Summary)); err != nil {
			return nil, err
		}
	}
	for _, u := range q.Unflushed {
		for _, b := range u.bodies {
			if _, wanted := slices.BinarySearch(a.services, b.Name.Service); wanted {
				a.bodies = append(a.bodies, b)
			}
		}
	}
	a.found, a.met = make([]found, len(a.services)), make([][]horizon.Day, len(a.services))
	a.back = q.Range.To
	a.view = catalog.NewView(r.store, a.services, q.Expired)
	a.view.Remember(r.entries)
	if r.opt.Distant {
		a.view.InParts(r.opt.Now)
	}
	a.vouch(ctx)
	return a, nil
}

// listServices lists the services of the store, of the unflushed records, and of blobs that
// ingesters named, for globs.
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
	for _, name := range a.promised() { // a copy of a store may have no blob of a service
		all = append(all, name.Service)
	}
	return all, nil
}

// Services resolves names and globs to services. A name stands for itself, whether or
// not anything is stored under it; a glob for the matching services of the store.
func (r *Reader) Services(ctx context.Context, names []string) ([]string, error) {
	q := Query{Services: names}
	services, _, err := resolve(ctx, &q, func(ctx context.Context) ([]string, error) { return catalog.Services(ctx, r.store) })
	return services, err
}

// Resolve returns the services that a query means and chooses, of the store and of its
// unflushed records, and the names and globs that mean none. For these it lists the services,
// unless all are names.
func (r *Reader) Resolve(ctx context.Context, q Query) (services, unknown []string, err error) {
	return resolve(ctx, &q, (&asked{reader: r, query: q}).listServices)
}

// resolve turns the names and globs of a query into services, sorted, each once, as far as it
// chooses them. unknown are those that mean none. It calls list, at most once, for the services
// that globs may match.
func resolve(ctx context.Context, q *Query, list func(context.Context) ([]string, error)) (services, unknown []string, err error) {
	var all []string
	chosen := func(service string) bool { return q.Choose == nil || q.Choose(service) }
	for _, name := range q.Services {
		n, glob := len(services), isGlob(name)
		if glob && all == nil {
			if all, err = list(ctx); err != nil {
				return nil, nil, err
			}
		}
		if !glob && catalog.IsService(name) && chosen(name) {
			services = append(services, name)
		}
		if glob {
			if err := ctx.Err(); err != nil { // globs and services are many at times
				return nil, nil, err
			}
			for _, s := range all {
				if ctx.Err() == nil && record.MatchService(name, s) && chosen(s) {
					services = append(services, s)
				}
			}
		}
		if len(services) == n {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(services)
	return slices.Compact(services), unknown, ctx.Err() // the last glob may not have been matched with all
}

// absent reports whether an error means that the store does not exist, and unflushed
// records make that harmless: they may be the first of their ingester. It is noted
// for a warning, because a disk may be missing.
func (a *asked) absent(err error) bool {
	if !errors.Is(err, storage.ErrNotExist) || !slices.ContainsFunc(a.query.Unflushed, func(u *Unflushed) bool { return len(u.heads) > 0 }) {
		return false
	}
	if a.noStore == nil {
		a.noStore = fmt.Errorf("there is no store, so records in blobs may be missing: %w", err)
	}
	return true
}

// none finds the names without stored or unflushed records, except names with expired records, and
// adds them to a summary. It fails if there is no other name, and no glob that matches a service.
// That a glob matches none is worth a word only then.
func (a *asked) none(ctx context.Context, sum *Summary) error {
	if a.query.Sure {
		return nil
	}
	var absent, globs []*NoServiceError
	add := func(err error) error {
		none, ok := errors.AsType[*NoServiceError](err)
		switch {
		case !ok:
			return err
		case isGlob(none.Name):
			globs = append(globs, none)
		default:
			absent = append(absent, none)
		}
		return nil
	}
	left := len(a.services)
	for i := range a.services {
		err := a.noneOf(ctx, i)
		if err == nil {
			continue
		}
		if left--; add(err) != nil {
			return err
		}
	}
	for _, name := range a.unknown {
		if err := ctx.Err(); err != nil { // names are many at times
			return err
		}
		err := a.noService(ctx, name)
		if err == nil { // it has come since
			left++
		} else if add(err) != nil {
			return err
		}
	}
	err := sum.Miss(absent, globs, left > 0)
	if err == nil && a.query.Absent != nil {
		a.query.Absent(absent)
	}
	return err
}

// noneOf fails for a service without stored or unflushed records, unless it had some and
// they have expired.
func (a *asked) noneOf(ctx context.Context, i int) error {
	service := a.services[i]
	_, dropped := a.view.Dropped(service)
	unflushed := slices.ContainsFunc(a.query.Unflushed, func(u *Unflushed) bool { return u.heads[service] != nil })
	if a.found[i].any || a.vouched.lacking && len(a.vouched.of[service]) > 0 || unflushed || slices.Contains(a.stored, service) || !dropped.Empty() {
		return nil
	}
	err := a.noService(ctx, service)
	if err == nil {
		a.found[i].any = true // it is asked once
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

// noService is [Reader.noService], also without a store.
func (a *asked) noService(ctx context.Context, name string) error {
	err := a.reader.noService(ctx, name, func(ctx context.Context) (_ []string, err error) {
		if a.names == nil { // the same for all names
			a.names, err = catalog.Services(ctx, a.reader.store)
		}
		return a.names, err
	})
	if a.absent(err) {
		return &NoServiceError{Name: name}
	}
	return err
}

// tellFound warns of foreign objects, and of a store that does not exist.
func (a *asked) tellFound(sum *Summary) {
	if a.part {
		return
	}
	if a.noStore != nil {
		sum.Warnings = append(sum.Warnings, a.noStore)
	}
	for i, f := range a.found {
		if f.foreign > 0 {
			sum.Warnings = append(sum.Warnings,
				fmt.Errorf("%s/: %s %s of ours and %s left out, such as %s", a.services[i], units.Count(f.foreign, "object"),
					units.Word(f.foreign, "is no blob", "are no blobs"), units.Word(f.foreign, "was", "were"), f.first))
		}
	}
}

// noService makes the error for a name or a glob without records. all lists the services of the
// store.
func (r *Reader) noService(ctx context.Context, name string, all func(context.Context) ([]string, error)) error {
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
	names, err := all(ctx)
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
