package compact

import (
	"context"
	"io"
	"iter"
	"sync"

	"blobtail/storage"
)

// counted counts the calls of a store.
type counted struct {
	storage.BlobStore
	mu sync.Mutex
	n  Requests
}

func (c *counted) count(what *int) {
	c.mu.Lock()
	*what++
	c.mu.Unlock()
}

func (c *counted) counts() Requests {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *counted) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	c.count(&c.n.Dirs)
	return c.BlobStore.Dirs(ctx, prefix)
}

func (c *counted) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	c.count(&c.n.List)
	return c.BlobStore.List(ctx, prefix, startAfter)
}

func (c *counted) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	c.count(&c.n.Get)
	return c.BlobStore.Get(ctx, key, off, n)
}

func (c *counted) Stat(ctx context.Context, key string) (storage.Blob, error) {
	c.count(&c.n.Stat)
	return c.BlobStore.Stat(ctx, key)
}

func (c *counted) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	c.count(&c.n.Create)
	return c.BlobStore.Create(ctx, key, body, attrs)
}

func (c *counted) Delete(ctx context.Context, blobs ...storage.Blob) error {
	c.count(&c.n.Delete)
	return c.BlobStore.Delete(ctx, blobs...)
}
