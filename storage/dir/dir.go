// Package dir keeps blobs as plain files in a directory: the embedded default,
// and a store that cp, tar and zstd understand.
//
// An object is one file, and its key is the path below the root. The file holds
// the body and behind it one zstd skippable frame with the attributes (frame.go),
// so what stands under a key always belongs together. It is written under a
// temporary name, fsynced, and linked into place, which fails when the name is
// taken: that is how [Store.Create] never overwrites, whoever else writes.
//
// Path elements that begin with a dot are not keys. Temporary files are called
// .tmp-*, the tables live in .tables (storage/dir/tables), and others may keep
// their own there, such as the ingester its log. A crash may leave a temporary
// file behind; it is never read, and goes with its directory.
//
// Files that somebody else put there are objects without attributes. Objects of
// our own are read-only files, so that one that was cut short is not taken for
// such a file, but answered with a [*DamagedError].
//
// Of such a damaged object List still tells the key, with the size of the file.
// Stat and reads of a range fail. A read of all, to the end, gives the bytes of
// the file as they are, perhaps with a part of the frame at their end, and then
// the error in place of io.EOF: so what is intact can be saved by a caller that
// has checks of its own, and nobody takes it for whole.
//
// An object's age is that of its file. Copies of a store that do not keep the
// times look younger than they are, which only delays what waits for an age.
//
// The store is the directory that Open opened, not whatever has its path later.
// While a store is open its file system cannot be unmounted, but may go from the
// path (umount -l, a mount over it), as the directory may by a rename. Reads and
// writes still go to it; [Store.Check] tells.
//
// Open does not lock: any number of processes may read and write at once. Only
// those who delete wait for each other (delete.go).
package dir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"blobtail/internal/fsys"
	"blobtail/storage"
	"blobtail/storage/internal/bounds"
)

// Options are the tunables of [Open]. The zero value works, for readers.
type Options struct {
	// Create makes the root, and what is missing above it, when it is not there.
	Create bool
	// FS is the file system; nil is that of the host, through the open root.
	FS fsys.FS
}

// Store implements [storage.BlobStore].
type Store struct {
	root string
	fs   fsys.FS
	tree *fsys.Tree // fs, or nil: it is that of Options

	mu sync.Mutex
	// synced holds, for each directory above a directory that objects were
	// created in, its modification time just before its last fsync here. While
	// it has not moved, the names in it are durable; when anybody makes or
	// removes a directory in it, it moves.
	synced map[string]time.Time
	// failed holds the directories whose fsync failed. The kernel may forget
	// what it could not write, and call the next fsync a success: nothing that
	// is created there can be called durable by this process any more.
	failed map[string]error
}

// Open returns the store in the directory root; [storage.ErrNotExist] when there
// is none and o does not ask to make it.
func Open(root string, o Options) (*Store, error) {
	s := &Store{
		root:   filepath.Clean(root),
		fs:     o.FS,
		synced: map[string]time.Time{},
		failed: map[string]error{},
	}
	if o.FS == nil {
		s.fs = fsys.OS()
	}
	if o.Create {
		if err := s.makeRoot(s.root); err != nil {
			return nil, fmt.Errorf("make store %s: %w", root, known(err))
		}
	}
	fi, err := s.fs.Stat(s.root)
	if err == nil && !fi.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", root, known(err))
	}
	if o.FS == nil {
		if s.tree, err = fsys.OpenTree(s.root); err != nil {
			return nil, fmt.Errorf("open store %s: %w", root, known(err))
		}
		s.fs = s.tree
	}
	return s, nil
}

// Close lets go of the directory. Calls that follow fail, but what [Store.Get]
// gave can be read to its end.
func (s *Store) Close() error {
	if s.tree == nil {
		return nil
	}
	return s.tree.Close()
}

// MovedError says that the path of a store does not lead to the directory any
// more that the store has open.
type MovedError struct {
	Path   string // as given to [Open], cleaned
	Reason string
	// Gone says that nothing is there, as when a disk is away for a while; else
	// another directory is.
	Gone bool
}

func (e *MovedError) Error() string { return "store " + e.Path + ": " + e.Reason }

// Unwrap makes the error a [storage.ErrNotExist] where nothing is there.
func (e *MovedError) Unwrap() error {
	if e.Gone {
		return storage.ErrNotExist
	}
	return nil
}

// Check says whether the store's path still leads to the directory that is open.
// The error is a [*MovedError]. A store on a file system of Options.FS never moves.
func (s *Store) Check() error {
	if s.tree == nil {
		return nil
	}
	if reason, gone := s.tree.Moved(); reason != "" {
		return &MovedError{s.root, reason, gone}
	}
	return nil
}

