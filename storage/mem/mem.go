// Package mem keeps blobs and tables in memory: for tests, and for simulations that run
// a whole pipeline in one process. It follows the contracts of package storage to the
// letter and does nothing else. Tests add faults by wrapping it (see
// storage/storagetest, Faulty).
package mem

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"blobtail/storage"
	"blobtail/storage/internal/bounds"
)

// Options are the tunables of [New]. The zero value works.
type Options struct {
	// Now is the store's own clock; nil is time.Now.
	Now func() time.Time
}

// Store implements [storage.BlobStore], [storage.TableStore] and
// [storage.Clock].
type Store struct {
	now func() time.Time

	mu     sync.Mutex
	blobs  map[string]object
	made   uint64                                       // objects and states of rows so far
	tables map[string]map[string]map[string]storage.Row // table, partition, row
}

// object is never changed once it is in the map, so that readers share it.
type object struct {
	body    []byte
	attrs   storage.Attrs
	created time.Time
	version uint64
}

// New returns an empty store.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{
		now:    o.Now,
		blobs:  map[string]object{},
		tables: map[string]map[string]map[string]storage.Row{},
	}
}

// Now implements [storage.Clock].
func (s *Store) Now(ctx context.Context) (time.Time, error) { return s.now(), ctx.Err() }

// Create implements [storage.BlobStore].
func (s *Store) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	err := errors.Join(ctx.Err(), bounds.Key(key), bounds.Attrs(attrs))
	if err == nil {
		err = s.create(key, object{body: bytes.Clone(body), attrs: clone(attrs)})
	}
	return storage.AtKey("create", key, err)
}

func (s *Store) create(key string, o object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.blobs[key]; ok {
		return storage.ErrExist
	}
	s.made++
	o.created, o.version = s.now(), s.made
	s.blobs[key] = o
	return nil
}

// Stat implements [storage.BlobStore].
func (s *Store) Stat(ctx context.Context, key string) (storage.Blob, error) {
	o, err := s.get(ctx, key)
	if err != nil {
		return storage.Blob{}, storage.AtKey("stat", key, err)
	}
	return o.describe(key), nil
}

// Get implements [storage.BlobStore].
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	o, err := s.get(ctx, key)
	if err == nil && off < 0 {
		err = errors.New("negative offset")
	}
	if err != nil {
		return nil, storage.AtKey("get", key, err)
	}
	b := o.body[min(off, int64(len(o.body))):]
	if n >= 0 && n < int64(len(b)) {
		b = b[:n]
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (s *Store) get(ctx context.Context, key string) (object, error) {
	if err := ctx.Err(); err != nil {
		return object{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.blobs[key]
	if !ok {
		return object{}, storage.ErrNotExist
	}
	return o, nil
}

// List implements [storage.BlobStore].
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(storage.Blob{}, storage.AtKey("list", prefix, err))
			return
		}
		for _, key := range s.keys(prefix) {
			if key <= startAfter {
				continue
			}
			o, err := s.get(ctx, key)
			if errors.Is(err, storage.ErrNotExist) {
				continue // deleted during the walk
			}
			if err != nil {
				yield(storage.Blob{}, storage.AtKey("list", prefix, err))
				return
			}
			if !yield(o.describe(key), nil) {
				return
			}
		}
	}
}

// keys returns the current keys with a prefix, in order.
func (s *Store) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := ctx.Err(); err != nil {
			yield("", storage.AtKey("dirs", prefix, err))
			return
		}
		found := map[string]bool{}
		for _, key := range s.keys(prefix) {
			if dir, _, ok := strings.Cut(key[len(prefix):], "/"); ok {
				found[dir] = true
			}
		}
		for _, dir := range slices.Sorted(maps.Keys(found)) {
			if err := ctx.Err(); err != nil {
				yield("", storage.AtKey("dirs", prefix, err))
				return
			}
			if !yield(dir, nil) {
				return
			}
		}
	}
}

// keys returns the keys with a prefix as they stand now, in order.
func (s *Store) keys(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for key := range s.blobs {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Delete implements [storage.BlobStore].
func (s *Store) Delete(ctx context.Context, blobs ...storage.Blob) error {
	var errs []error
	for _, b := range blobs {
		if err := ctx.Err(); err != nil {
			errs = append(errs, storage.AtKey("delete", b.Key, err))
			continue
		}
		s.mu.Lock()
		if o, ok := s.blobs[b.Key]; ok && (b.Version == "" || b.Version == o.describe(b.Key).Version) {
			delete(s.blobs, b.Key)
		}
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

func (o object) describe(key string) storage.Blob {
	return storage.Blob{
		Key: key, Size: int64(len(o.body)), Created: o.created, Version: strconv.FormatUint(o.version, 10), Attrs: clone(o.attrs),
	}
}

func clone(a storage.Attrs) storage.Attrs {
	a.Metadata = maps.Clone(a.Metadata)
	return a
}
