package catalog

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/storage/fanout"
)

// layouts are the paths below a service: of its years, months, days and periods.
var layouts = [...]string{"2006", "2006/01", "2006/01/02", "2006/01/02/1504"}

// Levels of layouts that lead to the days of a month, and to the days.
const (
	monthLevels = 2
	dayLevels   = 3
)

// Days lists the days of a service in ascending order, from the day of a time on; a
// zero time is before all of them. It goes by the names of directories: three requests
// find the oldest day. A listed day may be empty.
func Days(ctx context.Context, store Store, service string, from time.Time) iter.Seq2[horizon.Day, error] {
	t := &tree{store: store, service: service, depth: dayLevels}
	return func(yield func(horizon.Day, error) bool) {
		for day, err := range t.days(ctx, from) {
			if !yield(day, listError(service, err)) {
				return
			}
		}
	}
}

// listError is an error of a listing with the name of the service.
func listError(service string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("list %s/: %w", service, err)
}

// days is Days of a tree of days, with errors that do not name the service.
func (t *tree) days(ctx context.Context, from time.Time) iter.Seq2[horizon.Day, error] {
	return func(yield func(horizon.Day, error) bool) {
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

// pathOf is the path of the directory of a time, with a slash at its end.
func pathOf(at time.Time, levels int) string {
	if levels == 0 {
		return ""
	}
	return at.UTC().Format(layouts[levels-1]) + "/"
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
	// near is a time with a directory; zero: none is known. The first listings are requested
	// at once, as if that one were wanted.
	near time.Time
	// early are listings by their paths, which may be loaded later or again.
	early map[string][]string
	bare  []horizon.Day // without a directory
}

// next returns the start of the first directory at or after a time; backwards, of the
// last one before it. The times of later calls must only move in that direction.
func (t *tree) next(ctx context.Context, bound time.Time) (start time.Time, ok bool, err error) {
	if t.left == nil {
		if !t.near.IsZero() {
			t.request(ctx, 0, t.depth)
		}
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
			if err == nil && level+1 == dayLevels && len(t.left[dayLevels]) == 0 {
				t.bare = append(t.bare, horizon.DayOf(start))
			}
		}
		if err == nil {
			t.left[level] = t.left[level][1:]
		}
	}
	return time.Time{}, false, err
}

// load lists the directories below a path.
func (t *tree) load(ctx context.Context, path string) (err error) {
	paths, ok := t.early[path]
	if !ok {
		paths, err = t.list(ctx, path)
	}
	if err != nil {
		return err
	}
	t.left = append(t.left, paths)
	if t.early != nil {
		t.early[path] = paths
	}
	return nil
}

// request lists some levels of the directories that lead to near, at once, for load. A
// listing that fails is left out: it may not be needed, or load finds the same error.
func (t *tree) request(ctx context.Context, from, to int) {
	found := make([][]string, max(0, to-from))
	errs := fanout.All(len(found), 0, func(i int) (err error) {
		if path := pathOf(t.near, from+i); t.early[path] == nil {
			found[i], err = t.list(ctx, path)
		}
		return err
	})
	if t.early == nil {
		t.early = make(map[string][]string)
	}
	for i, paths := range found {
		if paths != nil && errs[i] == nil {
			t.early[pathOf(t.near, from+i)] = paths
		}
	}
}

// list returns the paths of the directories below a path, the next one first.
func (t *tree) list(ctx context.Context, path string) ([]string, error) {
	paths := []string{}
	for name, err := range t.store.Dirs(ctx, t.service+"/"+path) {
		if err != nil {
			return nil, err
		}
		paths = append(paths, path+name)
	}
	if t.back {
		slices.Reverse(paths)
	}
	return paths, nil
}
