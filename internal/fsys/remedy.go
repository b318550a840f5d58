//go:build linux

package fsys

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Remedy returns what to do about an error of a file, in one line; "" for an error that it
// has no advice for. dir is the directory of the file, for an error that names no file.
func Remedy(err error, dir string) string {
	path := cmp.Or(pathOf(err), dir)
	switch {
	case errors.Is(err, syscall.EROFS):
		return fmt.Sprintf("%s is on a file system that is mounted read-only; mount it writable", path)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Sprintf("there is no room for %s; make some, or choose another disk", path)
	case !errors.Is(err, fs.ErrPermission):
		return ""
	}
	path, fi := nearest(path)
	owner, ok := ownerOf(fi)
	if !ok {
		return ""
	}
	me := os.Geteuid()
	if owner == me {
		return fmt.Sprintf("%s has the mode %04o; run: chmod -R u+rwX %s", path, fi.Mode().Perm(), path)
	}
	return fmt.Sprintf("%s belongs to user %s and this process runs as %s; run it as %s, or: chown -R %s %s",
		path, userName(owner), userName(me), userName(owner), userName(me), path)
}

// Owner returns the name of the user that a file belongs to, or its nearest existing parent
// if it is missing, and whether this process runs as another user.
func Owner(path string) (name string, other bool) {
	_, fi := nearest(path)
	owner, ok := ownerOf(fi)
	if !ok {
		return "", false
	}
	return userName(owner), owner != os.Geteuid()
}

// nearest returns a path, or its nearest parent that this process can see, with its
// description; nil if there is none.
func nearest(path string) (string, fs.FileInfo) {
	for {
		if fi, err := os.Stat(path); err == nil {
			return path, fi
		}
		parent := filepath.Dir(path)
		if parent == path {
			return path, nil
		}
		path = parent
	}
}

func ownerOf(fi fs.FileInfo) (uid int, ok bool) {
	if fi == nil {
		return 0, false
	}
	s, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Uid), true
}

// userName is the name of a user, or the number of one without a name.
func userName(uid int) string {
	text := strconv.Itoa(uid)
	if u, err := user.LookupId(text); err == nil {
		return u.Username
	}
	return text
}

// pathOf returns the file that an error is about, "" if it names none.
func pathOf(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Path
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.New
	}
	return ""
}
