package dir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/fsys"
	"blobtail/storage/storagetest"
)

// coarseFS is a file system whose times go by whole seconds, as those of ext3, HFS+, FAT and many NFS
// servers do. It notes the directories that were synced.
type coarseFS struct {
	fsys.FS
	now    time.Time
	synced []string
}

type coarseStat struct {
	fs.FileInfo
	at time.Time
}

func (i coarseStat) ModTime() time.Time { return i.at }

func (c *coarseFS) Stat(name string) (fs.FileInfo, error) {
	fi, err := c.FS.Stat(name)
	if err != nil {
		return nil, err
	}
	return coarseStat{fi, c.now}, nil // all happens within one second
}

func (c *coarseFS) SyncDir(name string) error {
	c.synced = append(c.synced, name)
	return c.FS.SyncDir(name)
}

// When Create returns nil, the object is durable: also if another ingester has made its directory in
// the second in which this one synced the directory above, and was killed before it synced it itself.
func TestWithinOneTick(t *testing.T) {
	root := t.TempDir()
	c := &coarseFS{FS: fsys.OS(), now: time.Now().Truncate(time.Second)}
	a, err := dir.Open(root, dir.Options{FS: c})
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string) {
		t.Helper()
		storagetest.Put(t, a, key, []byte("x"))
	}
	put("web/2026/11/20/1500/000001.log")
	for _, made := range []string{"web/2026/11/20/1600", "web/2026/11/21", "web/2026/11/21/0000"} {
		if err := c.FS.Mkdir(filepath.Join(root, made), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string][]string{
		"web/2026/11/20/1600/000002.log": {"web/2026/11/20"},
		"web/2026/11/21/0000/000001.log": {"web/2026/11/21", "web/2026/11"},
	} {
		c.synced = nil
		put(key)
		for _, dir := range want {
			if !slices.Contains(c.synced, filepath.Join(root, dir)) {
				t.Errorf("Create of %s returned nil, and %s was never synced; synced were %v", key, dir, c.synced)
			}
		}
	}
}

// lacks is a file system that refuses one operation.
type lacks struct {
	fsys.FS
	link, mkdir, sync error
}

func (l lacks) Link(oldname, newname string) error {
	if l.link != nil {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: l.link}
	}
	return l.FS.Link(oldname, newname)
}

func (l lacks) Mkdir(name string, perm fs.FileMode) error {
	if l.mkdir != nil {
		return &os.PathError{Op: "mkdir", Path: name, Err: l.mkdir}
	}
	return l.FS.Mkdir(name, perm)
}

func (l lacks) SyncDir(name string) error {
	if l.sync != nil {
		return &os.PathError{Op: "fsync", Path: name, Err: l.sync}
	}
	return l.FS.SyncDir(name)
}

// TryCreate meets each error of the file system that Create meets. One without hard links (FAT, exFAT,
// SMB shares as those of Azure Files, some of FUSE) is named so, and is no lack of rights.
func TestTryMeetsAll(t *testing.T) {
	for what, with := range map[string]lacks{
		"EPERM":      {link: syscall.EPERM},
		"ENOTSUP":    {link: syscall.ENOTSUP},
		"EOPNOTSUPP": {link: syscall.EOPNOTSUPP},
		"ENOSYS":     {link: syscall.ENOSYS},
		"EMLINK":     {link: syscall.EMLINK},
		"ENOTSUPP":   {link: syscall.Errno(524)},
		"no rights":  {link: syscall.EACCES},
		"a full one": {link: syscall.ENOSPC},
		"mkdir":      {mkdir: syscall.EACCES},
		"syncdir":    {sync: syscall.EINVAL},
	} {
		with.FS = fsys.OS()
		root := t.TempDir()
		s, err := dir.Open(root, dir.Options{FS: with})
		if err != nil {
			t.Fatal(err)
		}
		tried := s.TryCreate(t.Context())
		left, err := os.ReadDir(root)
		if err != nil || len(left) != 0 {
			t.Errorf("%s: TryCreate leaves %v, %v", what, left, err)
		}
		created := s.Create(t.Context(), "web/2026/11/20/1500/000001.log", []byte("x"), storage.Attrs{})
		rights := what == "no rights" || what == "mkdir"
		for name, err := range map[string]error{"TryCreate": tried, "Create": created} {
			if err == nil || errors.Is(err, storage.ErrUnauthorized) != rights || errors.Is(err, fs.ErrPermission) != rights {
				t.Errorf("%s: %s: %v; want an error of rights: %t", what, name, err, rights)
			}
			lacks := with.link != nil && !rights && what != "a full one"
			if err != nil && strings.Contains(err.Error(), "has no hard links") != lacks {
				t.Errorf("%s: %s: %v; want the lack of hard links: %t", what, name, err, lacks)
			}
		}
	}
}
