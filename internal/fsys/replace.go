package fsys

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxSmall bounds ReadFile: Replace writes no larger file.
const maxSmall = 1 << 20

// ReadFile returns the contents of a small file.
func ReadFile(fsys FS, path string) (text []byte, err error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err = io.ReadAll(io.NewSectionReader(f, 0, maxSmall+1))
	if err == nil && len(text) > maxSmall {
		err = fmt.Errorf("read %s: it is longer than %d bytes", path, maxSmall)
	}
	return text, err
}

// Replace makes text the contents of a small file. When it returns nil that is durable.
// After an error and after a crash the file is the old or the new one.
func Replace(fsys FS, path string, text []byte) error {
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	f, err := fsys.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(text, 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, fsys.Remove(temp))
	}
	if err := fsys.Rename(temp, path); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(path))
}
