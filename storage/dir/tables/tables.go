// Package tables keeps tables in the directory of a dir store, one SQLite database
// each, so that another process can read while the ingester writes. It is apart from
// package dir because SQLite is most of a binary, and the blobs need none of it.
//
// A table is a directory .tables/NAME below the root, with one file rows.db in it. It
// is made complete under a temporary name and renamed into place, so a visible table
// can be read. [Store.Drop] renames it away first, so a half-removed table cannot. If
// one process writes to a table while another drops it, the writes are lost with the
// table.
//
// The databases are in WAL mode with synchronous=NORMAL: after a power cut the last
// transactions may be missing, but each is there in full or not at all. The contents of
// these tables can also be read elsewhere, more slowly. A table of swapped rows has the only copy of
// them: it has a rollback journal, and a seal (seal.go). A small table that no process has written to
// for a minute is read without any lock, and checked for writes after that.
package tables

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"blobtail/storage"
	"blobtail/storage/internal/bounds"
)

// folder is no key of the dir store, for it begins with a dot.
const folder = ".tables"

// attempts bounds how often a table is opened again if other processes drop it
// meanwhile.
const attempts = 10

// Store implements [storage.TableStore].
//
// Its Swap fails if the table is no longer under its name after the write: another process
// dropped it, or another directory has replaced the store.
type Store struct {
	storage.TableStore
	all *databases
}

// databases implements [bounds.Rows].
type databases struct {
	dir string // root/.tables

	mu     sync.Mutex
	open   map[string]*table
	closed bool
}

// Open returns the tables of the dir store in root; [storage.ErrNotExist] if the
// directory is missing. It opens no database.
func Open(root string) (*Store, error) {
	fi, err := os.Stat(root)
	if err == nil && !fi.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return nil, fmt.Errorf("open tables of %s: %w", root, bounds.Known(err))
	}
	all := &databases{dir: filepath.Join(root, folder), open: map[string]*table{}}
	return &Store{bounds.Tables(all), all}, nil
}

// Close closes the databases after the calls under way. Calls that wait, and later ones,
// fail.
func (s *Store) Close() error {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.all.closed = true
	return s.all.closeStale(func(*table) bool { return true })
}

func (s *databases) Upsert(ctx context.Context, name, partition string, rows []storage.Row) (err error) {
	for range attempts {
		var t *table
		if t, err = s.acquireOrMake(ctx, name); err != nil {
			return err
		}
		err = full(t.upsert(ctx, partition, rows))
		if err == nil || t.isThere() {
			return err
		}
	}
	return err
}

func (s *databases) Swap(ctx context.Context, name, partition string, row storage.Row) (string, error) {
	t, err := s.acquireOrMake(ctx, name)
	if err != nil {
		return "", err
	}
	version, err := t.swapRow(ctx, partition, row)
	err = full(err)
	if !t.isThere() {
		if errors.Is(err, storage.ErrChanged) {
			err = nil // it must not be taken for the state of the current table
		}
		return "", errors.Join(errors.New("its table was dropped or replaced meanwhile"), err)
	}
	return version, err
}

// acquireOrMake is acquire for writers.
func (s *databases) acquireOrMake(ctx context.Context, name string) (t *table, err error) {
	for range attempts {
		if t, err = s.acquire(name); !errors.Is(err, storage.ErrNotExist) {
			return t, err
		}
		if err := s.make(ctx, name); err != nil {
			return nil, err
		}
	}
	return nil, err // it is dropped as soon as it is made
}

func (s *databases) Scan(ctx context.Context, name, partition, from, to string, limit int, props []string, visit func(storage.Row) bool) error {
	t, err := s.acquire(name)
	if err != nil {
		return err
	}
	err = t.scan(ctx, partition, from, to, limit, props, visit)
	if err != nil && !t.isThere() {
		err = storage.ErrNotExist
	}
	return err
}

func (s *databases) List(context.Context, string) (names []string, err error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // no table was ever made
	}
	for _, e := range entries {
		if e.IsDir() && bounds.Table(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return names, bounds.Known(err)
}

// acquire returns the open database of a table. If another file or none has that name now, acquire
// takes the old database out of use: a call that has yet to begin fails then.
func (s *databases) acquire(name string) (*table, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the store is closed")
	}
	if t := s.open[name]; t != nil && t.isThere() {
		return t, nil
	}
	// Every opening closes the databases that other processes have dropped: only then
	// is their disk space freed.
	s.closeStale(func(t *table) bool { return !t.isThere() })
	t, err := openTable(filepath.Join(s.dir, name, dbFile))
	if err != nil {
		return nil, err
	}
	s.open[name] = t
	return t, nil
}

// closeStale takes databases out of use. The caller holds mu.
func (s *databases) closeStale(stale func(*table) bool) error {
	var errs []error
	for name, t := range s.open {
		if stale(t) {
			delete(s.open, name)
			errs = append(errs, t.close())
		}
	}
	return errors.Join(errs...)
}
