package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/storage"
)

// listers is how many services are listed at once.
const listers = 8

// Plan is a query with its blobs. It is made from listings alone and may be read
// several times.
type Plan struct {
	*asked
	rng    Range   // the part of the query's range that was listed
	blobs  []blob  // to be read; only the plan changes the list
	listed Summary // of the planning
}

// A blob of a plan was listed, or is unflushed records.
type blob struct {
	*catalog.Entry
	body *body // nil: it was listed
}

func (b *blob) source(r *Reader, count *counters) *source {
	s := r.source(b.Entry, count)
	s.body = b.body
	return s
}

// Plan finds the blobs that q touches.
func (r *Reader) Plan(ctx context.Context, q Query) (*Plan, error) {
	a, err := r.prepare(ctx, q)
	if err != nil {
		return nil, err
	}
	p := &Plan{asked: a, rng: q.Range}
	err = p.list(ctx, a.services, func(i int, l *listing) error {
		p.listed.noteForeign(a.services[i], &l.foreign)
		if !l.any {
			// Is the service empty in the range, or missing altogether?
			return a.mustExist(ctx, a.services[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Blobs is how many stored blobs are to be read.
func (p *Plan) Blobs() int {
	n := 0
	for i := range p.blobs {
		if p.blobs[i].body == nil {
			n++
		}
	}
	return n
}

// Bytes is the size of all stored blobs to be read; a read that needs only parts of
// them fetches less.
func (p *Plan) Bytes() int64 {
	n := int64(0)
	for i := range p.blobs {
		n += p.blobs[i].Size
	}
	return n
}

// listing is the result of one service's LIST.
type listing struct {
	blobs    []catalog.Entry // that may have records in the range
	any      bool            // an object was listed, a blob or not
	count    int64
	expired  int64
	foreign  foreign
	problems []error
	err      error
}

// list lists services, several at a time, calls look with each listing, and sets blobs.
func (p *Plan) list(ctx context.Context, services []string, look func(i int, l *listing) error) error {
	results := make([]listing, len(services))
	each(len(results), func(i int) { results[i] = p.listService(ctx, services[i]) })
	for i := range results {
		if err := results[i].err; err != nil && !p.absent(err) {
			return err
		}
	}
	var all []catalog.Entry
	for i := range results {
		l := &results[i]
		if err := look(i, l); err != nil {
			return err
		}
		all = append(all, l.blobs...)
		p.listed.BlobsListed += l.count
		p.listed.Expired += l.expired
		p.listed.Problems = append(p.listed.Problems, l.problems...)
	}
	if err := p.replace(ctx, all); err != nil {
		return err
	}
	p.blobs = append(p.blobs, p.unflushed(p.rng)...)
	return nil
}

// unflushed returns the unflushed records that may be in a range, and have not expired.
func (a *asked) unflushed(rng Range) (out []blob) {
	for _, b := range a.bodies {
		if rng.touches(b.Meta.First, b.Meta.Last) && !a.view.Hides(b.Name.Service, b.Day()) {
			out = append(out, blob{&b.Entry, b})
		}
	}
	return out
}

// each calls f for 0 to n-1, several concurrently, and waits.
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

// foreign counts the objects of a service that are not blobs.
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

// noteForeign warns of foreign objects.
func (s *Summary) noteForeign(service string, f *foreign) {
	if f.count == 0 {
		return
	}
	s.Foreign += f.count
	s.Warnings = append(s.Warnings,
		fmt.Errorf("%s/: %d objects are no blobs of ours and were left out, such as %s", service, f.count, f.first))
}

// listService lists one service's part of the range.
func (p *Plan) listService(ctx context.Context, service string) (l listing) {
	rng := p.rng
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
			// Its lines are read if possible, but the result stays incomplete.
			l.problems = append(l.problems, &Problem{Blob: e.Key, Err: bareError(e.Err)})
		}
		if e.State != catalog.Newer {
			l.blobs = append(l.blobs, e)
		}
	}
	return l
}

// bareError removes the key from an error, since a [Problem] has it already.
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

// replace sets blobs to the listed ones that no listed compacted blob replaces. If that
// blob's index cannot be read nothing is lost: its records have the identities of the
// replaced ones.
func (p *Plan) replace(ctx context.Context, all []catalog.Entry) error {
	compacted := catalog.Replacing(all)
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
		case !errors.Is(err, storage.ErrNotExist): // its read reports the reason
			p.listed.Warnings = append(p.listed.Warnings, sources[i].problem(0, 0, err))
		}
	}
	count.addTo(&p.listed)
	for i := range all {
		switch b := &all[i]; {
		case b.State == catalog.Sound && replaced[b.Meta.Batch]:
			p.listed.Replaced++
		case p.rng.touches(b.Meta.First, b.Meta.Last):
			p.blobs = append(p.blobs, blob{Entry: b})
		}
	}
	return nil
}

func (r *Reader) source(b *catalog.Entry, count *counters) *source {
	return &source{Entry: b, store: r.store, count: count}
}

// summary starts a summary with the results of planning.
func (p *Plan) summary() Summary {
	s := p.listed
	s.Problems, s.Warnings = slices.Clone(s.Problems), slices.Clone(s.Warnings)
	p.noteStore(&s)
	return s
}

// noteStore warns if the store does not exist.
func (a *asked) noteStore(sum *Summary) {
	if a.noStore != nil {
		sum.Warnings = append(sum.Warnings, a.noStore)
	}
}
