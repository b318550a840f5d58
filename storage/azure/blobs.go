package azure

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"blobtail/storage"
	"blobtail/storage/internal/bounds"
)

// slowest is the rate in bytes a second below which an upload is given up.
const slowest = 256 << 10

// Create implements [storage.BlobStore].
func (s *Store) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	err := errors.Join(ctx.Err(), bounds.Key(key), bounds.Attrs(attrs))
	if err == nil {
		err = s.inContainer(ctx, func() error { return s.put(ctx, key, body, md5.Sum(body), attrs) })
	}
	return storage.AtKey("create", key, err)
}

// inContainer sends a write. If the container is missing it makes it, if s is to do that.
// Without the right to make it the error says that it is missing.
func (s *Store) inContainer(ctx context.Context, send func() error) error {
	err := send()
	if !s.create || !errors.Is(err, storage.ErrNotExist) {
		return err
	}
	switch made := s.EnsureContainer(ctx); {
	case errors.Is(made, storage.ErrUnauthorized):
		return err
	case made != nil:
		return made
	}
	return send()
}

// TryCreate implements [storage.Trier]. It sends a body with a wrong checksum. The service
// checks rights, container and name first, and then refuses the body. So nothing has to be
// deleted, which most credentials of ingesters may not do.
func (s *Store) TryCreate(ctx context.Context) error {
	const body = "a test of blobtail"
	key := "_check-" + rand.Text()
	err := s.inContainer(ctx, func() error {
		return s.put(ctx, key, []byte(body), md5.Sum([]byte("not "+body)), storage.Attrs{})
	})
	if hasCode(err, "Md5Mismatch", "InvalidOperation") { // the second is Azurite's
		return nil
	}
	if err == nil { // something between us and the service does not check
		_ = s.Delete(ctx, storage.Blob{Key: key})
	}
	return storage.AtKey("create", "a test object", err)
}

// put sends an object, with the MD5 of its body.
func (s *Store) put(ctx context.Context, key string, body []byte, sum [md5.Size]byte, attrs storage.Attrs) error {
	anyone := azcore.ETagAny
	o := &blockblob.UploadOptions{
		HTTPHeaders:      &blob.HTTPHeaders{BlobContentMD5: sum[:]},
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &anyone}},
		// MD5, since the sum checked in flight must also be stored: Azurite keeps the
		// framing of structured CRC64 as if it were the body.
		TransactionalValidation: blob.TransferValidationTypeMD5(sum[:]),
		Metadata:                map[string]*string{},
	}
	if attrs.ContentType != "" {
		o.HTTPHeaders.BlobContentType = &attrs.ContentType
	}
	if attrs.ContentEncoding != "" {
		o.HTTPHeaders.BlobContentEncoding = &attrs.ContentEncoding
	}
	for k, v := range attrs.Metadata {
		o.Metadata[k] = &v
	}
	retry := s.retry
	retry.TryTimeout += time.Duration(len(body)/slowest) * time.Second
	ctx = policy.WithRetryOptions(ctx, retry)
	_, err := s.container.NewBlockBlobClient(key).Upload(ctx, streaming.NopCloser(bytes.NewReader(body)), o)
	return s.taken(ctx, key, translate(err))
}

// taken recognises the answers that mean that the name is taken.
func (s *Store) taken(ctx context.Context, key string, err error) error {
	e, ok := errors.AsType[*ServiceError](err)
	if !ok {
		return err
	}
	switch {
	case e.Status == http.StatusPreconditionFailed:
		e.sentinel = storage.ErrExist
	case e.Code == "AuthorizationPermissionMismatch":
		// A SAS that may create but not write gets this answer for a taken name. A SAS
		// that may do neither gets it too.
		if _, serr := s.stat(ctx, key); serr == nil {
			e.sentinel = storage.ErrExist
		}
	}
	return e
}

// Stat implements [storage.BlobStore].
func (s *Store) Stat(ctx context.Context, key string) (storage.Blob, error) {
	b, err := s.stat(ctx, key)
	return b, storage.AtKey("stat", key, err)
}

