// Package fsys is the interface to the file system for all data that must survive a power
// cut: the few operations that the log and the dir store need. [OS] is the real one, and
// [Tree] is its part below a directory that is held open. In tests a simulated disk that forgets
// unsynced data takes their place. [Place.Remedy] and [Temp] have a remedy for a directory that
// cannot be used.
package fsys

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// FS is a file system. Paths are those of the host. Errors are those of package
// os, so errors.Is with fs.ErrNotExist and fs.ErrExist works.
type FS interface {
	// OpenFile opens as [os.OpenFile] does.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Mkdir makes one directory; its name is durable after SyncDir of the parent.
	Mkdir(name string, perm fs.FileMode) error
	// Link makes newname another name of oldname; fs.ErrExist if it is taken.
	Link(oldname, newname string) error
	// Rename moves a file or directory, replacing a file of the new name.
	Rename(oldname, newname string) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// ReadDir lists a directory in byte order.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Stat describes a file.
	Stat(name string) (fs.FileInfo, error)
	// SameFile reports whether two descriptions are of one file or directory.
	SameFile(a, b fs.FileInfo) bool
	// SyncDir makes the names in a directory durable: creations, renames, removals.
	SyncDir(name string) error
	// Lock takes the lock of a directory for this caller alone, or fails with [ErrLocked]
	// at once. Close releases it, and so does the end of the process. The lock prevents
	// other callers only from taking the lock.
	Lock(name string) (io.Closer, error)
}

// ErrLocked says that another caller, here or in another process, has a lock.
var ErrLocked = errors.New("locked by another")

// IsFull reports whether an error means that the disk has no room, for anybody or for the owner of
// the files.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// File is an open file.
type File interface {
	ReadAt(p []byte, off int64) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	// Sync makes the file's bytes and size durable (not its name). After an error the
	// state of all writes since the last success is unknown. Syncing again proves
	// nothing: failed pages may be marked clean.
	Sync() error
	Truncate(size int64) error
	Stat() (fs.FileInfo, error)
	Close() error
}

// Measurer is an [FS] that knows its free space.
type Measurer interface {
	// Free returns how many bytes can still be written below a directory.
	Free(dir string) (int64, error)
}
