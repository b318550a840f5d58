// Package horizon knows the dropped days of each service.
//
// The horizon of a service is its first day (UTC) that is kept: the greatest name under
// _horizon/<service>/, such as _horizon/web/20261021. A single dropped day is an object
// _dropped/<service>/<day>. Both are empty objects made by the conditional create. So a
// horizon only ever rises, no object is changed, and one LIST returns all of them.
//
// [Read] is for readers of logs, a [Watch] for writers. [Publish] and [Drop] are for
// package retention, which chooses the days and deletes their blobs.
package horizon

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

const (
	prefix        = "_horizon/"
	droppedPrefix = "_dropped/"
	nameLayout    = "20060102"
)

// Settle is the least time between hiding a day and deleting its first blob. A reader that
// began to read the horizons less than half of it before a listing ended need not read them
// again: the listing lacks no blob of a day that the reader believes to be kept.
const Settle = 5 * time.Second

// Day is a day of UTC, counted from 1970-01-01.
type Day int32

// DayOf is the day of t.
func DayOf(t time.Time) Day { return Day(t.Truncate(24*time.Hour).Unix() / 86400) }

// DayOfNs is the day of a time in ns since 1970.
func DayOfNs(ns int64) Day { return DayOf(time.Unix(0, ns)) }

// Start is the instant at which the day begins.
func (d Day) Start() time.Time { return time.Unix(int64(d)*86400, 0).UTC() }

// String is the day as 2026-11-20.
func (d Day) String() string { return d.Start().Format(time.DateOnly) }

// ParseDay reads a day as 2026-11-20 or 20261120.
func ParseDay(s string) (Day, error) {
	for _, layout := range []string{time.DateOnly, nameLayout} {
		if t, err := time.Parse(layout, s); err == nil && t.Format(layout) == s {
			return DayOf(t), nil
		}
	}
	return 0, fmt.Errorf("%q is no day; want one as 2026-11-20", s)
}

// Service is the set of dropped days of one service. The zero value is none.
type Service struct {
	// First is the first day that is kept, if Set is true.
	First Day
	Set   bool
	// Dropped are single dropped days besides, ascending.
	Dropped []Day
}

// Hides reports whether a day has been dropped.
func (s *Service) Hides(d Day) bool {
	if s.Set && d < s.First {
		return true
	}
	_, found := slices.BinarySearch(s.Dropped, d)
	return found
}

// Empty reports whether no day has been dropped.
func (s *Service) Empty() bool { return !s.Set && len(s.Dropped) == 0 }

// Horizons are the dropped days of services by name.
type Horizons map[string]Service

// Hides reports whether a day of a service has been dropped.
func (h Horizons) Hides(service string, d Day) bool {
	s := h[service]
	return s.Hides(d)
}

// Checked are horizons as of a time.
type Checked struct {
	Days Horizons
	// Begun is the time just before they were read, by the host's clock; zero: it is unknown.
	Begun time.Time
	// Forbidden is the error if the reader has no right to read them. Days is empty then,
	// and records of dropped days are read as if they were kept.
	Forbidden error
}

// Check reads the horizons like [Read]. A reader without the right to read them gets no
// days: it can read the records of these days anyway, so hiding them would protect nothing.
func Check(ctx context.Context, store Lister, services ...string) (c Checked, err error) {
	c.Begun = time.Now()
	c.Days, err = Read(ctx, store, services...)
	if errors.Is(err, storage.ErrUnauthorized) {
		c.Days, c.Forbidden, err = Horizons{}, err, nil
	}
	return c, err
}

// Lister is the part of a blob store that this package needs to read.
type Lister interface {
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error]
}

// oneByOne is the greatest number of services that are listed one by one, at once: two
// requests each. All services together take two requests, and two more for every 2,500
// services or so, one after another.
const oneByOne = 4

