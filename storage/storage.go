// Package storage defines the two stores that keep blobtail's data: a blob store for
// the logs themselves and a table store for their newest end.
//
// The contracts are deliberately small, so that a directory on a disk can meet them as
// exactly as Azure does. Everything that keeps two ingesters apart rests on one method,
// [BlobStore.Create], which never overwrites.
//
// Drivers: storage/mem (tests and simulation), storage/dir (the embedded default),
// storage/azure. All of them pass the tests in storage/storagetest. The packages
// blobfmt and tailindex build and check the keys. Drivers refuse only data that they
// could not store faithfully.
package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"
	"time"
)

// Sentinels let callers choose their next step. Drivers wrap them with the operation and the key.
// After any other error from a write the outcome is unknown: the write may have happened, or may
// yet happen.
var (
	// ErrExist says that a key is taken, but not by which writer. After a lost response
	// it may be our own write (see docs/reference/format.md, put).
	ErrExist = errors.New("already exists")
	// ErrNotExist says that a key, table or whole store does not exist.
	ErrNotExist = errors.New("does not exist")
	// ErrUnauthorized says that the store knows us and refuses, or does not know us.
	ErrUnauthorized = errors.New("not authorized")
	// ErrBeingDeleted says that a table is being deleted. It accepts no writes, and its
	// name is free when the deletion is over.
	ErrBeingDeleted = errors.New("is being deleted")
	// ErrDamaged says that an object exists, but not as it was written, or that it alone may not be
	// read.
	ErrDamaged = errors.New("damaged")
	// ErrChanged says that a row is not in the state that a Swap expected: it changed,
	// or was deleted, or exists though none was expected. From a Get it says that another
	// program wrote the object anew while it was read; the pipeline changes none.
	ErrChanged = errors.New("changed meanwhile")
	// ErrOlder says that only versions before commit a960ca37 wrote something, and what to do.
	ErrOlder = errors.New("a version before commit a960ca37 wrote it: first have that commit take it over, as docs/operate/upgrade.md says")
	// ErrHeld says that a policy of the store, or a legal hold, keeps an object from being deleted.
	ErrHeld = errors.New("held by a policy")
	// ErrArchived says that an object is in the tier [Archive].
	ErrArchived = errors.New("it is in the archive tier, where nothing can be read; az storage blob set-tier --tier Hot brings it back within hours")
)

// Attrs are the attributes of an object next to its bytes. They are fixed at its
// creation and never change.
type Attrs struct {
	ContentType     string
	ContentEncoding string
	// Metadata keys are [a-z]+, values printable ASCII without spaces; under 1 KiB in
	// all. Drivers return keys in lower case, even if the service changed the case.
	Metadata map[string]string
}

// Blob describes a stored object.
type Blob struct {
	Key  string
	Size int64 // bytes of the body
	// Created is the time of storage by the store's own clock, to the second. It is
	// zero if the store does not know it.
	Created time.Time
	// Version distinguishes this object from any earlier or later object with its key,
	// for [BlobStore.Delete]. It is opaque, and "" if it is unknown.
	Version string
	// Tier is cool, cold or archive if reading the object costs more there than usual, or is
	// not possible. It is "" for others, and if the store knows no tiers. It is the store's
	// own, and may change.
	Tier string
	Attrs
}

// Archive is the tier in which an object cannot be read.
const Archive = "archive"

// BlobStore keeps immutable objects under keys that look like paths. Any number of
// goroutines and processes may call all methods at once.
type BlobStore interface {
	// Create stores body under key, whole or not at all, and never overwrites: if the
	// key is taken it changes nothing and returns [ErrExist]. When it returns nil or
	// ErrExist, the object that holds the key is durable, and every later Stat, Get and
	// List anywhere sees it. After any other error the outcome is unknown. Create
	// neither keeps nor changes body. A driver may refuse a key that is also a
	// directory of another key; the pipeline makes none.
	Create(ctx context.Context, key string, body []byte, attrs Attrs) error

	// Stat describes one object; [ErrNotExist] if it is missing.
	Stat(ctx context.Context, key string) (Blob, error)

	// Get reads n bytes from offset off, or all the rest if n < 0. A range that reaches
	// past the end is cut there; one that starts at or past it gives an empty reader.
	// [ErrNotExist] may come from Get or from the first Read. A read to the end of an
	// object that is [ErrDamaged] may give the bytes that are left, with that error in
	// place of io.EOF. The caller closes the reader.
	Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error)

	// List walks the objects with keys that start with prefix and are greater than startAfter (""
	// for all), in byte order of the keys, with size and attributes. It ends at its first error,
	// which is yielded with a zero Blob. Objects that are created or deleted during the walk may
	// or may not be yielded; all others are. An empty or absent prefix yields nothing. List also
	// yields keys that the pipeline did not write.
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[Blob, error]

	// Dirs walks the next path element (no slash) of all keys that start with prefix
	// and have a further slash after that element, in byte order and without repeats.
	// prefix is "" or ends in "/". Dirs ends at its first error.
	Dirs(ctx context.Context, prefix string) iter.Seq2[string, error]

	// Delete removes objects, in any order. Only the key and the version of each count.
	// With a version, Delete removes the object only if it still has that version.
	// Without one, it removes any object with the key. A missing object is fine. So is
	// another object under the key, which stays. The error joins one [KeyError] for
	// each object that should have been deleted and stays.
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

