//go:build linux

package fsys

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// OS returns the file system of the host. It is a [Measurer].
func OS() FS { return osFS{} }

type osFS struct{}

type osFile struct{ *os.File }

// Sync uses fdatasync, which flushes the size too, but not the time stamps.
func (f osFile) Sync() error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			if err != nil {
				err = &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
			}
			return err
		}
	}
}

func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Mkdir(name string, perm fs.FileMode) error  { return os.Mkdir(name, perm) }
func (osFS) Link(oldname, newname string) error         { return os.Link(oldname, newname) }
func (osFS) Rename(oldname, newname string) error       { return os.Rename(oldname, newname) }
func (osFS) Remove(name string) error                   { return os.Remove(name) }
func (osFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (osFS) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (osFS) SameFile(a, b fs.FileInfo) bool             { return os.SameFile(a, b) }

// Free leaves out the space reserved for root.
func (osFS) Free(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// Lock uses flock on the directory itself, so no file is left behind.
func (osFS) Lock(name string) (io.Closer, error) {
	d, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return flock(d)
}

// flock locks an open directory, or closes it.
func flock(d *os.File) (io.Closer, error) {
	var err error
	for {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return d, nil
	}
	d.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, &os.PathError{Op: "flock", Path: d.Name(), Err: err}
}

func (osFS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return syncDir(d)
}

func syncDir(d *os.File) error {
	err := d.Sync()
	return cmp.Or(err, d.Close())
}
