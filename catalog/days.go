package catalog

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"blobtail/retention/horizon"
)

// layouts are the paths below a service: of its years, months, days and periods.
var layouts = [...]string{"2006", "2006/01", "2006/01/02", "2006/01/02/1504"}

// dayLevels is how many levels lead to the days.
const dayLevels = 3

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
	// left are the paths that are left of each level, below the last one taken from the
	// level above; the next one first.
	left [][]string
}

// next returns the start of the first directory at or after a time; backwards, of the
// last one before it. The times of later calls must only move in that direction.
func (t *tree) next(ctx context.Context, bound time.Time) (start time.Time, ok bool, err error) {
	if t.left == nil {
		err = t.load(ctx, "")
	}
	for err == nil && len(t.left) > 0 {
		level := len(t.left) - 1
		if len(t.left[level]) == 0 {
			t.left = t.left[:level]
			continue
		}
		path, layout := t.left[level][0], layouts[level]
		start, perr := time.Parse(layout, path)
		enter := perr == nil && start.Format(layout) == path
		if t.back {
			enter = enter && start.Before(bound)
		} else {
			enter = enter && path >= bound.Format(layout)
		}
		if enter && level+1 == t.depth {
			return start, true, nil
		}
		if enter {
			err = t.load(ctx, path+"/")
		}
		if err == nil {
			t.left[level] = t.left[level][1:]
		}
	}
	return time.Time{}, false, err
}

// load lists the directories below a path.
func (t *tree) load(ctx context.Context, path string) error {
	paths := []string{}
	for name, err := range t.store.Dirs(ctx, t.service+"/"+path) {
		if err != nil {
			return fmt.Errorf("list %s/: %w", t.service, err)
		}
		paths = append(paths, path+name)
	}
	if t.back {
		slices.Reverse(paths)
	}
	t.left = append(t.left, paths)
	return nil
}
