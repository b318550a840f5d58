package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"blobtail/storage/fsys"
)

// openHome opens the log's directory. It is held open, so that its inode stays the same
// and no other directory gets it. Overlay file systems may change inodes otherwise.
func openHome(fsy fsys.FS, dir string) (*file, error) {
	f, err := fsy.OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &file{File: f, info: info}, nil
}

// Check fails the log for good if the name of its directory or of the active segment no
// longer leads to it. Later appends could be synced, but no start would ever find them.
// Check also writes the records that are in memory only, and maintains the ballast and the
// note on the newest segment. It must be called about once a second.
func (l *Log) Check() error {
	if err := l.settle(); err != nil {
		return err
	}
	if f, _ := l.useActive(); f != nil {
		_ = l.inPlace(f) // it fails the log, or nothing is known
		_ = l.files.release(f)
	}
	if l.Err() == nil {
		l.noteNewest()
		l.growBallast()
	}
	return l.Err()
}

// useActive returns the active segment, which the caller must release, and its end. The
// segment is nil once the log is closed.
func (l *Log) useActive() (*file, Pos) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active == nil {
		return nil, 0
	}
	f, _ := l.files.acquire(l.active.n) // it is open: the writer uses it
	return f, l.end
}

// inPlace returns nil if the names of the directory and of segment f still lead to them.
// f was the active segment when the caller acquired it. Otherwise inPlace fails the log.
// But if a name cannot be checked, nothing is known, and inPlace only returns that error.
func (l *Log) inPlace(f *file) error {
	err := l.named(l.dir, l.home.info)
	if err == nil {
		err = l.named(l.files.path(f.n, segmentSuffix), f.info)
		// After a roll, which checked the names itself, the segment may have been
		// removed.
		if err != nil && l.Active() != f.n {
			return nil
		}
	}
	if errors.Is(err, errElsewhere) {
		return l.fail(err)
	}
	return err
}

var errElsewhere = errors.New("no start would find what is appended now; start again to go on with what is there")

// named returns nil if path is the name of the file that open describes.
func (l *Log) named(path string, open fs.FileInfo) error {
	there, err := l.fs.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s was removed while the log was open: %w", path, errElsewhere)
	case err != nil:
		return fmt.Errorf("wal: look for %s: %w", path, err)
	case !l.fs.SameFile(there, open):
		return fmt.Errorf("%s was replaced by another while the log was open: %w", path, errElsewhere)
	}
	return nil
}
