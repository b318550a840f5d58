package query

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/record"
)

// Count returns the number of records that Read would return. It uses metadata and
// indexes if they give an exact number: without texts, and if no two blobs, or a blob
// and unflushed records, can hold copies of one record. It decodes the rest.
func (p *Plan) Count(ctx context.Context) (int64, Summary, error) {
	c := p.counting(0)
	err := c.run(ctx)
	p.tellExpired(&c.sum)
	sum := c.sum
	if limit := int64(max(p.query.Limit, p.query.First)); limit > 0 && sum.Records > limit {
		sum.Records, sum.More = limit, true
		sum.Loose = min(sum.Loose, limit)
	}
	return sum.Records, sum, err
}

type counting struct {
	plan  *Plan
	count counters

	mu    sync.Mutex
	tally tally
	loose int64
	sum   Summary
	merge []catalog.Entry // must be decoded together, since they may hold copies
	hours []stretch       // the same, with the unflushed records of their time
}

// stretch has the blobs and unflushed records of a service that overlap in time: a
// record and its copies are in the same stretch.
type stretch struct {
	service     string
	first, last int64
	blobs       []catalog.Entry
	loose       []hourPart
}

func (p *Plan) counting(by int64) *counting {
	return &counting{plan: p, sum: p.summary(), tally: tally{by: by}}
}

// run counts everything. After an error, sum and tally cover the part that was
// counted.
func (c *counting) run(ctx context.Context) error {
	err := c.runAll(ctx)
	c.count.addTo(&c.sum)
	c.sum.Records = c.tally.total
	c.sum.Loose += c.loose
	return err
}

func (c *counting) runAll(ctx context.Context) error {
	return c.plan.confirmed(ctx, &c.sum, c.countAll)
}

func (c *counting) countAll(ctx context.Context) error {
	if c.plan.match.hasText() {
		return c.decodeAll(ctx, c.plan.rng, c.plan.blobs, c.plan.loose)
	}
	if err := c.fromIndexes(ctx); err != nil {
		return err
	}
	if len(c.merge) > 0 {
		if err := c.decodeAll(ctx, c.plan.rng, c.merge, nil); err != nil {
			return err
		}
	}
	for i := range c.hours {
		h := &c.hours[i]
		rng := c.plan.rng.within(h.first, h.last)
		var streams []*stream
		for _, part := range h.loose {
			if !slices.Contains(streams, part.stream) {
				streams = append(streams, part.stream)
			}
		}
		if err := c.decodeAll(ctx, rng, h.blobs, streams); err != nil {
			return err
		}
	}
	return nil
}

// decodeAll counts by reading. Only one goroutine may call it.
func (c *counting) decodeAll(ctx context.Context, rng Range, blobs []catalog.Entry, loose []*stream) error {
	return c.plan.pass(ctx, task{blobs: blobs, loose: loose, rng: rng}, &c.sum, func(got piece) error { return c.tally.lines(got.lines) })
}

