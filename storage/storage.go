// Package storage says what blobtail needs of a place that keeps its data: a
// blob store for the logs themselves and a table store for their newest end.
//
// The contracts are deliberately small, so that a directory on a disk can
// honour them as exactly as Azure does. Everything that keeps two ingesters
// apart rests on one method, [BlobStore.Create], which never overwrites.
//
// Drivers: storage/mem (tests and simulation), storage/dir (the embedded
// default), storage/azure. All of them pass the script in storage/storagetest.
// Keys are built and checked by blobfmt and tailindex; drivers refuse only what
// they could not store faithfully.
package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Sentinels are for deciding what to do next; drivers wrap them with the
// operation and the key. Any other error from a write means that its outcome is
// unknown: it may have happened, or may yet happen.
var (
	// ErrExist says that a key is taken. It says nothing about by whom: after a
	// lost response it may be our own write (see docs/FORMAT.md, put).
	ErrExist = errors.New("already exists")
	// ErrNotExist says that a key, table or whole store is not there.
	ErrNotExist = errors.New("does not exist")
	// ErrUnauthorized says that the store knows us and refuses, or does not know us.
	ErrUnauthorized = errors.New("not authorized")
	// ErrBeingDeleted says that a table is on its way out: nothing can be written
	// to it, and its name is free when that is over.
	ErrBeingDeleted = errors.New("is being deleted")
	// ErrDamaged says that an object is there, but not as it was written.
	ErrDamaged = errors.New("damaged")
	// ErrChanged says that a row is not in the state that a Swap expected: it
	// changed, or went, or is there though none was expected.
	ErrChanged = errors.New("changed meanwhile")
)

// Attrs are what an object carries beside its bytes. They are fixed when it is
// created and never change.
type Attrs struct {
	ContentType     string
	ContentEncoding string
	// Metadata keys are [a-z]+, values printable ASCII without spaces; under
	// 1 KiB in all. Drivers give keys back in lower case whatever the service
	// made of them.
	Metadata map[string]string
}

// Blob describes a stored object.
type Blob struct {
	Key  string
	Size int64 // bytes of the body
	// Created is when it was stored, by the store's own clock, to the second; zero
	// where the store cannot tell.
	Created time.Time
	// Version tells this object from any other that has or will have its key, for
	// [BlobStore.Delete]. It is opaque, and "" where nothing is known of it.
	Version string
	Attrs
}

// Keys makes what [BlobStore.Delete] takes of keys alone: whatever has them goes.
func Keys(keys ...string) []Blob {
	blobs := make([]Blob, len(keys))
	for i, key := range keys {
		blobs[i].Key = key
	}
	return blobs
}

// BlobStore keeps immutable objects under keys that look like paths.
// All methods may be called at once by any number of goroutines and processes.
type BlobStore interface {
	// Create stores body under key, whole or not at all, and never overwrites:
	// when the key is taken it changes nothing and returns [ErrExist]. When it
	// returns nil or ErrExist, the object that holds the key is durable and seen
	// by every later Stat, Get and List anywhere. After any other error the
	// outcome is unknown. body is not kept and not changed. A driver may refuse a
	// key that is also a directory of another key; the pipeline makes none.
	Create(ctx context.Context, key string, body []byte, attrs Attrs) error

	// Stat describes one object; [ErrNotExist] when there is none.
	Stat(ctx context.Context, key string) (Blob, error)

	// Get reads n bytes from offset off, or all that follow when n < 0. A range
	// that reaches past the end is cut there; one that starts at or past it
	// gives an empty reader. [ErrNotExist] may come from Get or from the first
	// Read. A read to the end of an object that is [ErrDamaged] may give what is
	// left of it, with that error in place of io.EOF. The caller closes the reader.
	Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error)

	// List walks the objects whose keys start with prefix and are greater than
	// startAfter ("" for all), in byte order of the keys, with size and
	// attributes. It ends at its first error, which is yielded with a zero Blob.
	// What is created or deleted during the walk may or may not be in it; all
	// else is. An empty or absent prefix yields nothing. Keys that the pipeline
	// did not write are listed too.
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[Blob, error]

	// Dirs walks, in byte order and without repeats, the next path element (no
	// slash) of all keys that start with prefix and have a further slash behind
	// it. prefix is "" or ends in "/". It ends at its first error.
	Dirs(ctx context.Context, prefix string) iter.Seq2[string, error]

	// Delete removes objects, in any order. Of each only the key and the version
	// count: with a version the object goes only if it is still that one, without
	// whatever has the key goes. What is absent already is fine, and so is another
	// object under the key, which stays. The error joins one [KeyError] for each
	// object that was to go and stays.
	Delete(ctx context.Context, blobs ...Blob) error
}

