// Package watch notices that files have changed, for settings that are read again while a
// program runs.
//
// Call [New] before the files are read the first time, and [Files.Run] then. It looks at
// the files every 2 s instead of asking the kernel for events. Events get lost where files
// are replaced through links, as Kubernetes does it.
package watch

import (
	"context"
	"os"
	"slices"
	"time"
)

// every is the time between two looks.
const every = 2 * time.Second

// Files are files that are watched. One goroutine may call Run.
type Files struct {
	paths []string
	seen  []version
}

// version tells that a file has changed. The zero value is a missing file.
type version struct {
	changed time.Time
	size    int64
}

// New returns a watch over files, as they are now.
func New(paths ...string) *Files {
	f := &Files{paths: paths}
	f.seen = f.look()
	return f
}

func (f *Files) look() []version {
	seen := make([]version, len(f.paths))
	for i, path := range f.paths {
		if fi, err := os.Stat(path); err == nil {
			seen[i] = version{fi.ModTime(), fi.Size()}
		}
	}
	return seen
}

// Run calls reload when a file has another time or size than before, until ctx ends. While
// reload fails, Run calls it at each look, because several files may be changed one after
// the other. It passes each error to failed, but not the same error again.
func (f *Files) Run(ctx context.Context, reload func() error, failed func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	told := ""
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		seen := f.look()
		if told == "" && slices.Equal(seen, f.seen) {
			continue
		}
		f.seen = seen
		err := reload()
		if err == nil {
			told = ""
		} else if text := err.Error(); text != told {
			told = text
			failed(err)
		}
	}
}
