package catalog

import (
	"maps"

	"blobtail/blobfmt"
	"blobtail/storage"
	"blobtail/storage/lru"
)

// A Memory keeps the names and metadata of sound blobs as they were parsed, for a process that
// lists again and again. An object whose key or metadata differ in any byte is parsed again, so
// a listing is the same with a Memory and without. Any number of goroutines may use one. A nil
// Memory keeps nothing.
type Memory struct{ sound *lru.Cache[string, parsed] }

type parsed struct {
	stored map[string]string
	name   blobfmt.Name
	meta   blobfmt.Meta
}

// parsedBytes is the memory of a parsed blob beside its texts.
const parsedBytes = 500

// NewMemory returns a memory of up to so many bytes; nil: of none.
func NewMemory(most int64) *Memory {
	if most <= 0 {
		return nil
	}
	return &Memory{lru.New[string, parsed](most)}
}

// recall sets the name and the metadata of an entry, and reports whether they are known.
func (m *Memory) recall(e *Entry, o *storage.Blob) bool {
	if m == nil {
		return false
	}
	kept, ok := m.sound.Get(o.Key)
	if !ok || !maps.Equal(kept.stored, o.Metadata) {
		return false
	}
	e.Name, e.Meta = kept.name, kept.meta
	return true
}

// keep keeps the name and the metadata of a sound entry.
func (m *Memory) keep(e *Entry, o *storage.Blob) {
	if m == nil {
		return
	}
	size := parsedBytes + 2*len(o.Key)
	for name, value := range o.Metadata {
		size += len(name) + len(value) + 64
	}
	m.sound.Put(o.Key, parsed{maps.Clone(o.Metadata), e.Name, e.Meta}, int64(size))
}

// Remember has the view parse nothing again that a memory keeps. It is for a view that has listed
// nothing yet.
func (v *View) Remember(m *Memory) { v.memory = m }
