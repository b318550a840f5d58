//go:build linux

package fsys

import (
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Stamp is equal for two looks at a name if nothing was changed in between: neither the file or the
// directory itself, nor another one that the name led to.
type Stamp struct {
	dev, ino         uint64
	size             int64
	mode             uint32
	changed, altered unix.Timespec
}

// settles is the time after which a further change has another time for certain. Clocks of file systems
// go by steps of some ms.
const settles = 3 * time.Second

// Stamped returns the stamp of a name. It is false if a change might leave it as it is, and so it says
// nothing: a change was made just now, the name leads to another file system, or that of the tree is
// none of the local ones that keep exact times.
func (t *Tree) Stamped(name string) (s Stamp, ok bool) {
	if !t.exact {
		return s, false
	}
	var st unix.Stat_t
	rel, err := t.rel(name)
	if err == nil {
		err = t.call(func(dir int) error { return unix.Fstatat(dir, rel, &st, 0) })
	}
	if err != nil || st.Dev != t.dev {
		return s, false
	}
	s = Stamp{st.Dev, st.Ino, st.Size, st.Mode, st.Mtim, st.Ctim}
	// File systems with steps of a second have no ns.
	if s.changed.Nsec == 0 || s.altered.Nsec == 0 {
		return s, false
	}
	before := time.Now().Add(-settles)
	return s, time.Unix(s.changed.Unix()).Before(before) && time.Unix(s.altered.Unix()).Before(before)
}

// StampOf returns the stamp of a description by [os.Stat]. A change just after another one may leave
// it as it is.
func StampOf(info fs.FileInfo) (s Stamp, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok {
		s = Stamp{st.Dev, st.Ino, st.Size, st.Mode, unix.Timespec(st.Mtim), unix.Timespec(st.Ctim)}
	}
	return s, ok
}

// Regular reports whether it is the stamp of a file, and not of a directory or anything else.
func (s Stamp) Regular() bool { return s.mode&unix.S_IFMT == unix.S_IFREG }

// judge notes whether the file system below the directory gives each change its time.
func (t *Tree) judge() {
	var on unix.Statfs_t
	var st unix.Stat_t
	err := t.call(func(dir int) error {
		if err := unix.Fstatfs(dir, &on); err != nil {
			return err
		}
		return unix.Fstat(dir, &st)
	})
	if err != nil {
		return
	}
	switch on.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		t.exact, t.dev = true, st.Dev
	}
}
