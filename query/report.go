package query

import (
	"context"
	"errors"
	"fmt"

	"blobtail/storage"
)

// A report notes the problems of a pass. It belongs to the goroutine that merges.
type report struct {
	asked  *asked
	sum    *Summary
	blamed map[*source]bool // vanished, or of unknown origins: reported once
}

// opened reports the findings of an opening.
func (r *report) opened(ctx context.Context, s *source, o *opening) error {
	if o.warn != nil {
		r.sum.Warnings = append(r.sum.Warnings, fmt.Errorf("read without its index: %w", o.warn))
	}
	r.sum.Problems = append(r.sum.Problems, o.lost...)
	if o.err != nil {
		return r.blame(ctx, s, s.problem(0, 0, o.err))
	}
	return nil
}

// failed reports a block that was not delivered. One failed GET is one problem, even
// if it was for several blocks.
func (r *report) failed(ctx context.Context, s *source, f *future) error {
	b := &s.index.Blocks[f.block]
	off, n := b.Offset, b.Stored
	if g := f.group; g != nil && g.err != nil {
		if g.told {
			return fatal(ctx, f.err)
		}
		g.told = true
		off, n = g.off, g.len
	}
	return r.blame(ctx, s, s.problem(off, n, f.err))
}

// blame reports a problem with a blob, or returns the error that ends the read.
func (r *report) blame(ctx context.Context, s *source, p *Problem) error {
	if err := fatal(ctx, p.Err); err != nil {
		return err
	}
	if r.blamed[s] {
		return nil
	}
	if errors.Is(p.Err, storage.ErrNotExist) {
		r.blamed[s] = true
		expired, err := r.asked.gone(ctx, s, p.Err)
		if expired || ctx.Err() != nil {
			return ctx.Err()
		}
		p = &Problem{Blob: p.Blob, Err: err}
	}
	r.sum.Problems = append(r.sum.Problems, p)
	return nil
}

// unidentified reports that copies in s cannot be distinguished from other records.
func (r *report) unidentified(s *source, err error) {
	if !r.blamed[s] {
		r.blamed[s] = true
		r.sum.Problems = append(r.sum.Problems, s.problem(0, 0, err))
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
