// Package simdisk is a disk in memory that forgets unsynced data, for tests of power
// cuts.
//
// A [Disk] is a file system as programs see it. Below that it keeps the contents of the
// platter: a sync of a file moves bytes there, and a sync of a directory moves names.
// [Disk.PowerCut] makes a disk as it may be after a power cut. It has all synced changes
// and any part of the others, torn at sectors and in any order. [Disk.Kill] keeps
// everything, as a page cache does when only the process dies. [Disk.Fork], and [Op.Fork]
// in a fault hook, make such disks and let the process live on. So one run gives a crash
// at each of its operations. A failed sync of a file leaves bytes that can be read but
// never reach the platter, even after more syncs, as on Linux.
package simdisk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"blobtail/storage/fsys"
)

// Op is one operation on its way to the disk.
type Op struct {
	N int // number of operations before it, since the disk was made
	// Kind is "open", "mkdir", "link", "rename", "remove", "readdir", "stat", "syncdir",
	// "read", "write", "sync", "truncate" or "lock".
	Kind string
	Path string
	Off  int64 // of a read or write
	Len  int

	disk *Disk
}

// Partial is the error of Fault for a write that fails after N bytes.
type Partial struct {
	N   int
	Err error
}

func (p *Partial) Error() string { return p.Err.Error() }

func (p *Partial) Unwrap() error { return p.Err }

// ErrKilled is the error of each operation of a dead process.
var ErrKilled = errors.New("simdisk: the process was killed")

// Disk is a simulated disk, as one process sees it. It is safe for use by many
// goroutines.
type Disk struct {
	tree *tree
	dead bool // guarded by tree.mu
	ops  int  // guarded by tree.mu
	// fault, if set, is called before each operation; its error makes the operation fail.
	fault func(Op) error
}

type tree struct {
	mu   sync.Mutex
	rng  *rand.Rand
	root *node
	now  uint64 // counts operations; changes are ordered by it
	room int64  // bytes that fit; 0: any number
	// locks are those that processes have taken; the lock of a dead process is free.
	locks map[string]*lock
}

// New makes an empty disk. The seed decides which bytes survive a failed sync.
func New(seed uint64) *Disk {
	rng := rand.New(rand.NewPCG(seed, 0x6469736b))
	return &Disk{tree: &tree{rng: rng, root: newDir(0o755), locks: map[string]*lock{}}}
}

// SetFault makes f decide which operations fail; nil lets all pass. Calls of f come one
// at a time. f must not use the disk; [Op.Fork] gives it a copy.
func (d *Disk) SetFault(f func(Op) error) {
	d.tree.mu.Lock()
	defer d.tree.mu.Unlock()
	d.fault = f
}

// Ops returns the number of operations so far.
func (d *Disk) Ops() int {
	d.tree.mu.Lock()
	defer d.tree.mu.Unlock()
	return d.ops
}

// Kill ends the process: all its further operations fail. The returned disk is for the
// next process. It has lost nothing, and nothing on it is more durable than before.
func (d *Disk) Kill() *Disk {
	d.tree.mu.Lock()
	defer d.tree.mu.Unlock()
	d.dead = true
	return &Disk{tree: d.tree}
}

// PowerCut ends the process too, and returns the disk as it is after the power is back.
func (d *Disk) PowerCut() *Disk {
	d.tree.mu.Lock()
	defer d.tree.mu.Unlock()
	d.dead = true
	rng := d.tree.rng
	return d.tree.found(rng, func() fate { return choose(rng) })
}

// names is a change that gives n a name, or removes the name if n is nil.
func (t *tree) names(base string, n *node) namesChange {
	return namesChange{at: t.now, set: map[string]*node{base: n}}
}

// begin locks the tree and calls the fault hook; the caller unlocks.
func (d *Disk) begin(kind, name string) error {
	return d.beginOp(Op{Kind: kind, Path: name})
}

func (d *Disk) beginOp(op Op) error {
	d.tree.mu.Lock()
	if d.dead {
		return &fs.PathError{Op: op.Kind, Path: op.Path, Err: ErrKilled}
	}
	op.N, op.disk = d.ops, d
	d.ops++
	d.tree.now++
	if d.fault != nil {
		returned := false
		defer func() {
			if !returned { // the hook failed the test or panicked: the caller does not unlock
				d.tree.mu.Unlock()
			}
		}()
		err := d.fault(op)
		returned = true
		if err != nil {
			return &fs.PathError{Op: op.Kind, Path: op.Path, Err: err}
		}
	}
	return nil
}