// makeRoot makes a directory with all above it, each name durable before the next
// is made. The name of one that is there is made durable too: whoever made it may
// have been killed before that.
func (s *Store) makeRoot(dir string) error {
	parent := filepath.Dir(dir)
	if _, err := s.fs.Stat(dir); err == nil || parent == dir {
		err = s.fs.SyncDir(parent)
		if errors.Is(err, fs.ErrPermission) {
			return nil // it was made by somebody else, who may look into parent
		}
		return err
	}
	if err := s.makeRoot(parent); err != nil {
		return err
	}
	if err := s.fs.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return s.fs.SyncDir(parent)
}

// Stat implements [storage.BlobStore].
func (s *Store) Stat(ctx context.Context, key string) (storage.Blob, error) {
	f, b, err := s.open(ctx, key)
	if f != nil {
		f.Close()
	}
	if err != nil {
		return storage.Blob{}, storage.AtKey("stat", key, err)
	}
	return b, nil
}

// Get implements [storage.BlobStore]. Of a damaged object a range gives a
// [*DamagedError]. With n < 0 the reader gives what there is of the file, and
// then that error.
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if off < 0 {
		return nil, storage.AtKey("get", key, errors.New("negative offset"))
	}
	f, b, err := s.open(ctx, key)
	var damaged *DamagedError
	if n < 0 && errors.As(err, &damaged) {
		return &reader{ctx: ctx, key: key, f: f, off: off, end: b.Size, last: damaged}, nil
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return nil, storage.AtKey("get", key, err)
	}
	end := b.Size
	if n >= 0 && n < b.Size-off {
		end = off + n
	}
	return &reader{ctx: ctx, key: key, f: f, off: off, end: end, last: io.EOF}, nil
}

// open opens an object and reads its attributes. What is no object, because it
// cannot be one or is a directory, does not exist. With a [*DamagedError] the
// file is open too, and described as List does.
func (s *Store) open(ctx context.Context, key string) (fsys.File, storage.Blob, error) {
	if err := ctx.Err(); err != nil {
		return nil, storage.Blob{}, err
	}
	if !readable(key) {
		return nil, storage.Blob{}, storage.ErrNotExist
	}
	f, err := s.fs.OpenFile(s.path(key), openRead, 0)
	if err != nil {
		return nil, storage.Blob{}, known(err)
	}
	b, err := describe(f, key)
	if damaged := (*DamagedError)(nil); err != nil && !errors.As(err, &damaged) {
		f.Close()
		return nil, storage.Blob{}, known(err)
	}
	return f, b, err
}

// reader reads a range of a body. A file that is cut while it is read gives an
// error, never a short body.
type reader struct {
	ctx      context.Context
	key      string
	f        fsys.File
	off, end int64
	last     error // what comes at the end: io.EOF, or what is wrong with the object
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, storage.AtKey("get", r.key, err)
	}
	if r.off >= r.end {
		if r.last == io.EOF {
			return 0, io.EOF
		}
		return 0, storage.AtKey("get", r.key, r.last)
	}
	p = p[:min(int64(len(p)), r.end-r.off)]
	n, err := r.f.ReadAt(p, r.off)
	r.off += int64(n)
	if n == len(p) {
		return n, nil // ReadAt may say EOF beside a whole answer
	}
	if err == io.EOF {
		err = &DamagedError{Path: r.key, Reason: "cut while it was read"}
	}
	return n, storage.AtKey("get", r.key, err)
}

func (r *reader) Close() error { return r.f.Close() }

// path returns the file of a key or of a prefix that ends in a slash.
func (s *Store) path(key string) string { return filepath.Join(s.root, filepath.FromSlash(key)) }

// readable tells whether a file may be an object under this key. It is laxer
// than what Create takes, since it covers files that others made.
func readable(key string) bool {
	for elem := range strings.SplitSeq(key, "/") {
		if elem == "" || elem[0] == '.' || strings.IndexByte(elem, 0) >= 0 {
			return false
		}
	}
	return true
}

// known turns errors of the file system into those that storage names, keeping
// their text.
func known(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotDir):
		return storage.ErrNotExist
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", storage.ErrUnauthorized, err)
	}
	return err
}

func check(ctx context.Context, key string, attrs storage.Attrs) error {
	return errors.Join(ctx.Err(), bounds.Key(key), bounds.Attrs(attrs))
}
