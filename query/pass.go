package query

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
}

// pass reads a task and emits chunks of lines by calls of out, each in ascending
// order, until the limit is reached. A chunk is valid during the call.
func (a *asked) pass(ctx context.Context, t task, sum *Summary, out func(piece) error) error {
	p := a.newPass(ctx, t, sum)
	defer p.objects.close()
	defer p.loader.work.Wait()
	defer p.loader.stop()
	for {
		if err := p.loader.ctx.Err(); err != nil {
			return err // also if all is in memory: the read may be too old
		}
		chunk, err := p.next()
		if err != nil || chunk == nil {
			return err
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

func (a *asked) newPass(ctx context.Context, t task, sum *Summary) *pass {
	opt := &a.reader.opt
	p := &pass{task: t, asked: a, sum: sum, blamed: make(map[*source]bool), loader: a.reader.newLoader(ctx, &t, a.match, sum)}
	p.ahead = readahead{first: opt.GroupBytes, groupMax: opt.GroupBytes, spare: 2*opt.Workers - 1}
	p.ahead.lazy, p.ahead.sifts = t.limit > 0, a.match.sifts()
	if p.ahead.lazy || p.ahead.sifts {
		p.ahead.first = min(firstGroup, opt.GroupBytes)
	}
	p.objects.opener, _ = a.reader.store.(storage.Opener)
	p.objects.open = make(map[*source]storage.Object)
	p.heap = make([]*cursor, 0, len(t.blobs))
	bytes := int64(0)
	for i := range t.blobs {
		b := &t.blobs[i]
		sum.Examined += b.Meta.Records
		if p.loader.wantsBlob(b) {
			bytes += b.Size
			s := a.reader.source(*b, sum)
			s.objects = &p.objects
			p.heap = append(p.heap, &cursor{pass: p, src: s, key: p.bound(s.Meta.First, s.Meta.Last)})
		}
	}
	opt.Progress.Expect(len(p.heap), bytes)
	slices.SortStableFunc(p.heap, func(a, b *cursor) int {
		if t.desc {
			a, b = b, a
		}
		return cmp.Compare(a.key, b.key)
	})
	p.ahead.order = slices.Clone(p.heap)
	if p.ahead.lazy {
		p.ahead.probable = t.probable(p.heap, a.match)
	}
	p.build()
	return p
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

// unidentified reports that copies in s cannot be distinguished from other records.
func (p *pass) unidentified(s *source, err error) {
	if !p.blamed[s] {
		p.blamed[s] = true
		p.sum.Problems = append(p.sum.Problems, s.problem(0, 0, err))
	}
}

// fatal returns the error that ends a read, for errors that concern more than one
// blob.
func fatal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, storage.ErrUnauthorized) {
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
