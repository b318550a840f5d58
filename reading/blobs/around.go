package blobs

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"blobtail/internal/budget"
	"blobtail/record"
	"blobtail/storage/fanout"
)

// Neighbours are the records next to a place in the order of records. Their lines are copies.
type Neighbours struct {
	// Before and After are in order: the nearest is the last of Before, and the first of After.
	Before, After []record.Entry
	// Record is the first one at the place; nil: there is none. Others of its time and identity,
	// with other bytes, come after it.
	Record *record.Entry
	// More says that there are further records on that side, or may be.
	MoreBefore, MoreAfter bool

	of *budget.Budget
}

// Find returns the record with a time and an identity, of the services of a query; nil: there
// is none. The range and the limits of the query do not count. It reads the blocks of that
// time alone.
func (r *Reader) Find(ctx context.Context, q Query, at int64, id record.ID) (*record.Entry, Summary, error) {
	var found *record.Entry
	sum, err := r.instant(ctx, q, at, func(e *record.Entry) error {
		if e.ID != id {
			return nil
		}
		found = cloned(e)
		return errEnough
	})
	return found, sum, err
}

// Around returns the records next to a place: up to a number of them before and after it, in
// the services and the range of the query, that its filter accepts. The record at the place
// itself is returned whether the filter accepts it or not. There may be none: then the
// neighbours are still those of the place. The place of a record does not change when blobs
// are compacted.
//
// Three reads work at once. Each has all of [Query.MaxRaw].
func (r *Reader) Around(ctx context.Context, q Query, at int64, id record.ID, before, after int) (*Neighbours, Summary, error) {
	match, err := q.Filter.Matcher(budget.Of(ctx))
	if err != nil {
		return nil, Summary{}, err
	}
	n := &Neighbours{of: budget.Of(ctx)}
	q = r.Together(q)
	q.Limit, q.First, q.Reverse = 0, 0, false
	place := record.Entry{Time: at, ID: id}
	var older, newer []record.Entry
	var sums [3]Summary
	parts := []func(ctx context.Context) error{
		func(ctx context.Context) (err error) {
			sums[0], err = r.instant(ctx, q, at, func(e *record.Entry) error { return n.take(e, &place, match, q.Range, before, after) })
			return err
		},
		func(ctx context.Context) (err error) {
			older, sums[1], err = n.older(ctx, r, q, at, before+1)
			return err
		},
		func(ctx context.Context) (err error) {
			newer, sums[2], err = n.newer(ctx, r, q, at, after+1)
			return err
		},
	}
	err = fanout.Each(ctx, len(parts), 0, func(ctx context.Context, i int) error { return parts[i](ctx) })
	n.Before, n.MoreBefore = lastOf(append(older, n.Before...), before)
	n.After = append(n.After, newer...)
	if n.MoreAfter = n.MoreAfter || len(n.After) > after; n.MoreAfter {
		n.After = n.After[:after]
	}
	sum := sums[0]
	for i := range sums[1:] {
		sum.Join(&sums[1+i])
	}
	match.tellUnjudged(&sum)
	sum.Records = int64(len(n.Before) + len(n.After))
	return n, sum, err
}

// errEnough ends a read once its caller needs no more.
var errEnough = errors.New("the read has what it needs")

// instant visits the records of one ns, in order, without the filter. errEnough of visit ends it.
func (r *Reader) instant(ctx context.Context, q Query, at int64, visit func(e *record.Entry) error) (Summary, error) {
	if at == Newest {
		return Summary{}, badQuery("no record has the time %d", at)
	}
	q.Range, q.Filter = Range{at, at + 1}, Filter{}
	q.Limit, q.First, q.Reverse, q.Scout = 0, 0, false, nil
	p, err := r.Plan(ctx, q)
	if err != nil {
		return Summary{}, err
	}
	sum, err := p.Entries(ctx, visit)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return sum, err
}

// take sorts a record of the ns of the place into the neighbours. The records come in order.
func (n *Neighbours) take(e, place *record.Entry, match *Matcher, rng Range, before, after int) error {
	order := e.Compare(place)
	switch {
	case order == 0 && n.Record == nil:
		n.Record = cloned(e)
		return n.of.Take(int64(len(e.Line)))
	case !rng.covers(e.Time, e.Time) || !match.Line(e.Line):
		return nil
	case order < 0:
		if err := n.keep(&n.Before, e); err != nil {
			return err
		}
		if len(n.Before) > 2*before+100 {
			last := slices.Clone(n.Before[len(n.Before)-before-1:])
			for i := range n.Before[:len(n.Before)-len(last)] {
				n.of.Give(entrySize + int64(len(n.Before[i].Line)))
			}
			n.Before = last
		}
		return nil
	case len(n.After) >= after:
		n.MoreAfter = true
		return errEnough
	}
	return n.keep(&n.After, e)
}

// keep keeps a copy of a record, which it takes from the budget.
func (n *Neighbours) keep(in *[]record.Entry, e *record.Entry) error {
	if err := n.of.Take(entrySize + int64(len(e.Line))); err != nil {
		return err
	}
	*in = append(*in, *cloned(e))
	return nil
}

// older returns the newest records before a time.
func (n *Neighbours) older(ctx context.Context, r *Reader, q Query, at int64, most int) (out []record.Entry, sum Summary, err error) {
	q.Range.To, q.Limit, q.Reverse = min(q.Range.To, at), most, true // they wait nowhere else
	if q.Range.From >= q.Range.To {
		return nil, Summary{}, nil
	}
	sum, err = r.NewestEntries(ctx, q, func(e *record.Entry) error { return n.keep(&out, e) })
	slices.Reverse(out)
	return out, sum, err
}

// newer returns the oldest records after a time.
func (n *Neighbours) newer(ctx context.Context, r *Reader, q Query, at int64, most int) (out []record.Entry, sum Summary, err error) {
	q.Range.From, q.First = max(q.Range.From, at+1), most
	sum, err = r.oldest(ctx, q, func(p *Plan) (Summary, error) {
		return p.Entries(ctx, func(e *record.Entry) error { return n.keep(&out, e) })
	})
	return out, sum, err
}

func lastOf(entries []record.Entry, most int) (last []record.Entry, more bool) {
	if len(entries) <= most {
		return entries, false
	}
	return entries[len(entries)-most:], true
}

func cloned(e *record.Entry) *record.Entry {
	return &record.Entry{Time: e.Time, ID: e.ID, Line: bytes.Clone(e.Line)}
}
