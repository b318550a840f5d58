//go:build linux

package fsys

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The places of the fields of linux_dirent64 (getdents64(2)).
const (
	direntLen  = 16 // of this entry, two bytes
	direntType = 18
	direntName = 19 // ends in a zero
)

// entries appends the entries that getdents64 returned for a directory. It does not use
// package os. Some releases of that stat the entries by the directory's name if the file
// system does not report their types.
func (t *Tree) entries(list []fs.DirEntry, fd int, dir string, b []byte) ([]fs.DirEntry, error) {
	for len(b) > 0 {
		n := 0
		if len(b) > direntName {
			n = int(binary.NativeEndian.Uint16(b[direntLen:]))
		}
		if n <= direntName || n > len(b) {
			return nil, &os.PathError{Op: "readdir", Path: dir, Err: errors.New("malformed entry")}
		}
		name, _, _ := bytes.Cut(b[direntName:n], []byte{0})
		typ := b[direntType]
		b = b[n:]
		if string(name) == "." || string(name) == ".." {
			continue
		}
		e := &entry{tree: t, dir: dir, name: string(name), typ: typeOf(uint32(typ) << 12)}
		if typ == unix.DT_UNKNOWN {
			var s unix.Stat_t
			err := uninterrupted(func() error { return unix.Fstatat(fd, e.name, &s, unix.AT_SYMLINK_NOFOLLOW) })
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed meanwhile
			}
			if err != nil {
				return nil, &os.PathError{Op: "stat", Path: filepath.Join(dir, e.name), Err: err}
			}
			e.typ = typeOf(s.Mode)
		}
		list = append(list, e)
	}
	return list, nil
}

// typeOf makes the type bits of package fs of those of stat(2), which are those of
// a directory's entry, shifted.
func typeOf(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFBLK:
		return fs.ModeDevice
	case unix.S_IFCHR:
		return fs.ModeDevice | fs.ModeCharDevice
	}
	return fs.ModeIrregular
}

// entry implements [fs.DirEntry].
type entry struct {
	tree      *Tree
	dir, name string
	typ       fs.FileMode
}

func (e *entry) Name() string      { return e.name }
func (e *entry) IsDir() bool       { return e.typ.IsDir() }
func (e *entry) Type() fs.FileMode { return e.typ }
func (e *entry) String() string    { return fs.FormatDirEntry(e) }

func (e *entry) Info() (fs.FileInfo, error) {
	return e.tree.stat(filepath.Join(e.dir, e.name), unix.AT_SYMLINK_NOFOLLOW)
}

// info implements [fs.FileInfo].
type info struct {
	name string
	sys  unix.Stat_t
}

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return i.sys.Size }
func (i *info) Mode() fs.FileMode  { return typeOf(i.sys.Mode) | fs.FileMode(i.sys.Mode&0o777) }
func (i *info) ModTime() time.Time { return time.Unix(i.sys.Mtim.Unix()) }
func (i *info) IsDir() bool        { return i.Mode().IsDir() }
func (i *info) Sys() any           { return &i.sys }