func (s *Store) stat(ctx context.Context, key string) (storage.Blob, error) {
	if !nameable(key) {
		return storage.Blob{}, storage.ErrNotExist
	}
	p, err := s.container.NewBlobClient(key).GetProperties(ctx, nil)
	if err != nil {
		return storage.Blob{}, translate(err)
	}
	return storage.Blob{
		Key: key, Size: value(p.ContentLength), Created: value(p.LastModified), Version: version(p.ETag), Tier: tier(value(p.AccessTier)),
		Attrs: storage.Attrs{ContentType: value(p.ContentType), ContentEncoding: value(p.ContentEncoding), Metadata: lower(p.Metadata)},
	}, nil
}

// tier is that of a blob if reading it there costs more than in the hot one.
func tier(name string) string {
	switch name = strings.ToLower(name); name {
	case "cool", "cold", storage.Archive:
		return name
	}
	return ""
}

// version makes one of an ETag, which has its quotes in headers and none in lists.
func version(tag *azcore.ETag) string { return strings.Trim(string(value(tag)), `"`) }

// nameable reports whether a blob can have this name. An impossible name must not be
// sent: an empty one would address the container, and dots may lead out of it.
func nameable(key string) bool {
	if key == "" || len(key) > 1024 || !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl) {
		return false
	}
	for elem := range strings.SplitSeq(key, "/") {
		if elem == "." || elem == ".." {
			return false
		}
	}
	return true
}

// lower restores the metadata as it was sent: Go changes the case of names in headers.
func lower(m map[string]*string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	l := make(map[string]string, len(m))
	for k, v := range m {
		l[strings.ToLower(k)] = value(v)
	}
	return l
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Get implements [storage.BlobStore]. If a body breaks off, the reader asks for the
// rest, as long as the object is the same.
func (s *Store) Get(ctx context.Context, key string, off, n int64) (r io.ReadCloser, err error) {
	defer bounds.At("get", key, &err)
	if off < 0 {
		return nil, errors.New("negative offset")
	}
	if n == 0 { // a range of no bytes cannot be requested
		_, err := s.stat(ctx, key)
		return io.NopCloser(strings.NewReader("")), err
	}
	if !nameable(key) {
		return nil, storage.ErrNotExist
	}
	rng := blob.HTTPRange{Offset: off, Count: n}
	if n < 0 || n > math.MaxInt64-off {
		rng.Count = blob.CountToEnd
	}
	resp, err := s.container.NewBlobClient(key).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: rng})
	if err = translate(err); err != nil {
		if e, ok := errors.AsType[*ServiceError](err); ok && e.Status == http.StatusRequestedRangeNotSatisfiable {
			return io.NopCloser(strings.NewReader("")), nil
		}
		return nil, err
	}
	ranged := off > 0 || rng.Count != blob.CountToEnd
	if resp.ContentLength == nil || ranged && !strings.HasPrefix(value(resp.ContentRange), fmt.Sprintf("bytes %d-", off)) {
		resp.Body.Close()
		return nil, errors.New("the answer is not the range that was asked for")
	}
	return &reader{key: key, r: resp.NewRetryReader(ctx, nil), left: *resp.ContentLength}, nil
}

// reader returns exactly the bytes that the answer promised, or an error.
type reader struct {
	key  string
	r    io.ReadCloser
	left int64
}

func (r *reader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n, err := r.r.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	if err == io.EOF {
		if err = nil; r.left > 0 {
			err = storage.AtKey("get", r.key, io.ErrUnexpectedEOF)
		}
		return n, err
	}
	err = translate(err)
	if e, ok := errors.AsType[*ServiceError](err); ok && e.Status == http.StatusPreconditionFailed {
		e.sentinel = storage.ErrChanged // the rest was asked for on the condition that the object is the same
	}
	return n, storage.AtKey("get", r.key, err)
}

func (r *reader) Close() error { return r.r.Close() }
