// Package fsys is the seam between what must survive a power cut and the file
// system: the handful of operations that the log and the dir store rest on.
// [OS] is the real one, and [Tree] the part of it below a directory that is held
// open; a simulated disk that forgets what was not synced can stand in for them.
package fsys

import (
	"errors"
	"io"
	"io/fs"
)

// FS is a file system. Paths are those of the host. Errors are those of package
// os, so errors.Is with fs.ErrNotExist and fs.ErrExist works.
type FS interface {
	// OpenFile opens as [os.OpenFile] does.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Mkdir makes one directory; its name is durable after SyncDir of the parent.
	Mkdir(name string, perm fs.FileMode) error
	// Link makes newname another name of oldname; fs.ErrExist when it is taken.
	Link(oldname, newname string) error
	// Rename moves a file or directory, replacing a file of the new name.
	Rename(oldname, newname string) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// ReadDir lists a directory in byte order.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Stat describes a file.
	Stat(name string) (fs.FileInfo, error)
	// SameFile tells whether two descriptions are of one file or directory.
	SameFile(a, b fs.FileInfo) bool
	// SyncDir makes the names in a directory durable: creations, renames, removals.
	SyncDir(name string) error
	// Lock takes the lock of a directory for this caller alone, or fails with
	// [ErrLocked] at once. Close lets go of it, and so does the end of the
	// process. It keeps nobody from doing anything but to take the lock.
	Lock(name string) (io.Closer, error)
}

// ErrLocked says that another caller, here or in another process, has a lock.
var ErrLocked = errors.New("locked by another")

// File is an open file.
type File interface {
	ReadAt(p []byte, off int64) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	// Sync makes the file's bytes and size durable (not its name). After an
	// error nothing is known of what was written since the last success, and
	// asking again proves nothing: pages that failed may be marked clean.
	Sync() error
	Truncate(size int64) error
	Stat() (fs.FileInfo, error)
	Close() error
}

// Measurer is an [FS] that knows how much room there is.
type Measurer interface {
	// Free returns how many bytes can still be written below a directory.
	Free(dir string) (int64, error)
}
