package query

import (
	"context"
	"errors"
	"slices"
	"time"

	"blobtail/catalog"
	"blobtail/record"
)

// firstWindow limits how long the first window is made because of unflushed records:
// listing a busy service can take long.
const firstWindow = 24 * time.Hour

// windows reads the newest records hour by hour from the newest back, and lists no
// more than it reads. A record lies within the UTC hour of its period. So windows
// that end at hours share neither a record nor its copy.
type windows struct {
	*asked
	// walks find the periods of each service. hours are the hours that they came to,
	// once they were asked (zero: no more): a service has no unread records after its
	// hour, and is not listed there.
	walks []*catalog.Walk
	hours []time.Time
	sum   Summary
	out   *sink
}

// Newest emits the newest records of a query with a limit, like Plan and Read, but
// without listing all older blobs. It finds the newest hour with a blob, reads it, and
// goes on from there in windows of twice the length until it has enough records. If
// unflushed records reach the limit, it lists only the blobs from their hour on.
// Without a limit it is Plan and Read.
func (r *Reader) Newest(ctx context.Context, q Query, emit func(lines []byte) error) (Summary, error) {
	return r.newest(ctx, q, sink{emit: emit})
}

// NewestEntries is Newest with the identity of each record.
func (r *Reader) NewestEntries(ctx context.Context, q Query, visit func(*record.Entry) error) (Summary, error) {
	return r.newest(ctx, q, sink{visit: visit})
}

func (r *Reader) newest(ctx context.Context, q Query, to sink) (Summary, error) {
	if q.Limit <= 0 {
		p, err := r.Plan(ctx, q)
		if err != nil {
			return Summary{}, err
		}
		return p.read(ctx, to)
	}
	a, err := r.prepare(ctx, q)
	if err != nil {
		return Summary{}, err
	}
	to.reverse, to.hold = q.Reverse, !q.Reverse
	w := &windows{asked: a, out: &to}
	for _, service := range a.services {
		w.walks = append(w.walks, a.view.Walk(service))
	}
	if err = w.read(ctx); err == nil {
		err = to.flush()
	}
	w.sum.Bytes = to.bytes
	w.tellFound(&w.sum)
	w.tellExpired(&w.sum)
	return w.sum, err
}

// read reads window after window until there are enough.
func (w *windows) read(ctx context.Context) error {
	rng := w.query.Range
	from, ok, err := w.start(ctx)
	if err != nil {
		return err
	}
	if !ok {
		from = rng.From // hours without a period may have foreign objects
	}
	to := rng.To
	for width := time.Hour; ; {
		if err := w.window(ctx, Range{max(from, rng.From), to}); err != nil {
			return err
		}
		full := w.sum.Records >= int64(w.query.Limit)
		if from <= rng.From || full && w.sum.More || slices.ContainsFunc(w.sum.Problems, isOld) {
			break
		}
		to = from
		newest, ok, err := w.before(ctx, to)
		if err != nil {
			return err
		}
		if !ok || newest.Add(time.Hour).Compare(time.Unix(0, rng.From)) <= 0 {
			if full {
				break
			}
			// The missing records may have expired meanwhile.
			if err := w.confirmed(ctx, &w.sum, func(context.Context) error { return nil }); err != nil {
				return err
			}
			break
		}
		if full {
			w.sum.More = true
			break
		}
		width = min(2*width, 1<<20*time.Hour)
		from = record.ClampTime(newest.Add(time.Hour - width))
	}
	return w.none(ctx)
}

// hour is the start of the UTC hour of t.
func hour(t int64) time.Time { return time.Unix(0, t).UTC().Truncate(time.Hour) }

// start returns the beginning of the first window, which has no end.
func (w *windows) start(ctx context.Context) (from int64, ok bool, err error) {
	n, newest, oldest, err := w.newestBodies(ctx)
	if err != nil {
		return 0, false, err
	}
	if n == 0 {
		t, ok, err := w.before(ctx, w.query.Range.To)
		return record.ClampTime(t), ok, err
	}
	start := hour(newest)
	if n == w.query.Limit {
		start = hour(oldest)
		if most := hour(newest).Add(-firstWindow); start.Before(most) {
			start = most
		}
	}
	return record.ClampTime(start), true, nil
}

// newestBodies finds the newest unflushed records: how many there are, up to the
// limit, and the times of the newest and the oldest of them.
func (a *asked) newestBodies(ctx context.Context) (n int, newest, oldest int64, err error) {
	if len(a.bodies) == 0 {
		return 0, 0, 0, nil
	}
	var sum Summary
	newest, oldest = Oldest, Newest
	err = a.pass(ctx, task{a.unflushed(a.query.Range), a.query.Range, true, a.query.Limit}, &sum, func(got piece) error {
		for _, line := range [][]byte{got.lines, lastLine(got.lines)} {
			t, ok := record.LineTime(line)
			if !ok {
				return errLine
			}
			newest, oldest = max(newest, t), min(oldest, t)
		}
		return nil
	})
	return int(sum.Records), newest, oldest, err
}

// before returns the hour of the newest period, or unflushed record, that begins
// before to, over all services.
func (w *windows) before(ctx context.Context, to int64) (newest time.Time, ok bool, err error) {
	starts := make([]time.Time, len(w.walks)) // zero: no period
	errs := make([]error, len(w.walks))
	end := time.Unix(0, to)
	each(len(w.walks), func(i int) {
		start, found, err := w.walks[i].Before(ctx, end)
		if found {
			starts[i] = start.Truncate(time.Hour)
		}
		w.found[i].any = w.found[i].any || w.walks[i].Seen
		errs[i] = err
	})
	for i := range starts {
		if err := errs[i]; err != nil && !w.absent(err) {
			return time.Time{}, false, err
		}
		if !starts[i].IsZero() && (!ok || starts[i].After(newest)) {
			newest, ok = starts[i], true
		}
	}
	if ok || w.hours != nil { // otherwise there may be foreign objects
		w.hours = starts
	}
	for _, b := range w.unflushed(Range{Oldest, to}) {
		if start := hour(min(b.Meta.Last, to-1)); !ok || start.After(newest) { // it may have a day
			newest, ok = start, true
		}
	}
	return newest, ok, nil
}

// window reads a range, up to the rest of the limit.
func (w *windows) window(ctx context.Context, rng Range) error {
	p := &Plan{asked: w.asked, rng: rng, listed: w.sum}
	err := p.list(ctx, func(i int) bool {
		return w.hours == nil || !w.hours[i].IsZero() && record.ClampTime(w.hours[i].Add(time.Hour)) > rng.From
	})
	w.sum = p.listed
	if err != nil {
		return err
	}
	return w.confirmed(ctx, &w.sum, func(ctx context.Context) error {
		return w.pass(ctx, task{p.blobs, rng, true, w.query.Limit}, &w.sum, w.out.take)
	})
}

// isOld reports whether a read was too old to go on.
func isOld(err error) bool { return errors.Is(err, errOld) }
