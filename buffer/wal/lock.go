package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"blobtail/storage/fsys"
)

// LockedError means that another process holds the log directory.
type LockedError struct {
	Dir string
	PID int // 0: not known
}

// Error implements error.
func (e *LockedError) Error() string {
	holder := "another process"
	if e.PID != 0 {
		holder = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("log directory %s is in use by %s; every ingester needs its own --wal", e.Dir, holder)
}

// lockDir locks the directory for this process, until the file is closed. The kernel
// holds the lock, so it ends with the process in every case. A file without a descriptor,
// of a simulated disk, is not locked.
func lockDir(fsy fsys.FS, dir string) (fsys.File, error) {
	f, err := fsy.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	d, ok := f.(interface{ Fd() uintptr })
	if !ok {
		return f, nil
	}
	if err = flock(int(d.Fd())); err == nil {
		err = writePID(f)
	} else if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &LockedError{Dir: dir, PID: readPID(f)}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func flock(fd int) error {
	for {
		err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func readPID(f fsys.File) int {
	pid := 0
	_, _ = fmt.Fscan(io.NewSectionReader(f, 0, 32), &pid)
	return pid
}

// Holder returns the process that has the log in dir open; 0 if there is none, or if this
// user may not see it. It does not touch the lock, which a start might want just now.
func Holder(dir string) (pid int) {
	path, err := filepath.Abs(filepath.Join(dir, "lock"))
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return 0
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		return 0
	}
	open := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(open)
	if err != nil {
		return 0 // it has ended, or is another user's
	}
	for _, f := range files {
		if to, err := os.Readlink(filepath.Join(open, f.Name())); err == nil && to == path {
			return pid
		}
	}
	return 0
}

// writePID notes the process id for the error message of the next opener, so it need not
// be durable. A full disk must not keep the log from opening.
func writePID(f fsys.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	if fsys.IsFull(err) {
		return nil
	}
	return err
}
