package storeid

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"blobtail/internal/fsys"
)

// BindingFile is the name of the file in the directory of a log that says which
// store the log belongs to.
const BindingFile = "store"

// Binding says which store a log belongs to: its records must go to no other. The zero
// value is none.
type Binding struct {
	ID   string
	Spec string // as the operator wrote it, for messages
}

// LoadBinding reads the binding of the log in dir; zero when it has none. A file
// that cannot be read is an error: without it the log could go to any store.
func LoadBinding(fsy fsys.FS, dir string) (Binding, error) {
	path := filepath.Join(dir, BindingFile)
	text, err := fsys.ReadFile(fsy, path)
	if errors.Is(err, fs.ErrNotExist) {
		return Binding{}, nil
	}
	if err != nil {
		return Binding{}, fmt.Errorf("read which store the log belongs to: %w", err)
	}
	id, spec, ok := strings.Cut(strings.TrimSuffix(string(text), "\n"), " ")
	if !ok || !isID(id) {
		return Binding{}, fmt.Errorf("read which store the log belongs to: %s holds something else; put the id of the store and its name into it (the id is in the store's object %s)", path, Key)
	}
	return Binding{ID: id, Spec: spec}, nil
}

// Save writes the binding of the log in dir, durably.
func (b Binding) Save(fsy fsys.FS, dir string) error {
	spec := strings.ToValidUTF8(strings.ReplaceAll(b.Spec, "\n", " "), "?")
	if err := fsys.Replace(fsy, filepath.Join(dir, BindingFile), fmt.Appendf(nil, "%s %s\n", b.ID, spec)); err != nil {
		return fmt.Errorf("keep which store the log belongs to: %w", err)
	}
	return nil
}
