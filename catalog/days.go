package catalog

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"blobtail/retention/horizon"
)

// periodLayout is the path of a period below its service. Its directory levels are the
// year, the month, the day and the minute; levelEnds are the ends of these levels.
const periodLayout = "2006/01/02/1504"

// The levels down to the days of a service, and to its periods.
const (
	dayLevels    = 3
	periodLevels = 4
)

var levelEnds = [periodLevels]int{len("2006"), len("2006/01"), len("2006/01/02"), len(periodLayout)}

// Days lists the days of a service in ascending order, from the day of a time on; a
// zero time is before all of them. It goes by the names of directories: three requests
// find the oldest day. A listed day may be empty.
func Days(ctx context.Context, store Store, service string, from time.Time) iter.Seq2[horizon.Day, error] {
	return func(yield func(horizon.Day, error) bool) {
		t := tree{store: store, service: service, depth: dayLevels}
		for {
			start, ok, err := t.next(ctx, from)
			if err != nil {
				yield(0, err)
				return
			}
			if !ok || !yield(horizon.DayOf(start), nil) {
				return
			}
			from = start.AddDate(0, 0, 1)
		}
	}
}

// tree finds the directories of one level of a service, in one direction, and lists
// no directory that it can pass over.
type tree struct {
	store   Store
	service string
	depth   int // of the wanted directories
	back    bool

	// names are those of each level below the first name of the level above, the next one
	// first. Passed names are removed.
	names  [periodLevels][]string
	loaded int // levels of names that are valid
}

// next returns the start of the first directory at or after a time; backwards, of the
// last one before it. The times of later calls must only move in that direction.
func (t *tree) next(ctx context.Context, bound time.Time) (start time.Time, ok bool, err error) {
	for {
		if t.loaded == 0 {
			if err := t.load(ctx); err != nil {
				return time.Time{}, false, err
			}
		}
		if level := t.loaded - 1; len(t.names[level]) == 0 {
			if level == 0 {
				return time.Time{}, false, nil
			}
			t.loaded--
			t.pass()
			continue
		}
		layout := periodLayout[:levelEnds[t.loaded-1]]
		path := t.path()
		start, err := time.Parse(layout, path)
		switch {
		case err != nil || start.Format(layout) != path, t.passed(start, path, bound, layout):
			t.pass()
		case t.loaded == t.depth:
			return start, true, nil
		default:
			if err := t.load(ctx); err != nil {
				return time.Time{}, false, err
			}
		}
	}
}

// passed reports whether all of a directory lies on the wrong side of a time.
func (t *tree) passed(start time.Time, path string, bound time.Time, layout string) bool {
	if t.back {
		return !start.Before(bound)
	}
	return path < bound.Format(layout)
}

func (t *tree) pass() { t.names[t.loaded-1] = t.names[t.loaded-1][1:] }

// path joins the first names of all loaded levels.
func (t *tree) path() string {
	var parts [periodLevels]string
	for i, names := range t.names[:t.loaded] {
		parts[i] = names[0]
	}
	return strings.Join(parts[:t.loaded], "/")
}

// load lists the names of the next level.
func (t *tree) load(ctx context.Context) error {
	prefix := t.service + "/"
	if t.loaded > 0 {
		prefix += t.path() + "/"
	}
	var names []string
	for name, err := range t.store.Dirs(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("list %s/: %w", t.service, err)
		}
		names = append(names, name)
	}
	if t.back {
		slices.Reverse(names)
	}
	t.names[t.loaded] = names
	t.loaded++
	return nil
}
