package fsys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// MakeDir makes dir and its missing parents. Each name is durable before the next one is
// made. An existing name is made durable too: its maker may have been killed before that.
func MakeDir(fsys FS, dir string) error {
	parent := filepath.Dir(dir)
	if _, err := fsys.Stat(dir); err == nil || parent == dir {
		err = fsys.SyncDir(parent)
		if errors.Is(err, fs.ErrPermission) {
			return nil // another user made it, and may read parent
		}
		return err
	}
	if err := MakeDir(fsys, parent); err != nil {
		return err
	}
	if err := fsys.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fsys.SyncDir(parent)
}
