package blobs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"blobtail/catalog"
	"blobtail/catalog/horizon"
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
// without listing all older blobs. It guesses the newest hour with a blob, reads from there
// on, and goes back in windows of twice the length until it has enough records. If
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
	a, err := r.prepare(ctx, q, nil)
	if err != nil {
		return Summary{}, err
	}
	defer a.vouched.wait()
	if to.reverse = q.Reverse; !q.Reverse {
		to.hold(ctx, &q)
		defer to.held.close()
	}
	a.days = make([]map[horizon.Day]*collected, len(a.services))
	for i := range a.days {
		a.days[i] = map[horizon.Day]*collected{}
	}
	w := &windows{asked: a, out: &to, walks: walks(a.view, a.services)}
	if err = w.read(ctx); err == nil {
		err = to.flush()
	}
	w.sum.Bytes = to.bytes
	w.match.tellUnjudged(&w.sum)
	w.tellFound(&w.sum)
	w.tellExpired(&w.sum, func(string) bool { return w.sum.Records+w.sum.Examined > 0 })
	return w.sum, err
}

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
		if from <= rng.From || full && w.sum.More || errors.Is(errors.Join(w.sum.Problems...), errOld) {
			break
		}
		to = from
		newest, ok, err := w.before(ctx, to)
		if err != nil {
			return err
		}
		more := ok && newest.Add(time.Hour).After(time.Unix(0, rng.From))
		if full {
			w.sum.More = more
			break
		}
		if !more {
			w.back = rng.From // there is nothing on the way
			// The missing records may have expired meanwhile.
			if err := w.confirmed(ctx, &w.sum, func(context.Context) error { return nil }); err != nil {
				return err
			}
			break
		}
		width = min(2*width, 1<<20*time.Hour)
		from = record.ClampTime(newest.Add(time.Hour - width))
	}
	w.judge(ctx, &w.sum)
	if err := w.passed(ctx); err != nil {
		return err
	}
	if err := w.settle(ctx, &w.sum); err != nil {
		return err
	}
	return w.none(ctx, &w.sum)
}

// passed doubts the days of which a walk has passed hours that the account has, because nothing is left
// there, or all of it but the account.
func (w *windows) passed(ctx context.Context) error {
	rng := Range{max(w.back, w.query.Range.From), w.query.Range.To}
	// Of the day that a walk came to at last, no window may have listed the later hours.
	err := w.each(len(w.hours), func(i int) error {
		service, day := w.walks[i].Service, horizon.DayOf(w.hours[i])
		if at := record.ClampTime(w.hours[i]); w.hours[i].IsZero() || at >= w.back || day > w.reader.lastClosed() ||
			!rng.touches(at, startOf(day+1)-1) || w.days[i][day] != nil || w.view.Hides(service, day) {
			return nil
		}
		l, err := catalog.ListParts(ctx, w.reader.store, service, day)
		if err == nil && l.Part.Part.Number > 0 {
			w.days[i][day], w.met[i] = &collected{part: l.Part}, append(w.met[i], day)
		}
		return err
	})
	if err != nil {
		return err
	}
	for i, walk := range w.walks {
		doubtful := func(day horizon.Day, part int) {
			w.doubts = append(w.doubts, doubt{service: walk.Service, day: day, part: part})
		}
		for _, day := range walk.Bare() {
			if rng.touches(startOf(day), startOf(day+1)-1) && !w.view.Hides(walk.Service, day) {
				doubtful(day, 0) // its account may be gone by now, too: so it was not met
			}
		}
		for day, d := range w.days[i] {
			for h := 0; h < len(d.sums.Hours) && d.part.Part.Number > 0; h++ {
				start := startOf(day) + int64(h)*int64(time.Hour)
				if rng.touches(start, start+int64(time.Hour)-1) && !d.part.Accounts(d.sums, h, h+1) {
					doubtful(day, d.part.Part.Number)
					break
				}
			}
		}
	}
	return nil
}

// hour is the start of the UTC hour of t.
func hour(t int64) time.Time { return time.Unix(0, t).UTC().Truncate(time.Hour) }

// start returns the beginning of the first window, which has no end. It estimates the
// number of wanted unflushed records by their levels.
func (w *windows) start(ctx context.Context) (from int64, ok bool, err error) {
	bodies := w.unflushed(w.query.Range)
	if len(bodies) == 0 {
		if t := w.guess(ctx); !t.IsZero() {
			return record.ClampTime(t), true, nil
		}
		t, ok, err := w.before(ctx, w.query.Range.To)
		return record.ClampTime(t), ok, err
	}
	slices.SortFunc(bodies, func(a, b blob) int { return cmp.Compare(b.Meta.Last, a.Meta.Last) })
	newest := hour(min(bodies[0].Meta.Last, w.query.Range.last()))
	start := newest
	for n := int64(0); len(bodies) > 0; bodies = bodies[1:] {
		if n += wanted(w.match.levels, &bodies[0].Meta.Levels); n >= int64(w.query.Limit) {
			start = slices.MaxFunc([]time.Time{hour(bodies[0].Meta.First), newest.Add(-firstWindow)}, time.Time.Compare)
			break
		}
	}
	return record.ClampTime(start), true, nil
}

// guess guesses the hour of the newest records; zero: there is no guess.
func (w *windows) guess(ctx context.Context) time.Time {
	if s := w.query.Scout; s != nil {
		<-s.done
		return s.guess
	}
	return w.reader.recent(ctx, w.walks, w.query.Range.To)
}

// before returns the hour of the newest period, or unflushed record, that begins
// before to, over all services.
func (w *windows) before(ctx context.Context, to int64) (newest time.Time, ok bool, err error) {
	starts := make([]time.Time, len(w.walks)) // zero: no period
	err = w.each(len(w.walks), func(i int) error {
		start, found, err := w.walks[i].Before(ctx, time.Unix(0, to))
		if found {
			starts[i] = start.Truncate(time.Hour)
		}
		w.found[i].any = w.found[i].any || w.walks[i].Seen
		return err
	})
	if err != nil {
		return time.Time{}, false, err
	}
	for _, start := range starts {
		if !start.IsZero() && (!ok || start.After(newest)) {
			newest, ok = start, true
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
	if err == nil && w.out.reverse && w.query.Absent != nil && rng.To == w.query.Range.To { // its records are emitted at once
		err = w.none(ctx, new(Summary))
	}
	if err != nil {
		return err
	}
	return w.confirmed(ctx, &w.sum, func(ctx context.Context) error {
		return p.lines(ctx, task{p.blobs, rng, true, w.query.Limit}, &w.sum, w.out)
	})
}
