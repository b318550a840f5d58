package cli

import (
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// IsTerminal reports whether a file is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// NewLog returns the log of a command that runs for long: JSON lines, or lines for people
// on a terminal.
func NewLog(w io.Writer, terminal bool) zerolog.Logger {
	if terminal {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.DateTime, NoColor: os.Getenv("NO_COLOR") != ""}
	}
	return zerolog.New(w).With().Timestamp().Logger()
}
