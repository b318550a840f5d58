package readapi

import (
	"maps"
	"math"
	"slices"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/units"
	"blobtail/internal/when"
	"blobtail/query"
	"blobtail/readapi/form"
	"blobtail/record"
)

func (c *call) count() error {
	q, mode, err := c.query()
	if err != nil {
		return err
	}
	n := int64(0)
	result, err := c.run(q, mode, func(blobs *query.Reader, q query.Query) (query.Summary, error) {
		plan, err := blobs.Plan(c.r.Context(), q)
		if err != nil {
			return query.Summary{}, err
		}
		var sum query.Summary
		n, sum, err = plan.Count(c.r.Context())
		return sum, err
	})
	if err != nil {
		return err
	}
	return c.json(form.Count{
		Records: n, Unflushed: result.Unflushed, Outcome: outcome(result, &q.Filter), Examined: result.Examined, Higher: result.Higher,
	})
}

const (
	// mostBuckets keeps a mistake such as by=1ms over a year from filling the memory.
	mostBuckets = 100_000
	// countBytes is the memory of one number of a bucket, and of its text in the answer.
	countBytes = 150
	// chosenBuckets is the maximum number of buckets unless by or buckets is given.
	chosenBuckets = 120
)

// histogramming is a histogram as it is made.
type histogramming struct {
	*call
	query   query.Query
	by      time.Duration // 0: it depends on the records
	buckets int
	split   string

	cut    query.Buckets
	spans  [2]string                  // the times of the first and the last record
	counts map[int64]map[string]int64 // by the start of the bucket
}

func (c *call) histogram() error {
	q, mode, err := c.query()
	if err != nil {
		return err
	}
	h := &histogramming{call: c, query: q, counts: map[int64]map[string]int64{}}
	if h.by, err = c.by(); err != nil {
		return err
	}
	if h.buckets, err = c.params.number("buckets", chosenBuckets, 1, mostBuckets); err != nil {
		return err
	}
	if h.by > 0 && c.params.get("buckets") != "" {
		return badRequest("by and buckets contradict each other; leave one out")
	}
	if h.split, err = c.params.word("split", "level", "service"); err != nil {
		return err
	}
	h.cut = query.Buckets{Length: max(h.by, time.Minute), Zone: c.now.Location()} // of an empty result
	result, err := c.run(q, mode, h.read)
	if err != nil {
		return err
	}
	return c.json(form.Histogram{
		By: units.Duration(h.cut.Length).String(), Timezone: c.zone(), Split: h.split, First: h.spans[0], Last: h.spans[1], Buckets: h.list(),
		Outcome: outcome(result, &q.Filter), Examined: result.Examined, Higher: result.Higher,
	})
}

// by reads the length of a bucket, 0 if it is not given.
func (c *call) by() (time.Duration, error) {
	text := c.params.get("by")
	if text == "" {
		return 0, nil
	}
	by, err := units.ParseDuration(text)
	if length, ok := when.Length(text); ok && err != nil {
		by = length // 5 minutes
	} else if err != nil {
		return 0, badRequest("by: %w", err)
	}
	if by <= 0 {
		return 0, badRequest("by=%s: it must be longer than nothing, such as 1m", text)
	}
	return by, nil
}

// zone is the name of the zone of the request.
func (c *call) zone() string {
	if name := c.now.Location().String(); name != "" && name[0] != '+' && name[0] != '-' {
		return name
	}
	return c.now.Format("-07:00")
}

// read counts the records of a completed query.
func (h *histogramming) read(blobs *query.Reader, q query.Query) (query.Summary, error) {
	ctx := h.r.Context()
	plan, err := blobs.Plan(ctx, q)
	if err != nil {
		return query.Summary{}, err
	}
	if err := h.choose(plan); err != nil {
		return query.Summary{}, err
	}
	if h.split == "level" {
		return h.add(plan, "")
	}
	_, sum := plan.Keys()
	names := q.Services
	q.Sure = true // the plan of all tells which are none
	for _, service := range names {
		q.Services = []string{service}
		plan, err := blobs.Plan(ctx, q)
		if err != nil {
			return sum, err
		}
		one, err := h.add(plan, service)
		sum.Join(&one)
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// choose chooses the length of the buckets.
func (h *histogramming) choose(plan *query.Plan) error {
	first, last, any := plan.Span()
	if any {
		h.spans = [2]string{stamp(first), stamp(last)}
	}
	h.cut.Length = h.by
	switch {
	case h.by == 0 && any:
		h.cut.Length = bucketFor(h.stretch(first, last), h.buckets)
	case h.by == 0:
		h.cut.Length = time.Minute
	case any && (float64(last)-float64(first))/float64(h.by) > mostBuckets:
		return badRequest("by=%s makes more than %d buckets of %s to %s; give a longer one, or from and to",
			units.Duration(h.by), mostBuckets, stamp(first), stamp(last))
	}
	return nil
}

// stretch is the time that the buckets divide: the range if it has both ends, or the span
// of the records.
func (h *histogramming) stretch(first, last int64) time.Duration {
	from, to := h.query.Range.From, h.query.Range.To
	if from == query.Oldest {
		from = first
	}
	if to == query.Newest {
		to = last
		if h.params.get("since") != "" {
			to = max(last, h.now.UnixNano())
		}
	}
	if float64(to)-float64(from) >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(to - from)
}

// bucketFor returns a common unit of time that divides a span into at most so many buckets.
func bucketFor(span time.Duration, buckets int) time.Duration {
	const day = 24 * time.Hour
	lengths := []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
		day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day, 365 * day,
	}
	for _, by := range lengths {
		if float64(span) <= float64(buckets)*float64(by) {
			return by
		}
	}
	return 10 * 365 * day
}

// add counts the records of a plan: by level, or all of them as those of a service.
func (h *histogramming) add(plan *query.Plan, service string) (query.Summary, error) {
	buckets, sum, err := plan.Histogram(h.r.Context(), h.cut)
	if err != nil {
		return sum, err
	}
	added := 0
	for i := range buckets {
		to := h.counts[buckets[i].Start]
		if to == nil {
			to = map[string]int64{}
			h.counts[buckets[i].Start] = to
		}
		for level, n := range buckets[i].Levels {
			key := service
			if key == "" {
				key = record.Level(level).String()
			}
			if n == 0 {
				continue
			}
			before := len(to)
			to[key] += n
			added += len(to) - before
		}
	}
	if err := budget.Of(h.r.Context()).Take(countBytes * int64(added)); err != nil {
		return sum, err
	}
	if len(h.counts) > mostBuckets {
		return sum, badRequest("the records have more than %d buckets; give a longer one by by=, or from and to", mostBuckets)
	}
	return sum, nil
}

// list lists the buckets in order.
func (h *histogramming) list() []form.Bucket {
	out := make([]form.Bucket, 0, len(h.counts))
	for _, start := range slices.Sorted(maps.Keys(h.counts)) {
		b := form.Bucket{Time: stamp(start), Counts: h.counts[start]}
		for _, n := range b.Counts {
			b.Total += n
		}
		out = append(out, b)
	}
	return out
}