func (d *Disk) end() { d.tree.mu.Unlock() }

// find returns the directory that holds name, and the node of that name.
func (d *Disk) find(kind, name string) (dir *node, base string, n *node, err error) {
	n = d.tree.root
	for part := range strings.SplitSeq(strings.Trim(path.Clean("/"+name), "/"), "/") {
		if part == "" {
			continue
		}
		if n == nil || n.names == nil {
			return nil, "", nil, &fs.PathError{Op: kind, Path: name, Err: fs.ErrNotExist}
		}
		dir, base = n, part
		n = n.names[part]
	}
	return dir, base, n, nil
}

func (d *Disk) existing(kind, name string) (dir *node, base string, n *node, err error) {
	dir, base, n, err = d.find(kind, name)
	if err == nil && n == nil {
		err = &fs.PathError{Op: kind, Path: name, Err: fs.ErrNotExist}
	}
	return dir, base, n, err
}

// OpenFile implements [fsys.FS].
func (d *Disk) OpenFile(name string, flag int, perm fs.FileMode) (fsys.File, error) {
	err := d.begin("open", name)
	defer d.end()
	if err != nil {
		return nil, err
	}
	dir, base, n, err := d.find("open", name)
	switch {
	case err != nil:
		return nil, err
	case n != nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
	case n == nil && flag&os.O_CREATE == 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case n == nil:
		n = &node{mode: perm}
		dir.change(d.tree.names(base, n))
	}
	if flag&os.O_TRUNC != 0 {
		n.write(change{at: d.tree.now, size: 0, cut: true})
	}
	return &file{disk: d, node: n, name: name, readOnly: flag&(os.O_RDWR|os.O_WRONLY) == 0}, nil
}

// Mkdir implements [fsys.FS].
func (d *Disk) Mkdir(name string, perm fs.FileMode) error {
	return d.name("mkdir", name, func(dir *node, base string, n *node) error {
		if n != nil {
			return fs.ErrExist
		}
		dir.change(d.tree.names(base, newDir(perm)))
		return nil
	})
}

// Remove implements [fsys.FS].
func (d *Disk) Remove(name string) error {
	return d.name("remove", name, func(dir *node, base string, n *node) error {
		switch {
		case n == nil:
			return fs.ErrNotExist
		case len(n.names) > 0:
			return fmt.Errorf("directory not empty")
		}
		dir.change(d.tree.names(base, nil))
		return nil
	})
}

// Link implements [fsys.FS].
func (d *Disk) Link(oldname, newname string) error {
	return d.name("link", newname, func(dir *node, base string, n *node) error {
		_, _, old, err := d.existing("link", oldname)
		switch {
		case err != nil:
			return err
		case n != nil:
			return fs.ErrExist
		}
		dir.change(d.tree.names(base, old))
		return nil
	})
}

// Rename implements [fsys.FS]. Within a directory it is one change.
func (d *Disk) Rename(oldname, newname string) error {
	return d.name("rename", newname, func(dir *node, base string, _ *node) error {
		olddir, oldbase, old, err := d.existing("rename", oldname)
		switch {
		case err != nil:
			return err
		case olddir == dir && oldbase == base:
			return nil
		case olddir == dir:
			c := d.tree.names(base, old)
			c.set[oldbase] = nil
			dir.change(c)
			return nil
		}
		dir.change(d.tree.names(base, old))
		olddir.change(d.tree.names(oldbase, nil))
		return nil
	})
}

func (d *Disk) name(kind, name string, do func(dir *node, base string, n *node) error) error {
	err := d.begin(kind, name)
	defer d.end()
	if err != nil {
		return err
	}
	dir, base, n, err := d.find(kind, name)
	if err != nil {
		return err
	}
	if dir == nil {
		err = fs.ErrExist // the root
	} else {
		err = do(dir, base, n)
	}
	if err != nil {
		return &fs.PathError{Op: kind, Path: name, Err: err}
	}
	return nil
}

