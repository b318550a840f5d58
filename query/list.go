package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/retention/horizon"
	"blobtail/storage"
)

// Total sums up some blobs: of a service, of a day, or a single one.
type Total struct {
	Name    string // service, day as 2026-11-20, or key
	Blobs   int
	Records int64
	Raw     int64 // bytes of lines
	Stored  int64 // bytes of blobs
	First   int64 // times of the oldest and the newest record
	Last    int64
}

func (t *Total) add(b *catalog.Entry) {
	if t.Blobs == 0 {
		t.First, t.Last = b.Meta.First, b.Meta.Last
	}
	t.Blobs++
	t.Records += b.Meta.Records
	t.Raw += b.Meta.RawBytes
	t.Stored += b.Size
	t.First, t.Last = min(t.First, b.Meta.First), max(t.Last, b.Meta.Last)
}

// ListServices sums up every service of the store, system ones last. Unreadable
// blobs are among the summary's problems.
func (r *Reader) ListServices(ctx context.Context) ([]Total, Summary, error) {
	names, err := catalog.Services(ctx, r.store)
	if err != nil || len(names) == 0 {
		return nil, Summary{}, err
	}
	totals, sum, err := r.totals(ctx, Query{Services: names, Range: Always()}, func(b *catalog.Entry) string { return b.Name.Service })
	slices.SortStableFunc(totals, func(a, b Total) int {
		switch as, bs := a.Name[0] == '_', b.Name[0] == '_'; {
		case as == bs:
			return 0
		case bs:
			return -1
		}
		return 1
	})
	return totals, sum, err
}

// ListDays sums up each day (UTC, of the blobs' names) of some services.
func (r *Reader) ListDays(ctx context.Context, services ...string) ([]Total, Summary, error) {
	return r.totals(ctx, Query{Services: services, Range: Always()},
		func(b *catalog.Entry) string { return b.Name.Period.Format(time.DateOnly) })
}

// ListBlobs describes each blob of one day (UTC).
func (r *Reader) ListBlobs(ctx context.Context, service string, day time.Time) ([]Total, Summary, error) {
	day = day.UTC().Truncate(24 * time.Hour)
	rng := Range{From: day.UnixNano(), To: day.AddDate(0, 0, 1).UnixNano()}
	return r.totals(ctx, Query{Services: []string{service}, Range: rng}, func(b *catalog.Entry) string { return b.Key })
}

// totals sums up the blobs of q, grouped by the result of name.
func (r *Reader) totals(ctx context.Context, q Query, name func(*catalog.Entry) string) ([]Total, Summary, error) {
	p, err := r.Plan(ctx, q)
	if err != nil {
		return nil, Summary{}, err
	}
	var out []Total
	at := make(map[string]int)
	for i := range p.blobs {
		b := p.blobs[i].Entry
		if b.State != catalog.Sound {
			continue // it is among the problems
		}
		key := name(b)
		n, ok := at[key]
		if !ok {
			n = len(out)
			at[key] = n
			out = append(out, Total{Name: key})
		}
		out[n].add(b)
	}
	sum := p.summary()
	err = p.confirmed(ctx, &sum, func(context.Context) error { return nil })
	p.tellExpired(&sum)
	return out, sum, err
}

// Body reads one blob whole. A [*Problem] comes with the rest of it if the store knows
// it to be damaged, or if its metadata cannot be read. A [*NoBlobError] means that the
// blob does not exist, or that its day has expired.
func (r *Reader) Body(ctx context.Context, key string) ([]byte, error) {
	body, err := r.source(&catalog.Entry{Key: key}, new(counters)).whole(ctx)
	if name, nerr := blobfmt.ParseName(key); nerr == nil && ctx.Err() == nil {
		// After the read: a day is hidden before it is deleted.
		h, herr := horizon.Read(ctx, r.store, name.Service)
		if herr != nil {
			return nil, herr
		}
		if day := horizon.DayOf(name.Period); h.Hides(name.Service, day) {
			return nil, &NoBlobError{Key: key, Expired: true}
		}
	}
	switch {
	case errors.Is(err, storage.ErrDamaged):
		return body, &Problem{Blob: key, Err: bareError(err)}
	case errors.Is(err, storage.ErrNotExist):
		return nil, &NoBlobError{Key: key}
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	b, err := r.store.Stat(ctx, key)
	if err == nil {
		_, err = blobfmt.ParseMeta(b.Metadata)
	}
	if err != nil {
		return body, &Problem{Blob: key, Err: bareError(err)}
	}
	return body, nil
}

// NoBlobError says that nothing is stored under a key, or that its day has expired.
type NoBlobError struct {
	Key     string
	Expired bool
}

func (e *NoBlobError) Error() string {
	if e.Expired {
		return fmt.Sprintf("no blob %s: that day has expired", e.Key)
	}
	return fmt.Sprintf("no blob %s", e.Key)
}
