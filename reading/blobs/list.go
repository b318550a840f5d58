package blobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

// Total sums up some blobs: of a service, of a day, or a single one.
type Total struct {
	Name    string // service, day as 2026-11-20, or key
	Blobs   int
	Records int64
	Raw     int64 // bytes of lines
	Stored  int64 // bytes of blobs
	// Unflushed are the records of [Query.Unflushed]. The others do not have them, but First
	// and Last do. A record that was stored meanwhile may count in both.
	Unflushed int64
	First     int64 // times of the oldest and the newest record
	Last      int64
}

func (t *Total) add(b *blob) {
	t.First, t.Last = min(t.First, b.Meta.First), max(t.Last, b.Meta.Last)
	if b.body != nil {
		t.Unflushed += b.Meta.Records
		return
	}
	t.Blobs++
	t.Records += b.Meta.Records
	t.Raw += b.Meta.RawBytes
	t.Stored += b.Size
}

// List sums up the blobs and the unflushed records of each service, system ones last, if q
// names none; else those of each day (UTC, of the blobs' names); or those of each blob of a
// day, unless that is zero. The unflushed records of a day have the key "". Of q, the
// services, their choice and the unflushed records count. Unreadable blobs are among the
// summary's problems.
func (r *Reader) List(ctx context.Context, q Query, day time.Time) ([]Total, Summary, error) {
	q, all := Query{Services: q.Services, Choose: q.Choose, Unflushed: q.Unflushed, Stored: q.Stored, Range: Always()}, len(q.Services) == 0
	name := func(b *blob) string { return b.Name.Period.Format(time.DateOnly) }
	switch {
	case all && day.IsZero():
		var err error
		if q.Services, err = (&asked{reader: r, query: q}).listServices(ctx); err != nil || len(q.Services) == 0 {
			return nil, Summary{}, err
		}
		name = func(b *blob) string { return b.Name.Service }
	case !day.IsZero():
		day = day.UTC().Truncate(24 * time.Hour)
		q.Range = Range{From: day.UnixNano(), To: day.AddDate(0, 0, 1).UnixNano()}
		name = func(b *blob) string {
			if b.body != nil {
				return ""
			}
			return b.Key
		}
	}
	p, err := r.Plan(ctx, q)
	if err != nil {
		return nil, Summary{}, err
	}
	var out, system []Total
	at := make(map[string]int) // a glob may bring the same day again
	for i := range p.blobs {
		b, to := &p.blobs[i], &out
		if b.State != catalog.Sound {
			continue // it is among the problems
		}
		if all && b.Name.Service[0] == '_' {
			to = &system
		}
		key := name(b)
		n, ok := at[key]
		if !ok {
			n = len(*to)
			at[key], *to = n, append(*to, Total{Name: key, First: Newest, Last: Oldest})
		}
		(*to)[n].add(b)
	}
	if day.IsZero() { // unflushed records come last, and their service or day may be a new one
		byName := func(a, b Total) int { return strings.Compare(a.Name, b.Name) }
		slices.SortFunc(out, byName)
		slices.SortFunc(system, byName)
	}
	sum := p.summary()
	err = p.confirmed(ctx, &sum, func(context.Context) error { return nil })
	p.tellExpired(&sum, p.has())
	return append(out, system...), sum, err
}

// Body reads one blob whole. A [*Problem] comes with the rest of it if the store knows
// it to be damaged, or if its metadata cannot be read. A [*NoBlobError] means that the
// blob does not exist, or that its day has expired. The warning says that nobody knows
// whether it has expired.
func (r *Reader) Body(ctx context.Context, key string) (body []byte, warning, err error) {
	body, err = r.source(blob{Entry: &catalog.Entry{Key: key}}, new(Summary)).whole(ctx)
	if name, nerr := blobfmt.ParseName(key); nerr == nil && ctx.Err() == nil {
		// After the read: a day is hidden before it is deleted.
		h, herr := horizon.Check(ctx, r.store, name.Service)
		if herr != nil {
			return nil, nil, herr
		}
		if day := horizon.DayOf(name.Period); h.Days.Hides(name.Service, day) {
			return nil, nil, &NoBlobError{Key: key, Expired: true}
		}
		warning = unseen(h.Forbidden)
	}
	switch {
	case errors.Is(err, storage.ErrDamaged):
		return body, warning, &Problem{Blob: key, Err: bareError(err)}
	case errors.Is(err, storage.ErrNotExist):
		return nil, warning, &NoBlobError{Key: key}
	case err != nil:
		return nil, warning, fmt.Errorf("read %s: %w", key, err)
	}
	b, err := r.store.Stat(ctx, key)
	if err == nil {
		_, err = blobfmt.ParseMeta(b.Metadata)
	}
	if err != nil {
		return body, warning, &Problem{Blob: key, Err: bareError(err)}
	}
	return body, warning, nil
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
