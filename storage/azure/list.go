package azure

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobtail/storage"
	"blobtail/storage/internal/bounds"
)

// List implements [storage.BlobStore].
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	return bounds.Seq(ctx, "list", prefix, func(give func(storage.Blob) bool) error {
		if startAfter > prefix && !strings.HasPrefix(startAfter, prefix) {
			return nil // it is after all keys with the prefix
		}
		o := &container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Metadata: true}, Prefix: &prefix}
		// Azurite ignores StartFrom, and no real account has shown that it is the whole key. A list
		// that leaves out a blob would lose records silently, so it is not sent.
		last := ""
		for more := true; more; more = *o.Marker != "" {
			p, err := s.flat(ctx, o)
			if err != nil {
				return err
			}
			for _, b := range p.blobs {
				if b.Key <= startAfter || b.Metadata["hdi_isfolder"] == "true" {
					continue
				}
				if b.Key <= last {
					return fmt.Errorf("%s follows %s: not in byte order; is this an account with a hierarchical namespace?", b.Key, last)
				}
				last = b.Key
				if !give(b) {
					return nil
				}
			}
			o.Marker = &p.next
		}
		return nil
	})
}

// Dirs implements [storage.BlobStore]. It collects the level before the first element,
// because the service has another order, in which a-b/ comes before a/.
func (s *Store) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return bounds.Names(ctx, "dirs", prefix, func() (dirs []string, err error) {
		o := &container.ListBlobsHierarchyOptions{Prefix: &prefix}
		for more := true; more; more = *o.Marker != "" {
			p, err := s.level(ctx, o)
			if err != nil {
				return nil, err
			}
			for _, d := range p.dirs {
				dirs = append(dirs, strings.TrimSuffix(strings.TrimPrefix(d, prefix), "/"))
			}
			o.Marker = &p.next
		}
		return dirs, nil
	})
}

// flat returns the page of a list at o.Marker.
func (s *Store) flat(ctx context.Context, o *container.ListBlobsFlatOptions) (page, error) {
	a := &answer{}
	r, err := s.container.NewListBlobsFlatPager(o).NextPage(context.WithValue(ctx, answerKey{}, a))
	if err != nil || a.scanned {
		return a.page, translate(err)
	}
	if r.Segment == nil {
		return page{}, errNoPage
	}
	p := page{next: value(r.NextMarker)}
	for _, item := range r.Segment.BlobItems {
		p.blobs = append(p.blobs, describe(item))
	}
	return p, nil
}

// level returns the page at o.Marker of a list of one level.
func (s *Store) level(ctx context.Context, o *container.ListBlobsHierarchyOptions) (page, error) {
	a := &answer{}
	r, err := s.container.NewListBlobsHierarchyPager("/", o).NextPage(context.WithValue(ctx, answerKey{}, a))
	if err != nil || a.scanned {
		return a.page, translate(err)
	}
	if r.Segment == nil {
		return page{}, errNoPage
	}
	p := page{next: value(r.NextMarker)}
	for _, d := range r.Segment.BlobPrefixes {
		p.dirs = append(p.dirs, value(d.Name))
	}
	return p, nil
}

// errNoPage means that something else than the service has answered.
var errNoPage = errors.New("malformed answer: a list without blobs")

func describe(item *container.BlobItem) storage.Blob {
	b := storage.Blob{Key: value(item.Name), Attrs: storage.Attrs{Metadata: lower(item.Metadata)}}
	if p := item.Properties; p != nil {
		b.Size = value(p.ContentLength)
		b.Created, b.Version = value(p.LastModified), version(p.ETag)
		b.Tier = tier(string(value(p.AccessTier)))
		b.ContentType, b.ContentEncoding = value(p.ContentType), value(p.ContentEncoding)
	}
	return b
}

// answer is where [scanning] puts the page of a list. It is the value of answerKey in the
// context of the request.
type (
	answer struct {
		page    page
		scanned bool
	}
	answerKey struct{}
)

// scanning is a policy of the SDK that reads the pages of lists in the SDK's place. The
// SDK needs 80 µs for a blob, by encoding/xml, and a reader lists thousands of blobs
// before the first record. The SDK then gets an answer without a body, which it takes for
// an empty page. A page that [scanPage] refuses stays for the SDK.
type scanning struct{}

// Do implements [policy.Policy].
func (scanning) Do(r *policy.Request) (*http.Response, error) {
	resp, err := r.Next()
	into, ok := r.Raw().Context().Value(answerKey{}).(*answer)
	if !ok || err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	body, err := runtime.Payload(resp)
	if err != nil {
		return resp, err
	}
	if into.page, into.scanned = scanPage(body); into.scanned {
		resp.Body = http.NoBody
	}
	return resp, nil
}
