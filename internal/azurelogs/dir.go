package azurelogs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"blobtail/storage"
)

// Dir finds the containers in a directory with copies of blobs, as azcopy makes them: the
// directory is a container itself, or its directories are. It follows no links to
// directories.
func Dir(root string) ([]Container, error) {
	info, err := os.Stat(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("directory %s %w", root, storage.ErrNotExist)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is no directory", root)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	top := Container{Name: containerName(root), Objects: files{root, os.DirFS(root)}}
	if strings.HasPrefix(top.Name, categoryPrefix) || slices.ContainsFunc(entries, isLogs) {
		return []Container{top}, nil
	}
	var out []Container
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, Container{Name: e.Name(), Objects: files{filepath.Join(root, e.Name()), os.DirFS(filepath.Join(root, e.Name()))}})
		}
	}
	return out, nil
}

// isLogs reports whether an entry of a directory is the first part of keys of logs.
func isLogs(e fs.DirEntry) bool {
	return e.IsDir() && (isPart(e.Name()) || slices.Contains([]string{"blob", "file", "queue", "table"}, e.Name()))
}

// containerName is the name of a directory.
func containerName(root string) string {
	if abs, err := filepath.Abs(root); err == nil {
		root = abs
	}
	return filepath.Base(root)
}

// files are the files of a directory as objects.
type files struct {
	root string
	fs   fs.FS
}

// located gives an error the whole path of its file in place of that in the directory.
func (f files) located(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: e.Op, Path: filepath.Join(f.root, e.Path), Err: e.Err}
	}
	return err
}

// List implements [Objects].
func (f files) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		top := path.Dir(prefix + "x")
		err := fs.WalkDir(f.fs, top, func(name string, d fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil && name == top && errors.Is(err, fs.ErrNotExist):
				return fs.SkipAll
			case err != nil:
				return err
			case d.IsDir() && name != ".":
				dir := name + "/"
				if !strings.HasPrefix(dir, prefix) && !strings.HasPrefix(prefix, dir) || dir < startAfter && !strings.HasPrefix(startAfter, dir) {
					return fs.SkipDir
				}
				return nil
			case d.IsDir() || !strings.HasPrefix(name, prefix) || name <= startAfter:
				return nil
			}
			info, err := fs.Stat(f.fs, name) // the file behind a link
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
				return nil // a link that leads nowhere
			}
			if err != nil {
				return err
			}
			if !info.Mode().IsRegular() {
				return nil
			}
			b := storage.Blob{Key: name, Size: info.Size(), Version: versionOf(info)}
			if !yield(b, nil) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(storage.Blob{}, f.located(err))
		}
	}
}

// Dirs implements [Objects].
func (f files) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		entries, err := fs.ReadDir(f.fs, path.Clean("./"+prefix))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err = cmp.Or(f.located(err), ctx.Err()); err != nil {
			yield("", err)
			return
		}
		for _, e := range entries {
			if e.IsDir() && !yield(e.Name(), nil) {
				return
			}
		}
	}
}

// Get implements [Objects].
func (f files) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, err := f.fs.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s %w", key, storage.ErrNotExist)
	}
	if err != nil {
		return nil, f.located(err)
	}
	info, err := file.Stat()
	if err == nil {
		_, err = io.CopyN(io.Discard, file, off)
	}
	if err != nil {
		file.Close()
		return nil, f.located(err)
	}
	if left := info.Size() - off; n < 0 || n > left {
		n = left
	}
	return &fileBody{file, info, n}, nil
}

// versionOf is the version of a file.
func versionOf(info fs.FileInfo) string {
	return fmt.Sprintf("%d-%d", info.Size(), info.ModTime().UnixNano())
}

// fileBody is a part of a file as it was when it was opened.
type fileBody struct {
	file   fs.File
	opened fs.FileInfo
	left   int64
}

func (b *fileBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.EOF
	}
	n, err := b.file.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err == io.EOF && b.left > 0 {
		err = storage.ErrChanged // it was cut
	}
	return n, err
}

func (b *fileBody) Close() error { return b.file.Close() }

// Version implements [steadier].
func (b *fileBody) Version() string { return versionOf(b.opened) }

// Steady implements [steadier]. A file that took another's name since is another file.
func (b *fileBody) Steady(mayGrow bool) error {
	now, err := b.file.Stat()
	switch {
	case err != nil:
		return err
	case now.Size() > b.opened.Size() && mayGrow:
		return nil
	case now.Size() != b.opened.Size() || !now.ModTime().Equal(b.opened.ModTime()):
		return storage.ErrChanged
	}
	return nil
}
