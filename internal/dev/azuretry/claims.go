package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobtail/storage"
	"blobtail/storage/azure"
)

// A claim is a belief on the service that the product rests on, and the sight of it.
type claim struct{ about, holds, seen string }

const (
	yes = "yes"
	no  = "NO"
	// aside is for facts that the product does not rest on.
	aside = "-"
)

// errAside marks the answer of a claim that the product does not rest on.
var errAside = errors.New("not rested on")

// claimed is a claim and its check. The check returns the sight, and an error if it does not
// hold.
type claimed struct {
	about string
	check func(context.Context) (string, error)
}

// tryClaims checks each claim on its own.
func (t *try) tryClaims(ctx context.Context) (string, error) {
	holds := 0
	for _, c := range slices.Concat(t.blobClaims(), t.tableClaims(), t.codeClaims()) {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		seen, err := c.check(ctx)
		row := claim{c.about, yes, seen}
		switch {
		case errors.Is(err, errAside):
			row.holds = aside
		case err != nil:
			row.holds, row.seen = no, brief(err)
		default:
			holds++
		}
		t.claims = append(t.claims, row)
	}
	text := fmt.Sprintf("%d claims hold", holds)
	if wrong := t.wrong(); wrong > 0 {
		return "", fmt.Errorf("%s, %d do not: see the table", text, wrong)
	}
	return text, nil
}

func (t *try) wrong() (n int) {
	for _, c := range t.claims {
		if c.holds == no {
			n++
		}
	}
	return n
}

// want is an error unless a sight is as claimed.
func want(as bool, format string, args ...any) (string, error) {
	text := fmt.Sprintf(format, args...)
	if !as {
		return "", errors.New(text)
	}
	return text, nil
}

// code is the status and the code of a refusal.
func code(err error) string {
	if e, ok := errors.AsType[*azure.ServiceError](err); ok {
		return fmt.Sprintf("%d %s", e.Status, e.Code)
	}
	if err == nil {
		return "success"
	}
	return brief(err)
}

func (t *try) blobClaims() []claimed {
	return []claimed{
		{"A conditional PUT never overwrites: 409 or 412, and the first body stays", t.claimCreate},
		{"Of 8 writers of one name at once, one wins", t.claimRace},
		{"A body with a wrong MD5 is refused, and nothing is stored", t.claimMD5},
		{"Metadata, type and encoding come back from HEAD and LIST, in any case of the keys", t.claimAttrs},
		{"An object is in the next LIST and HEAD after its PUT, and gone after its DELETE", t.claimConsistent},
		{"LIST is in the order of the bytes of the names", t.claimOrder},
		{"A LIST in pages with markers has each name once, also while its first name is deleted", t.claimPages},
		{"A LIST of one level names each directory", t.claimLevel},
		{"A range that ends past the end is cut; one that starts there is 416 or empty", t.claimRanges},
		{"An object of no bytes can be read", t.claimEmpty},
		{"An ETag differs after deletion and a new PUT, and is the same in HEAD and LIST", t.claimVersion},
		{"DELETE with the ETag of an older object leaves the newer one", t.claimDelete},
		{"A deletion of many in one request, or one by one where that is refused", t.claimBatch},
		{"Answers have a Date, also refusals", t.claimDate},
		{"Deleted blobs can be restored (soft delete)", t.seeSoftDelete},
	}
}

func (t *try) put(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := t.store.Create(ctx, key, []byte(key), storage.Attrs{}); err != nil {
			return err
		}
	}
	return nil
}

func (t *try) read(ctx context.Context, key string, off, n int64) (string, error) {
	r, err := t.store.Get(ctx, key, off, n)
	if err != nil {
		return "", err
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	return string(all), err
}

func (t *try) names(ctx context.Context, prefix string) (names []string, err error) {
	for b, err := range t.store.List(ctx, prefix, "") {
		if err != nil {
			return nil, err
		}
		names = append(names, b.Key)
	}
	return names, nil
}

func (t *try) claimCreate(ctx context.Context) (string, error) {
	err := t.put(ctx, "claims/create")
	if err != nil {
		return "", err
	}
	err = t.store.Create(ctx, "claims/create", []byte("other"), storage.Attrs{})
	body, rerr := t.read(ctx, "claims/create", 0, -1)
	return want(errors.Is(err, storage.ErrExist) && rerr == nil && body == "claims/create", "%s; the body is %q", code(err), body)
}

func (t *try) claimRace(ctx context.Context) (string, error) {
	var won, lost int
	var mu sync.Mutex
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			err := t.store.Create(ctx, "claims/race", bytes.Repeat([]byte{byte('a' + w)}, 1000), storage.Attrs{})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errors.Is(err, storage.ErrExist):
				lost++
			}
		})
	}
	all.Wait()
	return want(won == 1 && lost == 7, "%d won, %d were told that it exists", won, lost)
}

