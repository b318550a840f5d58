//go:build linux

package fsys

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Tree is the file system below a directory that it holds open. Names are those of the
// host, as for [OS], but only the part after the directory's name counts. All calls go to
// the directory that was opened. That holds even if a file system is mounted over it or
// unmounted, if it is renamed, or if another one gets its name ([Tree.Moved]). After
// [Tree.Close] every method fails with [fs.ErrClosed].
//
// It is not an os.Root, which refuses symbolic links that lead out of the directory: an
// operator may keep a part of a store on another disk and link to it. An os.Root also
// opens each element of a path by itself. The zero Tree has the names of the host.
type Tree struct {
	name   string // clean
	prefix string // of all names below it
	dir    *os.File
	conn   syscall.RawConn // of dir; a Close during a call waits for its end
	// exact says that the file system gives each change its time, and dev is that file system.
	exact bool
	dev   uint64
}

// OpenTree opens a directory, through symbolic links too.
func OpenTree(name string) (*Tree, error) {
	name = filepath.Clean(name)
	d, err := new(Tree).openDir(name) // os.OpenFile would start the poller
	if err != nil {
		return nil, err
	}
	conn, err := d.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	t := &Tree{name: name, prefix: name + "/", dir: d, conn: conn}
	switch name {
	case ".":
		t.prefix = ""
	case "/":
		t.prefix = "/"
	}
	t.judge()
	return t, nil
}

// Close releases the directory when the calls under way are done.
func (t *Tree) Close() error {
	if err := t.dir.Close(); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

// Moved returns the reason if the directory's name does not lead to the open one, and nil
// if it does. [fs.ErrNotExist] means that the name leads nowhere.
func (t *Tree) Moved() error {
	open, err := t.dir.Stat()
	if err != nil {
		return fmt.Errorf("the open directory does not answer: %w", err)
	}
	now, err := os.Stat(t.name)
	if err == nil && !os.SameFile(open, now) {
		err = errors.New("another directory than the one that is open is there now")
	}
	return err
}

// at makes one system call for a name, and again if a signal interrupts it.
func (t *Tree) at(op, name string, call func(dir int, rel string) error) error {
	rel, err := t.rel(name)
	if err == nil {
		err = t.call(func(dir int) error { return call(dir, rel) })
	}
	if err != nil {
		return &os.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// at2 makes one system call for two names.
func (t *Tree) at2(op, from, to string, call func(olddir int, from string, newdir int, to string) error) error {
	relFrom, err := t.rel(from)
	relTo, err2 := t.rel(to)
	if err = errors.Join(err, err2); err == nil {
		err = t.call(func(dir int) error { return call(dir, relFrom, dir, relTo) })
	}
	if err != nil {
		return &os.LinkError{Op: op, Old: from, New: to, Err: err}
	}
	return nil
}

// rel returns a name as seen from the directory.
func (t *Tree) rel(name string) (string, error) {
	if t.conn == nil {
		return name, nil
	}
	if name == t.name {
		return ".", nil
	}
	rel, ok := strings.CutPrefix(name, t.prefix)
	if !ok || !filepath.IsLocal(rel) {
		return "", errors.New("not below " + t.name)
	}
	return rel, nil
}

func (t *Tree) call(call func(dir int) error) (err error) {
	if t.conn == nil {
		return uninterrupted(func() error { return call(unix.AT_FDCWD) })
	}
	closed := t.conn.Control(func(dir uintptr) {
		err = uninterrupted(func() error { return call(int(dir)) })
	})
	if closed != nil {
		return fs.ErrClosed
	}
	return err
}

func uninterrupted(call func() error) (err error) {
	for err = call(); errors.Is(err, unix.EINTR); {
		err = call()
	}
	return err
}

func (t *Tree) open(op, name string, flag int, perm fs.FileMode) (f *os.File, err error) {
	err = t.at(op, name, func(dir int, rel string) error {
		fd, err := unix.Openat(dir, rel, flag|unix.O_CLOEXEC, uint32(perm.Perm()))
		if err == nil {
			f = os.NewFile(uintptr(fd), name)
		}
		return err
	})
	return f, err
}

func (t *Tree) openDir(name string) (*os.File, error) {
	return t.open("open", name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

// OpenFile implements [FS].
func (t *Tree) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := t.open("open", name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Mkdir implements [FS].
func (t *Tree) Mkdir(name string, perm fs.FileMode) error {
	return t.at("mkdir", name, func(dir int, rel string) error { return unix.Mkdirat(dir, rel, uint32(perm.Perm())) })
}

// Link implements [FS].
func (t *Tree) Link(oldname, newname string) error {
	return t.at2("link", oldname, newname, func(olddir int, from string, newdir int, to string) error {
		return unix.Linkat(olddir, from, newdir, to, 0)
	})
}

// Rename implements [FS].
func (t *Tree) Rename(oldname, newname string) error {
	return t.at2("rename", oldname, newname, unix.Renameat)
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
func (t *Tree) Stat(name string) (fs.FileInfo, error) {
	if t.dir != nil && name == t.name {
		fi, err := t.dir.Stat()
		if err != nil {
			return nil, err
		}
		if s, ok := fi.Sys().(*syscall.Stat_t); ok && s.Nlink == 0 {
			return nil, &os.PathError{Op: "stat", Path: name, Err: unix.ENOENT}
		}
		return fi, nil
	}
	f, err := t.open("stat", name, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// ReadDir implements [FS]. The Info of an entry goes by the directory's name.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	d, err := t.openDir(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	// If the file system does not report the types of entries, this finds them through
	// the open directory, from Go 1.26.1 on.
	list, err := d.ReadDir(-1)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}

// SyncDir implements [FS].
func (t *Tree) SyncDir(name string) error {
	d, err := t.openDir(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	return cmp.Or(err, d.Close())
}

// Lock implements [FS]. It locks the directory itself, so that no file is left behind.
func (t *Tree) Lock(name string) (io.Closer, error) {
	d, err := t.openDir(name)
	if err != nil {
		return nil, err
	}
	err = uninterrupted(func() error { return syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) })
	if err == nil {
		return d, nil
	}
	d.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, &os.PathError{Op: "flock", Path: name, Err: err}
}

// SameFile implements [FS].
func (t *Tree) SameFile(a, b fs.FileInfo) bool { return os.SameFile(a, b) }
