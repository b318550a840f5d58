//go:build unix

package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Columns is the width of a terminal, 0 if w is none.
func Columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
