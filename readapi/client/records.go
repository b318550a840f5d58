package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"blobtail/internal/spill"
	"blobtail/readapi/form"
)

const (
	// batchOf is about how many bytes of lines are passed on at once.
	batchOf = 64 << 10
	// mostLine bounds an event: a record has a MiB, and its bytes may be escaped.
	mostLine = 8 << 20
	// mostHeld is how many bytes of lines that wait are in memory.
	mostHeld = 64 << 20
)

// Records passes the lines of the records of a query to emit, in order, each call with one or
// more whole lines that are valid during the call. An error of emit ends the read and is
// returned as it is.
//
// It returns the end of the stream, which says whether anything is missing. After a
// [*BrokenError] the lines up to there have been passed on.
//
// The lines of more than [form.MostHeld] of the newest records wait for the oldest of them, unless
// they are wanted in reverse: up to 64 MiB in memory, and the others in an unnamed temporary file.
func (c *Client) Records(ctx context.Context, q Query, emit func(lines []byte) error) (*form.End, error) {
	if q.Limit <= form.MostHeld && q.First <= form.MostHeld || q.Limit > 0 && q.Reverse || q.First > 0 && !q.Reverse {
		return c.records(ctx, q, emit)
	}
	q.Reverse = !q.Reverse
	aside := spill.Space{Most: mostHeld}
	defer aside.Close()
	var held []spill.Extent
	end, err := c.records(ctx, q, func(lines []byte) error {
		e, err := aside.Put(lines)
		if err != nil {
			return fmt.Errorf("put records aside: %w", err)
		}
		held = append(held, e)
		return nil
	})
	if broken := (*BrokenError)(nil); err != nil && !errors.As(err, &broken) {
		return nil, err
	}
	for i := range slices.Backward(held) {
		lines, err := aside.Get(&held[i], 0, held[i].Size())
		if err != nil {
			return nil, err
		}
		if err := backwards(lines, emit); err != nil {
			return nil, err
		}
		held[i] = spill.Extent{}
	}
	return end, err
}

// backwards emits lines from the last one to the first one.
func backwards(lines []byte, emit func(lines []byte) error) error {
	var out []byte
	for len(lines) > 0 {
		at := bytes.LastIndexByte(lines[:len(lines)-1], '\n') + 1
		out = append(out, lines[at:]...)
		lines = lines[:at]
		if len(out) >= batchOf || at == 0 {
			if err := emit(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	return nil
}

func (c *Client) records(ctx context.Context, q Query, emit func(lines []byte) error) (*form.End, error) {
	b, _, err := c.open(ctx, request{path: "records", params: q.records(), kind: form.Lines})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	s := &stream{lines{from: bufio.NewReaderSize(b, batchOf)}, emitter{emit: emit}}
	end, err := s.read()
	var stopped *emitError
	switch {
	case errors.As(err, &stopped):
		return nil, stopped.err
	case err == nil:
		return end, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, &BrokenError{c.base.String(), err}
}

// Count counts the records of a query. Its limits do not count.
func (c *Client) Count(ctx context.Context, q Query) (*form.Count, error) {
	out := &form.Count{}
	return out, c.object(ctx, request{path: "count", params: q.filter()}, out)
}

// HistogramOptions choose the buckets of a histogram.
type HistogramOptions struct {
	By       string // the length of a bucket, as 1m; "": it suits the records
	Timezone string // that days and hours are of; "": UTC
}

// Histogram counts the records of a query by time and level.
func (c *Client) Histogram(ctx context.Context, q Query, o HistogramOptions) (*form.Histogram, error) {
	p := q.filter()
	set(p, map[string]string{"by": o.By, "timezone": o.Timezone})
	if o.By == "" {
		p.Set("buckets", "60") // as the command has
	}
	out := &form.Histogram{}
	return out, c.object(ctx, request{path: "histogram", params: p}, out)
}

// Services lists the services that the holder of the token may read. The services of the query
// do not count, nor does its filter.
func (c *Client) Services(ctx context.Context, q Query) (*form.Services, error) {
	p := q.times()
	p.Del("service")
	out := &form.Services{}
	return out, c.object(ctx, request{path: "services", params: p}, out)
}

// Days sums up the days of the services of a query. Its filter does not count.
func (c *Client) Days(ctx context.Context, q Query) (*form.Days, error) {
	out := &form.Days{}
	return out, c.object(ctx, request{path: "days", params: q.times()}, out)
}

// Blobs lists the blobs of the services of a query. Its filter does not count.
func (c *Client) Blobs(ctx context.Context, q Query) (*form.Blobs, error) {
	out := &form.Blobs{}
	return out, c.object(ctx, request{path: "blobs", params: q.times()}, out)
}

// Ingesters lists the ingesters of the store.
func (c *Client) Ingesters(ctx context.Context) (*form.Ingesters, error) {
	out := &form.Ingesters{}
	return out, c.object(ctx, request{path: "ingesters"}, out)
}
