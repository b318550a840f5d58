package reading

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/units"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/storage/fanout"
)

const (
	// chosenBuckets is how many buckets a histogram has at most, unless it is asked for more.
	chosenBuckets = 60
	// slotBytes is the memory of a bucket of a histogram.
	slotBytes = 150
	// counters is how many services are counted at once.
	counters = 8
)

// BucketsError says that a length makes more buckets than [Slices.Bound], from First to Last.
type BucketsError struct {
	By          time.Duration
	Bound       int
	First, Last int64
}

// Error implements error.
func (e *BucketsError) Error() string {
	stamp := func(ns int64) string { return string(record.AppendTime(nil, ns)) }
	return fmt.Sprintf("%s makes more than %d buckets of %s to %s", units.Duration(e.By), e.Bound, stamp(e.First), stamp(e.Last))
}

// Histogram implements [Source].
func (s *Store) Histogram(ctx context.Context, a Ask, by Slices) (h *Histogram, out *Outcome, err error) {
	if err := a.compile(budget.Of(ctx)); err != nil {
		return &Histogram{}, &Outcome{}, err
	}
	h, a.byName = &Histogram{}, by.Apart != nil || slices.Contains(by.Split, "service")
	a.Limit, a.First, a.Reverse, a.Edges = 0, 0, false, blobs.Edges{}
	out, err = s.run(ctx, a, func(ctx context.Context, blobs *blobs.Reader, q blobs.Query) (sum blobs.Summary, err error) {
		services := named(&q)
		divided := len(services) > 0 && by.Apart != nil && by.Apart(services)
		if h.By = by.By; divided && h.By > 0 && by.Bound == 0 && q.Sure { // the listings of each suffice
			h.Buckets, sum, err = apart(ctx, blobs, q, services, Buckets{Length: h.By, Zone: by.Zone})
			return sum, err
		}
		plan, err := blobs.Plan(ctx, q)
		if err == nil {
			h.First, h.Last, h.Any = plan.Span()
			h.By, err = by.Length(a.Range, h.First, h.Last, h.Any)
		}
		if err == nil && a.Here.MaxStored > 0 && plan.Bytes() > a.Here.MaxStored && (q.Filter.ReadsLines() || h.By%time.Minute != 0 || len(by.Split) > 0 && !by.byIndex(&q)) {
			err = &MuchError{plan.Bytes(), a.Here.MaxStored}
		}
		if err != nil {
			return sum, err
		}
		switch {
		case len(by.Split) > 0 && by.byIndex(&q):
			return h.split(ctx, blobs, q, plan, &by)
		case len(by.Split) > 0, by.Apart == nil && (a.ReadsLines() || h.By%time.Minute != 0):
			return h.lines(ctx, s, &a, plan, &by)
		}
		if len(services) == 0 { // one has come since the services were listed
			services = plan.Services()
			divided = by.Apart != nil && len(services) > 0 && by.Apart(services)
		}
		cut := Buckets{Length: h.By, Zone: by.Zone}
		if divided {
			_, sum := plan.Keys() // which tells of services that there are none of
			slots, parts, err := apart(ctx, blobs, q, services, cut)
			h.Buckets = slots
			sum.Join(&parts)
			return sum, err
		}
		of := ""
		if by.Apart != nil && len(services) > 0 {
			of = services[0]
		}
		return h.count(ctx, plan, of, cut)
	})
	h.warn(&by, out)
	return h, out, err
}

// Length is the length of the buckets of a histogram, of records from first to last; any is false
// if there are none. An error is a [*BucketsError].
func (s *Slices) Length(rng Range, first, last int64, any bool) (time.Duration, error) {
	switch {
	case s.By == 0 && any:
		return bucketFor(s.stretch(rng, first, last), cmp.Or(s.Most, chosenBuckets)), nil
	case s.By == 0:
		return time.Minute, nil // of an empty result
	case s.Bound > 0 && any && (float64(last)-float64(first))/float64(s.By) > float64(s.Bound):
		return 0, &BucketsError{s.By, s.Bound, first, last}
	}
	return s.By, nil
}

