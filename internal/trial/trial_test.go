package trial_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/trial"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/dir/tables"
	"blobtail/storage/mem"
)

// store is a store that takes objects, or answers with an error.
type store struct {
	storage.BlobStore
	mu    sync.Mutex
	err   error
	tried int
}

func (s *store) TryCreate(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried++
	return storage.AtKey("create", "a test object", s.err)
}

func (s *store) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// A store that refuses makes the trial fail with the fix, until it takes objects. A remote
// store that cannot be reached does not.
func TestRun(t *testing.T) {
	refused := fmt.Errorf("%w: 403", storage.ErrUnauthorized)
	for _, c := range []struct {
		name   string
		err    error
		remote bool
		fails  bool
	}{
		{"no right", refused, true, true},
		{"no container", storage.ErrNotExist, true, true},
		{"out of reach", errors.New("connection refused"), true, false},
		{"directory, no right", refused, false, true},
		{"directory on a full disk", errors.New("no space left on device"), false, true},
		{"all is well", nil, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := &store{BlobStore: mem.New(mem.Options{}), err: c.err}
				tr := trial.New(trial.Options{
					Blobs: s, Remote: c.remote, Storing: func() error { return nil },
					Explained: func(err error) error { return fmt.Errorf("%w; the fix", err) }, Log: zerolog.New(&log),
				})
				if tr.Err() != nil {
					t.Errorf("before the first try: %v", tr.Err())
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan struct{})
				go func() { defer close(ended); tr.Run(ctx) }()
				<-tr.First()
				time.Sleep(12 * time.Second)
				synctest.Wait()
				err := tr.Err()
				if (err != nil) != c.fails || c.fails && (!errors.Is(err, c.err) || !strings.HasSuffix(err.Error(), "; the fix")) {
					t.Errorf("Err = %v", err)
				}
				if n := strings.Count(log.String(), "not ready"); n > 1 || (n == 1) != c.fails {
					t.Errorf("log: %s", log.String())
				}
				want := 3 // at once, after 5 s and after 10 s
				if c.err == nil {
					want = 1
				}
				if s.tried != want {
					t.Errorf("tried %d times in 12 s, want %d", s.tried, want)
				}
				s.set(nil)
				time.Sleep(5 * time.Second)
				<-ended // it takes objects, and is not tried any more
				if tr.Err() != nil || strings.Contains(log.String(), "takes objects now") != c.fails {
					t.Errorf("it works again: %v; %s", tr.Err(), log.String())
				}
			})
		})
	}
}

// Nothing is sent to a store that may not be the right one.
func TestRunWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{BlobStore: mem.New(mem.Options{})}
		tr := trial.New(trial.Options{
			Blobs: s, Remote: true, Storing: func() error { return errors.New("which store is this?") },
			Explained: func(err error) error { return err },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); tr.Run(ctx) }()
		time.Sleep(time.Minute)
		cancel()
		<-ended
		if s.tried > 0 || tr.Err() != nil {
			t.Errorf("tried %d times, %v", s.tried, tr.Err())
		}
	})
}

// A directory is left as it was, but for one table.
func TestDir(t *testing.T) {
	root := t.TempDir()
	blobs, err := dir.Open(root, dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	rows, err := tables.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for range 2 {
		if err := errors.Join(trial.Blobs(t.Context(), blobs), trial.Tables(t.Context(), rows)); err != nil {
			t.Error(err)
		}
	}
	for b := range blobs.List(t.Context(), "", "") {
		t.Errorf("it leaves %s", b.Key)
	}
	for name := range rows.Tables(t.Context(), "") {
		if name != trial.Table {
			t.Errorf("it leaves table %s", name)
		}
	}
}
