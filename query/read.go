package query

import (
	"bytes"
	"context"
	"slices"

	"blobtail/blobfmt"
	"blobtail/catalog"
)

// Read gives out the lines, in order, by calls of emit, each with one or more
// whole lines that stand next to each other in the result. The bytes are valid
// during the call. An error of emit ends the read and is returned as it is.
//
// The summary is right as far as the read came, whatever the error.
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
		if to.visit == nil && !p.query.Reverse { // once for each line, where many blobs are merged
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
		return p.pass(ctx, task{p.blobs, p.loose, p.rng, desc, max(p.query.Limit, p.query.First)}, sum, keep)
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

// emitBackwards gives out the lines of a chunk last one first.
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

// task is the work of one pass.
type task struct {
	blobs []catalog.Entry
	loose []*stream
	rng   Range
	desc  bool
	limit int // most records; 0: all
}

// pass merges blobs and unflushed records in one direction and calls out with chunks
// of lines, each in ascending order, until the limit is reached.
func (a *asked) pass(ctx context.Context, t task, sum *Summary, out func(piece) error) error {
	r := a.newRun(ctx, t, sum)
	defer r.finish()
	limit, desc := int64(t.limit), t.desc
	for i := range t.blobs {
		if b := &t.blobs[i]; r.wantsBlob(b) {
			r.join(a.reader.source(b, r.count))
		}
	}
	for _, s := range t.loose {
		if r.rng.touches(s.first(), s.last()) {
			r.join(s.source(r.count))
		}
	}
	m := &merge{run: r}
	slices.SortStableFunc(r.order, func(a, b *cursor) int {
		switch {
		case a.key == b.key:
			return 0
		case (a.key < b.key) != desc:
			return -1
		}
		return 1
	})
	m.heap = slices.Clone(r.order)
	m.init()
	for {
		if err := r.ctx.Err(); err != nil {
			return err // also where all is at hand: it may be too old
		}
		chunk, err := m.next()
		if err != nil || chunk == nil {
			return err
		}
		n := int64(bytes.Count(chunk, newline))
		if limit > 0 && sum.Records+n > limit {
			chunk = cut(chunk, int(limit-sum.Records), desc)
			n = limit - sum.Records
			sum.More = true
		}
		sum.Records += n
		if m.used.src.stream != nil {
			sum.Loose += n
		}
		if len(chunk) > 0 {
			if err := out(piece{lines: chunk, c: m.used}); err != nil {
				return err
			}
		}
		if limit > 0 && sum.Records >= limit {
			sum.More = sum.More || len(m.heap) > 0
			return nil
		}
	}
}

// join adds a cursor for a source.
func (r *run) join(s *source) {
	c := &cursor{run: r, src: s}
	c.key = r.bound(s.meta.First, s.meta.Last)
	r.order = append(r.order, c)
}

// cut gives the first n lines of a chunk, the last n when desc.
func cut(chunk []byte, n int, desc bool) []byte {
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

func (a *asked) newRun(ctx context.Context, t task, sum *Summary) *run {
	workers := a.reader.opt.Workers
	r := &run{
		asked: a, desc: t.desc, lazy: t.limit > 0, rng: t.rng, match: a.match,
		count: &counters{}, sum: sum, blamed: make(map[*source]bool),
		decoders: make(chan *blobfmt.Decoder, workers),
		buffers:  make(chan []byte, 4*workers+8),
		groupMax: a.reader.opt.GroupBytes,
		spare:    2 * workers,
	}
	r.ctx, r.stop = context.WithCancel(ctx)
	for range workers {
		r.decoders <- nil // made when first needed
	}
	return r
}

// finish waits for all that was started and adds up what it did.
func (r *run) finish() {
	r.stop()
	r.work.Wait()
	r.count.addTo(r.sum)
}
