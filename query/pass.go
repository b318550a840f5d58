package query

import (
	"bytes"
	"cmp"
	"context"
	"slices"
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

// A pass merges the blobs of a task. Its parts have one
// owner each: the loader is shared by all goroutines of the pass; the merge with its
// cursors, the readahead with its feeds, and the report belong to the goroutine that
// called [asked.pass].
type pass struct {
	task
	loader *loader
	ahead  readahead
	report report
	merge  merge
}

// pass reads a task and emits chunks of lines by calls of out, each in ascending
// order, until the limit is reached. A chunk is valid during the call.
func (a *asked) pass(ctx context.Context, t task, sum *Summary, out func(piece) error) error {
	p := a.newPass(ctx, t, sum)
	defer p.finish()
	for {
		if err := p.loader.ctx.Err(); err != nil {
			return err // also if all is in memory: the read may be too old
		}
		chunk, err := p.merge.next()
		if err != nil || chunk == nil {
			return err
		}
		limit := int64(t.limit)
		n := int64(bytes.Count(chunk, newline))
		if limit > 0 && sum.Records+n > limit {
			chunk = firstLines(chunk, int(limit-sum.Records), t.desc)
			n = limit - sum.Records
			sum.More = true
		}
		sum.Records += n
		if p.merge.used.src.unflushed {
			sum.Unflushed += n
		}
		if len(chunk) > 0 {
			if err := out(piece{lines: chunk, c: p.merge.used}); err != nil {
				return err
			}
		}
		if limit > 0 && sum.Records >= limit {
			sum.More = sum.More || len(p.merge.heap) > 0
			return nil
		}
	}
}

func (a *asked) newPass(ctx context.Context, t task, sum *Summary) *pass {
	opt := &a.reader.opt
	p := &pass{task: t, report: report{asked: a, sum: sum, blamed: make(map[*source]bool)}}
	p.loader = newLoader(ctx, &p.task, a.match, opt.Workers)
	p.ahead = readahead{lazy: t.limit > 0, groupMax: opt.GroupBytes, spare: 2 * opt.Workers}
	p.merge = merge{desc: t.desc, report: &p.report, ahead: &p.ahead}
	p.merge.heap = make([]*cursor, 0, len(t.blobs))
	for i := range t.blobs {
		if b := &t.blobs[i]; p.loader.wantsBlob(b) {
			s := a.reader.source(*b, &p.loader.count)
			p.merge.heap = append(p.merge.heap, &cursor{pass: p, feed: feed{src: s, loader: p.loader, ahead: &p.ahead},
				src: s, key: p.bound(s.Meta.First, s.Meta.Last)})
		}
	}
	slices.SortStableFunc(p.merge.heap, func(a, b *cursor) int {
		if t.desc {
			a, b = b, a
		}
		return cmp.Compare(a.key, b.key)
	})
	p.ahead.order = make([]*feed, 0, len(p.merge.heap))
	for _, c := range p.merge.heap {
		p.ahead.order = append(p.ahead.order, &c.feed)
	}
	p.merge.init()
	return p
}

// finish waits for all goroutines of the pass and adds up their counts.
func (p *pass) finish() {
	p.loader.stop()
	p.loader.work.Wait()
	p.loader.count.addTo(p.report.sum)
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
