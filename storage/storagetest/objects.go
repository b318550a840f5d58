package storagetest

import (
	"context"
	"errors"
	"io"

	"blobtail/storage"
)

// TB is the part of a test that these helpers use: a test of rapid has it too.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Objects lists the objects with a prefix.
func Objects(t TB, s storage.BlobStore, prefix string) (all []storage.Blob) {
	t.Helper()
	for b, err := range s.List(context.Background(), prefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// KeysOf lists the keys of the objects with a prefix.
func KeysOf(t TB, s storage.BlobStore, prefix string) (keys []string) {
	t.Helper()
	for _, b := range Objects(t, s, prefix) {
		keys = append(keys, b.Key)
	}
	return keys
}

// Body reads an object whole.
func Body(t TB, s storage.BlobStore, key string) []byte {
	t.Helper()
	r, err := s.Get(context.Background(), key, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return body
}

// Edit replaces the body and the attributes of an object, as no program of ours does.
func Edit(t TB, s storage.BlobStore, key string, change func(b *storage.Blob, body []byte) []byte) {
	t.Helper()
	ctx := context.Background()
	was, err := s.Stat(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	b := was
	body := change(&b, Body(t, s, key))
	if err := errors.Join(s.Delete(ctx, was), s.Create(ctx, key, body, b.Attrs)); err != nil {
		t.Fatal(err)
	}
}

// Copy copies all objects. A change may be made to each; nil in place of its body leaves it out.
func Copy(t TB, from, to storage.BlobStore, change ...func(b *storage.Blob, body []byte) []byte) {
	t.Helper()
	for _, b := range Objects(t, from, "") {
		body := Body(t, from, b.Key)
		for _, f := range change {
			body = f(&b, body)
		}
		if body == nil {
			continue
		}
		if err := to.Create(context.Background(), b.Key, body, b.Attrs); err != nil {
			t.Fatal(err)
		}
	}
}

// Put creates an object, without attributes if none are given.
func Put(t TB, s storage.BlobStore, key string, body []byte, attrs ...storage.Attrs) {
	t.Helper()
	if err := s.Create(context.Background(), key, body, append(attrs, storage.Attrs{})[0]); err != nil {
		t.Fatal(err)
	}
}
