package fsys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// mostRead is the greatest size of a file that an operator has written, or that keeps a list for
// one: a hundred thousand tokens have some 30 MB.
const mostRead = 64 << 20

// Read reads a file that an operator has named, whole: of tokens, a key, a configuration, a plan. It
// may be a pipe. One that has more than 64 MiB, or no end, such as /dev/zero, is an error.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostRead+1))
	if err == nil && len(text) > mostRead {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("it has more than 64 MiB, so it is no such file; correct the path")}
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}

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