// ReadDir implements [fsys.FS].
func (d *Disk) ReadDir(name string) ([]fs.DirEntry, error) {
	err := d.begin("readdir", name)
	defer d.end()
	if err != nil {
		return nil, err
	}
	_, _, n, err := d.existing("readdir", name)
	if err != nil {
		return nil, err
	}
	var entries []fs.DirEntry
	for base, child := range n.names {
		entries = append(entries, fs.FileInfoToDirEntry(child.info(base)))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Stat implements [fsys.FS].
func (d *Disk) Stat(name string) (fs.FileInfo, error) {
	err := d.begin("stat", name)
	defer d.end()
	if err != nil {
		return nil, err
	}
	_, base, n, err := d.existing("stat", name)
	if err != nil {
		return nil, err
	}
	return n.info(base), nil
}

// SameFile implements [fsys.FS].
func (d *Disk) SameFile(a, b fs.FileInfo) bool {
	x, ok := a.(info)
	y, too := b.(info)
	return ok && too && x.node == y.node
}

// SyncDir implements [fsys.FS].
func (d *Disk) SyncDir(name string) error {
	err := d.begin("syncdir", name)
	defer d.end()
	_, _, n, ferr := d.existing("syncdir", name)
	if ferr != nil {
		return ferr
	}
	// Names are metadata, and file systems keep them in a journal. A failed write of the
	// journal stops the file system, and no change is marked clean.
	if err == nil {
		n.sync(d.tree.rng, nil)
	}
	return err
}

// Lock implements [fsys.FS]. A disk after a crash has no locks.
func (d *Disk) Lock(name string) (io.Closer, error) {
	err := d.begin("lock", name)
	defer d.end()
	if err != nil {
		return nil, err
	}
	if _, _, _, err := d.existing("lock", name); err != nil {
		return nil, err
	}
	name = path.Clean("/" + name)
	if l := d.tree.locks[name]; l != nil && !l.disk.dead {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: fsys.ErrLocked}
	}
	l := &lock{disk: d, name: name}
	d.tree.locks[name] = l
	return l, nil
}

type lock struct {
	disk *Disk
	name string
}

func (l *lock) Close() error {
	l.disk.tree.mu.Lock()
	defer l.disk.tree.mu.Unlock()
	if l.disk.tree.locks[l.name] == l { // or its process died, and another took it
		delete(l.disk.tree.locks, l.name)
	}
	return nil
}

type file struct {
	disk     *Disk
	node     *node
	name     string
	readOnly bool
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	err := f.disk.beginOp(Op{Kind: "read", Path: f.name, Off: off, Len: len(p)})
	defer f.disk.end()
	if err != nil {
		return 0, err
	}
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	err := f.disk.beginOp(Op{Kind: "write", Path: f.name, Off: off, Len: len(p)})
	defer f.disk.end()
	if f.readOnly {
		return 0, &fs.PathError{Op: "write", Path: f.name, Err: fs.ErrPermission}
	}
	n := len(p)
	if err != nil {
		n = 0
		if perr, ok := err.(*fs.PathError).Err.(*Partial); ok {
			n = min(perr.N, len(p))
		}
	}
	if lacks := f.disk.tree.lacks(f.node, off+int64(n)); lacks > 0 && n > 0 {
		n = max(n-int(lacks), 0)
		err = &fs.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
	}
	if n > 0 {
		f.node.write(change{at: f.disk.tree.now, off: off, data: slices.Clone(p[:n])})
	}
	return n, err
}

func (f *file) Sync() error {
	err := f.disk.begin("sync", f.name)
	defer f.disk.end()
	if !errors.Is(err, ErrKilled) {
		f.node.sync(f.disk.tree.rng, err)
	}
	return err
}

func (f *file) Truncate(size int64) error {
	err := f.disk.begin("truncate", f.name)
	defer f.disk.end()
	if err == nil {
		f.node.write(change{at: f.disk.tree.now, size: size, cut: true})
	}
	return err
}

func (f *file) Stat() (fs.FileInfo, error) {
	err := f.disk.begin("stat", f.name)
	defer f.disk.end()
	return f.node.info(path.Base(f.name)), err
}

func (f *file) Close() error { return nil }

type info struct {
	name string
	size int64
	mode fs.FileMode
	node *node
}

func (n *node) info(name string) fs.FileInfo {
	return info{name: name, size: int64(len(n.data)), mode: n.mode, node: n}
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
