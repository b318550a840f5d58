package asblobs

import (
	"strconv"
	"strings"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/azurelogs"
	"blobtail/internal/azurelogs/formats"
)

// spanOf returns the hours that keys of a service may have between the bounds of a listing.
func spanOf(service, prefix, startAfter, until string) azurelogs.Span {
	rest, _ := strings.CutPrefix(prefix, service+"/")
	span := azurelogs.Span{From: bound(rest, false), To: bound(rest, true)}
	if after, ok := strings.CutPrefix(startAfter, service+"/"); ok {
		if from := bound(after, false); from.After(span.From) {
			span.From = from
		}
	}
	if before, ok := strings.CutPrefix(until, service+"/"); ok {
		to := bound(before, false)
		if !to.IsZero() && strings.HasPrefix(blobfmt.PeriodPrefix(service, to), until) {
			to = to.Add(-time.Hour) // no key of this hour is less
		}
		if !to.IsZero() && (span.To.IsZero() || to.Before(span.To)) {
			span.To = to
		}
	}
	return span
}

// bound returns the first or the last hour of the keys with periods that begin with a text; zero
// if the text has no year. The last hour may be too late: no month has a day 39.
func bound(text string, last bool) time.Time {
	parts := strings.SplitN(text, "/", 5)
	year, err := strconv.Atoi(parts[0])
	if err != nil || len(parts[0]) != len("2006") {
		return time.Time{}
	}
	digit := "0" // in place of each missing one
	if last {
		digit = "9"
	}
	number := func(i, least, most int) int {
		part := ""
		if i < len(parts) {
			part = parts[i]
		}
		n, _ := strconv.Atoi((part + digit + digit)[:2])
		return min(max(n, least), most)
	}
	return time.Date(year, time.Month(number(1, 1, 12)), number(2, 1, 31), number(3, 0, 23), 0, 0, 0, time.UTC)
}

// arrivals returns the hours of the source that may have records of a span of event time.
// A classic log goes by the ends of requests, and clocks differ a little.
func (s *Store) arrivals(span azurelogs.Span) azurelogs.Span {
	if !span.From.IsZero() {
		span.From = span.From.Add(-time.Hour)
	}
	if !span.To.IsZero() {
		span.To = span.To.Add(roundUp(s.o.Late))
	}
	return span
}

// events returns the first and the last hour of the records that a blob of the source
// probably has, by its metadata or else by its name.
func (s *Store) events(b *azurelogs.Blob) (first, last time.Time) {
	switch {
	case !b.First.IsZero():
		return b.First.UTC().Truncate(time.Hour), b.Last.UTC().Truncate(time.Hour)
	case b.Kind == formats.Classic:
		return b.Hour.Add(-roundUp(s.o.Late)), b.Hour.Add(time.Hour)
	}
	return b.Hour.Add(-roundUp(s.o.Late)), b.Hour
}

func roundUp(d time.Duration) time.Duration { return (d + time.Hour - 1).Truncate(time.Hour) }
