package blobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"sync/atomic"

	"blobtail/catalog"
	"blobtail/storage/fanout"
)

const (
	// mostPart is the largest part of a result that is kept.
	mostPart = 64 << 10
	// foldChunk is about how many bytes of merged lines make a part.
	foldChunk = 256 << 10
)

// A Fold makes a result of lines in any order: a part of it of the lines of each block, and so of
// several blocks at once.
type Fold struct {
	// ID is equal for folds that make the same part of the same lines; "": nobody can tell, and no part
	// is kept for later reads.
	ID string
	// Of makes a part of whole lines, which it must not keep, and tells its memory. Several goroutines call it at once. Nobody
	// changes a part.
	Of func(lines []byte) (part any, size int64, err error)
}

// A folded is the part of a block, with the number of its records.
type folded struct {
	of      any
	records int64
	higher  int64
}

// folding is the fold of a pass.
type folding struct {
	Fold
	id [sha256.Size]byte // of the fold and of the filter
	// known says that parts are kept.
	known bool
}

func (a *asked) folding(f Fold) *folding {
	out := &folding{Fold: f, known: f.ID != "" && a.match.known}
	if out.known {
		out.id = sha256.Sum256(append([]byte(f.ID), a.match.id[:]...))
	}
	return out
}

// Fold passes the parts of a result to take, which makes one of them. The query has no edges, and its
// limits do not count. If the blobs, the query and the fold are the same, so are the parts and their order.
func (p *Plan) Fold(ctx context.Context, f Fold, take func(part any) error) (Summary, error) {
	sum := p.summary()
	err := p.confirmed(ctx, &sum, func(ctx context.Context) error { return p.fold(ctx, f, &sum, take) })
	p.tellUnjudged(&sum)
	p.tellExpired(&sum, p.has())
	return sum, err
}

// fold folds the blobs that share no record each by itself. The others are merged, and so are all of
// a distant store if nothing is kept: requests for the origins of their records would be for nothing.
func (p *Plan) fold(ctx context.Context, f Fold, sum *Summary, take func(part any) error) (err error) {
	var alone []blob
	merged := p.blobs
	if !p.reader.opt.Distant || p.reader.findings != nil {
		if alone, merged, err = p.divided(ctx, sum); err != nil {
			return err
		}
	}
	if len(alone) > 0 {
		if err := p.foldAlone(ctx, alone, p.folding(f), sum, take); err != nil {
			return err
		}
	}
	if len(merged) == 0 {
		return nil
	}
	var held []byte
	give := func() error {
		if len(held) == 0 {
			return nil
		}
		of, _, err := f.Of(held)
		held = held[:0]
		if err != nil {
			return err
		}
		return take(of)
	}
	err = p.pass(ctx, task{blobs: merged, rng: p.rng}, sum, func(got piece) error {
		held = append(held, got.lines...)
		if len(held) < foldChunk {
			return nil
		}
		return give()
	})
	if err == nil {
		err = give()
	}
	return err
}

// divided returns the blobs that share no record with another one, and the others.
func (p *Plan) divided(ctx context.Context, sum *Summary) (alone, merged []blob, err error) {
	c := p.counting(Buckets{})
	defer c.objects.warn(sum)
	all := stretches(p.blobs)
	shares := make([][]bool, len(all))
	err = fanout.Each(ctx, len(all), max(listers, p.reader.opt.Workers), func(ctx context.Context, i int) (err error) {
		sources := make([]*source, len(all[i]))
		for j, b := range all[i] {
			sources[j] = p.reader.source(b, &c.sum)
			sources[j].objects = &c.objects
		}
		shares[i], err = c.shared(ctx, sources)
		return err
	})
	sum.Join(&Summary{Requests: c.sum.Requests - p.listed.Requests, Fetched: c.sum.Fetched - p.listed.Fetched, BlobsOpened: c.sum.BlobsOpened - p.listed.BlobsOpened})
	for i, stretch := range all {
		for j, b := range stretch {
			if err == nil && !shares[i][j] && b.body == nil && b.State == catalog.Sound {
				alone = append(alone, b)
			} else {
				merged = append(merged, b)
			}
		}
	}
	return alone, merged, err
}

