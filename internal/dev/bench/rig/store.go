package rig

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// BlobsOf returns the number of blobs in a dir store, and their bytes.
func BlobsOf(store string) (n int, size int64, err error) {
	err = filepath.WalkDir(store, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir // the log and the tables
		case d.IsDir() || !strings.HasSuffix(path, ".log"):
			return nil
		}
		info, err := d.Info()
		n++
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return n, size, err
}

// CopyStore copies a dir store on which no ingester is running. Blobs are never written
// twice, so links will do for them.
func CopyStore(from, to string) error {
	if err := os.CopyFS(filepath.Join(to, ".tables"), os.DirFS(filepath.Join(from, ".tables"))); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir // the log, and the tables
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return os.Link(path, filepath.Join(to, rel))
	})
}
