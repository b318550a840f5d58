package blobs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"blobtail/record"
	"blobtail/storage"
)

// task is the work of one pass.
type task struct {
	blobs []blob
	rng   Range
	desc  bool
	limit int // most records; 0: all
}

// bound returns the earliest key in the span from first to last: the time of the
// first record that a pass can come to.
func (t *task) bound(first, last int64) int64 {
	if t.desc {
		return min(last, t.rng.last())
	}
	return max(first, t.rng.From)
}

// A pass merges the blobs of a task. Goroutines share only its loader. The rest, with the
// cursors, belongs to the goroutine that called [asked.pass].
type pass struct {
	task
	merge
	asked  *asked
	sum    *Summary
	blamed map[*source]bool // vanished, or of unknown origins: reported once
	loader *loader
	ahead  readahead
	// objects are those of the sources.
	objects objects
	// work counts the work of the loader and the sources. It is added to sum at the end.
	work     Summary
	archived []*blob // cannot be read
	// further are blobs of the read that a Scout's pass lacks.
	further []*blob
}

// pass reads a task and emits chunks of lines by calls of out, each in ascending
// order, until the limit is reached. A chunk is valid during the call.
func (a *asked) pass(ctx context.Context, t task, sum *Summary, out func(piece) error) error {
	p := a.query.Scout.take(t, a.query.Filter, sum)
	if p == nil {
		p = a.newPass(ctx, t)
	}
	defer p.close(sum)
	defer context.AfterFunc(ctx, p.loader.stop)() // a Scout's pass has another context
	if err := p.begin(a, t, sum); err != nil {
		return err
	}
	for {
		if err := p.ended(ctx); err != nil {
			return err // also if all is in memory: the read may be too old
		}
		chunk, err := p.next()
		if ended := p.ended(ctx); ended != nil {
			return ended // a record of chunk may be a copy whose origin could not be looked up
		}
		if err != nil || chunk == nil {
			return err
		}
		if chunk, err = a.query.Edges.cut(chunk, p.used); err != nil {
			sum.Problems = append(sum.Problems, p.used.src.problem(0, 0, err))
		}
		if len(chunk) == 0 {
			continue
		}
		n, left := int64(bytes.Count(chunk, newline)), int64(t.limit)-sum.Records
		if t.limit > 0 && n > left {
			chunk, n, sum.More = firstLines(chunk, int(left), t.desc), left, true
		}
		sum.Records += n
		if p.used.src.unflushed {
			sum.Unflushed += n
		}
		if err := out(piece{lines: chunk, c: p.used}); err != nil {
			return err
		}
		if n == left {
			sum.More = sum.More || len(p.heap) > 0
			return nil
		}
	}
}

// ended returns the error of the read's context, or of that of the pass. The latter may be a Scout's.
func (p *pass) ended(ctx context.Context) error { return cmp.Or(ctx.Err(), p.loader.ctx.Err()) }

// newPass makes a pass with the blobs of a task that may hold wanted records.
func (a *asked) newPass(ctx context.Context, t task) *pass {
	opt := &a.reader.opt
	p := &pass{task: t, asked: a, blamed: make(map[*source]bool)}
	p.loader = a.newLoader(ctx, &t, &p.work)
	p.ahead = readahead{first: opt.GroupBytes, groupMax: opt.GroupBytes, spare: 2*opt.Workers - 1, shared: a.reader.shared}
	p.ahead.shared.passes.Add(1)
	p.ahead.lazy, p.ahead.sifts = t.limit > 0, a.match.sifts()
	if p.ahead.lazy || p.ahead.sifts {
		p.ahead.first = min(firstGroup, opt.GroupBytes)
	}
	p.objects.opener, _ = a.reader.store.(storage.Opener)
	p.objects.open = make(map[*source]storage.Object)
	p.objects.cool, p.objects.tell = a.cool, opt.Cool
	p.heap = make([]*cursor, 0, len(t.blobs))
	for i := range t.blobs {
		p.add(&t.blobs[i])
	}
	p.arrange()
	return p
}

// add adds a blob, unless its metadata rule it out.
func (p *pass) add(b *blob) {
	if !p.loader.wantsBlob(b) {
		return
	}
	if b.Tier == storage.Archive {
		p.archived = append(p.archived, b)
		return
	}
	s := p.asked.reader.source(*b, &p.work)
	s.objects = &p.objects
	p.heap = append(p.heap, &cursor{pass: p, src: s, key: p.bound(s.Meta.First, s.Meta.Last)})
}

