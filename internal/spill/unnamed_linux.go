package spill

import (
	"os"

	"golang.org/x/sys/unix"
)

// unnamed makes a file that never has a name. Some file systems, as NFS, cannot.
func unnamed(dir string) (*os.File, error) {
	if f, err := os.OpenFile(dir, os.O_RDWR|os.O_EXCL|unix.O_TMPFILE, 0o600); err == nil {
		return f, nil
	}
	return removed(dir)
}