// Read returns the horizons of some services, perhaps with others; of all if none are
// named. A missing store has none.
func Read(ctx context.Context, store Lister, services ...string) (Horizons, error) {
	marks, err := Marks(ctx, store, services...)
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		return nil, err
	}
	return Of(marks), nil
}

// Of combines marks into horizons. Readers go by all marks: what any of them hides is not shown.
func Of(marks []Mark) Horizons {
	h := Horizons{}
	for _, m := range marks {
		s := h[m.Service]
		if m.Single {
			s.Dropped = append(s.Dropped, m.Day)
		} else if !s.Set || m.Day > s.First {
			s.First, s.Set = m.Day, true
		}
		h[m.Service] = s
	}
	return h
}

// Mark is one object that stands for dropped days.
type Mark struct {
	Service string
	Day     Day
	Single  bool // this day alone; else all days before it
	Blob    storage.Blob
}

// Impossible reports whether a horizon hides today, or hid the day on which it was stored. No policy
// hides records less than a day old, so a wrong clock has set it, or a person. It counts for no writer,
// which would lose the records that are logged now, and nothing is deleted by it.
func (m *Mark) Impossible(now time.Time) bool {
	if made := m.Blob.Created; !made.IsZero() && made.Before(now) {
		now = made
	}
	return !m.Single && m.Day > DayOf(now)
}

// Possible returns the marks that are not impossible.
func Possible(marks []Mark, now time.Time) []Mark {
	return slices.DeleteFunc(slices.Clone(marks), func(m Mark) bool { return m.Impossible(now) })
}

// Marks lists the objects behind [Read], ascending for each service. Objects under other
// names are left out. A missing store is [storage.ErrNotExist].
func Marks(ctx context.Context, store Lister, services ...string) ([]Mark, error) {
	prefixes := []string{prefix, droppedPrefix}
	if n := len(services); n > 0 && n <= oneByOne {
		prefixes = prefixes[:0]
		for _, s := range services {
			prefixes = append(prefixes, prefix+s+"/", droppedPrefix+s+"/")
		}
	}
	found := make([][]Mark, len(prefixes))
	err := fanout.Each(ctx, len(prefixes), 0, func(ctx context.Context, i int) error {
		for b, err := range store.List(ctx, prefixes[i], "") {
			if err != nil {
				return err
			}
			if m, ok := parseName(b.Key); ok {
				m.Blob = b
				found[i] = append(found[i], m)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list what has been dropped: %w", err)
	}
	return slices.Concat(found...), nil
}

func parseName(key string) (m Mark, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 3 || !record.ValidStored(parts[1]) || len(parts[2]) != len(nameLayout) {
		return m, false
	}
	d, err := ParseDay(parts[2])
	return Mark{Service: parts[1], Day: d, Single: parts[0]+"/" == droppedPrefix}, err == nil
}

// Publish raises the horizon of a service: all days before first are dropped from now
// on. It may be repeated.
func Publish(ctx context.Context, store storage.BlobStore, service string, first Day) error {
	return publish(ctx, store, prefix, service, first)
}

// Drop drops a single day of a service. It may be repeated.
func Drop(ctx context.Context, store storage.BlobStore, service string, day Day) error {
	return publish(ctx, store, droppedPrefix, service, day)
}

// Publish publishes a mark. It may be repeated.
func (m *Mark) Publish(ctx context.Context, store storage.BlobStore) error {
	if m.Single {
		return Drop(ctx, store, m.Service, m.Day)
	}
	return Publish(ctx, store, m.Service, m.Day)
}

func publish(ctx context.Context, store storage.BlobStore, under, service string, day Day) error {
	if !record.ValidStored(service) {
		return fmt.Errorf("service %q: not a valid name", service)
	}
	err := store.Create(ctx, under+service+"/"+day.Start().Format(nameLayout), nil, storage.Attrs{})
	if errors.Is(err, storage.ErrExist) {
		return nil
	}
	return err
}
