// Package indexcache keeps decoded indexes of blobs in memory, for a process that serves many
// reads. Name a [Cache] in the options of package blobs. A count or a histogram over blobs with
// kept indexes then fetches nothing.
//
// A blob is known by its key and its batch. It never changes, so an index never gets old. The
// indexes that were not asked for longest are dropped when there are too many bytes of them. An
// index takes about 300 bytes a block, and 16 bytes an origin.
package indexcache

import (
	"blobtail/blobfmt"
	"blobtail/storage/lru"
)

// DefaultBytes is the size of a [Cache] without another one.
const DefaultBytes = 64 << 20

// overhead is the memory of an entry beside its index: its key, and its places in the map and
// in the list.
const overhead = 200

// Cache keeps indexes. Any number of goroutines may use it.
type Cache struct {
	most int64
	kept *lru.Cache[id, *blobfmt.Index]
}

type id struct {
	key   string
	batch blobfmt.BatchID
}

// New returns an empty cache that takes up to most bytes of memory; 0: [DefaultBytes].
func New(most int64) *Cache {
	if most <= 0 {
		most = DefaultBytes
	}
	return &Cache{most, lru.New[id, *blobfmt.Index](most)}
}

// Get returns the index of a blob; nil: it is not kept. Nobody may change the index.
func (c *Cache) Get(key string, batch blobfmt.BatchID) *blobfmt.Index {
	index, _ := c.kept.Get(id{key, batch})
	return index
}

// Put keeps a detached index in place of an earlier one of the blob. It keeps none that would
// take a quarter of the cache: many others are worth more.
func (c *Cache) Put(key string, batch blobfmt.BatchID, x *blobfmt.Index) {
	if size := x.Memory() + overhead; size <= c.most/4 {
		c.kept.Put(id{key, batch}, x, size)
	}
}

// Size returns the number of the indexes, and about how many bytes of memory they take.
func (c *Cache) Size() (indexes int, bytes int64) { return c.kept.Size() }
