package catalog

import (
	"context"
	"iter"
	"strings"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

// Range is the half-open span [From, To) of times at which the periods of blobs
// begin. A zero time leaves that end open.
type Range struct {
	From, To time.Time
	// Closed is the last day whose parts are in the range with the day's end. Those of later days may
	// be left out.
	Closed horizon.Day
}

// DayRange is the range of one day.
func DayRange(d horizon.Day) Range { return Range{From: d.Start(), To: (d + 1).Start()} }

// Blobs lists the objects of a service with periods that begin in a range, in byte order of their
// keys, with one List. Foreign objects appear between the blobs. It ends at its first error, which
// names the service.
func Blobs(ctx context.Context, store Store, service string, r Range) iter.Seq2[Entry, error] {
	return NewView(store, nil, horizon.Checked{}).Blobs(ctx, service, r)
}

// Blobs lists like the function [Blobs] and marks the entries of dropped days. It begins
// the first check if necessary, and yields its error.
func (v *View) Blobs(ctx context.Context, service string, r Range) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		v.Begin(ctx)
		for o, err := range v.objects(ctx, service, r) {
			if unknown := v.Wait(); err == nil && unknown != nil {
				break
			}
			if err != nil {
				yield(Entry{}, listError(service, err))
				return
			}
			e := judge(ctx, v.store, &o, v.memory)
			e.Hidden = e.Named() && v.Hides(service, e.Day()) || e.State == Account && v.Hides(service, e.Part.Day)
			if !yield(e, nil) {
				return
			}
		}
		if err := v.Wait(); err != nil {
			yield(Entry{}, err)
		}
	}
}

// list lists the objects of a service in a range with one List.
func (r Range) list(ctx context.Context, store Store, service string) iter.Seq2[storage.Blob, error] {
	prefix, after, until := r.keys(service)
	return func(yield func(storage.Blob, error) bool) {
		if until != "" && until <= after {
			return
		}
		for o, err := range listUntil(ctx, store, prefix, after, until) {
			if err == nil && until != "" && o.Key >= until || !yield(o, err) {
				return
			}
		}
	}
}

// bounded is implemented by a store that makes its objects while it lists them, and has to
// know where a listing ends.
type bounded interface {
	// ListUntil is List of the keys before until, "" for no end.
	ListUntil(ctx context.Context, prefix, startAfter, until string) iter.Seq2[storage.Blob, error]
}

func listUntil(ctx context.Context, store Store, prefix, after, until string) iter.Seq2[storage.Blob, error] {
	if b, ok := store.(bounded); ok {
		return b.ListUntil(ctx, prefix, after, until)
	}
	return store.List(ctx, prefix, after)
}

// keys returns the prefix to list, the key to start after ("" for none), and the key to
// stop at ("" for none). The prefix is the longest that all names in the range have. So a
// day or an hour needs neither key, and the listing has no other names.
func (r Range) keys(service string) (prefix, after, until string) {
	prefix = service + "/"
	key := func(t time.Time) string { return strings.TrimSuffix(blobfmt.PeriodPrefix(service, t), "/") }
	from, to := nextMinute(r.From), nextMinute(r.To)
	if !r.From.IsZero() {
		after = key(from)
	}
	if !r.To.IsZero() {
		until = key(to)
	}
	if after == "" || until <= after {
		return prefix, after, until
	}
	last, n := key(to.Add(-time.Minute)), 0
	if day := horizon.DayOf(to) - 1; day <= r.Closed && to.Equal((day + 1).Start()) {
		last = closed.PartPrefix(service, day)
	}
	for n < len(last) && after[n] == last[n] {
		n++
	}
	prefix = after[:n]
	if !strings.HasPrefix(key(from.Add(-time.Minute)), prefix) {
		after = ""
	}
	if !strings.HasPrefix(until, prefix) {
		until = ""
	}
	return prefix, after, until
}

// nextMinute is the first full minute at or after t; periods begin with one.
func nextMinute(t time.Time) time.Time {
	return t.UTC().Add(time.Minute - 1).Truncate(time.Minute)
}