// foldAlone folds blobs that share nothing, one after the other, while blocks are fetched and folded
// ahead.
func (p *Plan) foldAlone(ctx context.Context, blobs []blob, f *folding, sum *Summary, take func(part any) error) error {
	pass := p.newPass(ctx, task{blobs: blobs, rng: p.rng})
	pass.loader.folding = f
	defer pass.close(sum)
	if err := pass.begin(p.asked, pass.task, sum); err != nil {
		return err
	}
	for len(pass.heap) > 0 {
		parts, err := pass.parts(ctx, pass.heap[0])
		if err != nil {
			return err
		}
		for _, of := range parts {
			if of == nil || of.records == 0 {
				continue
			}
			sum.Records += of.records
			if err := take(of.of); err != nil {
				return err
			}
		}
		pass.pop()
	}
	return nil
}

// parts returns the parts of a blob, in the order of its blocks.
func (p *pass) parts(ctx context.Context, c *cursor) ([]*folded, error) {
	if p.asked.view.Hides(c.src.Name.Service, c.src.Day()) {
		p.ahead.coming -= len(c.coming)
		return nil, nil // its day expired during the read
	}
	if err := c.open(); err != nil || c.src.index == nil {
		return nil, err
	}
	parts := c.src.sieve.parts
	if parts == nil {
		parts = make([]*folded, len(c.src.index.Blocks))
	}
	for c.next-len(c.coming) < len(c.src.blocks) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if p.asked.view.Hides(c.src.Name.Service, c.src.Day()) {
			p.ahead.coming -= len(c.coming)
			return parts, nil
		}
		f, err := c.await()
		if err != nil {
			return nil, err
		}
		if f != nil {
			parts[f.block] = f.part
		}
	}
	return parts, nil
}

// recallPart sets the part of a block that an earlier read has made, and reports whether there is one.
func (l *loader) recallPart(s *source, block int) bool {
	b := &s.index.Blocks[block]
	id, ok := l.partOf(s, block)
	if !ok || !l.task.rng.covers(b.First, b.Last) {
		return false
	}
	kept, _ := l.findings.Get(id)
	of, ok := kept.(*folded)
	if !ok {
		return false
	}
	if s.sieve.parts == nil {
		s.sieve.parts = make([]*folded, len(s.index.Blocks))
	}
	s.sieve.parts[block] = of
	if l.match.where != nil {
		l.match.where.Found()
	}
	atomic.AddInt64(&l.sum.Higher, of.higher)
	return true
}

func (l *loader) partOf(s *source, block int) (id findingID, ok bool) {
	if l.folding == nil || !l.folding.known || l.findings == nil || s.body != nil || s.State != catalog.Sound {
		return id, false
	}
	return s.findingID(block, l.folding.id), true
}

// fold makes the part of a block of its kept lines, which nobody needs then.
func (l *loader) fold(f *future, s *source) error {
	if len(f.kept.raw) == 0 {
		f.part = &folded{higher: f.higher}
	} else {
		of, size, err := l.folding.Of(f.kept.raw)
		if err != nil {
			return err
		}
		f.part = &folded{of, int64(bytes.Count(f.kept.raw, newline)), f.higher}
		b := &s.index.Blocks[f.block]
		id, ok := l.partOf(s, f.block)
		if ok && size <= mostPart && l.task.rng.covers(b.First, b.Last) && l.match.certain(true) && l.ctx.Err() == nil {
			l.findings.Put(id, f.part, size+findingBytes)
		}
	}
	l.recycle(f.buf)
	f.kept, f.buf = kept{}, nil
	return nil
}
