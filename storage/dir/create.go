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
	if s.bare {
		frame = nil
	}
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

// A noLinksError is the error of a link on a file system without hard links. It is no lack of rights,
// though such a file system says EPERM: the temporary file was made in the same directory.
type noLinksError struct{ err error }

func (e *noLinksError) Error() string {
	return e.err.Error() + "; the file system has no hard links, by which a new object takes its name and never that of another; " +
		"keep the store on one that has them (ext4, XFS, Btrfs, ZFS, NFS, but not FAT, exFAT or most SMB shares), or in Azure"
}

// linked finds the errors of a link that mean that the file system has none.
func linked(err error) error {
	const notSupported = syscall.Errno(524) // ENOTSUPP of the kernel, which some NFS servers cause
	if errors.Is(err, syscall.EPERM) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EMLINK) || errors.Is(err, notSupported) {
		return &noLinksError{err}
	}
	return err
}

// create writes a temporary file and links it to path.
func (s *Store) create(path string, body, frame []byte) error {
	// This check finds most taken names without writing the body. The link decides.
	if _, err := s.fs.Stat(path); err == nil {
		return fs.ErrExist
	}
	tmp := filepath.Join(filepath.Dir(path), tmpPrefix+rand.Text())
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
	return linked(s.fs.Link(tmp, path))
}

// TryCreate implements [storage.Trier]. It makes an object in a temporary directory, whose name is no
// key.
func (s *Store) TryCreate(ctx context.Context) (err error) {
	defer bounds.At("create", "a test object", &err)
	if err := ctx.Err(); err != nil {
		return err
	}
	const size = 4 << 10 // it takes a block of the disk
	dir := filepath.Join(s.root, tmpPrefix+rand.Text())
	path := filepath.Join(dir, "object")
	if err := s.makeDirs(dir); err != nil {
		return known(err)
	}
	defer s.fs.Remove(dir)
	if err := s.create(path, make([]byte, size), appendFrame(nil, size, storage.Attrs{})); err != nil {
		return known(err)
	}
	defer s.fs.Remove(path)
	return s.settle(path, nil)
}

// settle makes the names of path and of all directories above it durable. The object there is ours
// (err is nil) or that of another writer, which may have linked it and not synced it yet. So may
// another process have made a directory, and no time of a file tells: it moves by ticks, of whole
// seconds on some file systems.
func (s *Store) settle(path string, err error) error {
	if err != nil {
		if fi, serr := s.fs.Stat(path); serr == nil && fi.IsDir() {
			return errors.New("other objects are kept below this key")
		}
	}
	for dir := path; dir != s.root; {
		dir = filepath.Dir(dir)
		if serr := s.syncDir(dir); serr != nil {
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
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
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
