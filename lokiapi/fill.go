package lokiapi

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"

	"blobtail/internal/fanout"
	"blobtail/logql/metric"
	"blobtail/logql/stage"
	"blobtail/query"
	"blobtail/record"
)

const (
	// manyBuckets is how many buckets of a range are counted at most. Beyond that a scan is as
	// good.
	manyBuckets = 100_000
	// counters is how many services are counted at once.
	counters = 8
)

// fill gives a query with numbers the samples of one of its aggregations.
func (c *call) fill(r *metric.Request) (query.Summary, error) {
	sampler, err := c.view().Sampler(&r.Agg.Range, r.Wanted())
	if err != nil {
		return query.Summary{}, c.refusedQuery(err)
	}
	ch, err := c.choose(r.Agg.Range.Log, query.Range{From: r.From, To: r.To})
	if err != nil {
		return query.Summary{}, err
	}
	f := filling{c: c, r: r, sampler: sampler, chosen: ch}
	if by, ok := r.Index(); ok && sampler.Selection().All && !c.api.o.Scan && (r.To-r.From)/int64(by) <= manyBuckets {
		return f.count(by)
	}
	return f.scan()
}

// A filling is the work for one aggregation.
type filling struct {
	c       *call
	r       *metric.Request
	sampler *stage.Sampler
	chosen  *chosen
}

// count takes the numbers of records from indexes.
func (f *filling) count(by time.Duration) (query.Summary, error) {
	return f.c.ask(f.chosen.query, func(blobs *query.Reader, q query.Query) (query.Summary, error) {
		parts := f.parts(q.Services)
		counted := make([][]query.Bucket, len(parts))
		var mu sync.Mutex
		var all query.Summary
		errs := fanout.All(len(parts), counters, func(i int) error {
			buckets, sum, err := f.c.histogram(blobs, q, parts[i], by)
			counted[i] = buckets
			mu.Lock()
			defer mu.Unlock()
			all.Join(&sum)
			return err
		})
		if err := cmp.Or(errs...); err != nil {
			return all, err
		}
		for i, part := range parts {
			for _, b := range counted[i] {
				if err := f.addBucket(part[0], &b); err != nil {
					return all, err
				}
			}
		}
		return all, nil
	})
}

// parts are the services that are counted apart: each, if series differ by it, else all at once.
func (f *filling) parts(services []string) [][]string {
	if len(services) == 0 {
		return nil
	}
	first := f.sampler.Series(services[0], record.Info).Key
	for _, s := range services[1:] {
		if f.sampler.Series(s, record.Info).Key != first {
			return slices.Collect(slices.Chunk(services, 1))
		}
	}
	return [][]string{services}
}

func (f *filling) addBucket(service string, b *query.Bucket) error {
	for l, n := range b.Levels {
		if n == 0 {
			continue
		}
		s := f.sampler.Series(service, record.Level(l))
		if err := f.r.AddCount(b.Start, n, s.Key, s.Labels); err != nil {
			return err
		}
	}
	return nil
}

// scan takes samples from records.
func (f *filling) scan() (query.Summary, error) {
	return f.c.read(f.chosen, byPlan, func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			if err := f.c.budget().Err(); err != nil {
				return err
			}
			ns, ok := record.LineTime(line)
			if !ok || !f.r.Wants(ns) {
				continue
			}
			v, s, ok, err := f.sampler.Sample(line)
			if err != nil {
				return refused("%v", err)
			}
			if !ok {
				continue
			}
			if err := f.r.Add(ns, v, s.Key, s.Labels); err != nil {
				return err
			}
		}
		return nil
	})
}
