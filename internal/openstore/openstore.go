// Package openstore opens the store that an operator names. It is the only package that
// knows all drivers; all other packages know the contracts of package storage.
package openstore

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"blobtail/internal/azurelogs"
	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/traffic"
)

// Store is an open store. Its blobs are a [storage.Clock] if the store has one.
type Store struct {
	Blobs  storage.BlobStore
	Tables storage.TableStore
	Close  func() error // releases the store
	// Explain returns the remedy of an error of the store, in one line, or "".
	Explain func(error) string
	// Grant signs the right to read one service for a time; nil if the store cannot do that.
	// See [azure.Store.Grant].
	Grant func(context.Context, Grant) (Granted, error)
	// Traffic counts the requests to the store; nil if it is a directory.
	Traffic *traffic.Counter
	// Logs are Azure's own logs, which Blobs shows in blobtail's form; nil for other stores.
	Logs *azurelogs.Source
	// Problems returns the parts of the store that could not be read so far and that no read
	// reports itself; Notes returns facts on it for people. Both are nil but for Azure's own
	// logs.
	Problems func() []error
	Notes    func() []string
}

// Explained returns an error of the store with its remedy, in one line; nil stays
// nil. The text of err loses the ids of requests, which differ each time: no operator has to ask
// the service.
func (s *Store) Explained(err error) error {
	if err == nil {
		return nil
	}
	if fix := s.Explain(err); fix != "" {
		return &explainedError{err, fix}
	}
	return err
}

type explainedError struct {
	err error
	fix string
}

func (e *explainedError) Error() string {
	ids := regexp.MustCompile(` \(request [^)]*\)`)
	return fmt.Sprintf("%s; %s", ids.ReplaceAllString(e.err.Error(), ""), e.fix)
}

func (e *explainedError) Unwrap() error { return e.err }

// The grants of a store in Azure.
type (
	Grant   = azure.Grant
	Granted = azure.Granted
)

// makeTimeout bounds the time that making a container may add to a start. An
// ingester must accept records while the service is down.
const makeTimeout = time.Second

// Options are the tunables of [OpenWith]. The zero value works.
type Options struct {
	// Late is how much later than its time a record of Azure's own logs may have arrived;
	// see [asblobs.Options].
	Late time.Duration
	// Ignore is that of [azurelogs.Options].
	Ignore []string
	// Reads says that the process only reads the store. Then remedies ask for no more, and root
	// may read the directory of another user.
	Reads bool
	// Bare is that of [dir.Options].
	Bare bool
	// Remember is how many bytes of names and attributes of a store in a directory are kept in memory;
	// see [dir.Options].
	Remember int64
}

// Open is [OpenWith] without options.
func Open(ctx context.Context, spec Spec, create bool) (*Store, error) {
	return OpenWith(ctx, spec, create, Options{})
}

// OpenWith opens a store and the tables that belong to it. With create it makes a missing
// store; without, a missing store is [storage.ErrNotExist]. It makes no table. The zero
// Spec is a [*BadSpecError], and so is a directory on a system other than Linux. Each
// kind of store must have tables: the kind decides where they are, and there is no
// substitute.
func OpenWith(ctx context.Context, spec Spec, create bool, o Options) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch spec.kind {
	case inDir:
		return openDir(spec, create, o)
	case azureLogs:
		return openLogs(spec, create, o)
	case inAzure:
		sent := new(traffic.Counter)
		s, err := azure.Open(spec.place, azure.Options{Create: create, Traffic: sent})
		if err != nil {
			return nil, err
		}
		if create {
			// The first Create tries again, and reports the error.
			ctx, cancel := context.WithTimeout(ctx, makeTimeout)
			defer cancel()
			_ = s.EnsureContainer(ctx)
		}
		return &Store{Blobs: s, Tables: s, Close: func() error { return nil }, Explain: s.Explain, Grant: s.Grant, Traffic: sent}, nil
	}
	_, err := Parse(spec.String())
	return nil, err
}
