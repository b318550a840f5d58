//go:build !linux

package fsys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// errNotLinux gives the reason: durability after a power cut is known for Linux only.
var errNotLinux = fmt.Errorf("logs of ingesters and stores in directories need Linux, and this is %s: %w", runtime.GOOS, errors.ErrUnsupported)

// OS returns a file system that refuses all operations.
func OS() FS { return none{} }

// Identity is not known here.
func Identity(string, fs.FileInfo) (inode uint64, born int64) { return 0, 0 }

// A Place is a directory that a process uses.
type Place struct {
	Dir   string
	Reads bool
}

// Remedy knows nothing here.
func (Place) Remedy(error) string { return "" }

// Owner is not known here.
func Owner(string) (name string, other bool) { return "", false }

// letRead knows nothing here.
func letRead(error) string { return "" }

type none struct{}

func (none) OpenFile(string, int, fs.FileMode) (File, error) { return nil, errNotLinux }
func (none) Mkdir(string, fs.FileMode) error                 { return errNotLinux }
func (none) Link(string, string) error                       { return errNotLinux }
func (none) Rename(string, string) error                     { return errNotLinux }
func (none) Remove(string) error                             { return errNotLinux }
func (none) ReadDir(string) ([]fs.DirEntry, error)           { return nil, errNotLinux }
func (none) Stat(string) (fs.FileInfo, error)                { return nil, errNotLinux }
func (none) SameFile(a, b fs.FileInfo) bool                  { return os.SameFile(a, b) }
func (none) SyncDir(string) error                            { return errNotLinux }
func (none) Lock(string) (io.Closer, error)                  { return nil, errNotLinux }
