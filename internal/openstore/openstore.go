// Package openstore opens the store that an operator names. It is the only package that
// knows all drivers; all other packages know the contracts of package storage.
package openstore

import (
	"context"
	"errors"
	"time"

	"blobtail/storage"
	"blobtail/storage/azure"
)

// Store is an open store. Close releases it.
type Store struct {
	Blobs  storage.BlobStore
	Tables storage.TableStore
	Clock  storage.Clock // stamps the blobs; nil: the clock of this host does
	close  func() error
}

// Open opens a store and the tables that belong to it. With create it makes a missing
// store; without, a missing store is [storage.ErrNotExist]. It makes no table. The zero
// Spec is a [*BadSpecError], and so is a directory on a system other than Linux. Each
// kind of store must have tables: the kind decides where they are, and there is no
// substitute.
func Open(ctx context.Context, spec Spec, create bool) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch spec.kind {
	case inDir:
		return openDir(spec, create)
	case inAzure:
		s, err := azure.Open(spec.place, azure.Options{})
		if err != nil {
			return nil, err
		}
		store := &Store{Blobs: s, Tables: s, Clock: s, close: func() error { return nil }}
		if create {
			store.Blobs = makeContainer(ctx, s)
		}
		return store, nil
	}
	_, err := Parse(spec.String())
	return nil, err
}

// Close releases the store.
func (s *Store) Close() error { return s.close() }

// Now is the time by the clock of the store; own if that is the host's.
func (s *Store) Now(ctx context.Context, own time.Time) (time.Time, error) {
	if s.Clock == nil {
		return own, nil
	}
	return s.Clock.Now(ctx)
}

// makeTimeout bounds the time that making a container may add to a start. An
// ingester must accept records while the service is down.
const makeTimeout = time.Second

func makeContainer(ctx context.Context, s *azure.Store) *making {
	ctx, cancel := context.WithTimeout(ctx, makeTimeout)
	defer cancel()
	// The first Create tries again, and reports the error.
	_ = s.EnsureContainer(ctx)
	return &making{s}
}

// making is a store that makes its container if a Create finds it missing: the
// service may have been down at the start.
type making struct{ *azure.Store }

// Create implements [storage.BlobStore].
func (m *making) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	err := m.Store.Create(ctx, key, body, attrs)
	if !errors.Is(err, storage.ErrNotExist) {
		return err
	}
	if err := m.EnsureContainer(ctx); err != nil {
		return err
	}
	return m.Store.Create(ctx, key, body, attrs)
}
