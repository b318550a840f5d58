package blobs

import (
	"context"
	"sync/atomic"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/record"
)

// Indexes keeps indexes of blobs, as package indexcache does. A blob is known by its key and
// its batch, which both stand in a listing. It never changes, so neither does its index.
// Several goroutines call it at once.
type Indexes interface {
	// Get returns a detached index; nil: it is not kept.
	Get(key string, batch blobfmt.BatchID) *blobfmt.Index
	// Put keeps a detached index, in place of an earlier one of the blob.
	Put(key string, batch blobfmt.BatchID, x *blobfmt.Index)
}

// recall sets the index if it is kept.
func (s *source) recall(ctx context.Context) bool {
	if s.indexes == nil || s.body != nil || s.index != nil || s.err != nil || s.State != catalog.Sound {
		return false
	}
	if x := s.indexes.Get(s.Key, s.Meta.Batch); x != nil {
		// Its further parts are read while blocks are, by other goroutines. So it does not keep
		// the end of the blob for them, as readEnd does.
		s.index = x.Attached(s.Size, s.decoder, func(off, n int64) ([]byte, error) { return s.fetch(ctx, off, n) })
		s.recalled = s.index != nil
	}
	return s.recalled
}

// remember keeps the index for later reads, with the origins if they are known.
func (s *source) remember(dict []record.Origin) {
	if s.indexes != nil && s.err == nil && s.State == catalog.Sound {
		s.indexes.Put(s.Key, s.Meta.Batch, s.index.Detached(dict))
	}
}

// reopened counts a blob if more of it is read than the index that was kept.
func (s *source) reopened() {
	if s.recalled {
		s.recalled = false
		atomic.AddInt64(&s.sum.BlobsOpened, 1)
	}
}
