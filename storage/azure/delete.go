package azure

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"blobtail/storage"
	"blobtail/storage/fanout"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

const (
	maxBatch      = 256 // sub-requests of one batch, a limit of the service
	deletesAtOnce = 8   // if the service has no batches
)

// Delete implements [storage.BlobStore]. It sends a version as If-Match, so the service
// itself compares it at the moment of deletion.
func (s *Store) Delete(ctx context.Context, blobs ...storage.Blob) error {
	var errs []error
	for chunk := range slices.Chunk(blobs, maxBatch) {
		chunk = slices.DeleteFunc(slices.Clone(chunk), func(b storage.Blob) bool { return !nameable(b.Key) })
		errs = append(errs, s.deleteChunk(ctx, chunk)...)
	}
	return errors.Join(errs...)
}

func (s *Store) deleteChunk(ctx context.Context, blobs []storage.Blob) []error {
	if len(blobs) > 1 && ctx.Err() == nil {
		// Some kinds of account and of SAS have no batches.
		if left, err := s.deleteBatch(ctx, blobs); err == nil {
			return left
		}
	}
	return fanout.All(len(blobs), deletesAtOnce, func(i int) error {
		b := blobs[i]
		_, err := s.container.NewBlobClient(b.Key).Delete(ctx, &blob.DeleteOptions{AccessConditions: ifStill(b)})
		return storage.AtKey("delete", b.Key, unlessGone(err))
	})
}

// ifStill is the condition that the name still belongs to the listed object; nil if any
// object may go.
func ifStill(b storage.Blob) *blob.AccessConditions {
	if b.Version == "" {
		return nil
	}
	tag := azcore.ETag(`"` + b.Version + `"`)
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &tag}}
}

// unlessGone translates the answer to a deletion. It is a success if the object is
// missing or has been replaced.
func unlessGone(err error) error {
	err = translate(err)
	var e *ServiceError
	if errors.Is(err, storage.ErrNotExist) || errors.As(err, &e) && e.Status == http.StatusPreconditionFailed && e.Code == "ConditionNotMet" {
		return nil
	}
	return err
}

// deleteBatch deletes in one request. err is the error of the request as a whole; left
// are the errors of single keys.
func (s *Store) deleteBatch(ctx context.Context, blobs []storage.Blob) (left []error, err error) {
	b, err := s.container.NewBatchBuilder()
	if err != nil {
		return nil, translate(err)
	}
	for _, o := range blobs {
		if err := b.Delete(o.Key, &container.BatchDeleteOptions{DeleteOptions: blob.DeleteOptions{AccessConditions: ifStill(o)}}); err != nil {
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
		if r.ContentID == nil || *r.ContentID < 0 || *r.ContentID >= len(blobs) {
			continue
		}
		answered++
		if err := unlessGone(r.Error); err != nil {
			left = append(left, storage.AtKey("delete", blobs[*r.ContentID].Key, err))
		}
	}
	if answered < len(blobs) {
		return nil, errors.New("the batch was not answered in full")
	}
	return left, nil
}
