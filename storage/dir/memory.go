package dir

import (
	"slices"

	"blobtail/storage"
	"blobtail/storage/fsys"
	"blobtail/storage/lru"
)

// memory has the names in directories and the attributes of objects, each with the stamp of its
// directory or file. While the stamp is the same, so are they. What was read is kept only if the name
// led to the same directory or file before and after: a link may have changed meanwhile, and may change
// back. A nil memory has nothing.
type memory struct {
	tree  *fsys.Tree
	names *lru.Cache[string, listed]
	blobs *lru.Cache[string, described]
	first *lru.Cache[string, string] // a file below a directory that was an object
}

type listed struct {
	stamp fsys.Stamp
	names []string
}

type described struct {
	stamp fsys.Stamp
	blob  storage.Blob
}

// itemBytes is the memory of an item beside its texts.
const itemBytes = 300

// newMemory returns a memory of so many bytes; nil: of none.
func newMemory(tree *fsys.Tree, most int64) *memory {
	if tree == nil || most <= 0 {
		return nil
	}
	return &memory{tree, lru.New[string, listed](most * 7 / 16), lru.New[string, described](most / 2), lru.New[string, string](most / 16)}
}

// found notes a file below a directory that is an object.
func (m *memory) found(dir, file string) {
	if m != nil {
		m.first.Put(dir, file, int64(itemBytes+len(dir)+len(file)))
	}
}

// holds reports whether the file that was found below a directory is there.
func (m *memory) holds(dir string) bool {
	if m == nil {
		return false
	}
	file, ok := m.first.Get(dir)
	if !ok {
		return false
	}
	stamp, ok := m.tree.Stamped(file)
	return ok && stamp.Regular()
}

// list returns the names in a directory as entries does, by read if it has changed.
func (m *memory) list(path string, read func() (names []string, firm bool, err error)) ([]string, error) {
	if m == nil {
		names, _, err := read()
		return names, err
	}
	stamp, ok := m.tree.Stamped(path)
	if kept, has := m.names.Get(path); ok && has && kept.stamp == stamp {
		return slices.Clone(kept.names), nil
	}
	names, firm, err := read()
	if ok && firm && err == nil && m.still(path, stamp) {
		size := itemBytes + len(path)
		for _, name := range names {
			size += len(name) + 16
		}
		m.names.Put(path, listed{stamp, slices.Clone(names)}, int64(size))
	}
	return names, err
}

// describe returns an object as read does, by read if it has changed. Nobody may change its metadata.
func (m *memory) describe(path string, read func() (storage.Blob, error)) (storage.Blob, error) {
	if m == nil {
		return read()
	}
	stamp, ok := m.tree.Stamped(path)
	if kept, has := m.blobs.Get(path); ok && has && kept.stamp == stamp {
		return kept.blob, nil
	}
	b, err := read()
	if ok && err == nil && m.still(path, stamp) {
		size := itemBytes + 2*len(path) + len(b.Version)
		for name, value := range b.Attrs.Metadata {
			size += len(name) + len(value) + 64
		}
		m.blobs.Put(path, described{stamp, b}, int64(size))
	}
	return b, err
}

// still reports whether a name has the stamp that it had.
func (m *memory) still(path string, was fsys.Stamp) bool {
	now, ok := m.tree.Stamped(path)
	return ok && now == was
}
