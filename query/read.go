package query

import (
	"context"
	"slices"
)

// Read emits the lines, in order, by calls of emit, each with one or more whole lines
// that are adjacent in the result. The bytes are valid during the call. An error of
// emit ends the read and is returned as it is.
//
// With an error too, the summary covers the part that was read.
func (p *Plan) Read(ctx context.Context, emit func(lines []byte) error) (Summary, error) {
	return p.read(ctx, &sink{emit: emit})
}

func (p *Plan) read(ctx context.Context, to *sink) (Summary, error) {
	sum := p.summary()
	err := p.readAll(ctx, &sum, to)
	p.tellExpired(&sum)
	return sum, err
}

func (p *Plan) readAll(ctx context.Context, sum *Summary, to *sink) error {
	desc := p.query.Limit > 0 || p.query.Reverse && p.query.First == 0
	out := func(got piece) error {
		sum.Bytes += int64(len(got.lines))
		if to.visit == nil && !p.query.Reverse { // called for each line if many blobs are merged
			return to.emit(got.lines)
		}
		return to.give(got, p.query.Reverse)
	}
	var held []piece
	keep := out
	if desc != p.query.Reverse {
		keep = func(got piece) error {
			held = append(held, to.keep(got))
			return nil
		}
	}
	err := p.confirmed(ctx, sum, func(ctx context.Context) error {
		return p.pass(ctx, task{p.blobs, p.rng, desc, max(p.query.Limit, p.query.First)}, sum, keep)
	})
	if err != nil {
		return err
	}
	for _, got := range slices.Backward(held) {
		if err := out(got); err != nil {
			return err
		}
	}
	return nil
}

// emitBackwards emits the lines of a chunk, last one first.
func emitBackwards(chunk []byte, emit func([]byte) error) error {
	for len(chunk) > 0 {
		line := lastLine(chunk)
		if err := emit(line); err != nil {
			return err
		}
		chunk = chunk[:len(chunk)-len(line)]
	}
	return nil
}
