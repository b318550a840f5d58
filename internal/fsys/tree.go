//go:build linux

package fsys

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Tree is the file system below a directory that it holds open. Names are those of the
// host, as for [OS], but only the part after the directory's name counts. All calls go to
// the directory that was opened. That holds even if a file system is mounted over it or
// unmounted, if it is renamed, or if another one gets its name ([Tree.Moved]). After
// [Tree.Close] every method fails with [fs.ErrClosed]. It is a [Measurer].
//
// It is not an os.Root, which refuses symbolic links that lead out of the directory: an
// operator may keep a part of a store on another disk and link to it. An os.Root also
// opens each element of a path by itself.
type Tree struct {
	name   string // clean
	prefix string // of all names below it
	dir    *os.File
	fd     int       // of dir
	bufs   sync.Pool // *[]byte, for ReadDir

	// The last user closes dir. If it were closed during a call, another directory could
	// get its number before the system call.
	mu     sync.Mutex
	users  int
	closed bool
}

// OpenTree opens a directory, through symbolic links too.
func OpenTree(name string) (*Tree, error) {
	name = filepath.Clean(name)
	d, err := os.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	t := &Tree{name: name, prefix: name + "/", dir: d, fd: int(d.Fd())}
	switch name {
	case ".":
		t.prefix = ""
	case "/":
		t.prefix = "/"
	}
	t.bufs.New = func() any { return new(make([]byte, 16<<10)) }
	return t, nil
}

// Close releases the directory when the calls under way are done.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	if t.closed = true; t.users > 0 {
		return nil
	}
	return t.dir.Close()
}

func (t *Tree) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fs.ErrClosed
	}
	t.users++
	return nil
}

func (t *Tree) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users == 0 && t.closed {
		t.dir.Close() // the tree wrote nothing through it
	}
}

// Moved returns the reason if the directory's name does not lead to the open one, and ""
// if it does. gone says that the name leads nowhere.
func (t *Tree) Moved() (reason string, gone bool) {
	if t.enter() != nil {
		return "it was closed", false
	}
	defer t.leave()
	open, err := t.dir.Stat()
	if err != nil {
		return "the open directory does not answer: " + err.Error(), false
	}
	now, err := os.Stat(t.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "nothing is there any more", true
	case err != nil:
		return "it cannot be looked at: " + err.Error(), false
	case !os.SameFile(open, now):
		return "another directory than the one that is open is there now", false
	}
	return "", false
}

// at makes one system call for a name.
func (t *Tree) at(op, name string, call func(dir int, rel string) error) error {
	rel, err := t.rel(name)
	if err == nil {
		err = t.retry(func(dir int) error { return call(dir, rel) })
	}
	if err != nil {
		return &os.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// at2 makes one system call for two names.
func (t *Tree) at2(op, from, to string, call func(dir int, from, to string) error) error {
	relFrom, err := t.rel(from)
	relTo, err2 := t.rel(to)
	if err = errors.Join(err, err2); err == nil {
		err = t.retry(func(dir int) error { return call(dir, relFrom, relTo) })
	}
	if err != nil {
		return &os.LinkError{Op: op, Old: from, New: to, Err: err}
	}
	return nil
}

// rel returns a name as seen from the directory.
func (t *Tree) rel(name string) (string, error) {
	if name == t.name {
		return ".", nil
	}
	rel, ok := strings.CutPrefix(name, t.prefix)
	if !ok || !filepath.IsLocal(rel) {
		return "", errors.New("not below " + t.name)
	}
	return rel, nil
}

// retry makes a call again if a signal interrupts it.
func (t *Tree) retry(call func(dir int) error) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	return uninterrupted(func() error { return call(t.fd) })
}

func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (t *Tree) open(name string, flag int, perm fs.FileMode) (fd int, err error) {
	err = t.at("open", name, func(dir int, rel string) (err error) {
		fd, err = unix.Openat(dir, rel, flag|unix.O_CLOEXEC, uint32(perm.Perm()))
		return err
	})
	return fd, err
}

// OpenFile implements [FS].
func (t *Tree) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	fd, err := t.open(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{os.NewFile(uintptr(fd), name)}, nil
}

// Mkdir implements [FS].
func (t *Tree) Mkdir(name string, perm fs.FileMode) error {
	return t.at("mkdir", name, func(dir int, rel string) error { return unix.Mkdirat(dir, rel, uint32(perm.Perm())) })
}

// Link implements [FS].
func (t *Tree) Link(oldname, newname string) error {
	return t.at2("link", oldname, newname, func(dir int, from, to string) error { return unix.Linkat(dir, from, dir, to, 0) })
}

// Rename implements [FS].
func (t *Tree) Rename(oldname, newname string) error {
	return t.at2("rename", oldname, newname, func(dir int, from, to string) error { return unix.Renameat(dir, from, dir, to) })
}

// Remove implements [FS].
func (t *Tree) Remove(name string) error {
	return t.at("remove", name, func(dir int, rel string) error {
		err := unix.Unlinkat(dir, rel, 0)
		if err == nil || errors.Is(err, unix.EINTR) {
			return err
		}
		// As os.Remove does: choose the more helpful of the two errors.
		derr := unix.Unlinkat(dir, rel, unix.AT_REMOVEDIR)
		if errors.Is(derr, unix.ENOTDIR) {
			return err
		}
		return derr
	})
}

// Stat implements [FS]. A removed directory does not exist any more, although the tree
// holds it open.
func (t *Tree) Stat(name string) (fs.FileInfo, error) { return t.stat(name, 0) }

func (t *Tree) stat(name string, flags int) (fs.FileInfo, error) {
	i := &info{name: filepath.Base(name)}
	err := t.at("stat", name, func(dir int, rel string) error {
		err := unix.Fstatat(dir, rel, &i.sys, flags)
		if err == nil && rel == "." && i.sys.Nlink == 0 {
			return unix.ENOENT
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return i, nil
}

// ReadDir implements [FS].
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	fd, err := t.open(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := t.bufs.Get().(*[]byte)
	defer t.bufs.Put(buf)
	var list []fs.DirEntry
	for {
		n := 0
		err := uninterrupted(func() (err error) {
			n, err = unix.ReadDirent(fd, *buf)
			return err
		})
		if err != nil {
			return nil, &os.PathError{Op: "readdir", Path: name, Err: err}
		}
		if n <= 0 {
			break
		}
		if list, err = t.entries(list, fd, name, (*buf)[:n]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// SyncDir implements [FS].
func (t *Tree) SyncDir(name string) error {
	fd, err := t.open(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	if err = uninterrupted(func() error { return unix.Fsync(fd) }); err != nil {
		err = &os.PathError{Op: "sync", Path: name, Err: err}
	}
	unix.Close(fd) // nothing is written through it
	return err
}

// Lock implements [FS].
func (t *Tree) Lock(name string) (io.Closer, error) {
	fd, err := t.open(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return flock(os.NewFile(uintptr(fd), name))
}

// Free implements [Measurer].
func (t *Tree) Free(name string) (int64, error) {
	fd, err := t.open(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var s unix.Statfs_t
	if err := uninterrupted(func() error { return unix.Fstatfs(fd, &s) }); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: name, Err: err}
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// SameFile implements [FS].
func (t *Tree) SameFile(a, b fs.FileInfo) bool { return os.SameFile(a, b) }
