package spill

import (
	"crypto/rand"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// unnamed makes a file that Windows removes when it is closed, or the process ends. There an open
// file keeps its name.
func unnamed(dir string) (*os.File, error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL | windows.FILE_FLAG_DELETE_ON_CLOSE
	return os.OpenFile(filepath.Join(dir, "blobtail-"+rand.Text()), flags, 0o600)
}
