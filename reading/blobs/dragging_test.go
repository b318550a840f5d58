package blobs_test

import (
	"context"
	"io"
	"iter"
	"time"

	"blobtail/storage"
)

// dragging is a store with slow requests.
type dragging struct {
	storage.BlobStore
	pause  func() time.Duration
	listed func(prefix string)
}

func (s dragging) wait(ctx context.Context) error {
	// No timer that is due at once: in a bubble of synctest two at a time crash the race
	// detector of Go 1.26, which has one context for the timers of a bubble.
	if pause := s.pause(); pause > 0 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (s dragging) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.BlobStore.Get(ctx, key, off, n)
}

func (s dragging) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		for { // a page of one, with the current state of the store
			if err := s.wait(ctx); err != nil {
				yield(storage.Blob{}, err)
				return
			}
			more := false
			for b, err := range s.BlobStore.List(ctx, prefix, after) {
				if !yield(b, err) || err != nil {
					return
				}
				after, more = b.Key, true
				break
			}
			if !more {
				s.listed(prefix)
				return
			}
		}
	}
}
