package blobs

import (
	"context"
	"io"
	"sync"

	"blobtail/storage"
)

// mostObjects is how many objects of a store one pass keeps open. Further ones are opened
// for each request: a process may open so many files only.
const mostObjects = 64

// objects are the open objects of a pass. The zero value opens none.
type objects struct {
	opener storage.Opener // nil: the store opens none
	cool   *coolReads     // of the read
	tell   func(*CoolError)

	mu   sync.Mutex
	open map[*source]storage.Object
}

// get reads a range of the object of a source, which it keeps open for further reads.
func (o *objects) get(ctx context.Context, s *source, off, n int64) (io.ReadCloser, error) {
	if o == nil || o.opener == nil {
		return s.store.Get(ctx, s.Key, off, n)
	}
	o.mu.Lock()
	object, full := o.open[s], len(o.open) >= mostObjects
	o.mu.Unlock()
	if object != nil {
		return object.Get(ctx, off, n)
	}
	if full {
		return s.store.Get(ctx, s.Key, off, n)
	}
	object, err := o.opener.Open(ctx, s.Key)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	if had := o.open[s]; had != nil { // another request was quicker
		_ = object.Close()
		object = had
	} else {
		o.open[s] = object
	}
	o.mu.Unlock()
	return object.Get(ctx, off, n)
}

// release closes the object of a source, which nobody reads any more.
func (o *objects) release(s *source) {
	o.mu.Lock()
	object := o.open[s]
	delete(o.open, s)
	o.mu.Unlock()
	if object != nil {
		_ = object.Close() // it was only read
	}
}

// close closes all objects.
func (o *objects) close() {
	for _, object := range o.open {
		_ = object.Close()
	}
	o.open = nil
}
