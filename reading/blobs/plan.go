package blobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/horizon"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

// listers is how many services are listed, or indexes read, at once. They mostly wait: a
// request to a remote store takes some ten milliseconds.
const listers = 32

// Plan is a query with its blobs. It is made from listings alone and may be read
// several times.
type Plan struct {
	*asked
	rng    Range   // the part of the query's range that was listed
	blobs  []blob  // to be read; only the plan changes the list
	empty  []blob  // erased ones without records
	listed Summary // of the planning
}

// A blob of a plan was listed, or is unflushed records.
type blob struct {
	*catalog.Entry
	body *body // nil: it was listed
}

// Plan finds the blobs that q touches.
func (r *Reader) Plan(ctx context.Context, q Query) (*Plan, error) {
	if p := r.scouted(ctx, q); p != nil {
		return p, nil
	}
	return r.plan(ctx, q, nil)
}

// plan makes the plan of a query. stored are the services of the store; nil: they are not
// known yet.
func (r *Reader) plan(ctx context.Context, q Query, stored []string) (*Plan, error) {
	a, err := r.prepare(ctx, q, stored)
	if err != nil {
		return nil, err
	}
	defer a.vouched.wait()
	p := &Plan{asked: a, rng: q.Range}
	if err := p.list(ctx, func(int) bool { return true }); err != nil {
		return nil, err
	}
	a.judge(ctx, &p.listed)
	if err := a.settle(ctx, &p.listed); err != nil {
		return nil, err
	}
	// Is a service empty in the range, or missing altogether?
	return p, a.none(ctx, &p.listed)
}

// Services are the services that the names and globs of the query mean, in order.
func (p *Plan) Services() []string { return slices.Clone(p.services) }

// Bytes is the size of all stored blobs to be read; a read that needs only parts of
// them fetches less.
func (p *Plan) Bytes() int64 { return p.Foresee().Bytes }

// Span returns the first and the last time of the records of the plan; ok is false if
// there are none. It uses metadata alone, so filtered records may span less.
func (p *Plan) Span() (first, last int64, ok bool) {
	first, last = Newest, Oldest
	for i := range p.blobs {
		m := &p.blobs[i].Meta
		first, last = min(first, m.First), max(last, m.Last)
	}
	first, last = max(first, p.rng.From), min(last, p.rng.last())
	return first, last, len(p.blobs) > 0 && first <= last
}

// Keys returns the keys of the stored blobs that a read would take, in byte order, and the
// summary of the listing. Expired blobs are left out, and those that a compacted one replaces.
// A blob may also have records outside the range. Unflushed records are in none.
func (p *Plan) Keys() ([]string, Summary) {
	var keys []string
	for i := range p.blobs {
		if b := &p.blobs[i]; b.body == nil {
			keys = append(keys, b.Key)
		}
	}
	slices.Sort(keys)
	sum := p.summary()
	p.tellExpired(&sum, p.has())
	return keys, sum
}

