package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/when"
	"blobtail/reading"
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
	Services []string `arg:"" name:"service" help:"Services, or globs such as 'web-*' and '*'."`
	By       string   `help:"Length of a bucket; the default suits the range. Days and weeks are those of the zone." placeholder:"D"`
	splitFlags
	rangeFlags  `group:"Time"`
	filterFlags `group:"Filters"`
	Output      string      `short:"o" help:"pretty, json (the default into a pipe) or csv." placeholder:"FORM"`
	Stats       bool        `help:"Say on stderr what the read took."`
	Live        string      `help:"auto, off or only: records that are in no blob yet (auto)." placeholder:"WHEN"`
	MaxBytes    config.Size `help:"Most bytes to read from a remote store without a range, where indexes do not tell." default:"10GiB" placeholder:"SIZE"`
}

func (c *histCmd) run(ctx context.Context, a *app) (int, error) {
	ask, err := a.ask(c.Services, c.rangeFlags, c.filterFlags)
	if err != nil {
		return 0, err
	}
	var by time.Duration
	if c.By != "" {
		by, err = config.ParseDuration(c.By)
		if length, ok := when.Length(c.By); ok && err != nil {
			by = length // 5 minutes, as --since has it too
		} else if err != nil && !strings.ContainsAny(c.By, "0123456789") {
			return 0, cli.Usagef("--by is the length of a bucket, such as 5m; to divide buckets by a field: --by-field %s", cli.ShellWords(c.By))
		} else if err != nil {
			return 0, cli.Usagef("--by: %w", err)
		}
		if by <= 0 {
			return 0, cli.Usagef("--by %s: it must be longer than nothing, such as 1m", c.By)
		}
	}
	cut := reading.Slices{By: by, Most: chosenBuckets, Bound: mostBuckets, Zone: a.now.Location()}
	if c.Since != "" {
		cut.Until = a.now.UnixNano()
	}
	if err := c.set(&cut); err != nil {
		return 0, err
	}
	form, err := a.form(c.Output, "pretty", "json", "csv")
	if err != nil {
		return 0, err
	}
	w := whole{
		ask: ask, live: c.Live, stats: c.Stats, most: &c.MaxBytes,
		read: func(from reading.Source, ask reading.Ask) (*reading.Outcome, error) {
			return c.print(ctx, a, from, ask, cut, form)
		},
	}
	return w.run(ctx, a)
}

func (c *histCmd) print(ctx context.Context, a *app, from reading.Source, ask reading.Ask, slices reading.Slices, form string) (*reading.Outcome, error) {
	h, out, err := from.Histogram(ctx, ask, slices)
	if many, ok := errors.AsType[*reading.BucketsError](err); ok {
		err = cli.Usagef("--by %s makes more than %s buckets of %s to %s; give a longer one, or --from and --to",
			c.By, cli.Thousands(mostBuckets), a.showTime(many.First), a.showTime(many.Last))
	}
	if err != nil || len(h.Buckets) == 0 {
		return out, err
	}
	cut := reading.Buckets{Length: h.By, Zone: slices.Zone}
	line := a.histogram(form, h)
	var buf []byte
	most := chosenBuckets // programs get no fewer lines than they may expect without --by
	if form == "pretty" {
		most = mostEmpty
	}
	for b, empty := range filled(h.Buckets, cut, most) {
		if empty > 0 {
			if form != "pretty" {
				continue
			}
			buf = fmt.Appendf(buf[:0], "... %s empty\n", cli.Thousands(empty))
		} else {
			buf = append(line(buf[:0], &b), '\n')
		}
		if _, err := a.out.Write(buf); err != nil {
			return out, err
		}
	}
	return out, nil
}

// filled returns the buckets with the empty ones between them. Of a stretch of more than
// most empty ones it returns only their number.
func filled(buckets []reading.Slot, by reading.Buckets, most int) iter.Seq2[reading.Slot, int] {
	return func(yield func(b reading.Slot, empty int) bool) {
		for i, b := range buckets {
			var between []reading.Slot
			if i > 0 {
				for at := by.Next(buckets[i-1].Start); at < b.Start && len(between) <= most; at = by.Next(at) {
					between = append(between, reading.Slot{Bucket: reading.Bucket{Start: at}})
				}
			}
			if len(between) > most {
				empty := int((float64(b.Start)-float64(buckets[i-1].Start))/float64(by.Length)+0.5) - 1
				if !yield(reading.Slot{}, empty) {
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

// histogram returns a function that appends a bucket in a form.
func (a *app) histogram(form string, h *reading.Histogram) func(dst []byte, b *reading.Slot) []byte {
	switch {
	case h.Values != nil:
		return a.divided(form, h)
	case form == "pretty":
		return a.bars(h.By, h.Buckets, levels()).append
	case form == "csv":
		fmt.Fprint(a.out, "ts,total")
		for l := range record.Level(record.NumLevels) {
			fmt.Fprintf(a.out, ",%s", l)
		}
		fmt.Fprintln(a.out)
		return func(dst []byte, b *reading.Slot) []byte {
			dst = fmt.Appendf(dst, "%s,%d", rfc3339(b.Start), b.Total())
			for _, n := range b.Levels {
				dst = fmt.Appendf(dst, ",%d", n)
			}
			return dst
		}
	}
	return func(dst []byte, b *reading.Slot) []byte {
		dst = fmt.Appendf(dst, `{"ts":"%s","total":%d,"levels":{`, rfc3339(b.Start), b.Total())
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
