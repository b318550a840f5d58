// Package dir keeps blobs as plain files in a directory: the embedded default, and a
// store that cp, tar and zstd understand.
//
// An object is one file, and its key is the path below the root. The file holds the
// body and after it one zstd skippable frame with the attributes (frame.go), so a body
// and its attributes always belong together. The file is written under a temporary
// name, fsynced, and linked into place. The link fails if the name is taken. So
// [Store.Create] never overwrites, even with other writers in the directory.
//
// Path elements that begin with a dot are not keys. Temporary files are called .tmp-*,
// and the tables live in .tables (storage/dir/tables). Other programs may keep files
// under such names, as the ingester keeps its log. A crash may leave a temporary file
// behind; it is never read, and is deleted with its directory, or by [Store.Sweep].
//
// Files from other programs are objects without attributes. Our own objects are
// read-only files. So one that was cut short is not taken for a foreign file, but
// reported with a [storage.ErrDamaged].
//
// List still returns the key of a damaged object, with the size of its file and no
// attributes. Get returns all of its bytes, perhaps with a part of the frame at the end,
// and then the error in place of io.EOF. So a caller with checks of its own can save the
// intact data, and no caller takes the object for whole.
//
// An object's age is the age of its file. Copies of a store that do not keep the times
// look younger than they are. This only delays actions that wait for an age.
//
// The store is the directory that Open opened, not any later directory at its path.
// While a store is open its file system cannot be unmounted. But the file system may
// leave the path (umount -l, a mount over it), as the directory may by a rename. Reads
// and writes still go to the directory; [Store.Check] reports the move.
//
// Open does not lock: any number of processes may read and write at once. Only deletes
// wait for each other (delete.go).
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

	"blobtail/storage"
	"blobtail/storage/fsys"
)

// Options are the tunables of [Open]. The zero value works, for readers.
type Options struct {
	// Create makes the root, and all missing directories above it, if it is missing.
	Create bool
	// Bare is for the files of other programs: an object is its body alone, and has no attributes.
	Bare bool
	// FS is the file system; nil is the host's file system, through the open root.
	FS fsys.FS
	// Remember is how many bytes of names and attributes are kept in memory, for a process that lists
	// again and again; 0: none are. What has changed is read again.
	Remember int64
}

// Store implements [storage.BlobStore].
type Store struct {
	root string
	fs   fsys.FS
	tree *fsys.Tree // fs, or nil: fs is that of Options
	// memory is what was read of the tree; nil: nothing is kept.
	memory *memory
	bare   bool

	mu sync.Mutex
	// failed holds the directories with a failed fsync. The kernel may discard the data it could
	// not write, and report success for the next fsync. So this process can no longer call
	// anything created there durable.
	failed map[string]error
}

// Open returns the store in the directory root; [storage.ErrNotExist] if it is missing
// and o does not ask to make it.
func Open(root string, o Options) (*Store, error) {
	s := &Store{
		root:   filepath.Clean(root),
		fs:     o.FS,
		bare:   o.Bare,
		failed: map[string]error{},
	}
	if o.FS == nil {
		s.fs = fsys.OS()
	}
	if o.Create {
		if err := fsys.MakeDir(s.fs, s.root); err != nil {
			return nil, fmt.Errorf("make store %s: %w", root, known(err))
		}
	}
	fi, err := s.fs.Stat(s.root)
	if err == nil && !fi.IsDir() {
		err = errors.New("it is a file; dir:PATH names a directory")
	}
	if err == nil && o.FS == nil {
		s.tree, err = fsys.OpenTree(s.root)
		s.fs = s.tree
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", root, known(err))
	}
	s.memory = newMemory(s.tree, o.Remember)
	return s, nil
}

// Close closes the directory. Later calls fail, but readers from [Store.Get] can be
// read to their end.
func (s *Store) Close() error {
	if s.tree == nil {
		return nil
	}
	return s.tree.Close()
}

// Check checks that the store's path still leads to the open directory. The error is a
// [storage.ErrNotExist] if nothing is at the path, as when a disk is away for a while. A
// store on a file system of Options.FS never moves.
func (s *Store) Check() error {
	if s.tree == nil {
		return nil
	}
	err := s.tree.Moved()
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("nothing is there any more: %w", storage.ErrNotExist)
	}
	if err != nil {
		err = fmt.Errorf("store %s: %w", s.root, err)
	}
	return err
}

// Stat implements [storage.BlobStore].
func (s *Store) Stat(ctx context.Context, key string) (storage.Blob, error) {
	b, err := s.stat(ctx, key)
	return b, storage.AtKey("stat", key, err)
}

func (s *Store) stat(ctx context.Context, key string) (storage.Blob, error) {
	if err := ctx.Err(); err != nil {
		return storage.Blob{}, err
	}
	if !readable(key) { // its path may lead to an object of another key
		return storage.Blob{}, storage.ErrNotExist
	}
	return s.memory.describe(s.path(key), func() (storage.Blob, error) {
		f, b, err := s.open(ctx, key)
		if f != nil {
			f.Close()
		}
		return b, err
	})
}

