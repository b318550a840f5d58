package dir

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"blobtail/storage"
)

// staleAfter is the age from which on a temporary file belongs to nobody: no
// Create takes so long.
const staleAfter = 24 * time.Hour

// Delete implements [storage.BlobStore]. It also removes the directories that
// it leaves empty; a Create that meets one makes it again. The removals are
// durable when it returns nil.
func (s *Store) Delete(ctx context.Context, blobs ...storage.Blob) error {
	keys := make([]string, len(blobs))
	for i := range blobs {
		keys[i] = blobs[i].Key
	}
	var errs []error
	touched := map[string]bool{}
	for _, key := range keys {
		if err := s.remove(ctx, key); err != nil {
			errs = append(errs, keyError("delete", key, err))
		} else if readable(key) {
			touched[filepath.Dir(s.path(key))] = true
		}
	}
	for dir := range touched {
		if err := s.prune(dir); err != nil {
			for _, key := range keys {
				if readable(key) && filepath.Dir(s.path(key)) == dir {
					errs = append(errs, keyError("delete", key, err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (s *Store) remove(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !readable(key) {
		return nil // no object can be there
	}
	// Remove takes empty directories too, and those are not objects.
	fi, err := s.fs.Stat(s.path(key))
	if err == nil && fi.IsDir() {
		return nil
	}
	err = known(s.fs.Remove(s.path(key)))
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
