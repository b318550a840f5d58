package dir

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"blobtail/storage"
	"blobtail/storage/fsys"
)

const (
	// staleAfter is the age from which on a temporary file is abandoned: no Create
	// takes so long.
	staleAfter = 24 * time.Hour
	maxPause   = 20 * time.Millisecond // between two tries to take the lock
)

// Delete implements [storage.BlobStore]. It also removes the directories that it leaves
// empty; a Create that finds one missing makes it again. The removals are durable when
// Delete returns nil.
//
// A Delete holds the lock of the root. A Create cannot replace the object of a name, so
// it needs no lock. Between the check of an object and its removal, only another Delete
// can free the name for another object.
func (s *Store) Delete(ctx context.Context, blobs ...storage.Blob) error {
	blobs = slices.DeleteFunc(slices.Clone(blobs), func(b storage.Blob) bool { return !readable(b.Key) }) // no objects
	if len(blobs) == 0 {
		return nil
	}
	errs := make([]error, len(blobs))
	touched := map[string]error{} // directories that may have lost a file
	lock, err := s.lock(ctx)
	for i, b := range blobs {
		if errs[i] = err; err == nil {
			errs[i] = s.remove(ctx, b)
		}
		if errs[i] == nil {
			touched[filepath.Dir(s.path(b.Key))] = nil
		}
	}
	if err == nil {
		lock.Close()
	}
	for dir := range touched {
		touched[dir] = s.prune(dir)
	}
	for i, b := range blobs {
		if errs[i] == nil {
			errs[i] = touched[filepath.Dir(s.path(b.Key))]
		}
		errs[i] = storage.AtKey("delete", b.Key, errs[i])
	}
	return errors.Join(errs...)
}

// lock waits for the lock that keeps concurrent deletes apart.
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
	if b.Version != "" {
		now, err := s.look(ctx, b.Key)
		if errors.Is(err, storage.ErrNotExist) || err == nil && now.Version != b.Version {
			return nil
		}
		if err != nil {
			return err
		}
	}
	// Remove deletes empty directories too, and those are not objects.
	if fi, err := s.fs.Stat(s.path(b.Key)); err == nil && fi.IsDir() {
		return nil
	}
	if err := known(s.fs.Remove(s.path(b.Key))); !errors.Is(err, storage.ErrNotExist) {
		return err
	}
	return nil
}

// prune removes a directory if it is empty, then the empty ones above it, and syncs the
// first directory that stays.
func (s *Store) prune(dir string) error {
	for dir != s.root && s.removable(dir) {
		err := s.fs.Remove(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			break // probably a concurrent Create; in any case the directory stays
		}
		dir = filepath.Dir(dir)
	}
	err := s.syncDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // another Delete removed it, or it never existed
	}
	return known(err)
}

// removable reports whether a directory looks empty and is not a symbolic link. A link
// could be removed even if its target is not empty. It removes abandoned temporary files
// from a directory that holds nothing else.
func (s *Store) removable(dir string) bool {
	list, err := s.fs.ReadDir(dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	if slices.ContainsFunc(list, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), tmpPrefix) }) {
		return false
	}
	for _, e := range list { // leftovers of crashes
		name := filepath.Join(dir, e.Name())
		fi, err := s.fs.Stat(name)
		if err != nil || time.Since(fi.ModTime()) <= staleAfter || s.fs.Remove(name) != nil {
			return false
		}
	}
	siblings, err := s.fs.ReadDir(filepath.Dir(dir))
	return err == nil && slices.ContainsFunc(siblings, func(e fs.DirEntry) bool {
		return e.Name() == filepath.Base(dir) && e.IsDir()
	})
}

// Sweep implements [storage.Sweeper]. A Create that loses its temporary file begins again.
func (s *Store) Sweep(ctx context.Context, dir string) error {
	list, err := s.fs.ReadDir(s.path(dir))
	if err = known(err); errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	gone := false
	for _, e := range list {
		switch name := dir + e.Name(); {
		case err != nil || ctx.Err() != nil:
			return cmp.Or(err, ctx.Err())
		case strings.HasPrefix(e.Name(), tmpPrefix):
			if err, gone = s.fs.Remove(s.path(name)), true; errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		case !e.Type().IsRegular() && len(name) < maxKey: // a link may lead to a directory elsewhere
			err = s.Sweep(ctx, name+"/")
		}
	}
	if gone && err == nil {
		return s.syncDir(s.path(dir))
	}
	return err
}
