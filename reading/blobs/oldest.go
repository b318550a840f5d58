package blobs

import (
	"context"
	"time"

	"blobtail/record"
)

// Oldest emits the oldest [Query.First] records of a query, like Plan and Read, but without listing
// all newer blobs: it is for a range whose records are mostly near its begin.
func (r *Reader) Oldest(ctx context.Context, q Query, emit func(lines []byte) error) (Summary, error) {
	return r.oldest(ctx, q, func(p *Plan) (Summary, error) { return p.Read(ctx, emit) })
}

// OldestEntries is Oldest with the identity of each record.
func (r *Reader) OldestEntries(ctx context.Context, q Query, visit func(*record.Entry) error) (Summary, error) {
	return r.oldest(ctx, q, func(p *Plan) (Summary, error) { return p.Entries(ctx, visit) })
}

// oldest lists and reads the hour in which the range begins first, and then spans of twice the length,
// until it has as many records as the query wants. They may not be wanted in reverse.
func (r *Reader) oldest(ctx context.Context, q Query, read func(p *Plan) (Summary, error)) (sum Summary, err error) {
	q = r.Together(q)
	rng, most, raw, width := q.Range, q.First, q.MaxRaw, time.Hour
	for from := rng.From; from < rng.To; width = min(2*width, 1<<20*time.Hour) {
		to := record.ClampTime(hour(from).Add(width))
		if to <= from || to >= rng.To || time.Unix(0, from).After(r.opt.Now()) {
			to = rng.To
		}
		q.Range, q.First, q.Scout = Range{from, to}, most-int(sum.Records), nil
		if raw > 0 { // of all spans together
			q.MaxRaw = max(1, raw-sum.Decoded)
		}
		p, err := r.Plan(ctx, q)
		if err != nil {
			return sum, err
		}
		part, err := read(p)
		sum.Join(&part)
		if err != nil {
			return sum, err
		}
		if sum.Records >= int64(most) {
			sum.More = sum.More || to < rng.To
			return sum, nil
		}
		from = to
	}
	return sum, nil
}