// stretch is the time that the buckets divide: the range if it has both ends, or the span of the
// records, up to a time at least.
func (s *Slices) stretch(rng Range, first, last int64) time.Duration {
	from, to := rng.From, rng.To
	if from == Oldest {
		from = first
	}
	if to == Newest {
		if to = last; s.Until != 0 {
			to = max(to, s.Until)
		}
	}
	if float64(to)-float64(from) >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(to - from)
}

// bucketFor returns a common unit of time that divides a span into at most so many buckets.
func bucketFor(span time.Duration, most int) time.Duration {
	const day = 24 * time.Hour
	lengths := []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
		day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day, 365 * day,
	}
	for _, by := range lengths {
		if float64(span) <= float64(most)*float64(by) {
			return by
		}
	}
	return 10 * 365 * day
}

// count counts the records of a plan. Its buckets have the name of a service.
func (h *Histogram) count(ctx context.Context, plan *blobs.Plan, service string, cut Buckets) (blobs.Summary, error) {
	buckets, sum, err := plan.Histogram(ctx, cut)
	if err == nil {
		err = budget.Of(ctx).Take(slotBytes * int64(len(buckets)))
	}
	h.Buckets = make([]Slot, len(buckets))
	for i := range buckets {
		h.Buckets[i] = Slot{Bucket: buckets[i], Service: service}
	}
	return sum, err
}

// apart counts the records of each of some services of a query. Whether they exist is asked
// elsewhere.
func apart(ctx context.Context, reader *blobs.Reader, q blobs.Query, services []string, cut Buckets) (slots []Slot, sum blobs.Summary, err error) {
	counted, sums := make([][]Bucket, len(services)), make([]blobs.Summary, len(services))
	q.Sure = true
	err = fanout.Each(ctx, len(services), counters, func(ctx context.Context, i int) error {
		of := q
		of.Services = []string{services[i]}
		plan, err := reader.Plan(ctx, of)
		if err == nil {
			counted[i], sums[i], err = plan.Histogram(ctx, cut)
		}
		if err == nil {
			err = budget.Of(ctx).Take(slotBytes * int64(len(counted[i])))
		}
		return err
	})
	for i := range sums {
		sum.Join(&sums[i])
	}
	if err != nil {
		return nil, sum, err
	}
	return inOrder(services, counted), sum, nil
}

// inOrder puts the buckets of services, each in order, into one list by time and service.
func inOrder(services []string, counted [][]Bucket) []Slot {
	n := 0
	for _, buckets := range counted {
		n += len(buckets)
	}
	slots := make([]Slot, 0, n)
	for len(slots) < n {
		next := int64(math.MaxInt64)
		for _, buckets := range counted {
			if len(buckets) > 0 {
				next = min(next, buckets[0].Start)
			}
		}
		for i, buckets := range counted {
			if len(buckets) > 0 && buckets[0].Start == next {
				slots = append(slots, Slot{Bucket: buckets[0], Service: services[i]})
				counted[i] = buckets[1:]
			}
		}
	}
	return slots
}

// Volumes sums up the records of each service of a question that has any, in order, by metadata
// alone. Of the filter levels count, and neither do limits.
func (s *Store) Volumes(ctx context.Context, a Ask) (all []Volume, out *Outcome, err error) {
	a.Limit, a.First, a.Edges = 0, 0, blobs.Edges{}
	a.byName = true
	out, err = s.run(ctx, a, func(ctx context.Context, reader *blobs.Reader, q blobs.Query) (sum blobs.Summary, err error) {
		q.Filter = blobs.Filter{Levels: q.Filter.Levels}
		all, sum, err = reader.Volume(ctx, q)
		return sum, err
	})
	return all, out, err
}
