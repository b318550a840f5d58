//go:build linux

package fsys

import (
	"io/fs"
	"os"
	"syscall"
)

// OS returns the file system of the host. It is a [Measurer].
func OS() FS { return osFS{&Tree{}} }

type osFS struct{ *Tree }

// Stat takes one system call; the log makes it after each fsync.
func (osFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

type osFile struct{ *os.File }

// Sync uses fdatasync, which flushes the size too, but not the time stamps.
func (f osFile) Sync() error {
	err := uninterrupted(func() error { return syscall.Fdatasync(int(f.Fd())) })
	if err != nil {
		err = &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return err
}

// Free leaves out the space reserved for root.
func (osFS) Free(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
