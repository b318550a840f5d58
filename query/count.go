package query

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"blobtail/blobfmt"
	"blobtail/record"
)

// Count gives the number of records that Read would give out. It takes them
// from metadata and indexes where that is exact: without texts, and where no
// two blobs can hold copies of one record. The rest is decoded.
func (p *Plan) Count(ctx context.Context) (int64, Summary, error) {
	sum := p.summary()
	c := &counting{plan: p, sum: &sum}
	err := c.run(ctx)
	c.count.addTo(&sum)
	sum.Records += c.total
	if limit := int64(max(p.query.Limit, p.query.First)); limit > 0 && sum.Records > limit {
		sum.Records, sum.More = limit, true
	}
	return sum.Records, sum, err
}

type counting struct {
	plan  *Plan
	count counters

	mu    sync.Mutex
	total int64
	sum   *Summary
	merge []blob // must be decoded together, since they may hold copies
	err   error
}

func (c *counting) run(ctx context.Context) error {
	if c.plan.match.hasText() || len(c.plan.loose) > 0 {
		c.merge = c.plan.blobs
	} else {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		slots := make(chan struct{}, max(listers, c.plan.reader.opt.Workers))
		var work sync.WaitGroup
		for _, group := range overlapping(c.plan.blobs) {
			slots <- struct{}{}
			work.Go(func() {
				defer func() { <-slots }()
				if err := c.group(ctx, group); err != nil {
					c.mu.Lock()
					c.err = cmp.Or(c.err, err)
					c.mu.Unlock()
					stop()
				}
			})
		}
		work.Wait()
		if c.err != nil {
			return c.err
		}
	}
	if len(c.merge)+len(c.plan.loose) == 0 {
		return nil
	}
	whole := *c.plan
	whole.query.Limit, whole.query.First = 0, 0
	return whole.pass(ctx, c.merge, c.plan.loose, false, c.sum, func(piece) error { return nil })
}

// overlapping parts the blobs into groups such that a record and its copy are
// in the same one: blobs of one service whose times overlap within an hour, for
// a copy has the same time, and no period is longer.
func overlapping(blobs []blob) [][]blob {
	sorted := slices.Clone(blobs)
	slices.SortFunc(sorted, func(a, b blob) int {
		return cmp.Or(cmp.Compare(a.name.Service, b.name.Service), cmp.Compare(a.meta.First, b.meta.First))
	})
	var groups [][]blob
	var last int64
	start := 0
	for i := range sorted {
		b := &sorted[i]
		if i > 0 && (b.name.Service != sorted[i-1].name.Service || b.meta.First > last) {
			groups = append(groups, sorted[start:i])
			start = i
		}
		if i == start {
			last = b.meta.Last
		}
		last = max(last, b.meta.Last)
	}
	if len(sorted) > 0 {
		groups = append(groups, sorted[start:])
	}
	return groups
}

// group counts one group of overlapping.
func (c *counting) group(ctx context.Context, blobs []blob) error {
	sources := make([]*source, len(blobs))
	for i := range blobs {
		sources[i] = c.plan.reader.source(&blobs[i], &c.count)
	}
	shared := c.shared(ctx, sources)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i, s := range sources {
		if !shared[i] && !s.bare {
			n, err := c.blob(ctx, s)
			if err == nil {
				c.add(n)
				continue
			}
			if err := fatal(ctx, err); err != nil {
				return err
			}
			// Reading it in full says what is wrong, and counts the rest.
		}
		c.mu.Lock()
		c.merge = append(c.merge, blobs[i])
		c.mu.Unlock()
	}
	return nil
}

func (c *counting) add(n int64) {
	c.mu.Lock()
	c.total += n
	c.mu.Unlock()
}

// shared says which blobs have an origin in common with another, or may have.
func (c *counting) shared(ctx context.Context, sources []*source) []bool {
	out := make([]bool, len(sources))
	if len(sources) == 1 {
		return out
	}
	seen := make(map[record.Origin]int)
	for i, s := range sources {
		index, err := s.readIndex(ctx, false)
		if err != nil {
			out[i] = true
			continue
		}
		from, err := index.Origins()
		if err != nil {
			out[i] = true
			continue
		}
		for _, o := range from.Dict {
			if first, ok := seen[o]; ok {
				out[first], out[i] = true, true
			} else {
				seen[o] = i
			}
		}
	}
	return out
}

// blob counts what is wanted of one blob that shares nothing.
func (c *counting) blob(ctx context.Context, s *source) (int64, error) {
	defer s.forget()
	rng, match := c.plan.query.Range, c.plan.match
	if rng.covers(s.meta.First, s.meta.Last) {
		c.noteHigher(wanted(match.high, &s.meta.Levels))
		return wanted(match.levels, &s.meta.Levels), nil
	}
	index, err := s.readIndex(ctx, false)
	if err != nil {
		return 0, err
	}
	n, higher := int64(0), int64(0)
	for i := range index.Blocks {
		b := &index.Blocks[i]
		if !rng.touches(b.First, b.Last) {
			continue
		}
		in, high, exact := countBlock(b, rng, match)
		if !exact {
			if in, high, err = c.decode(ctx, s, b); err != nil {
				return 0, err
			}
		}
		n, higher = n+in, higher+high
	}
	c.noteHigher(higher)
	return n, nil
}

func (c *counting) noteHigher(n int64) { c.count.higher.Add(n) }

// countBlock counts what a block holds of the range, as far as its index tells:
// exactly where the ends of the range fall between two of its minutes.
func countBlock(b *blobfmt.Block, rng Range, match *matcher) (n, higher int64, exact bool) {
	if rng.covers(b.First, b.Last) {
		return wanted(match.levels, &b.Levels), wanted(match.high, &b.Levels), true
	}
	for i := range b.Minutes {
		first, last := minuteSpan(b.Minutes[i].Minute)
		first, last = max(first, b.First), min(last, b.Last)
		if !rng.touches(first, last) {
			continue
		}
		if !rng.covers(first, last) {
			return 0, 0, false
		}
		n += wanted(match.levels, &b.Minutes[i].Levels)
		higher += wanted(match.high, &b.Minutes[i].Levels)
	}
	return n, higher, true
}

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
func (c *counting) decode(ctx context.Context, s *source, b *blobfmt.Block) (n, higher int64, err error) {
	stored, err := s.fetch(ctx, b.Offset, b.Stored)
	if err != nil {
		return 0, 0, err
	}
	d, err := blobfmt.NewDecoder()
	if err != nil {
		return 0, 0, err
	}
	raw, err := d.Block(nil, stored, *b)
	if err != nil {
		return 0, 0, err
	}
	c.count.blocksRead.Add(1)
	k, higher, err := c.plan.match.keep(raw, b, c.plan.query.Range, nil)
	return int64(k.count()), higher, err
}
