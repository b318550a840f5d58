package wal

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"blobtail/storage/fsys"
)

// files holds the open segment files. An unused file is closed if it is removed or if too
// many are open.
type files struct {
	fs  fsys.FS
	dir string

	mu     sync.Mutex
	open   map[uint32]*file
	closed bool
}

// file is an open segment; its fields are guarded by files.mu.
type file struct {
	fsys.File
	n    uint32
	info fs.FileInfo // of a segment that this process made, and of the directory
	refs int
	gone bool // closed when refs is 0
}

func (c *files) path(n uint32, suffix string) string {
	return filepath.Join(c.dir, fileName(n, suffix))
}

// add registers a file that the caller continues to use. The caller must release it.
func (c *files) add(n uint32, f fsys.File, info fs.FileInfo) *file {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &file{File: f, n: n, info: info, refs: 1}
	c.open[n] = h
	return h
}

// acquire opens segment n for reading, or finds it open. The caller must release it.
func (c *files) acquire(n uint32) (*file, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	h := c.open[n]
	if h == nil {
		// The open is under the lock, so that no file is opened twice: it is quick.
		f, err := c.fs.OpenFile(c.path(n, segmentSuffix), os.O_RDONLY, 0)
		if err != nil {
			return nil, err
		}
		h = &file{File: f, n: n}
		c.open[n] = h
	}
	h.refs++
	c.evict()
	return h, nil
}

func (c *files) release(h *file) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.refs--
	if h.gone && h.refs == 0 {
		return h.Close()
	}
	c.evict()
	return nil
}

// evict closes unused files, at random, while too many are open.
func (c *files) evict() {
	for _, h := range c.open {
		if len(c.open) <= openFiles {
			return
		}
		if h.refs == 0 {
			c.forget(h)
		}
	}
}

// forget closes a file as soon as it is unused.
func (c *files) forget(h *file) {
	delete(c.open, h.n)
	h.gone = true
	if h.refs == 0 {
		// Its bytes are durable already, or the log has failed.
		_ = h.Close()
	}
}

func (c *files) remove(n uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.open[n]; h != nil {
		c.forget(h)
	}
}

func (c *files) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, h := range c.open {
		c.forget(h)
	}
}

// list returns the numbers of the segments, ascending, and the greatest number of any
// file. It removes copies that were in the making.
func (l *Log) list() (segments []uint32, greatest uint32, err error) {
	entries, err := l.fs.ReadDir(l.dir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		n, suffix, ok := parseFileName(e.Name())
		if !ok {
			continue
		}
		greatest = max(greatest, n)
		switch {
		case e.Type()&fs.ModeDir != 0:
		case suffix == segmentSuffix:
			segments = append(segments, n)
		case suffix == tempSuffix:
			if err := l.fs.Remove(l.files.path(n, tempSuffix)); err != nil {
				return nil, 0, err
			}
		}
	}
	// Byte order is not numeric order past 99,999,999.
	slices.Sort(segments)
	return segments, greatest, nil
}
