package cli

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// Columns is the width of a terminal, 0 if w is none.
func Columns(w io.Writer) int {
	f, ok := w.(*os.File)
	var info windows.ConsoleScreenBufferInfo
	if !ok || windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info) != nil {
		return 0
	}
	return int(info.Window.Right - info.Window.Left + 1)
}