// list lists the wanted services by their numbers, several at a time, and sets blobs.
func (p *Plan) list(ctx context.Context, wanted func(i int) bool) error {
	listings := make([]listing, len(p.services))
	err := p.each(len(listings), func(i int) error {
		if !wanted(i) {
			return nil
		}
		return p.listService(ctx, i, &listings[i])
	})
	if err != nil {
		return err
	}
	var all []catalog.Entry
	p.back = min(p.back, p.rng.From)
	for i, l := range listings {
		all = append(all, l.blobs...)
		p.met[i] = append(p.met[i], l.met...)
		p.listed.BlobsListed += l.count
		p.listed.Problems = append(p.listed.Problems, l.problems...)
		p.doubts = append(p.doubts, l.doubts...)
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

// each calls f for 0 to n-1, several concurrently, and waits. It returns the first error
// that is not harmless.
func (a *asked) each(n int, f func(i int) error) error {
	for _, err := range fanout.All(n, listers, f) {
		if err != nil && !a.absent(err) {
			return err
		}
	}
	return nil
}

// listing is the result of one service's LIST.
type listing struct {
	blobs    []catalog.Entry // that may have records in the range
	count    int64
	problems []error
	doubts   []doubt
	met      []horizon.Day
}

func (p *Plan) listService(ctx context.Context, i int, l *listing) error {
	found := &p.found[i]
	vouched := p.vouched.passes(p.services[i], p.rng)
	accounts := p.account(p.services[i])
	if p.days != nil {
		accounts.days = p.days[i]
	}
	for e, err := range p.view.Blobs(ctx, p.services[i], accounts.lists) {
		if err != nil {
			return err
		}
		p.reader.opt.Progress.Find()
		found.any = true
		meets(vouched, &e)
		if !accounts.meets(&e) {
			continue
		}
		if !e.Named() {
			if found.foreign++; found.foreign == 1 {
				found.first = e.Key
			}
			continue
		}
		l.count++
		if e.Hidden || e.Meta.Compacted == 0 && !p.rng.touches(e.Meta.First, e.Meta.Last) {
			continue
		}
		if e.State != catalog.Sound {
			// Its lines are read if possible, but the result stays incomplete.
			l.problems = append(l.problems, &Problem{Blob: e.Key, Err: bareError(e.Err)})
		}
		if e.State != catalog.Newer {
			l.blobs = append(l.blobs, e)
		}
	}
	err := accounts.finish(ctx)
	l.doubts, l.met = accounts.doubts, accounts.met
	return err
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
// replaced ones. If it is an erased one, no other blob of its hour is shown, because any may
// have what was erased.
func (p *Plan) replace(ctx context.Context, all []catalog.Entry) error {
	compacted := catalog.Replacing(all)
	sources := make([]*source, len(compacted))
	p.each(len(compacted), func(i int) error {
		sources[i] = p.reader.source(blob{Entry: compacted[i]}, &p.listed)
		sources[i].readIndex(ctx, false)
		return nil
	})
	replaced := make(map[blobfmt.BatchID]bool)
	unread := make(map[hourOf]*catalog.Entry) // erased ones
	for i, s := range sources {
		index, err := s.readIndex(ctx, false)
		switch {
		case err == nil:
			for _, id := range index.Replaces {
				replaced[id] = true
			}
		case fatal(ctx, err) != nil:
			return fatal(ctx, err)
		case compacted[i].Meta.Erased:
			unread[hourOf{s.Name.Service, s.Hour()}] = compacted[i]
			err = fmt.Errorf("it replaces blobs with erased records, and nobody knows which, so no other blob of its hour is read: %w", err)
			p.listed.Problems = append(p.listed.Problems, s.problem(0, 0, err))
		case !errors.Is(err, storage.ErrNotExist): // its read reports the reason
			p.listed.Warnings = append(p.listed.Warnings, s.problem(0, 0, err))
		}
	}
	for i := range all {
		b := &all[i]
		if e := unread[hourOf{b.Name.Service, b.Hour()}]; e != nil && e != b {
			continue
		}
		switch {
		case !p.rng.touches(b.Meta.First, b.Meta.Last) || b.State == catalog.Sound && replaced[b.Meta.Batch]:
		case b.Meta.Erased && b.Meta.Records == 0:
			p.empty = append(p.empty, blob{Entry: b})
		default:
			p.blobs = append(p.blobs, blob{Entry: b})
		}
	}
	return nil
}

// hourOf is an hour of a service.
type hourOf struct {
	service string
	hour    time.Time
}

func (r *Reader) source(b blob, sum *Summary) *source {
	return &source{
		Entry: b.Entry, store: r.store, decoder: r.decoder, indexes: r.opt.Indexes, sum: sum,
		body: b.body, near: !r.opt.Distant, unflushed: b.body != nil,
	}
}

func (p *Plan) summary() Summary {
	s := p.listed.clone()
	p.tellFound(&s)
	return s
}
