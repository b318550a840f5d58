package query

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"blobtail/blobfmt"
	"blobtail/horizon"
	"blobtail/record"
	"blobtail/storage"
)

const globChars = `*?[\`

// listers is how many services are listed at once.
const listers = 8

// Plan is what a query would read. It is made from listings alone and may be
// read several times.
type Plan struct {
	reader   *Reader
	query    Query
	match    *matcher
	services []string
	loosed   map[string]bool // the services of all that is loose
	blobs    []blob
	loose    []*stream
	expiry   *expiry
	listed   Summary // what planning cost and found
	noStore  bool
	stored   []string // the services of the store, if a glob made us look
}

// blob is one blob of a plan.
type blob struct {
	key  string
	size int64
	name blobfmt.Name
	meta blobfmt.Meta
	// bare says that the metadata cannot be read. Of meta only First and Last
	// are set then, as wide as the name allows.
	bare bool
}

// Plan finds the blobs that q touches.
func (r *Reader) Plan(ctx context.Context, q Query) (*Plan, error) {
	p, err := r.prepare(ctx, q)
	if err != nil {
		return nil, err
	}
	err = p.list(ctx, func(i int, l *listing) error {
		var f foreign
		f.add(l.foreign)
		p.listed.noteForeign(p.services[i], &f)
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
	p := &Plan{reader: r, query: q, match: match}
	if p.loosed, err = q.looseNames(); err != nil {
		return nil, err
	}
	if p.services, err = p.resolve(ctx, q.Services); err != nil {
		return nil, err
	}
	p.loose = q.looseOf(p.services)
	p.expiry = r.expiry(p.services, q.Expired)
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
		n += p.blobs[i].size
	}
	return n
}

// resolve turns names and globs into names of services, sorted, each once.
func (p *Plan) resolve(ctx context.Context, names []string) ([]string, error) {
	r := p.reader
	var all, out []string
	for _, name := range names {
		if !strings.ContainsAny(name, globChars) {
			if !isService(name) {
				return nil, r.noService(ctx, name)
			}
			out = append(out, name)
			continue
		}
		if _, err := path.Match(name, ""); err != nil {
			return nil, &BadQueryError{fmt.Errorf("glob %q: %w", name, err)}
		}
		if all == nil {
			var err error
			if all, err = r.names(ctx); err != nil && !p.absent(err) {
				return nil, err
			}
			p.stored = slices.Clone(all)
			all = slices.AppendSeq(all, maps.Keys(p.loosed))
		}
		found := false
		for _, s := range all {
			if ok, _ := path.Match(name, s); ok && (s[0] != '_' || name[0] == '_') {
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

// names lists all services of the store, system ones included.
func (r *Reader) names(ctx context.Context) ([]string, error) {
	names := []string{}
	for name, err := range r.store.Dirs(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("list services: %w", err)
		}
		if isService(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// isService says whether blobs may stand under name. The other names of the
// system hold what retention keeps, not logs.
func isService(name string) bool {
	return record.ValidService(name) || name == record.RejectedService
}

// noService makes the error for a name that has nothing.
func (r *Reader) noService(ctx context.Context, name string) error {
	names, err := r.names(ctx)
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

// listing is what one service's LIST gave.
type listing struct {
	blobs    []blob
	any      bool // there was something, of whatever kind
	count    int64
	expired  int64
	foreign  []string
	problems []error
	err      error
}

// list lists all services, some at a time, sets blobs, and tells each listing to
// look.
func (p *Plan) list(ctx context.Context, look func(i int, l *listing) error) error {
	var besides sync.WaitGroup
	var unknown error
	besides.Go(func() { unknown = p.expiry.know(ctx) })
	results := make([]listing, len(p.services))
	each(len(results), func(i int) { results[i] = p.listService(ctx, p.services[i]) })
	besides.Wait()
	for i := range results {
		l := &results[i]
		if l.err != nil && !p.absent(l.err) {
			return fmt.Errorf("list %s/: %w", p.services[i], l.err)
		}
	}
	if unknown != nil {
		return unknown
	}
	for i := range results {
		l := &results[i]
		l.hide(p.expiry)
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
	slots := make(chan struct{}, listers)
	var work sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		work.Go(func() {
			f(i)
			<-slots
		})
	}
	work.Wait()
}

// foreign are objects of a service that are no blobs.
type foreign struct {
	count int64
	first string
}

func (f *foreign) add(keys []string) {
	if f.count == 0 && len(keys) > 0 {
		f.first = keys[0]
	}
	f.count += int64(len(keys))
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
	was := p.expiry.of(service)
	if p.loosed[service] || slices.Contains(p.stored, service) || !was.Empty() {
		return nil
	}
	err := p.reader.noService(ctx, service)
	var none *NoServiceError
	if errors.As(err, &none) {
		// It may have gone since the first look, with its only day.
		if err := p.expiry.look(ctx); err != nil {
			return err
		}
		if was := p.expiry.of(service); !was.Empty() {
			return nil
		}
	}
	return err
}

// listService lists what one service has in the range.
func (p *Plan) listService(ctx context.Context, service string) (l listing) {
	rng := p.query.Range
	prefix, after, until := listBounds(service, rng)
	for o, err := range p.reader.store.List(ctx, prefix, after) {
		if err != nil {
			l.err = err
			return l
		}
		if until != "" && o.Key >= until {
			break
		}
		l.any = true
		name, err := blobfmt.ParseName(o.Key)
		if err != nil {
			l.foreign = append(l.foreign, o.Key)
			continue
		}
		l.count++
		meta, err := blobfmt.ParseMeta(o.Metadata)
		if err != nil {
			l.unreadable(o, name, rng, p.reader.whyBare(ctx, o.Key, err))
			continue
		}
		if meta.Records == 0 || meta.Compacted == 0 && !rng.touches(meta.First, meta.Last) {
			continue
		}
		l.blobs = append(l.blobs, blob{key: o.Key, size: o.Size, name: name, meta: meta})
	}
	return l
}

// unreadable takes in an object that has the name of a blob, and no metadata that
// tell what it is. Whatever lines can be found in it are read, unless it is known
// to be in a newer format; the result is incomplete all the same.
func (l *listing) unreadable(o storage.Blob, name blobfmt.Name, rng Range, err error) {
	first, last := hourOf(name.Period)
	if !rng.touches(first, last) {
		return
	}
	l.problems = append(l.problems, &Problem{Blob: o.Key, Err: err})
	if !errors.Is(err, blobfmt.ErrNewer) {
		meta := blobfmt.Meta{First: first, Last: last}
		l.blobs = append(l.blobs, blob{key: o.Key, size: o.Size, name: name, meta: meta, bare: true})
	}
}

// whyBare asks the store about an object without metadata: it may know that
// they were there.
func (r *Reader) whyBare(ctx context.Context, key string, err error) error {
	if !errors.Is(err, blobfmt.ErrForeign) {
		return err
	}
	if _, serr := r.store.Stat(ctx, key); errors.Is(serr, storage.ErrDamaged) {
		return bareError(serr)
	}
	return err
}

// bareError takes the key off an error, for a [Problem] has it already.
func bareError(err error) error {
	if k := (*storage.KeyError)(nil); errors.As(err, &k) {
		return k.Err
	}
	return err
}

// hourOf gives the times between which all records of a period lie: a name does
// not say how long the period is, only that it does not leave the UTC hour.
func hourOf(period time.Time) (first, last int64) {
	first, last = Oldest, Newest
	if start := time.Unix(0, math.MinInt64); period.After(start) {
		first = period.UnixNano()
	}
	end := period.Truncate(time.Hour).Add(time.Hour - 1)
	if end.Before(time.Unix(0, math.MaxInt64)) {
		last = end.UnixNano()
	}
	return first, last
}

// listBounds gives the prefix to list, the key to start after and the key to
// stop at ("" for none). A period is at most an hour and divides it, so a blob
// that reaches into the range has a name not before the hour of its start.
func listBounds(service string, rng Range) (prefix, after, until string) {
	prefix = service + "/"
	if rng.From != Oldest {
		after = strings.TrimSuffix(blobfmt.PeriodPrefix(service, time.Unix(0, rng.From).UTC().Truncate(time.Hour)), "/")
	}
	if rng.To != Newest {
		// The first period that begins at or after the end.
		end := time.Unix(0, rng.To).UTC()
		minute := end.Truncate(time.Minute)
		if minute.Before(end) {
			minute = minute.Add(time.Minute)
		}
		until = strings.TrimSuffix(blobfmt.PeriodPrefix(service, minute), "/")
	}
	if after == "" || until == "" {
		return prefix, after, until
	}
	n := 0
	for n < len(after) && n < len(until) && after[n] == until[n] {
		n++
	}
	if i := strings.LastIndexByte(after[:n], '/') + 1; i > len(prefix) {
		prefix = after[:i]
	}
	return prefix, after, until
}

// dropReplaced leaves out the blobs that a listed compacted blob stands for.
// Where that blob's index cannot be read nothing is lost: its records and
// theirs have the same identities.
func (p *Plan) dropReplaced(ctx context.Context) error {
	compacted := p.replacing()
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
		case !errors.Is(err, storage.ErrNotExist): // who reads it finds out why
			p.listed.Warnings = append(p.listed.Warnings, sources[i].problem(0, 0, err))
		}
	}
	count.addTo(&p.listed)
	n := len(p.blobs)
	p.blobs = slices.DeleteFunc(p.blobs, func(b blob) bool { return !b.bare && replaced[b.meta.Batch] })
	p.listed.Replaced = int64(n - len(p.blobs))
	p.blobs = slices.DeleteFunc(p.blobs, func(b blob) bool { return !p.query.Range.touches(b.meta.First, b.meta.Last) })
	return nil
}

// replacing are the compacted blobs of which it has to be asked what they stand for:
// those that may stand for another of the plan, as far as metadata tell. It is of the
// same hour then, and all that it has is in the compacted one.
func (p *Plan) replacing() (out []*blob) {
	if !slices.ContainsFunc(p.blobs, func(b blob) bool { return b.meta.Compacted > 0 }) {
		return nil
	}
	type hour struct {
		service string
		start   int64
	}
	hourOf := func(b *blob) hour { return hour{b.name.Service, b.name.Period.Truncate(time.Hour).Unix()} }
	of := map[hour][]*blob{}
	for i := range p.blobs {
		b := &p.blobs[i]
		of[hourOf(b)] = append(of[hourOf(b)], b)
	}
	for i := range p.blobs {
		c := &p.blobs[i]
		if c.meta.Compacted > 0 && slices.ContainsFunc(of[hourOf(c)], func(b *blob) bool { return !b.bare && within(&b.meta, &c.meta) }) {
			out = append(out, c)
		}
	}
	return out
}

// within says whether all records of a blob may be in a compacted one that stands for
// it. What stands for a compacted blob stands for more batches than that does.
func within(m, c *blobfmt.Meta) bool {
	if m.Compacted >= c.Compacted || m.First < c.First || m.Last > c.Last || m.Records > c.Records {
		return false
	}
	for l, n := range m.Levels {
		if n > c.Levels[l] {
			return false
		}
	}
	return true
}

func (r *Reader) source(b *blob, count *counters) *source {
	return &source{store: r.store, count: count, key: b.key, size: b.size, meta: b.meta, bare: b.bare,
		service: b.name.Service, day: horizon.DayOf(b.name.Period)}
}

// summary starts one with what planning found.
func (p *Plan) summary() Summary {
	s := p.listed
	s.Problems, s.Warnings = slices.Clone(s.Problems), slices.Clone(s.Warnings)
	return s
}
