// Package lru keeps values in bounded memory, the ones that were asked for last.
package lru

import (
	"container/list"
	"sync"
)

// Cache keeps values by their keys. Any number of goroutines may use it. Values are shared: nobody
// may change one.
type Cache[K comparable, V any] struct {
	most int64

	mu    sync.Mutex
	size  int64
	items map[K]*list.Element // of *item
	order list.List           // the one that was asked for last is first
}

type item[K comparable, V any] struct {
	key   K
	value V
	size  int64
}

// New returns an empty cache whose values take up to most bytes.
func New[K comparable, V any](most int64) *Cache[K, V] {
	return &Cache[K, V]{most: most, items: make(map[K]*list.Element)}
}

// Get returns a value that is kept.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.items[key]
	if e == nil {
		return value, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*item[K, V]).value, true
}

// Put keeps a value of so many bytes in place of an earlier one. It drops the values that were not
// asked for longest while there are too many bytes. One that has too many by itself drops no other.
func (c *Cache[K, V]) Put(key K, value V, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.items[key]; e != nil {
		c.drop(e)
	}
	if size > c.most {
		return
	}
	c.items[key] = c.order.PushFront(&item[K, V]{key, value, size})
	for c.size += size; c.size > c.most; {
		c.drop(c.order.Back())
	}
}

// Drop drops the values with keys that nobody shall find any more.
func (c *Cache[K, V]) Drop(gone func(key K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.items {
		if gone(key) {
			c.drop(e)
		}
	}
}

func (c *Cache[K, V]) drop(e *list.Element) {
	old := c.order.Remove(e).(*item[K, V])
	delete(c.items, old.key)
	c.size -= old.size
}

// Size returns the number of the values, and the bytes that they take.
func (c *Cache[K, V]) Size() (values int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.items), c.size
}
