package azure

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobtail/storage"
)

const (
	maxBatch      = 256 // sub-requests of one batch, by the service
	deletesAtOnce = 8   // where there are no batches
)

// Delete implements [storage.BlobStore].
func (s *Store) Delete(ctx context.Context, blobs ...storage.Blob) error {
	keys := make([]string, len(blobs))
	for i := range blobs {
		keys[i] = blobs[i].Key
	}
	var errs []error
	for chunk := range slices.Chunk(keys, maxBatch) {
		chunk = slices.DeleteFunc(slices.Clone(chunk), func(key string) bool { return !nameable(key) })
		errs = append(errs, s.deleteChunk(ctx, chunk)...)
	}
	return errors.Join(errs...)
}

func (s *Store) deleteChunk(ctx context.Context, keys []string) []error {
	if len(keys) > 1 && !s.noBatch.Load() && ctx.Err() == nil {
		left, err := s.deleteBatch(ctx, keys)
		if err == nil {
			return left
		}
		var e *ServiceError
		if errors.As(err, &e) && e.Status < http.StatusInternalServerError && e.Status != http.StatusTooManyRequests {
			s.noBatch.Store(true) // some kinds of account and of SAS know no batches
		}
	}
	errs := make([]error, len(keys))
	free := make(chan struct{}, deletesAtOnce)
	var wg sync.WaitGroup
	for i, key := range keys {
		free <- struct{}{}
		wg.Go(func() {
			errs[i] = keyError("delete", key, s.delete(ctx, key))
			<-free
		})
	}
	wg.Wait()
	return errs
}

func (s *Store) delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := s.container.NewBlobClient(key).Delete(ctx, nil)
	if err = translate(err); errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	return err
}

// deleteBatch deletes in one request. err is that of the request as a whole;
// left are those of single keys.
func (s *Store) deleteBatch(ctx context.Context, keys []string) (left []error, err error) {
	b, err := s.container.NewBatchBuilder()
	if err != nil {
		return nil, translate(err)
	}
	for _, key := range keys {
		if err := b.Delete(key, &container.BatchDeleteOptions{}); err != nil {
			return nil, translate(err)
		}
	}
	var resp container.SubmitBatchResponse
	err = guard(func() error {
		resp, err = s.container.SubmitBatch(ctx, b, nil)
		return err
	})
	if err != nil {
		return nil, translate(err)
	}
	answered := 0
	for _, r := range resp.Responses {
		if r.ContentID == nil || *r.ContentID < 0 || *r.ContentID >= len(keys) {
			continue
		}
		answered++
		if err := translate(r.Error); err != nil && !errors.Is(err, storage.ErrNotExist) {
			left = append(left, keyError("delete", keys[*r.ContentID], err))
		}
	}
	if answered < len(keys) {
		return nil, errors.New("the batch was not answered in full")
	}
	return left, nil
}