// claimMD5 sends a body with the sum of another one. The driver has no call for that: its try of a
// write takes a service that checks nothing for one that would store.
func (t *try) claimMD5(ctx context.Context) (string, error) {
	const key = "claims/md5"
	blobs, _ := t.store.Clients()
	sum := md5.Sum([]byte("another body"))
	_, err := blobs.NewBlockBlobClient(key).Upload(ctx, streaming.NopCloser(strings.NewReader("a body")),
		&blockblob.UploadOptions{TransactionalValidation: blob.TransferValidationTypeMD5(sum[:])})
	_, serr := t.store.Stat(ctx, key)
	return want(err != nil && errors.Is(serr, storage.ErrNotExist), "%s; then HEAD: %s", code(err), code(serr))
}

func (t *try) claimAttrs(ctx context.Context) (string, error) {
	sent := storage.Attrs{ContentType: "application/x-ndjson", ContentEncoding: "zstd", Metadata: map[string]string{"batch": "UPPERlower", "firsttimestamp": "2026-11-20T15:00:00Z"}}
	if err := t.store.Create(ctx, "claims/attrs", []byte("(no zstd)"), sent); err != nil {
		return "", err
	}
	head, err := t.store.Stat(ctx, "claims/attrs")
	if err != nil {
		return "", err
	}
	body, err := t.read(ctx, "claims/attrs", 0, -1)
	if err != nil {
		return "", err
	}
	blobs := 0
	for b, err := range t.store.List(ctx, "claims/attrs", "") {
		if err != nil {
			return "", err
		}
		for _, got := range []storage.Attrs{head.Attrs, b.Attrs} {
			if fmt.Sprint(got) != fmt.Sprint(sent) {
				return "", fmt.Errorf("%v in place of %v", got, sent)
			}
		}
		blobs++
	}
	return want(blobs == 1 && body == "(no zstd)", "the same in HEAD and LIST; the body is not decompressed")
}

func (t *try) claimConsistent(ctx context.Context) (string, error) {
	const rounds = 5
	for i := range rounds {
		key := fmt.Sprintf("claims/consistent/%d", i)
		if err := t.put(ctx, key); err != nil {
			return "", err
		}
		names, err := t.names(ctx, "claims/consistent/")
		if _, serr := t.store.Stat(ctx, key); err != nil || serr != nil || !slices.Equal(names, []string{key}) {
			return "", fmt.Errorf("after the PUT: LIST has %v, HEAD %s, %v", names, code(serr), err)
		}
		if err := t.store.Delete(ctx, storage.Blob{Key: key}); err != nil {
			return "", err
		}
		names, err = t.names(ctx, "claims/consistent/")
		if _, serr := t.store.Stat(ctx, key); err != nil || !errors.Is(serr, storage.ErrNotExist) || len(names) > 0 {
			return "", fmt.Errorf("after the DELETE: LIST has %v, HEAD %s, %v", names, code(serr), err)
		}
	}
	return fmt.Sprintf("in %d of %d rounds", rounds, rounds), nil
}

func (t *try) claimOrder(ctx context.Context) (string, error) {
	all := []string{"Z", "_x", "a-b/y", "a.b", "a/b", "a/c-d", "a/c/d", "a/c0", "a0", "aa", "é"}
	for i := range all {
		all[i] = "claims/order/" + all[i]
	}
	if err := t.put(ctx, all...); err != nil {
		return "", err
	}
	got, err := t.names(ctx, "claims/order/")
	if err != nil {
		return "", err
	}
	return want(slices.Equal(got, all), "%d names: %s", len(got), strings.ReplaceAll(strings.Join(got, " "), "claims/order/", ""))
}

func (t *try) claimPages(ctx context.Context) (string, error) {
	var all []string
	for i := range 7 {
		all = append(all, fmt.Sprintf("claims/pages/%d", i))
	}
	if err := t.put(ctx, all...); err != nil {
		return "", err
	}
	blobs, _ := t.store.Clients()
	prefix, size := "claims/pages/", int32(2)
	var got []string
	pages := 0
	for p := blobs.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix, MaxResults: &size}); p.More(); pages++ {
		page, err := p.NextPage(ctx)
		if err != nil {
			return "", err
		}
		for _, b := range page.Segment.BlobItems {
			got = append(got, value(b.Name))
		}
		if pages == 0 {
			if err := t.store.Delete(ctx, storage.Blob{Key: all[0]}); err != nil {
				return "", err
			}
		}
	}
	return want(slices.Equal(got, all), "%d names in %d pages", len(got), pages)
}

func (t *try) claimLevel(ctx context.Context) (string, error) {
	if err := t.put(ctx, "claims/level/a-b/1", "claims/level/a/1", "claims/level/a/2", "claims/level/b"); err != nil {
		return "", err
	}
	var dirs []string
	for d, err := range t.store.Dirs(ctx, "claims/level/") {
		if err != nil {
			return "", err
		}
		dirs = append(dirs, d)
	}
	return want(slices.Equal(dirs, []string{"a", "a-b"}), "%v", dirs)
}

