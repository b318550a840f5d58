package dir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"syscall"

	"blobtail/storage"
	"blobtail/storage/internal/bounds"
)

// maxKey bounds the keys that a walk follows, and so its depth, even if symbolic links
// form a loop.
const maxKey = 1024

// List implements [storage.BlobStore]. It holds the names of one directory a level at a
// time.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	return bounds.Seq(ctx, "list", prefix, func(give func(storage.Blob) bool) error {
		for key, err := range s.keys(ctx, prefix[:strings.LastIndexByte(prefix, '/')+1], prefix, startAfter) {
			if err != nil {
				return err
			}
			b, err := s.look(ctx, key)
			if errors.Is(err, storage.ErrNotExist) {
				continue // deleted during the walk
			}
			if err != nil {
				return storage.AtKey("stat", key, err)
			}
			if !give(b) {
				return nil
			}
		}
		return nil
	})
}

// look describes an object as List does.
func (s *Store) look(ctx context.Context, key string) (storage.Blob, error) {
	b, err := s.stat(ctx, key)
	if errors.Is(err, storage.ErrDamaged) {
		err = nil
	}
	return b, err
}

// Dirs implements [storage.BlobStore].
func (s *Store) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return bounds.Seq(ctx, "dirs", prefix, func(give func(string) bool) error {
		entries, err := s.entries(prefix)
		// entries are in the order of keys, where a-b/ comes before a/.
		slices.SortFunc(entries, func(a, b string) int {
			return cmp.Compare(strings.TrimSuffix(a, "/"), strings.TrimSuffix(b, "/"))
		})
		for _, e := range entries {
			name, isDir := strings.CutSuffix(e, "/")
			if !isDir {
				continue
			}
			// Directories without an object were emptied, or made for an object that
			// never came.
			if has, err := s.has(ctx, prefix+e); err != nil || has && !give(name) {
				return err
			}
		}
		return err
	})
}

// has reports whether an object is below a directory. The one that it found last time tells it sooner
// than a walk.
func (s *Store) has(ctx context.Context, dir string) (bool, error) {
	if s.memory.holds(s.path(dir)) {
		return true, nil
	}
	for key, err := range s.keys(ctx, dir, dir, "") {
		if err == nil {
			s.memory.found(s.path(dir), s.path(key))
		}
		return err == nil, err
	}
	return false, nil
}

// keys walks the files below a directory, in byte order. It yields the keys that have a prefix and
// are greater than startAfter.
func (s *Store) keys(ctx context.Context, dir, prefix, startAfter string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		entries, err := s.entries(dir)
		if err = cmp.Or(ctx.Err(), err); err != nil {
			yield("", err)
			return
		}
		for _, e := range entries {
			key := dir + e
			isDir := strings.HasSuffix(e, "/")
			switch {
			case len(key) > maxKey:
			case isDir && (!strings.HasPrefix(key, prefix) && !strings.HasPrefix(prefix, key) ||
				key < startAfter && !strings.HasPrefix(startAfter, key)): // it holds none of the wanted keys
			case isDir:
				for key, err := range s.keys(ctx, key, prefix, startAfter) {
					if !yield(key, err) || err != nil {
						return
					}
				}
			case strings.HasPrefix(key, prefix) && key > startAfter:
				if !yield(key, nil) {
					return
				}
			}
		}
	}
}

// entries returns the names in a directory ("" or with a slash at its end) in the order
// of keys: directories with a slash, for "a-b/" sorts before "a/". A missing directory
// is empty, but the root must exist.
func (s *Store) entries(dir string) ([]string, error) {
	if dir != "" && !readable(strings.TrimSuffix(dir, "/")) {
		return nil, nil
	}
	return s.memory.list(s.path(dir), func() ([]string, bool, error) { return s.readDir(dir) })
}

// readDir is entries by the file system. firm says that the names mean the same until the directory
// changes: none is a symbolic link.
func (s *Store) readDir(dir string) (names []string, firm bool, err error) {
	list, err := s.fs.ReadDir(s.path(dir))
	if err = known(err); errors.Is(err, storage.ErrNotExist) && dir != "" {
		if _, err = s.fs.Stat(s.root); err == nil {
			err = s.dangling(strings.TrimSuffix(dir, "/"))
		}
		return nil, false, known(err)
	}
	if err != nil {
		return nil, false, err
	}
	names, firm = make([]string, 0, len(list)), true
	for _, e := range list {
		name := e.Name()
		if name[0] == '.' {
			continue
		}
		mode := e.Type()
		if mode&fs.ModeSymlink != 0 {
			firm = false
			// An operator moved a part of the store to another disk. While that disk is
			// away, the contents are unknown.
			fi, err := s.fs.Stat(s.path(path.Join(dir, name)))
			if errors.Is(err, fs.ErrNotExist) {
				return nil, false, danglingError(path.Join(dir, name))
			}
			if errors.Is(err, syscall.ELOOP) {
				continue // there is nothing behind it
			}
			if err != nil {
				return nil, false, known(err)
			}
			mode = fi.Mode()
		}
		switch {
		case mode.IsDir():
			names = append(names, name+"/")
		case mode.IsRegular():
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, firm, nil
}

// dangling reports, for a missing directory, whether a symbolic link on the way to it
// is dangling.
func (s *Store) dangling(dir string) error {
	for ; dir != "."; dir = path.Dir(dir) {
		f, err := s.fs.OpenFile(s.path(dir), openName, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		fi, err := f.Stat()
		f.Close()
		if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			err = danglingError(dir)
		}
		return err
	}
	return nil
}

func danglingError(name string) error {
	return fmt.Errorf("%w: the symbolic link %s leads nowhere: is its disk mounted?", storage.ErrDamaged, name)
}

// known turns errors of the file system into the sentinels of storage. No object can be
// behind a path through a file.
func known(err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return storage.ErrNotExist
	}
	return bounds.Known(err)
}
