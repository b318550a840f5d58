package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/units"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/reading/survey"
	"blobtail/record"
)

// chosenBuckets is how many buckets a histogram has at most, unless it is asked for more.
const chosenBuckets = 60

// Count implements [reading.Source]. The server counts all records: of these the limits are taken.
func (c *Client) Count(ctx context.Context, a reading.Ask) (*reading.Outcome, error) {
	var f form.Count
	if err := c.object(ctx, "count", a.Values(), &f); err != nil {
		return nil, failure(a.Services, err)
	}
	out := c.outcome(&f.Outcome)
	out.Records, out.Unflushed, out.Examined, out.Higher = f.Records, f.Unflushed, f.Examined, f.Higher
	if limit := int64(max(a.Limit, a.First)); limit > 0 && f.Records > limit {
		out.Records, out.More = limit, true
	}
	return out, nil
}

// Histogram implements [reading.Source]. It has no buckets of each service apart.
func (c *Client) Histogram(ctx context.Context, a reading.Ask, by reading.Slices) (*reading.Histogram, *reading.Outcome, error) {
	if by.Apart != nil {
		return nil, nil, errors.ErrUnsupported
	}
	params := a.Values()
	if len(by.Split) > 0 {
		params.Set("split", by.SplitText())
		params.Set("top", strconv.Itoa(cmp.Or(by.Top, survey.ChosenShares)))
	}
	if by.Zone != nil {
		params.Set("timezone", zoneOf(by.Zone))
	}
	f, err := c.histogram(ctx, &a, params, &by)
	if err != nil {
		return nil, nil, err
	}
	h := &reading.Histogram{First: nanos(f.First), Last: nanos(f.Last), Any: f.First != ""}
	if h.By, err = by.Length(a.Range, h.First, h.Last, h.Any); err != nil {
		return nil, nil, err
	}
	// The server chooses the same length, unless a range is meant to go on until now.
	if by.By = h.By; units.Duration(by.By).String() != f.By && len(f.Buckets) > 0 {
		if f, err = c.histogram(ctx, &a, params, &by); err != nil {
			return nil, nil, err
		}
	}
	out := c.outcome(&f.Outcome)
	out.Examined, out.Higher = f.Examined, f.Higher
	if len(by.Split) > 0 {
		return h, out, c.parts(h, out, f)
	}
	for i := range f.Buckets {
		b := reading.Slot{Bucket: reading.Bucket{Start: nanos(f.Buckets[i].Time)}}
		for level, n := range f.Buckets[i].Counts {
			b.Levels[record.ParseLevel([]byte(level))] += n
			out.Records += n
		}
		h.Buckets = append(h.Buckets, b)
	}
	return h, out, nil
}

// parts gives a histogram the values of its split, and its buckets.
func (c *Client) parts(h *reading.Histogram, out *reading.Outcome, f *form.Histogram) error {
	if f.Values == nil {
		return fmt.Errorf("the server %s cannot divide a histogram by fields; a newer version of it can", c)
	}
	h.Values, h.Capped, h.Short = []survey.Value{}, f.Capped, f.Short
	for i := range f.Values {
		h.Values = append(h.Values, f.Values[i].Value())
	}
	for i := range f.Buckets {
		b := &f.Buckets[i]
		slot := reading.Slot{Bucket: reading.Bucket{Start: nanos(b.Time)}, Parts: make([]int64, len(f.Values)), Others: b.Others}
		for j := range f.Values {
			slot.Parts[j] = b.Counts[f.Values[j].Key]
		}
		out.Records += slot.Total()
		h.Buckets = append(h.Buckets, slot)
	}
	return nil
}

// histogram asks once, for buckets of a length or for as many as are wanted.
func (c *Client) histogram(ctx context.Context, a *reading.Ask, params url.Values, by *reading.Slices) (*form.Histogram, error) {
	if params.Del("buckets"); by.By > 0 {
		params.Set("by", units.Duration(by.By).String())
	} else {
		params.Set("buckets", strconv.Itoa(cmp.Or(by.Most, chosenBuckets)))
	}
	f := &form.Histogram{}
	return f, failure(a.Services, c.object(ctx, "histogram", params, f))
}

// zoneOf is the name of a zone that the server knows. That of this host has none in Go.
func zoneOf(zone *time.Location) string {
	if name := zone.String(); name != "Local" {
		return name
	}
	if path, err := os.Readlink("/etc/localtime"); err == nil {
		if _, name, ok := strings.Cut(path, "/zoneinfo/"); ok {
			return name
		}
	}
	return time.Now().In(zone).Format("-07:00")
}