func (t *try) claimRanges(ctx context.Context) (string, error) {
	if err := t.store.Create(ctx, "claims/ranges", []byte("0123456789"), storage.Attrs{}); err != nil {
		return "", err
	}
	var got []string
	for _, r := range [][2]int64{{0, -1}, {3, 2}, {8, 5}, {10, 1}, {20, -1}} {
		body, err := t.read(ctx, "claims/ranges", r[0], r[1])
		if err != nil {
			return "", fmt.Errorf("from %d: %w", r[0], err)
		}
		got = append(got, body)
	}
	return want(slices.Equal(got, []string{"0123456789", "34", "89", "", ""}), "%q", got)
}

func (t *try) claimEmpty(ctx context.Context) (string, error) {
	if err := t.store.Create(ctx, "claims/empty", nil, storage.Attrs{}); err != nil {
		return "", err
	}
	body, err := t.read(ctx, "claims/empty", 0, -1)
	if err != nil {
		return "", err
	}
	return want(body == "", "%d bytes", len(body))
}

// twice puts an object, deletes it and puts it again. It returns both.
func (t *try) twice(ctx context.Context, key string) (one, two storage.Blob, err error) {
	for _, b := range []*storage.Blob{&one, &two} {
		if err = t.store.Delete(ctx, storage.Blob{Key: key}); err == nil {
			err = t.put(ctx, key)
		}
		if err == nil {
			*b, err = t.store.Stat(ctx, key)
		}
		if err != nil {
			return one, two, err
		}
	}
	return one, two, nil
}

func (t *try) claimVersion(ctx context.Context) (string, error) {
	one, two, err := t.twice(ctx, "claims/version")
	if err != nil {
		return "", err
	}
	for b, err := range t.store.List(ctx, "claims/version", "") {
		if err != nil || b.Version != two.Version {
			return "", fmt.Errorf("LIST has %s, HEAD %s, %v", b.Version, two.Version, err)
		}
	}
	return want(one.Version != two.Version && two.Version != "", "%s, then %s", one.Version, two.Version)
}

func (t *try) claimDelete(ctx context.Context) (string, error) {
	one, two, err := t.twice(ctx, "claims/delete")
	if err == nil {
		err = t.store.Delete(ctx, one)
	}
	if err != nil {
		return "", err
	}
	if _, err := t.store.Stat(ctx, two.Key); err != nil {
		return "", fmt.Errorf("the newer object is gone: %s", code(err))
	}
	err = t.store.Delete(ctx, two)
	_, serr := t.store.Stat(ctx, two.Key)
	return want(err == nil && errors.Is(serr, storage.ErrNotExist), "it stays; with its own ETag it goes (%s)", code(serr))
}

func (t *try) claimBatch(ctx context.Context) (string, error) {
	const n = 20
	var all []storage.Blob
	for i := range n {
		b := storage.Blob{Key: fmt.Sprintf("claims/batch/%02d", i)}
		if err := t.put(ctx, b.Key); err != nil {
			return "", err
		}
		all = append(all, b)
	}
	t.watch.mu.Lock()
	before := t.watch.requests
	t.watch.mu.Unlock()
	err := t.store.Delete(ctx, append(all, storage.Blob{Key: "claims/batch/missing"})...)
	t.watch.mu.Lock()
	sent := t.watch.requests - before
	t.watch.mu.Unlock()
	names, lerr := t.names(ctx, "claims/batch/")
	if err = errors.Join(err, lerr); err != nil {
		return "", err
	}
	return want(len(names) == 0, "%d deleted by %d requests", n, sent)
}

func (t *try) claimDate(ctx context.Context) (string, error) {
	begun := time.Now()
	there, err := t.store.Now(ctx)
	if err != nil {
		return "", err
	}
	ours := begun.Add(time.Since(begun) / 2)
	t.facts.skew = ours.Sub(there.Add(time.Second / 2)) // the header has whole seconds
	return want(t.facts.skew.Abs() < 5*time.Minute, "this host is %.1f s ahead, to half a second", t.facts.skew.Seconds())
}

// seeSoftDelete looks for a deleted object. Soft delete is a setting of the account.
func (t *try) seeSoftDelete(ctx context.Context) (string, error) {
	const key = "claims/soft"
	err := t.put(ctx, key)
	if err == nil {
		err = t.store.Delete(ctx, storage.Blob{Key: key})
	}
	if err != nil {
		return "", err
	}
	blobs, _ := t.store.Clients()
	prefix := key
	page, err := blobs.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix, Include: container.ListBlobsInclude{Deleted: true, Versions: true}}).NextPage(ctx)
	if err != nil {
		return "cannot be seen: " + brief(err), errAside
	}
	if len(page.Segment.BlobItems) == 0 {
		return "off: a deleted blob is in no list of deleted ones", errAside
	}
	return fmt.Sprintf("on: a deleted blob stays, in %d states, and costs money for its days", len(page.Segment.BlobItems)), errAside
}
