package dir

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"blobtail/storage"
	"blobtail/storage/internal/bounds"
)

const (
	tmpPrefix = ".tmp-"
	openRead  = os.O_RDONLY | syscall.O_CLOEXEC
	openName  = unix.O_PATH | unix.O_NOFOLLOW // of any kind of file, a symbolic link too
	// attempts bounds how often a directory is made again if other processes remove it.
	attempts = 100
)

// Create implements [storage.BlobStore].
func (s *Store) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) (err error) {
	defer bounds.At("create", key, &err)
	if err := errors.Join(ctx.Err(), bounds.Key(key), bounds.Attrs(attrs)); err != nil {
		return err
	}
	path := s.path(key)
	frame := appendFrame(nil, int64(len(body)), attrs)
	for range attempts {
		err := s.create(path, body, frame)
		if errors.Is(err, fs.ErrNotExist) {
			// The directory does not exist yet, or was removed meanwhile.
			if err = s.makeDirs(filepath.Dir(path)); err == nil || errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			return s.settle(path, err)
		}
		if errors.Is(err, syscall.ENOTDIR) {
			return errors.New("a part of its path is an object")
		}
		return known(err)
	}
	return errors.New("its directory is removed again and again")
}

// create writes a temporary file and links it to path.
func (s *Store) create(path string, body, frame []byte) error {
	// This check finds most taken names without writing the body. The link decides.
	if _, err := s.fs.Stat(path); err == nil {
		return fs.ErrExist
	}
	return s.withFile(filepath.Dir(path), body, frame, func(tmp string) error { return s.fs.Link(tmp, path) })
}

// TryCreate implements [storage.Trier]. It makes a temporary file in the root, which is no
// object.
func (s *Store) TryCreate(ctx context.Context) (err error) {
	defer bounds.At("create", "a test object", &err)
	if err := ctx.Err(); err != nil {
		return err
	}
	const size = 4 << 10 // it takes a block of the disk
	err = s.withFile(s.root, make([]byte, size), appendFrame(nil, size, storage.Attrs{}), func(string) error { return nil })
	return known(err)
}

// withFile calls use with a temporary file in dir that has the body and the frame of an
// object, and removes the file.
func (s *Store) withFile(dir string, body, frame []byte, use func(tmp string) error) error {
	tmp := filepath.Join(dir, tmpPrefix+rand.Text())
	f, err := s.fs.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_CLOEXEC, 0o440)
	if err != nil {
		return err
	}
	defer s.fs.Remove(tmp) // a leftover name does no harm
	if _, err = f.WriteAt(body, 0); err == nil {
		_, err = f.WriteAt(frame, int64(len(body)))
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return use(tmp)
}

// settle makes the name of path durable. The object there is ours (err is nil) or that
// of another writer, which may have linked it and not synced it yet.
func (s *Store) settle(path string, err error) error {
	if err != nil {
		if fi, serr := s.fs.Stat(path); serr == nil && fi.IsDir() {
			return errors.New("other objects are kept below this key")
		}
	}
	dir := filepath.Dir(path)
	if serr := s.syncDir(dir); serr != nil {
		return fmt.Errorf("stored, but perhaps not durable: %w", serr)
	}
	for dir != s.root {
		dir = filepath.Dir(dir)
		if serr := s.syncMoved(dir); serr != nil {
			return fmt.Errorf("stored, but perhaps not durable: %w", serr)
		}
	}
	if err != nil {
		return storage.ErrExist
	}
	return nil
}

// makeDirs makes a directory below the root and all missing directories above it.
func (s *Store) makeDirs(dir string) error {
	if dir == s.root {
		// Only Open makes the root: a missing root may mean that a disk is not mounted.
		if _, err := s.fs.Stat(dir); err != nil {
			return fmt.Errorf("the root: %w", known(err))
		}
		return nil
	}
	err := s.fs.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.makeDirs(filepath.Dir(dir)); err == nil {
			err = s.fs.Mkdir(dir, 0o700)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	s.forget(filepath.Dir(dir))
	return nil
}

// forget makes the next Create below dir sync it again.
func (s *Store) forget(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.synced, dir)
}

// syncMoved syncs a directory unless it has not changed since its last sync, see synced.
func (s *Store) syncMoved(dir string) error {
	fi, err := s.fs.Stat(dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	last, ok := s.synced[dir]
	err = s.failed[dir]
	s.mu.Unlock()
	if err != nil || ok && !last.IsZero() && last.Equal(fi.ModTime()) {
		return err
	}
	if err := s.syncDir(dir); err != nil {
		return err
	}
	s.mu.Lock()
	s.synced[dir] = fi.ModTime()
	s.mu.Unlock()
	return nil
}

// syncDir syncs a directory. After a failure it keeps failing, see failed.
func (s *Store) syncDir(dir string) error {
	s.mu.Lock()
	err := s.failed[dir]
	s.mu.Unlock()
	if err != nil {
		return err
	}
	err = s.fs.SyncDir(dir)
	var pe *fs.PathError
	if err == nil || errors.As(err, &pe) && pe.Op == "open" { // the kernel was never asked to sync
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[dir] = fmt.Errorf("an fsync of its directory failed, only a restart can clear that: %w", err)
	return s.failed[dir]
}
