// Package indexcache keeps decoded indexes of blobs in memory, for a process that serves many
// reads. Name a [Cache] in the options of package blobs. A count or a histogram over blobs with
// kept indexes then fetches nothing.
//
// A blob is known by its key and its batch. It never changes, so an index never gets old. The
// indexes that were not asked for longest are dropped when there are too many bytes of them. An
// index takes about 300 bytes a block, and 16 bytes an origin.
package indexcache

import (
	"container/list"
	"sync"

	"blobtail/blobfmt"
)

// DefaultBytes is the size of a [Cache] without another one.
const DefaultBytes = 64 << 20

// overhead is the memory of an entry beside its index: its key, and its places in the map and
// in the list.
const overhead = 200

// Cache keeps indexes. Any number of goroutines may use it.
type Cache struct {
	most int64

	mu    sync.Mutex
	size  int64
	items map[id]*list.Element // of *item
	order list.List            // the one that was asked for last is first
}

type id struct {
	key   string
	batch blobfmt.BatchID
}

type item struct {
	id
	index *blobfmt.Index
	size  int64
}

// New returns an empty cache that takes up to most bytes of memory; 0: [DefaultBytes].
func New(most int64) *Cache {
	if most <= 0 {
		most = DefaultBytes
	}
	return &Cache{most: most, items: make(map[id]*list.Element)}
}

// Get returns the index of a blob; nil: it is not kept. Nobody may change the index.
func (c *Cache) Get(key string, batch blobfmt.BatchID) *blobfmt.Index {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.items[id{key, batch}]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*item).index
}

// Put keeps a detached index in place of an earlier one of the blob. It keeps none that would
// take a quarter of the cache: many others are worth more.
func (c *Cache) Put(key string, batch blobfmt.BatchID, x *blobfmt.Index) {
	at := &item{id{key, batch}, x, x.Memory() + overhead}
	if at.size > c.most/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.items[at.id]; e != nil {
		c.size += at.size - e.Value.(*item).size
		e.Value = at
		c.order.MoveToFront(e)
	} else {
		c.items[at.id] = c.order.PushFront(at)
		c.size += at.size
	}
	for c.size > c.most {
		last := c.order.Back()
		old := c.order.Remove(last).(*item)
		delete(c.items, old.id)
		c.size -= old.size
	}
}

// Size returns the number of the indexes, and about how many bytes of memory they take.
func (c *Cache) Size() (indexes int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.items), c.size
}
