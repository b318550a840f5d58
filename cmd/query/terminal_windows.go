package main

import (
	"context"
	"os"

	"golang.org/x/sys/windows"
)

// isTerminal reports whether f is a console that understands escape sequences. Older ones
// do so after they are asked to.
func isTerminal(f *os.File) bool {
	console := windows.Handle(f.Fd())
	var mode uint32
	return windows.GetConsoleMode(console, &mode) == nil &&
		windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

// watchReader does nothing: a pipe does not report here that its reader has gone. The
// write of the next record does.
func watchReader(context.Context, *os.File, context.CancelCauseFunc) {}
