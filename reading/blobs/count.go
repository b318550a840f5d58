package blobs

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"blobtail/catalog"
	"blobtail/record"
	"blobtail/storage/fanout"
)

// Count returns the number of records that Read would return. It uses metadata and
// indexes if they give an exact number: without texts, and if no two blobs can hold
// copies of one record. It decodes the rest.
func (p *Plan) Count(ctx context.Context) (int64, Summary, error) {
	c := p.counting(Buckets{})
	err := c.run(ctx)
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
	// objects count what is fetched by indexes.
	objects objects

	mu    sync.Mutex
	tally tally
	sum   Summary
	merge []blob // must be decoded together, since they may hold copies
}

func (p *Plan) counting(by Buckets) *counting {
	return &counting{plan: p, sum: p.summary(), tally: tally{by: by}, objects: objects{cool: p.cool, tell: p.reader.opt.Cool}}
}

// run counts everything. After an error, sum and tally cover the part that was
// counted.
func (c *counting) run(ctx context.Context) error {
	err := c.plan.confirmed(ctx, &c.sum, c.countAll)
	c.sum.Records = c.tally.total
	c.plan.tellUnjudged(&c.sum)
	c.plan.tellExpired(&c.sum, c.plan.has())
	return err
}

func (c *counting) countAll(ctx context.Context) error {
	c.loader = c.plan.newLoader(ctx, &task{rng: c.plan.rng}, &c.sum)
	defer c.loader.stop()
	defer c.objects.warn(&c.sum)
	if c.tally.by.Length%time.Minute != 0 { // no index has buckets of seconds
		c.plan.tellAll(&c.sum)
	}
	switch {
	case c.plan.match.readsLines() && !c.plan.query.Edges.any() && !c.plan.reader.opt.Distant:
		return c.plan.fold(ctx, c.tally.fold(), &c.sum, func(part any) error {
			c.tally.add(part.(*tally))
			return nil
		})
	case c.plan.match.readsLines() || c.plan.query.Edges.any():
		c.merge = c.plan.blobs
	default:
		if err := c.fromIndexes(ctx); err != nil || len(c.merge) == 0 {
			return err
		}
	}
	return c.plan.pass(ctx, task{blobs: c.merge, rng: c.plan.rng}, &c.sum, func(got piece) error { return c.tally.lines(got.lines) })
}

// fromIndexes counts by indexes and notes the blobs that have to be decoded. It counts
// stretches: the blobs of a service that overlap in time. A record and its copies are
// in one stretch.
func (c *counting) fromIndexes(ctx context.Context) error {
	stretches := stretches(c.plan.blobs)
	return fanout.Each(ctx, len(stretches), max(listers, c.plan.reader.opt.Workers), func(ctx context.Context, i int) error {
		return c.stretch(ctx, stretches[i])
	})
}

// stretches are the blobs of each service that overlap in time.
func stretches(blobs []blob) (out [][]blob) {
	blobs = slices.Clone(blobs)
	slices.SortFunc(blobs, func(a, b blob) int {
		return cmp.Or(cmp.Compare(a.Name.Service, b.Name.Service), cmp.Compare(a.Meta.First, b.Meta.First))
	})
	for n := 0; len(blobs) > 0; blobs = blobs[n:] {
		last := blobs[0].Meta.Last
		for n = 1; n < len(blobs) && blobs[n].Name.Service == blobs[0].Name.Service && blobs[n].Meta.First <= last; n++ {
			last = max(last, blobs[n].Meta.Last)
		}
		out = append(out, blobs[:n])
	}
	return out
}

func (c *counting) stretch(ctx context.Context, blobs []blob) error {
	sources := make([]*source, len(blobs))
	for i, b := range blobs {
		sources[i] = c.plan.reader.source(b, &c.sum)
		sources[i].objects = &c.objects
	}
	shared, err := c.shared(ctx, sources)
	if err != nil {
		return err
	}
	for i, s := range sources {
		var t *tally
		if !shared[i] && s.State == catalog.Sound {
			// If it fails, reading it in full reports the problem, and counts the rest.
			if t, err = c.blob(ctx, s); fatal(ctx, err) != nil {
				return fatal(ctx, err)
			}
		}
		sources[i] = nil // it can take much memory
		c.mu.Lock()
		if t == nil {
			c.merge = append(c.merge, blobs[i])
		} else if c.tally.add(t); s.unflushed {
			c.sum.Unflushed += t.total
		}
		c.mu.Unlock()
	}
	return nil
}

// shared reports for each blob whether it has, or may have, an origin in common with
// another blob.
func (c *counting) shared(ctx context.Context, sources []*source) ([]bool, error) {
	out := make([]bool, len(sources))
	if len(sources) == 1 {
		return out, nil
	}
	var seen []owned
	for i, s := range sources {
		from, err := s.origins(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil { // it may have copies of records of any blob
			return slices.Repeat([]bool{true}, len(out)), nil
		}
		seen = merged(seen, from, i, out)
	}
	return out, nil
}

// owned is an origin with the first blob that has it.
type owned struct {
	record.Origin
	blob int
}

// merged adds the origins of a blob to those of the blobs before, both ascending. It notes
// in shared the blobs that have one in common.
func merged(seen []owned, from []record.Origin, blob int, shared []bool) []owned {
	out := make([]owned, 0, len(seen)+len(from))
	for len(from) > 0 {
		order := 1
		if len(seen) > 0 {
			order = seen[0].Compare(&from[0])
		}
		switch {
		case order < 0:
			out, seen = append(out, seen[0]), seen[1:]
			continue
		case order == 0:
			shared[seen[0].blob], shared[blob] = true, true
		default:
			out = append(out, owned{from[0], blob})
		}
		from = from[1:]
	}
	return append(out, seen...)
}

// blob counts the wanted records of one blob that shares nothing.
func (c *counting) blob(ctx context.Context, s *source) (*tally, error) {
	rng, match := c.plan.rng, c.plan.match
	t := &tally{by: c.tally.by}
	if rng.covers(s.Meta.First, s.Meta.Last) && t.one(s.Meta.First, s.Meta.Last) {
		atomic.AddInt64(&c.sum.Higher, wanted(match.high, &s.Meta.Levels))
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
		f := &future{block: i}
		var exact bool
		if f.higher, exact = t.block(b, rng, match); !exact {
			s.reopened()
			stored, err := s.fetch(ctx, b.Offset, b.Stored)
			if err != nil {
				return nil, err
			}
			if err = c.loader.load(f, s, b, stored); err == nil {
				err = t.lines(f.kept.raw)
			}
			if err != nil {
				return nil, err
			}
			c.loader.recycle(f.buf)
		}
		higher += f.higher
	}
	atomic.AddInt64(&c.sum.Higher, higher)
	return t, nil
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
