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
	storage.TableStore
	now func() time.Time

	mu    sync.Mutex
	blobs map[string]object
	made  uint64                                       // objects and states of rows so far
	rows  map[string]map[string]map[string]storage.Row // table, partition, row
}

// object is never changed once it is in the map, so that readers share it.
type object struct {
	storage.Blob
	body []byte
}

// New returns an empty store.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{now: o.Now, blobs: map[string]object{}, rows: map[string]map[string]map[string]storage.Row{}}
	s.TableStore = bounds.Tables(tables{s})
	return s
}

// Now implements [storage.Clock].
func (s *Store) Now(ctx context.Context) (time.Time, error) { return s.now(), ctx.Err() }

// Create implements [storage.BlobStore].
func (s *Store) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) (err error) {
	defer bounds.At("create", key, &err)
	if err := errors.Join(ctx.Err(), bounds.Key(key), bounds.Attrs(attrs)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.blobs[key]; ok {
		return storage.ErrExist
	}
	attrs.Metadata = maps.Clone(attrs.Metadata)
	b := storage.Blob{Key: key, Size: int64(len(body)), Created: s.now(), Version: s.version(), Attrs: attrs}
	s.blobs[key] = object{b, bytes.Clone(body)}
	return nil
}

// version makes the version of an object or a row. The caller holds mu.
func (s *Store) version() string {
	s.made++
	return strconv.FormatUint(s.made, 10)
}

// Stat implements [storage.BlobStore].
func (s *Store) Stat(ctx context.Context, key string) (storage.Blob, error) {
	o, err := s.get(ctx, key)
	return o.describe(), storage.AtKey("stat", key, err)
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
	b := o.body[min(off, o.Size):]
	if n >= 0 && n < int64(len(b)) {
		b = b[:n]
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (s *Store) get(ctx context.Context, key string) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.blobs[key]
	if err := ctx.Err(); err != nil {
		return object{}, err
	}
	if !ok {
		return object{}, storage.ErrNotExist
	}
	return o, nil
}

// List implements [storage.BlobStore]. It yields the objects as they are when it begins.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	return bounds.Seq(ctx, "list", prefix, func(give func(storage.Blob) bool) error {
		s.mu.Lock()
		var found []storage.Blob
		for key, o := range s.blobs {
			if strings.HasPrefix(key, prefix) && key > startAfter {
				found = append(found, o.describe())
			}
		}
		s.mu.Unlock()
		slices.SortFunc(found, func(a, b storage.Blob) int { return strings.Compare(a.Key, b.Key) })
		for _, b := range found {
			if !give(b) {
				break
			}
		}
		return nil
	})
}

// Dirs implements [storage.BlobStore].
func (s *Store) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return bounds.Names(ctx, "dirs", prefix, func() (dirs []string, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for key := range s.blobs {
			rest, ok := strings.CutPrefix(key, prefix)
			if dir, _, below := strings.Cut(rest, "/"); ok && below {
				dirs = append(dirs, dir)
			}
		}
		return dirs, nil
	})
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
		if o, ok := s.blobs[b.Key]; ok && (b.Version == "" || b.Version == o.Version) {
			delete(s.blobs, b.Key)
		}
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

func (o object) describe() storage.Blob {
	o.Metadata = maps.Clone(o.Metadata)
	return o.Blob
}
