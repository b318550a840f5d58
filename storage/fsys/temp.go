package fsys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// TryFile writes a file of 64 KiB to a directory and removes it.
func TryFile(dir string) error {
	f, err := os.CreateTemp(dir, ".check-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, 64<<10))
	return errors.Join(err, f.Sync(), f.Close())
}

// Temp tries the directory for temporary files, that of [os.TempDir], and returns its name. The
// error has the fault and a remedy.
func Temp() (dir string, err error) {
	dir = os.TempDir()
	err = TryFile(dir)
	if err == nil {
		return dir, nil
	}
	return dir, TempError(dir, err)
}

// TempError is an error of a temporary file in a directory, with the directory and a remedy.
func TempError(dir string, err error) error {
	remedy := "look at its file system"
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR):
		remedy = "make it writable for this user"
	case errors.Is(err, fs.ErrNotExist):
		remedy = "make it"
	case IsFull(err):
		remedy = "make room there"
	case errors.Is(err, syscall.EROFS):
		remedy = "mount it writable (a container with a read-only root needs a volume or a tmpfs there)"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		remedy = "allow more open files"
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the rest is the name of our own file
	}
	return fmt.Errorf("no temporary file can be written to %s: %w; %s, or set TMPDIR to another directory", dir, err, remedy)
}