// AtKey returns err as a [*KeyError]; nil stays nil.
func AtKey(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &KeyError{Op: op, Key: key, Err: err}
}

// Gist is the part of an error's text that differs neither from one attempt to the next
// nor from key to key, so that each kind of failure is logged once: it has no ids of
// requests, and # in place of digits and of names of temporary files.
func Gist(err error) string {
	if key, ok := errors.AsType[*KeyError](err); ok {
		err = key.Err
	}
	s, _, _ := strings.Cut(err.Error(), " (request ")
	return regexp.MustCompile(`\.tmp-\w+|[0-9]`).ReplaceAllString(s, "#")
}

// KeyErrors splits the error of a [BlobStore.Delete] into the errors of its keys; none if
// it is nil. A part without a key has the key "".
func KeyErrors(err error) (list []*KeyError) {
	var one *KeyError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			list = append(list, KeyErrors(e)...)
		}
	} else if errors.As(err, &one) {
		list = append(list, one)
	} else if err != nil {
		list = append(list, &KeyError{Op: "delete", Err: err})
	}
	return list
}

// MaxTxRows and MaxTxBytes bound one [TableStore.Upsert]; MaxBinary and MaxString bound
// one property. They are the limits of Azure Table storage (learn.microsoft.com,
// "Performing entity group transactions" and "Understanding the Table service data
// model"). Every driver enforces them.
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
	// Version distinguishes this state of the row from any earlier or later one, for
	// [TableStore.Swap]. Scan fills it, even if the caller asks for some properties
	// only. Upsert ignores it.
	Version string
}

// TableStore keeps small rows, sorted by (partition, row key), in tables that are
// dropped whole. Table names are 3 to 63 letters and digits that begin with a letter.
// All methods may be called at once from anywhere.
type TableStore interface {
	// Upsert writes rows of one partition in one transaction, all or none. Each row
	// replaces the row of the same key entirely, so that repeating the call is
	// harmless. Upsert makes the table if it is missing, even without rows. It returns
	// [ErrBeingDeleted] while an older table of that name is being dropped. It fails
	// without a request to the store beyond the bounds above, for two rows of one key
	// and for keys outside the grammar.
	Upsert(ctx context.Context, table, partition string, rows []Row) error

	// Swap writes one row on the condition that the row of its key is in the state of
	// row.Version; "" means no row at all. It returns the version of the new row, which
	// is durable by then. [ErrChanged] means that this call wrote nothing. It may also
	// come if an earlier attempt of this very call was carried out and its answer was
	// lost: the caller reads the row and recognises its own. After any other error the
	// outcome is unknown: the write may have happened or may yet happen, but never once
	// the row has another version. Swap makes the table if it is missing.
	// [ErrBeingDeleted] and the bounds are the same as for Upsert.
	Swap(ctx context.Context, table, partition string, row Row) (version string, err error)

	// Scan walks rows of one partition with from <= key < to (to "" for no end) in key
	// order, at most limit of them (0 for all). An absent table yields [ErrNotExist],
	// and so does one that is being dropped, perhaps after some of its rows. Scan ends
	// at its first error. props names the wanted properties; none means all.
	Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[Row, error]

	// Tables walks the names of the tables that start with prefix, in byte order.
	Tables(ctx context.Context, prefix string) iter.Seq2[string, error]

	// Drop removes a table with all its rows; an absent one is fine. A drop cannot be
	// stopped once it has begun, but it may take a while (40 s and more on Azure).
	// Meanwhile Tables may still have the name, and a Drop may fail with
	// [ErrBeingDeleted]. This includes the Drop that began it, if its answer was lost
	// and the request was sent again. A caller that must see the table gone repeats
	// Drop until it returns nil.
	Drop(ctx context.Context, table string) error
}

// Trier is implemented by stores that can tell whether they would create an object.
type Trier interface {
	// TryCreate does all that Create does for a new key, but leaves no object. Its
	// error is the one that Create would return.
	TryCreate(ctx context.Context) error
}

// Sweeper is implemented by stores that may keep the body of a Create that was killed.
type Sweeper interface {
	// Sweep deletes such bodies below a directory, which ends in a slash. It harms no Create.
	Sweep(ctx context.Context, dir string) error
}

// Opener is implemented by stores in which each Get has to find its object first.
type Opener interface {
	// Open opens an object for several reads. Its errors are those of Get.
	Open(ctx context.Context, key string) (Object, error)
}

// Object is an open object. Any number of goroutines may use it.
type Object interface {
	// Get is Get of a [BlobStore]. It reads this object, even if that is deleted meanwhile.
	Get(ctx context.Context, off, n int64) (io.ReadCloser, error)
	// Close releases the object. Reads that are under way, and later ones, may fail.
	Close() error
}

// Clock is implemented by stores that can report their own time. That time decides if
// two hosts disagree.
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
}

// Now is the time by the clock of a store; own if it has none.
func Now(ctx context.Context, store BlobStore, own time.Time) (time.Time, error) {
	clock, ok := store.(Clock)
	if !ok {
		return own, nil
	}
	now, err := clock.Now(ctx)
	if err != nil {
		return now, fmt.Errorf("ask the store for its time: %w", err)
	}
	return now, nil
}
