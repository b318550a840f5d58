package query

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"blobtail/catalog"
	"blobtail/record"
)

// Count returns the number of records that Read would return. It uses metadata and
// indexes if they give an exact number: without texts, and if no two blobs can hold
// copies of one record. It decodes the rest.
func (p *Plan) Count(ctx context.Context) (int64, Summary, error) {
	c := p.counting(0)
	err := c.run(ctx)
	p.tellExpired(&c.sum)
	sum := c.sum
	if limit := int64(max(p.query.Limit, p.query.First)); limit > 0 && sum.Records > limit {
		sum.Records, sum.More = limit, true
		sum.Unflushed = min(sum.Unflushed, limit)
	}
	return sum.Records, sum, err
}

type counting struct {
	plan   *Plan
	loader *loader

	mu        sync.Mutex
	tally     tally
	unflushed int64 // of those counted by indexes
	sum       Summary
	merge     []blob // must be decoded together, since they may hold copies
}

// stretch has the blobs of a service that overlap in time: a record and its copies are
// in the same stretch.
type stretch struct {
	service     string
	first, last int64
	blobs       []blob
}

func (p *Plan) counting(by int64) *counting {
	return &counting{plan: p, sum: p.summary(), tally: tally{by: by}}
}

// run counts everything. After an error, sum and tally cover the part that was
// counted.
func (c *counting) run(ctx context.Context) error {
	err := c.plan.confirmed(ctx, &c.sum, c.countAll)
	c.sum.Records = c.tally.total
	c.sum.Unflushed += c.unflushed
	return err
}

func (c *counting) countAll(ctx context.Context) error {
	c.loader = newLoader(ctx, &task{rng: c.plan.rng}, c.plan.match, c.plan.reader.opt.Workers)
	defer c.loader.stop()
	defer c.loader.count.addTo(&c.sum)
	if c.plan.match.hasText() {
		return c.decodeAll(ctx, c.plan.blobs)
	}
	if err := c.fromIndexes(ctx); err != nil || len(c.merge) == 0 {
		return err
	}
	return c.decodeAll(ctx, c.merge)
}

// decodeAll counts by reading. Only one goroutine may call it.
func (c *counting) decodeAll(ctx context.Context, blobs []blob) error {
	return c.plan.pass(ctx, task{blobs: blobs, rng: c.plan.rng}, &c.sum, func(got piece) error { return c.tally.lines(got.lines) })
}

// fromIndexes counts by indexes and notes the blobs that have to be decoded.
func (c *counting) fromIndexes(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(max(listers, c.plan.reader.opt.Workers))
	for _, s := range c.plan.overlapping() {
		work.Go(func() error { return c.stretch(ctx, s) })
	}
	return work.Wait()
}

// overlapping groups blobs into stretches: those of one service that overlap in time
// within an hour. A copy has the same time, and no period is longer than an hour.
func (p *Plan) overlapping() []stretch {
	all := make([]stretch, len(p.blobs))
	for i := range p.blobs {
		b := &p.blobs[i]
		all[i] = stretch{service: b.Name.Service, first: b.Meta.First, last: b.Meta.Last, blobs: p.blobs[i : i+1 : i+1]}
	}
	slices.SortFunc(all, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.first, b.first))
	})
	n := 0
	for i := range all {
		s, last := &all[i], &all[max(n-1, 0)]
		if n > 0 && s.service == last.service && s.first <= last.last {
			last.last = max(last.last, s.last)
			last.blobs = append(last.blobs, s.blobs...)
			continue
		}
		all[n] = *s
		n++
	}
	return all[:n]
}

// stretch counts one stretch.
func (c *counting) stretch(ctx context.Context, s stretch) error {
	sources := make([]*source, len(s.blobs))
	for i := range s.blobs {
		sources[i] = s.blobs[i].source(c.plan.reader, &c.loader.count)
	}
	shared, err := c.shared(ctx, sources)
	if err != nil {
		return err
	}
	for i, src := range sources {
		if !shared[i] && src.State == catalog.Sound {
			t, err := c.blob(ctx, src)
			if err == nil {
				c.add(t, src)
				continue
			}
			if err := fatal(ctx, err); err != nil {
				return err
			}
			// Reading it in full reports the problem, and counts the rest.
		}
		src.forget()
		c.mu.Lock()
		c.merge = append(c.merge, s.blobs[i])
		c.mu.Unlock()
	}
	return nil
}

func (c *counting) add(t *tally, from *source) {
	c.mu.Lock()
	c.tally.add(t)
	if from.unflushed {
		c.unflushed += t.total
	}
	c.mu.Unlock()
}

// shared reports for each blob whether it has, or may have, an origin in common with
// another blob.
func (c *counting) shared(ctx context.Context, sources []*source) ([]bool, error) {
	out := make([]bool, len(sources))
	if len(sources) == 1 {
		return out, nil
	}
	seen := make(map[record.Origin]int)
	for i, s := range sources {
		from, err := s.origins(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil { // it may have copies of records of any blob
			return slices.Repeat([]bool{true}, len(out)), nil
		}
		for _, o := range from {
			first, ok := seen[o]
			if !ok {
				seen[o] = i
			} else if first != i {
				out[first], out[i] = true, true
			}
		}
	}
	return out, nil
}

// blob counts the wanted records of one blob that shares nothing.
func (c *counting) blob(ctx context.Context, s *source) (*tally, error) {
	defer s.forget()
	rng, match := c.plan.rng, c.plan.match
	t := &tally{by: c.tally.by}
	if rng.covers(s.Meta.First, s.Meta.Last) && t.one(s.Meta.First, s.Meta.Last) {
		c.noteHigher(wanted(match.high, &s.Meta.Levels))
		addLevels(t, s.Meta.First, match.levels, &s.Meta.Levels)
		return t, nil
	}
	index, err := s.readIndex(ctx, false)
	if err != nil {
		return nil, err
	}
	higher := int64(0)
	for i := range index.Blocks {
		b := &index.Blocks[i]
		if !rng.touches(b.First, b.Last) {
			continue
		}
		high, exact := t.block(b, rng, match)
		if !exact {
			if high, err = c.decode(ctx, s, i, t); err != nil {
				return nil, err
			}
		}
		higher += high
	}
	c.noteHigher(higher)
	return t, nil
}

func (c *counting) noteHigher(n int64) { c.loader.count.higher.Add(n) }

// wanted adds up the counts of the levels in set.
func wanted[N int | int64](set LevelSet, levels *[record.NumLevels]N) int64 {
	n := int64(0)
	for l, count := range levels {
		if set.Has(record.Level(l)) {
			n += int64(count)
		}
	}
	return n
}

// decode counts a block line by line.
func (c *counting) decode(ctx context.Context, s *source, n int, t *tally) (higher int64, err error) {
	b := &s.index.Blocks[n]
	stored, err := s.fetch(ctx, b.Offset, b.Stored)
	if err != nil {
		return 0, err
	}
	f := &future{block: n}
	if c.loader.load(f, s, b, stored); f.err != nil {
		return 0, f.err
	}
	err = t.lines(f.kept.raw)
	c.loader.recycle(f.buf)
	return f.higher, err
}