// arrange puts the cursors in the order in which the merge reaches them.
func (p *pass) arrange() {
	slices.SortStableFunc(p.heap, func(a, b *cursor) int {
		if p.desc {
			a, b = b, a
		}
		return cmp.Compare(a.key, b.key)
	})
	p.ahead.order, p.ahead.started = slices.Clone(p.heap), 0
	if p.ahead.lazy {
		p.ahead.probable = p.probable(p.heap, p.asked.match)
	}
}

// begin prepares the merge. a, t and sum are those of the read: a Scout's pass began with
// others. It fails if the read is too large for certain.
func (p *pass) begin(a *asked, t task, sum *Summary) error {
	p.asked, p.task = a, t
	if len(p.further) > 0 {
		for _, b := range p.further {
			p.add(b)
		}
		p.arrange()
	}
	p.sum = sum
	for i := range t.blobs {
		sum.Examined += t.blobs[i].Meta.Records
	}
	bytes := int64(0)
	for _, c := range p.heap {
		bytes += c.src.Size
	}
	p.loader.spent.Add(sum.Decoded) // by earlier passes of the read
	if err := a.foretold(&t, p.loader.spent.Load()); err != nil {
		return err
	}
	p.tellTiers()
	a.reader.opt.Progress.Expect(len(p.heap), bytes)
	p.build()
	return nil
}

// close ends all requests of the pass, and adds its work to a summary.
func (p *pass) close(sum *Summary) {
	p.loader.stop()
	p.loader.work.Wait()
	p.objects.close()
	p.ahead.shared.passes.Add(-1)
	give(p.loader.buffers, &p.ahead.shared.blocks)
	give(p.loader.spares, &p.ahead.shared.groups)
	sum.Join(&p.work)
	p.objects.warn(sum)
}

// blame reports a problem with a blob, or returns the error that ends the read.
func (p *pass) blame(s *source, problem *Problem) error {
	ctx := p.loader.ctx
	if err := fatal(ctx, problem.Err); err != nil {
		return err
	}
	if p.blamed[s] {
		return nil
	}
	if errors.Is(problem.Err, storage.ErrNotExist) {
		p.blamed[s] = true
		expired, err := p.asked.gone(ctx, s, problem.Err)
		if expired || ctx.Err() != nil {
			return ctx.Err()
		}
		problem = &Problem{Blob: problem.Blob, Err: err}
	}
	p.sum.Problems = append(p.sum.Problems, problem)
	return nil
}

// unidentified reports that copies in s cannot be distinguished from other records, unless its day
// has expired. A pass says nothing more once its context has ended.
func (p *pass) unidentified(s *source, err error) {
	ctx := p.loader.ctx
	if p.blamed[s] || ctx.Err() != nil {
		return
	}
	p.blamed[s] = true
	expired := false
	if errors.Is(err, storage.ErrNotExist) { // the blob went after its lines were fetched
		expired, err = p.asked.gone(ctx, s, err)
	}
	if !expired && ctx.Err() == nil {
		p.sum.Problems = append(p.sum.Problems, s.problem(0, 0, err))
	}
}

// fatal returns the error that ends a read, for errors that concern more than one
// blob.
func fatal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, storage.ErrUnauthorized) || tooLarge(err) {
		return err
	}
	return nil
}

// firstLines returns the first n lines of a chunk, the last n when desc.
func firstLines(chunk []byte, n int, desc bool) []byte {
	if desc {
		at := len(chunk)
		for ; n > 0; n-- {
			at = bytes.LastIndexByte(chunk[:at-1], '\n') + 1
		}
		return chunk[at:]
	}
	at := 0
	for ; n > 0; n-- {
		at += bytes.IndexByte(chunk[at:], '\n') + 1
	}
	return chunk[:at]
}

// newest reduces kept lines to the last n.
func (k *kept) newest(n int) error {
	at := len(k.raw)
	for ; n > 0 && at > 0; n-- {
		at -= len(lastLine(k.raw[:at]))
	}
	if at == 0 {
		return nil
	}
	if k.ords != nil {
		k.ords = k.ords[bytes.Count(k.raw[:at], newline):]
	} else {
		k.base += uint32(bytes.Count(k.raw[:at], newline))
	}
	k.raw = k.raw[at:]
	var ok bool
	if k.first, ok = record.LineTime(k.raw); !ok {
		return errLine
	}
	return nil
}