// KeyError is the failure of an operation on one key.
type KeyError struct {
	Op  string // "delete", ...
	Key string
	Err error
}

// Error implements error.
func (e *KeyError) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Key, e.Err) }

// Unwrap returns the reason.
func (e *KeyError) Unwrap() error { return e.Err }

// AtKey is err as a [*KeyError]; nil stays nil.
func AtKey(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &KeyError{Op: op, Key: key, Err: err}
}

// MaxTxRows and MaxTxBytes bound one [TableStore.Upsert]; MaxBinary and
// MaxString one property. They are those of Azure Table storage
// (learn.microsoft.com, "Performing entity group transactions" and
// "Understanding the Table service data model"); every driver enforces them.
const (
	MaxTxRows   = 100
	MaxTxBytes  = 4 << 20
	MaxBinary   = 64 << 10
	MaxString   = 32 << 10 // characters; of UTF-16 on Azure
	MaxRowBytes = 1 << 20
)

// Row is one entity. Partition and row keys are 1 to 512 bytes of printable
// ASCII without / \ # ? % '. Property names are letters and digits, beginning
// with a letter; values are string, []byte, int64 or bool.
type Row struct {
	Key   string
	Props map[string]any
	// Version tells this state of the row from any earlier and later one, for
	// [TableStore.Swap]. Scan fills it (also when only some properties are asked
	// for); Upsert ignores it.
	Version string
}

// TableStore keeps small rows, sorted by (partition, row key), in tables that
// are dropped whole. Table names are 3 to 63 letters and digits that begin with
// a letter. All methods may be called at once from anywhere.
type TableStore interface {
	// Upsert writes rows of one partition in one transaction, all or none, each
	// replacing the row of the same key entirely, so that repeating it is
	// harmless. It makes the table when there is none, also for no rows at all;
	// [ErrBeingDeleted] while an older one of that name is being dropped.
	// Beyond the bounds above, for two rows of one key and for keys outside the
	// grammar it fails without asking the store.
	Upsert(ctx context.Context, table, partition string, rows []Row) error

	// Swap writes one row on the condition that the row of its key is in the state
	// row.Version says; "" is for no row at all. It returns the version of what it
	// has written, which is durable then. [ErrChanged] means that nothing was
	// written by this call; it may also come when an earlier attempt of this very
	// call was carried out and its answer was lost (the caller reads the row and
	// recognises its own). After any other error the outcome is unknown: it may
	// have happened or may yet happen, but never once the row has another version.
	// It makes the table when there is none; [ErrBeingDeleted] is as for Upsert,
	// and so are the bounds.
	Swap(ctx context.Context, table, partition string, row Row) (version string, err error)

	// Scan walks rows of one partition with from <= key < to (to "" for no end)
	// in key order, at most limit of them (0 for all). An absent table yields
	// [ErrNotExist], and so does one that is being dropped, perhaps after some of
	// its rows. It ends at its first error. props names the properties wanted;
	// none means all.
	Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[Row, error]

	// Tables walks the names of the tables that start with prefix, in byte order.
	Tables(ctx context.Context, prefix string) iter.Seq2[string, error]

	// Drop removes a table with all its rows; an absent one is fine. Nothing stops
	// it once it has begun, but it may take a while (40 s and more on Azure), in
	// which Tables may still have the name and a Drop may fail with
	// [ErrBeingDeleted]: also the one that began it, when its answer was lost and
	// the request sent again. Who has to see it gone asks again until it is nil.
	Drop(ctx context.Context, table string) error
}

// Clock is what a store may offer to tell its own time, which decides where two
// hosts disagree.
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
}
