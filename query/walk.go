package query

import (
	"context"
	"strings"
	"time"

	"blobtail/storage"
)

// periodLevels are the directories under a service down to its periods, as
// layouts of the path so far.
var periodLevels = [...]string{"2006", "2006/01", "2006/01/02", "2006/01/02/1504"}

// A walk finds the periods of a service from the newest back, by the names of
// directories alone, of which it asks for no more than it needs.
type walk struct {
	store   storage.BlobStore
	service string
	// levels are the names of each level, ascending, under the last name of the
	// level above. What is passed is taken off.
	levels [len(periodLevels)][]string
	loaded int // levels that are valid
}

// before gives the start of the newest period that begins before to. Later calls
// may only ask for the same time or an earlier one.
func (w *walk) before(ctx context.Context, to time.Time) (start time.Time, ok bool, err error) {
	for {
		if w.loaded == 0 {
			if err := w.load(ctx); err != nil {
				return time.Time{}, false, err
			}
		}
		level := w.loaded - 1
		if len(w.levels[level]) == 0 {
			if level == 0 {
				return time.Time{}, false, nil
			}
			w.loaded--
			w.pass()
			continue
		}
		start, err := time.Parse(periodLevels[level], w.path())
		switch {
		case err != nil || !start.Before(to):
			w.pass()
		case w.loaded == len(periodLevels):
			return start, true, nil
		default:
			if err := w.load(ctx); err != nil {
				return time.Time{}, false, err
			}
		}
	}
}

// pass takes off the last name of the lowest level.
func (w *walk) pass() {
	names := w.levels[w.loaded-1]
	w.levels[w.loaded-1] = names[:len(names)-1]
}

// path joins the last names of all levels.
func (w *walk) path() string {
	var parts []string
	for _, names := range w.levels[:w.loaded] {
		parts = append(parts, names[len(names)-1])
	}
	return strings.Join(parts, "/")
}

// load reads the names of the next level.
func (w *walk) load(ctx context.Context) error {
	prefix := w.service + "/"
	if w.loaded > 0 {
		prefix += w.path() + "/"
	}
	names := w.levels[w.loaded][:0]
	for name, err := range w.store.Dirs(ctx, prefix) {
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	w.levels[w.loaded] = names
	w.loaded++
	return nil
}
