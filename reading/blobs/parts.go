package blobs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"blobtail/record"
)

// A Part is a part of a plan by time alone. The parts of a plan share no record.
type Part struct {
	Range
	Bytes int64 // of stored blobs, about
	// Held says that unflushed records are in it.
	Held bool
}

// stretch is what a plan has in an hour.
type stretch struct {
	bytes, first, last int64
	twice              float64 // bytes by seconds: an edge in the hour has what of it read twice
	begins             []int64 // of blobs
	held               bool
}

// mostPieces is how many blobs an hour has that is divided into parts of the wanted size. With more
// blobs parts are larger: each reads a piece of each blob, which takes requests.
const mostPieces = 16

// Parts divides the range of a plan into parts of about size bytes of stored blobs, in order: between
// hours, and within an hour that has more, unless its blobs are many: a part reads them all. Hours with
// unflushed records are apart. spare has larger parts in an hour where many blobs would be read for two.
func (p *Plan) Parts(size int64, spare bool) (parts []Part) {
	hours := map[int64]*stretch{}
	for i := range p.blobs {
		b := &p.blobs[i]
		at := b.Hour().UnixNano()
		h := hours[at]
		if h == nil {
			h = &stretch{first: Newest, last: Oldest}
			hours[at] = h
		}
		h.first, h.last = min(h.first, b.Meta.First), max(h.last, b.Meta.Last)
		if h.held = h.held || b.body != nil; b.body == nil {
			h.bytes += b.Size
			h.begins = append(h.begins, b.Meta.First)
			h.twice += float64(min(b.Size, indexGuess(b.Size)+rawBlock/4)) * time.Duration(b.Meta.Last-b.Meta.First).Seconds()
		}
	}
	part, held := Part{Range: p.rng}, false
	cut := func(at int64) {
		if at > part.From && at < p.rng.To {
			part.To = at
			parts = append(parts, part)
			part = Part{Range: Range{From: at, To: p.rng.To}}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(hours)) {
		h := hours[at]
		if part.Bytes > 0 && part.Bytes+h.bytes > size || h.held != held {
			cut(at)
		}
		held = h.held
		each := size
		if spare {
			each = max(size, int64(16*h.twice/max(1, time.Duration(h.last-h.first).Seconds())))
		}
		n := max(1, min(h.bytes+each/2, mostPieces*h.bytes/max(1, int64(len(h.begins))))/each)
		slices.Sort(h.begins)
		for i := range n {
			at, step := h.first+(h.last-h.first)/n*i, (h.last-h.first)/n
			if j, _ := slices.BinarySearch(h.begins, at); j < len(h.begins) && h.begins[j]-at < step {
				at = h.begins[j] // that blob is read once
			}
			if i > 0 {
				cut(at)
			}
			part.Bytes += h.bytes / n
		}
	}
	parts = append(parts, part)
	for i := range parts {
		rng := parts[i].Range
		parts[i].Held = slices.ContainsFunc(p.bodies, func(b *body) bool { return rng.touches(b.Meta.First, b.Meta.Last) })
	}
	return parts
}

// Hours are the hours that a plan has records of, for each service.
func (p *Plan) Hours() int {
	hours := map[hourOf]bool{}
	for i := range p.blobs {
		hours[hourOf{p.blobs[i].Name.Service, p.blobs[i].Hour()}] = true
	}
	return len(hours)
}

// Age is how long ago the plan was begun.
func (p *Plan) Age() time.Duration { return time.Since(p.began) }

// Within is the part of a plan in a range, up to a limit of lines from the end that its query wants; 0:
// all. Its reads do not tell what [Plan.Joined] tells of all parts.
func (p *Plan) Within(rng Range, limit int) *Plan {
	a := *p.asked
	a.part, a.query.Scout, a.query.Range = true, nil, rng
	switch q := &a.query; {
	case limit == 0:
		q.Limit, q.First = 0, 0
	case q.Limit > 0:
		q.Limit, q.Reverse = limit, true
	default:
		q.First, q.Reverse = limit, false
	}
	w := &Plan{asked: &a, rng: rng}
	for i := range p.blobs {
		if b := &p.blobs[i]; rng.touches(b.Meta.First, b.Meta.Last) {
			w.blobs = append(w.blobs, *b)
		}
	}
	return w
}

// Numbers is the summary of a plan whose parts a function has counted, and of which it joins the
// summaries. elsewhere says that others have read some.
func (p *Plan) Numbers(ctx context.Context, count func() (parts Summary, elsewhere bool, err error)) (Summary, error) {
	sum := p.summary()
	if err := p.foretold(&task{blobs: p.blobs, rng: p.rng}, 0); err != nil {
		return sum, err
	}
	parts, elsewhere, err := count()
	p.join(ctx, &sum, &parts, elsewhere)
	p.match.tellUnjudged(&sum)
	p.tellExpired(&sum, p.has())
	return sum, err
}

// join adds the joined summary of parts to that of a read. A name is absent if it is for the whole plan.
// Others have listings of their own: days may have expired that the parts here have not met.
func (p *Plan) join(ctx context.Context, sum, parts *Summary, elsewhere bool) {
	of := *parts
	of.Absent, of.Examined = nil, 0
	sum.Join(&of)
	for i := 0; i < len(p.blobs) && parts.Examined > 0; i++ { // a blob of several parts counts once
		sum.Examined += p.blobs[i].Meta.Records
	}
	if elsewhere {
		if err := p.view.Look(ctx); err != nil && ctx.Err() == nil {
			sum.Lack(fmt.Errorf("days may have expired during this read, and that cannot be checked: %w", err))
		}
	}
}

// A Share reads the lines of a plan with others, up to a limit if there is one, after a read that the summary
// tells of. It passes them to emit from the end that the query wants. marked ones have ids behind them. ok
// is false if the plan is not for others.
type Share func(ctx context.Context, p *Plan, limit int, marked bool, before *Summary, emit func([]byte) error) (
	parts Summary, elsewhere, ok bool, err error)

// Sharing returns a reader that reads lines with others.
func (r *Reader) Sharing(share Share) *Reader {
	over := *r
	over.share = share
	return &over
}

// lines reads a task, with others if they read it.
func (p *Plan) lines(ctx context.Context, t task, sum *Summary, to *sink) error {
	if share := p.reader.share; share != nil && !p.part {
		if err := p.foretold(&t, sum.Decoded); err != nil {
			return err
		}
		limit := max(0, t.limit-int(sum.Records))
		parts, elsewhere, ok, err := share(ctx, p, limit, to.visit != nil, sum, func(lines []byte) error {
			if t.desc {
				var turned []byte
				for rest := lines; len(rest) > 0; rest = rest[:len(rest)-len(lastLine(rest))] {
					turned = append(turned, lastLine(rest)...)
				}
				lines = turned
			}
			if to.visit == nil {
				return to.take(piece{lines: lines})
			}
			p, err := unmarked(lines)
			return cmp.Or(err, to.take(p))
		})
		if ok {
			p.join(ctx, sum, &parts, elsewhere)
			return err
		}
	}
	return p.pass(ctx, t, sum, to.take)
}

// Marked is Read of lines with ids behind them.
func (p *Plan) Marked(ctx context.Context, emit func(lines []byte) error) (Summary, error) {
	var line []byte
	return p.Entries(ctx, func(e *record.Entry) error {
		line = e.AppendMarked(line[:0])
		return emit(line)
	})
}

// unmarked makes a piece of lines with ids behind them.
func unmarked(marked []byte) (p piece, err error) {
	p.lines, p.entries = make([]byte, 0, len(marked)), make([]record.Entry, 0, bytes.Count(marked, newline))
	for line := range bytes.Lines(marked) {
		var e record.Entry
		if p.lines, err = e.Unmark(p.lines, line); err != nil {
			return p, err
		}
		p.entries = append(p.entries, e)
	}
	return p, nil
}
