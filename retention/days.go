package retention

import (
	"context"
	"fmt"
	"iter"
	"time"

	"blobtail/blobfmt"
	"blobtail/horizon"
)

// dayDirs is how the directories of a day are named below that of its service.
const dayDirs = "2006/01/02/"

// days walks the days of a service that anything is stored of, from the one on
// that a prefix is of ("" for all). It goes by the names of directories, so that
// three small requests find the oldest, however much is stored. A directory that no
// blob can be in is passed over.
func (j *Job) days(ctx context.Context, service, from string) iter.Seq2[horizon.Day, error] {
	return func(yield func(horizon.Day, error) bool) { j.daysBelow(ctx, service, service+"/", from, yield) }
}

// daysBelow walks a directory of a service, of a year or of a month. It says
// whether to go on.
func (j *Job) daysBelow(ctx context.Context, service, dir, from string, yield func(horizon.Day, error) bool) bool {
	depth := len(dir) - len(service) - len("/")
	width := len("2006/")
	if depth > 0 {
		width = len("01/")
	}
	for name, err := range j.blobs.Dirs(ctx, dir) {
		if err != nil {
			yield(0, err)
			return false
		}
		below := dir + name + "/"
		if len(name)+len("/") != width || below < from[:min(len(below), len(from))] {
			continue
		}
		path := below[len(service)+len("/"):]
		t, err := time.Parse(dayDirs[:len(path)], path)
		switch {
		case err != nil:
		case len(path) < len(dayDirs):
			if !j.daysBelow(ctx, service, below, from, yield) {
				return false
			}
		case blobfmt.DayPrefix(service, t) == below:
			if !yield(horizon.DayOf(t), nil) {
				return false
			}
		}
	}
	return true
}

// survivors says whether there is a blob of a service in the days from one on, up
// to another.
func (j *Job) survivors(ctx context.Context, service string, from, to horizon.Day) (bool, error) {
	for d, err := range j.days(ctx, service, blobfmt.DayPrefix(service, from.Start())) {
		if err != nil {
			return false, fmt.Errorf("list %s/: %w", service, err)
		}
		if d > to {
			break
		}
		for b, err := range j.blobs.List(ctx, blobfmt.DayPrefix(service, d.Start()), "") {
			if err != nil {
				return false, fmt.Errorf("list %s of %s: %w", d, service, err)
			}
			if _, _, ours, err := j.ours(ctx, service, b); ours || err != nil {
				return ours, err
			}
		}
	}
	return false, nil
}
