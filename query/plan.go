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

	"golang.org/x/sync/errgroup"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/record"
	"blobtail/storage"
)

const globChars = `*?[\`

// listers is how many services are listed at once.
const listers = 8

// Plan is what a query would read. It is made from listings alone and may be
// read several times.
type Plan struct {
	reader    *Reader
	query     Query
	match     *matcher
	services  []string
	loosed    map[string]bool // the services of all that is loose
	blobs     []catalog.Entry // those to be read
	loose     []*stream
	view      *catalog.View
	began     time.Time // nothing that the plan knows is older
	compacted *compacted
	listed    Summary // what planning cost and found
	noStore   bool
	stored    []string // the services of the store, if a glob made us look
}

// Plan finds the blobs that q touches.
func (r *Reader) Plan(ctx context.Context, q Query) (*Plan, error) {
	p, err := r.prepare(ctx, q)
	if err != nil {
		return nil, err
	}
	err = p.list(ctx, func(i int, l *listing) error {
		p.listed.noteForeign(p.services[i], &l.foreign)
		if !l.any {
			// Nothing in the range, or nothing at all?
			return p.mustExist(ctx, p.services[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, p.dropReplaced(ctx)
}

// prepare makes a plan without its blobs.
func (r *Reader) prepare(ctx context.Context, q Query) (*Plan, error) {
	if q.Limit > 0 && q.First > 0 {
		return nil, &BadQueryError{errors.New("the newest and the oldest cannot be asked for at once")}
	}
	match, err := q.Filter.compile()
	if err != nil {
		return nil, &BadQueryError{err}
	}
	p := &Plan{reader: r, query: q, match: match, began: time.Now(), compacted: &compacted{}}
	if p.loosed, err = q.looseNames(); err != nil {
		return nil, err
	}
	if p.services, err = p.resolve(ctx, q.Services); err != nil {
		return nil, err
	}
	p.loose = q.looseOf(p.services)
	p.view = catalog.NewView(r.store, p.services, q.Expired)
	return p, nil
}

// Services are the names that the query's globs stand for, in order.
func (p *Plan) Services() []string { return slices.Clone(p.services) }

// Blobs is how many blobs are to be read, and Bytes their size.
func (p *Plan) Blobs() int { return len(p.blobs) }

// Bytes is the size of all blobs to be read; a read that needs only parts of
// them fetches less.
func (p *Plan) Bytes() int64 {
	n := int64(0)
	for i := range p.blobs {
		n += p.blobs[i].Size
	}
	return n
}

// resolve turns names and globs into names of services, sorted, each once.
func (p *Plan) resolve(ctx context.Context, names []string) ([]string, error) {
	r := p.reader
	var all, out []string
	for _, name := range names {
		if !strings.ContainsAny(name, globChars) {
			if !catalog.IsService(name) {
				return nil, r.noService(ctx, name)
			}
			out = append(out, name)
			continue
		}
		if !record.ValidPattern(name) {
			return nil, &BadQueryError{fmt.Errorf("glob %q: %w", name, path.ErrBadPattern)}
		}
		if all == nil {
			var err error
			if all, err = catalog.Services(ctx, r.store); err != nil && !p.absent(err) {
				return nil, err
			}
			p.stored = slices.Clone(all)
			all = slices.AppendSeq(all, maps.Keys(p.loosed))
		}
		found := false
		for _, s := range all {
			if record.MatchService(name, s) {
				out, found = append(out, s), true
			}
		}
		if !found {
			return nil, &NoServiceError{Name: name}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// absent says whether an error means that there is no store at all, which does no
// harm where there are loose records: the first of their ingester, perhaps. It
// warns, for a disk may be missing.
func (p *Plan) absent(err error) bool {
	if !errors.Is(err, storage.ErrNotExist) || len(p.loosed) == 0 {
		return false
	}
	if !p.noStore {
		p.noStore = true
		p.listed.Warnings = append(p.listed.Warnings, fmt.Errorf("no blobs were read, for there is no store: %w", err))
	}
	return true
}

// noService makes the error for a name that has nothing.
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

// listing is the result of one service's LIST.
type listing struct {
	blobs    []catalog.Entry // that may have something of the range
	any      bool            // an object was listed, of whatever kind
	count    int64
	expired  int64
	foreign  foreign
	problems []error
	err      error
}

// list lists all services, several at a time, appends to blobs, and calls look with
// each listing.
func (p *Plan) list(ctx context.Context, look func(i int, l *listing) error) error {
	results := make([]listing, len(p.services))
	each(len(results), func(i int) { results[i] = p.listService(ctx, p.services[i]) })
	for i := range results {
		if err := results[i].err; err != nil && !p.absent(err) {
			return err
		}
	}
	for i := range results {
		l := &results[i]
		if err := look(i, l); err != nil {
			return err
		}
		p.blobs = append(p.blobs, l.blobs...)
		p.listed.BlobsListed += l.count
		p.listed.Expired += l.expired
		p.listed.Problems = append(p.listed.Problems, l.problems...)
	}
	return nil
}

// each calls f for 0 to n-1, some at a time, and waits.
func each(n int, f func(i int)) {
	var work errgroup.Group
	work.SetLimit(listers)
	for i := range n {
		work.Go(func() error {
			f(i)
			return nil
		})
	}
	work.Wait()
}

// foreign counts the objects of a service that are no blobs.
type foreign struct {
	count int64
	first string
}

func (f *foreign) add(o foreign) {
	if f.count == 0 {
		f.first = o.first
	}
	f.count += o.count
}

// noteForeign says what is no blob.
func (s *Summary) noteForeign(service string, f *foreign) {
	if f.count == 0 {
		return
	}
	s.Foreign += f.count
	s.Warnings = append(s.Warnings,
		fmt.Errorf("%s/: %d objects are no blobs of ours and were left out, such as %s", service, f.count, f.first))
}

// mustExist fails for a service that is neither stored nor loose, and was not
// before it expired.
func (p *Plan) mustExist(ctx context.Context, service string) error {
	_, dropped := p.view.Dropped(service)
	if p.loosed[service] || slices.Contains(p.stored, service) || !dropped.Empty() {
		return nil
	}
	err := p.reader.noService(ctx, service)
	var none *NoServiceError
	if errors.As(err, &none) {
		// It may have been deleted since the first look, with its only day.
		if err := p.view.Look(ctx); err != nil {
			return err
		}
		if _, dropped := p.view.Dropped(service); !dropped.Empty() {
			return nil
		}
	}
	return err
}

// listService lists one service's part of the range.
func (p *Plan) listService(ctx context.Context, service string) (l listing) {
	rng := p.query.Range
	for e, err := range p.view.Blobs(ctx, service, rng.periods()) {
		if err != nil {
			l.err = err
			return l
		}
		l.any = true
		if !e.Named() {
			l.foreign.add(foreign{1, e.Key})
			continue
		}
		l.count++
		switch {
		case e.Meta.Compacted == 0 && !rng.touches(e.Meta.First, e.Meta.Last):
			continue
		case e.Hidden:
			l.expired++
			continue
		case e.State != catalog.Sound:
			// Its lines are read if they can be found, but the result stays incomplete.
			l.problems = append(l.problems, &Problem{Blob: e.Key, Err: bareError(e.Err)})
		}
		if e.State != catalog.Newer {
			l.blobs = append(l.blobs, e)
		}
	}
	return l
}

// bareError takes the key off an error, for a [Problem] has it already.
func bareError(err error) error {
	if k := (*storage.KeyError)(nil); errors.As(err, &k) {
		return k.Err
	}
	return err
}

// periods is the range in which the periods of all records of r begin. A period is
// at most an hour and divides it.
func (r Range) periods() (out catalog.Range) {
	if r.From != Oldest {
		out.From = hour(r.From)
	}
	if r.To != Newest {
		out.To = time.Unix(0, r.To)
	}
	return out
}

// dropReplaced leaves out the blobs that a listed compacted blob replaces. If that
// blob's index cannot be read nothing is lost: its records have the identities of the
// replaced ones.
func (p *Plan) dropReplaced(ctx context.Context) error {
	compacted := catalog.Replacing(p.blobs)
	var count counters
	indexes := make([]*blobfmt.Index, len(compacted))
	errs := make([]error, len(compacted))
	sources := make([]*source, len(compacted))
	each(len(compacted), func(i int) {
		sources[i] = p.reader.source(compacted[i], &count)
		indexes[i], errs[i] = sources[i].readIndex(ctx, false)
	})
	replaced := make(map[blobfmt.BatchID]bool)
	for i, err := range errs {
		switch {
		case err == nil:
			for _, id := range indexes[i].Replaces {
				replaced[id] = true
			}
		case fatal(ctx, err) != nil:
			return fatal(ctx, err)
		case !errors.Is(err, storage.ErrNotExist): // the read of it finds the reason
			p.listed.Warnings = append(p.listed.Warnings, sources[i].problem(0, 0, err))
		}
	}
	count.addTo(&p.listed)
	p.blobs = slices.DeleteFunc(p.blobs, func(b catalog.Entry) bool {
		if b.State == catalog.Sound && replaced[b.Meta.Batch] {
			p.listed.Replaced++
			return true
		}
		return !p.query.Range.touches(b.Meta.First, b.Meta.Last)
	})
	return nil
}

func (r *Reader) source(b *catalog.Entry, count *counters) *source {
	return &source{store: r.store, count: count, key: b.Key, size: b.Size, meta: b.Meta, bare: b.State != catalog.Sound,
		service: b.Name.Service, day: b.Day()}
}

// summary starts one with what planning found.
func (p *Plan) summary() Summary {
	s := p.listed
	s.Problems, s.Warnings = slices.Clone(s.Problems), slices.Clone(s.Warnings)
	return s
}
