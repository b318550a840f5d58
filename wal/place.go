package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"blobtail/internal/fsys"
)

// home is the log's directory. It is held open, so that no other directory gets
// its inode, nor it another one (as overlay file systems may do otherwise).
type home struct {
	fsys.File
	info fs.FileInfo
}

func openHome(fsy fsys.FS, dir string) (*home, error) {
	f, err := fsy.OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &home{f, info}, nil
}

// Check fails the log for good when its directory or the active segment is no
// longer found under its name: what is appended then can be synced, but no start
// will ever find it. It also sees to the ballast, and to the note on the newest
// segment. It is to be called about once a second.
func (l *Log) Check() error {
	if err := l.Err(); err != nil {
		return err
	}
	if f := l.useActive(); f != nil {
		err := l.inPlace(f)
		_ = l.files.release(f)
		if err != nil && l.Err() != nil {
			return err
		}
	}
	l.noteNewest()
	l.growBallast()
	return l.Err()
}

// useActive returns the active segment, to be released; nil once the log is closed.
func (l *Log) useActive() *file {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active != nil {
		l.files.again(l.active)
	}
	return l.active
}

// inPlace returns nil when the directory of the log and segment f, which was the
// active one when its caller took it, are what their names stand for. Otherwise it
// fails the log; but where a name cannot be looked at nothing is known, and the
// error is that alone.
func (l *Log) inPlace(f *file) error {
	err := l.named(l.dir, l.home.info)
	if err == nil {
		err = l.named(l.files.path(f.n, segmentSuffix), f.info)
		// After a roll, which looked itself, the segment may have been removed.
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

// named returns nil when path is the name of the file that open describes.
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