// within returns the part of r from first to last, both included.
func (r Range) within(first, last int64) Range {
	r.From = max(r.From, first)
	if last < Newest {
		r.To = min(r.To, last+1)
	}
	return r
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

// overlapping groups blobs and unflushed records into stretches: those of one service
// that overlap in time within an hour. A copy has the same time, and no period is
// longer than an hour.
func (p *Plan) overlapping() []stretch {
	var all []stretch
	for i := range p.blobs {
		b := &p.blobs[i]
		all = append(all, stretch{service: b.Name.Service, first: b.Meta.First, last: b.Meta.Last, blobs: p.blobs[i : i+1 : i+1]})
	}
	for _, s := range p.loose {
		for _, part := range s.hours {
			if p.rng.touches(part.first, part.last) {
				all = append(all, stretch{service: s.service, first: part.first, last: part.last, loose: []hourPart{part}})
			}
		}
	}
	slices.SortFunc(all, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.first, b.first))
	})
	n := 0
	for i := range all {
		s, last := &all[i], &all[max(n-1, 0)]
		if n > 0 && s.service == last.service && s.first <= last.last {
			last.last = max(last.last, s.last)
			last.blobs, last.loose = append(last.blobs, s.blobs...), append(last.loose, s.loose...)
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
		sources[i] = c.plan.reader.source(&s.blobs[i], &c.count)
	}
	shared, merged, err := c.shared(ctx, sources, s.loose)
	if err != nil {
		return err
	}
	var rest []catalog.Entry
	for i, src := range sources {
		if !shared[i] && src.State == catalog.Sound {
			t, err := c.blob(ctx, src)
			if err == nil {
				c.add(t, false)
				continue
			}
			if err := fatal(ctx, err); err != nil {
				return err
			}
			// Reading it in full reports the problem, and counts the rest.
		}
		src.forget()
		rest = append(rest, s.blobs[i])
	}
	if !merged && len(s.loose) > 0 {
		t, err := c.part(s.loose[0])
		if err == nil {
			c.add(t, true)
		} else {
			merged = true // likewise
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if merged {
		s.blobs = rest
		c.hours = append(c.hours, s)
	} else {
		c.merge = append(c.merge, rest...)
	}
	return nil
}

func (c *counting) add(t *tally, loose bool) {
	c.mu.Lock()
	c.tally.add(t)
	if loose {
		c.loose += t.total
	}
	c.mu.Unlock()
}

// shared reports for each blob whether it has, or may have, an origin in common with
// another blob or with unflushed records. merged reports whether the unflushed
// records have to be merged.
func (c *counting) shared(ctx context.Context, sources []*source, loose []hourPart) (out []bool, merged bool, err error) {
	out = make([]bool, len(sources))
	if len(sources)+len(loose) == 1 {
		return out, false, nil
	}
	merged = len(loose) > 1 // usually there is one
	seen := make(map[record.Origin]int)
	for i, s := range sources {
		index, err := s.readIndex(ctx, false)
		var from *blobfmt.Origins
		if err == nil {
			from, err = index.Origins()
		}
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if err != nil { // it may have copies of records of any blob
			for j := range out {
				out[j] = true
			}
			return out, len(loose) > 0, nil
		}
		for _, o := range from.Dict {
			if first, ok := seen[o]; ok {
				out[first], out[i] = true, true
			} else {
				seen[o] = i
			}
		}
	}
	for _, part := range loose {
		met, err := part.origins(seen)
		if err != nil {
			merged = true
		}
		for _, i := range met {
			out[i], merged = true, true
		}
	}
	return out, merged, nil
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
			if high, err = c.decode(ctx, s, b, t); err != nil {
				return nil, err
			}
		}
		higher += high
	}
	c.noteHigher(higher)
	return t, nil
}

func (c *counting) noteHigher(n int64) { c.count.higher.Add(n) }

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
func (c *counting) decode(ctx context.Context, s *source, b *blobfmt.Block, t *tally) (higher int64, err error) {
	stored, err := s.fetch(ctx, b.Offset, b.Stored)
	if err != nil {
		return 0, err
	}
	d, err := blobfmt.NewDecoder()
	if err != nil {
		return 0, err
	}
	raw, err := d.Block(nil, stored, *b)
	if err != nil {
		return 0, err
	}
	c.count.blocksRead.Add(1)
	k, higher, err := c.plan.match.keep(raw, b, c.plan.rng)
	if err != nil {
		return 0, err
	}
	return higher, t.lines(k.raw)
}

// part counts unflushed records that share nothing.
func (c *counting) part(p hourPart) (*tally, error) {
	s := p.stream
	rng := c.plan.rng.within(p.first, p.last)
	t, higher := &tally{by: c.tally.by}, int64(0)
	for i := range s.blocks {
		b := &s.index.Blocks[i]
		if !rng.touches(b.First, b.Last) {
			continue
		}
		if rng.covers(b.First, b.Last) && t.one(b.First, b.Last) {
			addLevels(t, b.First, c.plan.match.levels, &b.Levels)
			higher += wanted(c.plan.match.high, &b.Levels)
			continue
		}
		raw, _, own, err := s.blocks[i].load(s.loose, nil)
		if err != nil {
			return nil, err
		}
		if !own {
			raw = bytes.Clone(raw)
		}
		k, high, err := c.plan.match.keep(raw, b, rng)
		if err != nil {
			return nil, err
		}
		if err := t.lines(k.raw); err != nil {
			return nil, err
		}
		higher += high
	}
	c.noteHigher(higher)
	return t, nil
}
