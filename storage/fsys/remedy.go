//go:build linux

package fsys

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A Place is a directory that a process uses, with all that is in it.
type Place struct {
	Dir string
	// Reads says that the process only reads it.
	Reads bool
}

// Remedy returns advice on an error of a file, in one line; "" for an error without advice. An
// error that names no file is about the directory. The advice asks for no more than the process
// needs, and changes nothing but the directory itself, or a stranger's file in a directory of the
// process's own user: those above it, and other files in it, may be of others.
func (p Place) Remedy(err error) string {
	path := cmp.Or(pathOf(err), p.Dir)
	switch {
	case errors.Is(err, syscall.EROFS):
		return fmt.Sprintf("%s is on a file system that is mounted read-only; mount it writable", path)
	case IsFull(err):
		return fmt.Sprintf("there is no room for %s; make some, or choose another disk", path)
	case !errors.Is(err, fs.ErrPermission):
		return ""
	}
	seen, fi := nearest(path)
	owner, ok := ownerOf(fi)
	if !ok {
		return ""
	}
	me := os.Geteuid()
	switch above := isAbove(seen, p.Dir); {
	case above && !p.Reads && isMissing(p.Dir):
		return p.make(seen, fi, owner == me, userName(me))
	case owner == me:
		return p.allow(seen, fi)
	case above:
		return fmt.Sprintf("%s belongs to user %s, has the mode %04o, and does not let user %s through to %s; run it as %s, or choose another directory",
			seen, userName(owner), fi.Mode().Perm(), userName(me), p.Dir, userName(owner))
	case p.strange(seen, me):
		return fmt.Sprintf("%s belongs to user %s and %s to %s, as after a command that ran as the wrong user; give it back, as root: chown -R %s %s",
			seen, userName(owner), p.Dir, userName(me), userName(me), seen)
	case p.Reads:
		return fmt.Sprintf("%s belongs to user %s and this process runs as %s; to read %s it needs the right to read all files there, and to own none: run it as %s, or read through a logquery serve that %s runs (--server)",
			seen, userName(owner), userName(me), p.Dir, userName(owner), userName(owner))
	case isEmpty(p.Dir):
		return fmt.Sprintf("%s belongs to user %s and this process runs as %s; run it as %s, or: chown %s %s",
			seen, userName(owner), userName(me), userName(owner), userName(me), p.Dir)
	}
	return fmt.Sprintf("%s belongs to user %s and this process runs as %s; run it as %s, or choose a directory that is its own",
		seen, userName(owner), userName(me), userName(owner))
}

// strange reports whether a path is in this directory, which belongs to the user with the number
// me. Whatever another user has made there is in the way of its owner.
func (p Place) strange(path string, me int) bool {
	fi, err := os.Stat(p.Dir)
	owner, ok := ownerOf(fi)
	return err == nil && ok && owner == me && isAbove(p.Dir, path)
}

// make is the remedy for a directory that is missing, and cannot be made in the nearest one
// above it.
func (p Place) make(above string, fi fs.FileInfo, mine bool, me string) string {
	if mine {
		return p.allow(above, fi)
	}
	return fmt.Sprintf("%s is missing, and user %s may not make it in %s; make it as root: install -d -m 0700 -o %s %s; or choose another directory",
		p.Dir, me, above, me, p.Dir)
}

// allow is the remedy for a file or a directory of the process's own user.
func (p Place) allow(path string, fi fs.FileInfo) string {
	need, rights := fs.FileMode(0o600), "u+rw"
	switch {
	case p.Reads && fi.IsDir():
		need, rights = 0o500, "u+rx"
	case p.Reads:
		need, rights = 0o400, "u+r"
	case fi.IsDir():
		need, rights = 0o700, "u+rwx"
	}
	if fi.Mode()&need == need {
		return fmt.Sprintf("%s has the mode %04o, which allows it; perhaps a security module or the unit of a service forbids it", path, fi.Mode().Perm())
	}
	return fmt.Sprintf("%s has the mode %04o; run: chmod %s %s", path, fi.Mode().Perm(), rights, path)
}

// isAbove reports whether a directory is one that another is in.
func isAbove(path, dir string) bool {
	from, err := filepath.Abs(path)
	to, err2 := filepath.Abs(dir)
	if err != nil || err2 != nil || from == to {
		return false
	}
	return strings.HasPrefix(to, strings.TrimSuffix(from, "/")+"/")
}

// isMissing reports whether a path is known not to exist.
func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// isEmpty reports whether a directory is known to have nothing in it.
func isEmpty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
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

// letRead is the remedy for a file that the process may not read: the user that it runs as, the
// owner and the mode of what stands in its way, and the command. It lets in the group of the
// process, which owns nothing by that.
func letRead(err error) string {
	path := pathOf(err)
	at, fi := inTheWay(path)
	owner, ok := ownerOf(fi)
	if !ok || os.Geteuid() == 0 {
		return ""
	}
	me, group := os.Geteuid(), groupName(os.Getegid())
	theirs := int(fi.Sys().(*syscall.Stat_t).Gid)
	rights, need := "g+r", fs.FileMode(0o040)
	if fi.IsDir() {
		rights, need = "g+x", 0o010
	}
	let := "chmod " + rights + " " + at
	if !inGroup(theirs) {
		let = fmt.Sprintf("chgrp %s %s && %s", group, at, let)
	}
	facts := fmt.Sprintf("%s belongs to %s:%s and has the mode %04o, and this process runs as user %s",
		at, userName(owner), groupName(theirs), fi.Mode().Perm(), userName(me))
	switch {
	case fi.IsDir() && fi.Mode().Perm() == 0:
		return facts + "; a unit of systemd hides it so (ProtectHome=): put the file elsewhere"
	case owner == me:
		return fmt.Sprintf("%s; run: chmod u%s %s", facts, rights[1:], at)
	case inGroup(theirs) && fi.Mode()&need != 0:
		return facts + ", which allows it; perhaps a security module or the unit of a service forbids it"
	case fi.IsDir() && theirs != 0 && fi.Mode()&need != 0:
		// Its users have this group already, and would lose it with another one.
		return fmt.Sprintf("%s; run it as a user of the group %s (runuser -u USER -- COMMAND), or copy the file to a directory that user %s may read",
			facts, groupName(theirs), userName(me))
	case fi.IsDir():
		return fmt.Sprintf("%s; copy the file to a directory that this user may read, or run as root: %s", facts, let)
	}
	return fmt.Sprintf("%s; run as root: %s", facts, let)
}

// inTheWay returns the file or the directory that keeps the process from a file: the file itself,
// or the directory above it that does not let the process through. Links count as their targets.
func inTheWay(path string) (string, fs.FileInfo) {
	const links = 40
	for range links {
		at, fi := nearest(path)
		if at == path {
			return at, fi
		}
		// The first name below is a link to somewhere else, or is in the way by its directory.
		below := path
		for filepath.Dir(below) != at {
			below = filepath.Dir(below)
		}
		to, err := os.Readlink(below)
		if err != nil {
			return at, fi
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(at, to)
		}
		path = to + strings.TrimPrefix(path, below)
	}
	return path, nil
}

// inGroup reports whether the process is in a group.
func inGroup(gid int) bool {
	all, err := os.Getgroups()
	return gid == os.Getegid() || err == nil && slices.Contains(all, gid)
}

// groupName is the name of a group, or the number of one without a name.
func groupName(gid int) string {
	text := strconv.Itoa(gid)
	if g, err := user.LookupGroupId(text); err == nil {
		return g.Name
	}
	return text
}