// Get implements [storage.BlobStore]. A range of a damaged object is a
// [storage.ErrDamaged] at once.
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if off < 0 {
		return nil, storage.AtKey("get", key, errors.New("negative offset"))
	}
	o, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	r, err := o.Get(ctx, off, n)
	if err != nil {
		o.Close()
		return nil, err
	}
	r.(*reader).f = o.(*object).f
	return r, nil
}

// Open implements [storage.Opener].
func (s *Store) Open(ctx context.Context, key string) (storage.Object, error) {
	f, b, err := s.open(ctx, key)
	if err != nil && (f == nil || !errors.Is(err, storage.ErrDamaged)) {
		if f != nil {
			f.Close()
		}
		return nil, storage.AtKey("get", key, err)
	}
	return &object{key, f, b.Size, err}, nil
}

// object implements [storage.Object].
type object struct {
	key    string
	f      fsys.File
	size   int64
	damage error // nil, or a storage.ErrDamaged
}

// Get implements [storage.Object].
func (o *object) Get(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	switch {
	case off < 0:
		return nil, storage.AtKey("get", o.key, errors.New("negative offset"))
	case n >= 0 && o.damage != nil:
		return nil, storage.AtKey("get", o.key, o.damage)
	case ctx.Err() != nil:
		return nil, storage.AtKey("get", o.key, ctx.Err())
	}
	end, last := o.size, io.EOF
	if n >= 0 && n < o.size-off {
		end = off + n
	}
	if o.damage != nil {
		last = o.damage
	}
	return &reader{ctx: ctx, key: o.key, in: o.f, off: off, end: end, last: last}, nil
}

// Close implements [storage.Object].
func (o *object) Close() error { return o.f.Close() }

// open opens an object and reads its attributes. A path that cannot be an object, or is
// a directory, does not exist. With a [storage.ErrDamaged] the file is described as in List,
// and it is open too, unless its mode forbids that.
func (s *Store) open(ctx context.Context, key string) (fsys.File, storage.Blob, error) {
	if err := ctx.Err(); err != nil {
		return nil, storage.Blob{}, err
	}
	if !readable(key) {
		return nil, storage.Blob{}, storage.ErrNotExist
	}
	f, err := s.fs.OpenFile(s.path(key), openRead, 0)
	if errors.Is(err, fs.ErrPermission) {
		// The directory can be read, so the store is ours: one file has another mode.
		if fi, serr := s.fs.Stat(s.path(key)); serr == nil {
			return nil, storage.Blob{Key: key, Size: fi.Size(), Created: fi.ModTime()}, &unreadableError{fsys.Place{Dir: s.root, Reads: true}, err}
		}
	}
	if err != nil {
		return nil, storage.Blob{}, known(err)
	}
	b, err := describe(f, key)
	if s.bare && errors.Is(err, storage.ErrDamaged) { // there is no frame that could be cut short
		err = nil
	}
	if err != nil && !errors.Is(err, storage.ErrDamaged) {
		f.Close()
		return nil, storage.Blob{}, known(err)
	}
	return f, b, err
}

// An unreadableError is a [storage.ErrDamaged] of a file that is whole, as far as is known, and has a
// mode that keeps this process out. Its text has the remedy.
type unreadableError struct {
	place fsys.Place
	err   error
}

func (e *unreadableError) Error() string {
	text := "unreadable: " + e.err.Error()
	if remedy := e.place.Remedy(e.err); remedy != "" {
		text += "; " + remedy
	}
	return text
}

// Is implements the interface of [errors.Is].
func (e *unreadableError) Is(target error) bool { return target == storage.ErrDamaged }

// reader reads a range of a body. A file that is cut during the read gives an error,
// never a short body.
type reader struct {
	ctx      context.Context
	key      string
	in       fsys.File
	f        fsys.File // to be closed with the reader, or nil
	off, end int64
	last     error // error at the end: io.EOF, or the damage of the object
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
	n, err := r.in.ReadAt(p, r.off)
	r.off += int64(n)
	if n == len(p) {
		return n, nil // ReadAt may return EOF with a complete answer
	}
	if err == io.EOF {
		err = fmt.Errorf("%w: cut while it was read", storage.ErrDamaged)
	}
	return n, storage.AtKey("get", r.key, err)
}

func (r *reader) Close() error {
	if r.f == nil {
		return nil
	}
	return r.f.Close()
}

// path returns the file of a key or of a prefix that ends in a slash.
func (s *Store) path(key string) string { return filepath.Join(s.root, filepath.FromSlash(key)) }

// readable reports whether a file may be an object under this key. It is laxer than the
// checks of Create, since it covers files from other programs.
func readable(key string) bool {
	for elem := range strings.SplitSeq(key, "/") {
		if elem == "" || elem[0] == '.' || strings.IndexByte(elem, 0) >= 0 {
			return false
		}
	}
	return true
}
