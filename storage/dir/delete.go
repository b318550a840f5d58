package dir

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"blobtail/internal/fsys"
	"blobtail/storage"
)

const (
	// staleAfter is the age from which on a temporary file belongs to nobody: no
	// Create takes so long.
	staleAfter = 24 * time.Hour
	maxPause   = 20 * time.Millisecond // between two tries to take the lock
)

// Delete implements [storage.BlobStore]. It also removes the directories that
// it leaves empty; a Create that meets one makes it again. The removals are
// durable when it returns nil.
//
// Whoever deletes holds the lock of the root meanwhile. A Create cannot replace
// what holds a name, so it needs none: between the look at an object and its
// removal the name can pass to another one only by another Delete.
func (s *Store) Delete(ctx context.Context, blobs ...storage.Blob) error {
	if len(blobs) == 0 {
		return nil
	}
	errs, touched := s.removeAll(ctx, blobs)
	for dir := range touched {
		if err := s.prune(dir); err != nil {
			for _, b := range blobs {
				if readable(b.Key) && filepath.Dir(s.path(b.Key)) == dir {
					errs = append(errs, storage.AtKey("delete", b.Key, err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// removeAll removes files, and tells which directories may have lost one.
func (s *Store) removeAll(ctx context.Context, blobs []storage.Blob) (errs []error, touched map[string]bool) {
	lock, err := s.lock(ctx)
	if err == nil {
		defer lock.Close()
	}
	touched = map[string]bool{}
	for _, b := range blobs {
		rerr := err
		if rerr == nil {
			rerr = s.remove(ctx, b)
		}
		if rerr != nil {
			errs = append(errs, storage.AtKey("delete", b.Key, rerr))
		} else if readable(b.Key) {
			touched[filepath.Dir(s.path(b.Key))] = true
		}
	}
	return errs, touched
}

// lock waits for the lock that keeps those who delete apart.
func (s *Store) lock(ctx context.Context) (io.Closer, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, maxPause) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l, err := s.fs.Lock(s.root)
		if !errors.Is(err, fsys.ErrLocked) {
			return l, known(err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// remove removes one file, with the lock held.
func (s *Store) remove(ctx context.Context, b storage.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !readable(b.Key) {
		return nil // no object can be there
	}
	if b.Version != "" {
		now, err := s.look(ctx, b.Key)
		if errors.Is(err, storage.ErrNotExist) || err == nil && now.Version != b.Version {
			return nil
		}
		if err != nil {
			return err
		}
	}
	// Remove takes empty directories too, and those are not objects.
	fi, err := s.fs.Stat(s.path(b.Key))
	if err == nil && fi.IsDir() {
		return nil
	}
	err = known(s.fs.Remove(s.path(b.Key)))
	if errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	return err
}

// prune removes a directory if it is empty, and then those above it, and syncs
// the first one that stays.
func (s *Store) prune(dir string) error {
	for dir != s.root && s.removable(dir) {
		err := s.fs.Remove(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			break // a Create was quicker, most likely; in any case it stays
		}
		dir = filepath.Dir(dir)
		s.forget(dir)
	}
	err := s.syncDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
		return nil // another Delete took it, or it never was
	}
	return known(err)
}

// removable tells whether a directory looks empty and is no symbolic link: one
// of those could be removed whatever is behind it.
func (s *Store) removable(dir string) bool {
	list, err := s.fs.ReadDir(dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	if s.removeStale(dir, list) < len(list) {
		return false
	}
	siblings, err := s.fs.ReadDir(filepath.Dir(dir))
	return err == nil && slices.ContainsFunc(siblings, func(e fs.DirEntry) bool {
		return e.Name() == filepath.Base(dir) && e.IsDir()
	})
}

// removeStale removes what crashes left behind in a directory that holds
// nothing else, and returns how many files went.
func (s *Store) removeStale(dir string, list []fs.DirEntry) (removed int) {
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), tmpPrefix) {
			return 0
		}
	}
	for _, e := range list {
		fi, err := e.Info()
		if err == nil && time.Since(fi.ModTime()) > staleAfter &&
			s.fs.Remove(filepath.Join(dir, e.Name())) == nil {
			removed++
		}
	}
	return removed
}
