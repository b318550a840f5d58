package main

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/when"
	"blobtail/query"
	"blobtail/record"
)

const (
	// mostBuckets keeps a mistake such as --by 1ms over a year from filling the memory.
	mostBuckets = 1_000_000
	// chosenBuckets is the maximum number of buckets unless --by is given.
	chosenBuckets = 60
	// mostEmpty is how many empty buckets in a row people get line by line.
	mostEmpty = 10
)

type histCmd struct {
	Services    []string `arg:"" name:"service" help:"Services, or globs such as 'web-*' and '*'."`
	By          string   `help:"Length of a bucket; the default suits the range. Days and weeks are those of the zone." placeholder:"D"`
	rangeFlags  `group:"Time"`
	filterFlags `group:"Filters"`
	Output      string      `short:"o" help:"pretty, json (the default into a pipe) or csv." placeholder:"FORM"`
	Stats       bool        `help:"Say on stderr what the read took."`
	Live        string      `help:"auto, off or only: records that are in no blob yet (auto)." placeholder:"WHEN"`
	MaxBytes    config.Size `help:"Most bytes to read from a remote store without a range, where indexes do not tell." default:"10GiB" placeholder:"SIZE"`
}

func (c *histCmd) run(ctx context.Context, a *app) (int, error) {
	q, err := a.query(c.Services, c.rangeFlags, c.filterFlags)
	if err != nil {
		return 0, err
	}
	var by time.Duration
	if c.By != "" {
		by, err = config.ParseDuration(c.By)
		if length, ok := when.Length(c.By); ok && err != nil {
			by = length // 5 minutes, as --since has it too
		} else if err != nil {
			return 0, cli.Usagef("--by: %w", err)
		}
		if by <= 0 {
			return 0, cli.Usagef("--by %s: it must be longer than nothing, such as 1m", c.By)
		}
	}
	form, err := a.form(c.Output, "pretty", "json", "csv")
	if err != nil {
		return 0, err
	}
	w := whole{
		query: q, live: c.Live, stats: c.Stats, most: &c.MaxBytes,
		print: func(from view, q query.Query) (query.Summary, error) {
			return c.print(ctx, a, from, q, by, form)
		},
	}
	return w.run(ctx, a)
}

func (c *histCmd) print(ctx context.Context, a *app, from view, q query.Query, by time.Duration, form string) (query.Summary, error) {
	cut := query.Buckets{Length: by, Zone: a.now.Location()}
	buckets, sum, err := from.histogram(ctx, q, by, func(first, last int64, any bool) (query.Buckets, error) {
		switch {
		case by == 0 && any:
			cut.Length = bucketFor(c.span(a, q.Range, first, last))
		case by == 0:
			cut.Length = time.Minute // an empty result
		case any && (float64(last)-float64(first))/float64(by) > mostBuckets:
			return cut, cli.Usagef("--by %s makes more than %s buckets of %s to %s; give a longer one, or --from and --to",
				c.By, cli.Thousands(mostBuckets), a.showTime(first), a.showTime(last))
		}
		return cut, nil
	})
	if err != nil || len(buckets) == 0 {
		return sum, err
	}
	line := a.histogram(form, cut.Length, buckets)
	var buf []byte
	most := chosenBuckets // programs get no fewer lines than they may expect without --by
	if form == "pretty" {
		most = mostEmpty
	}
	for b, empty := range filled(buckets, cut, most) {
		if empty > 0 {
			if form != "pretty" {
				continue
			}
			buf = fmt.Appendf(buf[:0], "... %s empty\n", cli.Thousands(empty))
		} else {
			buf = append(line(buf[:0], &b), '\n')
		}
		if _, err := a.out.Write(buf); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// span is the time that the default buckets divide: the range if it has both ends, or the
// span of the records.
func (c *histCmd) span(a *app, rng query.Range, first, last int64) time.Duration {
	from, to := rng.From, rng.To
	if from == query.Oldest {
		from = first
	}
	if to == query.Newest {
		to = last
		if c.Since != "" {
			to = max(last, a.now.UnixNano())
		}
	}
	if float64(to)-float64(from) >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(to - from)
}

// bucketFor returns a common unit of time that divides a span into about 30 to 60.
func bucketFor(span time.Duration) time.Duration {
	const day = 24 * time.Hour
	lengths := []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
		day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day, 365 * day,
	}
	for _, by := range lengths {
		if span <= chosenBuckets*by {
			return by
		}
	}
	return 10 * 365 * day
}

// filled returns the buckets with the empty ones between them. Of a stretch of more than
// most empty ones it returns only their number.
func filled(buckets []query.Bucket, by query.Buckets, most int) iter.Seq2[query.Bucket, int] {
	return func(yield func(b query.Bucket, empty int) bool) {
		for i, b := range buckets {
			var between []query.Bucket
			if i > 0 {
				for at := by.Next(buckets[i-1].Start); at < b.Start && len(between) <= most; at = by.Next(at) {
					between = append(between, query.Bucket{Start: at})
				}
			}
			if len(between) > most {
				empty := int((float64(b.Start)-float64(buckets[i-1].Start))/float64(by.Length)+0.5) - 1
				if !yield(query.Bucket{}, empty) {
					return
				}
				between = nil
			}
			for _, e := range between {
				if !yield(e, 0) {
					return
				}
			}
			if !yield(b, 0) {
				return
			}
		}
	}
}

func total(b *query.Bucket) int64 {
	n := int64(0)
	for _, count := range b.Levels {
		n += count
	}
	return n
}

// histogram returns a function that appends a bucket in a form.
func (a *app) histogram(form string, by time.Duration, all []query.Bucket) func(dst []byte, b *query.Bucket) []byte {
	switch form {
	case "pretty":
		return a.bars(by, all).append
	case "csv":
		fmt.Fprint(a.out, "ts,total")
		for l := range record.Level(record.NumLevels) {
			fmt.Fprintf(a.out, ",%s", l)
		}
		fmt.Fprintln(a.out)
		return func(dst []byte, b *query.Bucket) []byte {
			dst = fmt.Appendf(dst, "%s,%d", rfc3339(b.Start), total(b))
			for _, n := range b.Levels {
				dst = fmt.Appendf(dst, ",%d", n)
			}
			return dst
		}
	}
	return func(dst []byte, b *query.Bucket) []byte {
		dst = fmt.Appendf(dst, `{"ts":"%s","total":%d,"levels":{`, rfc3339(b.Start), total(b))
		comma := ""
		for l, n := range b.Levels {
			if n > 0 {
				dst = fmt.Appendf(dst, `%s"%s":%d`, comma, record.Level(l), n)
				comma = ","
			}
		}
		return append(dst, "}}"...)
	}
}
