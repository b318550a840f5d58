package fsys

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// NoHome refuses a path that begins with ~, as an operator writes it. A shell makes a home of it
// only at the beginning of a word, so with us it would be a directory of that name.
func NoHome(path string) error {
	if !strings.HasPrefix(path, "~") {
		return nil
	}
	name, rest, _ := strings.Cut(path, "/")
	whole := "the whole path"
	if home, err := os.UserHomeDir(); err == nil && name == "~" {
		whole = filepath.Join(home, rest)
	}
	return fmt.Errorf("%s: only a shell makes a home of ~, and only at the beginning of a word; write %s, or ./%s for a directory of that name", path, whole, path)
}
