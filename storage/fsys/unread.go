package fsys

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// WhyUnread adds the fix, in one line, to an error of reading a file that an operator has named:
// of tokens, a key, a configuration. missing is the fix if there is no such file. An error
// without a fix stays as it is, and so does nil.
func WhyUnread(err error, missing string) error {
	fix := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fix = missing
	case errors.Is(err, fs.ErrPermission):
		fix = letRead(err)
	case errors.Is(err, syscall.EISDIR):
		fix = "name the file in it"
	}
	if fix == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, fix)
}
