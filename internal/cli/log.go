package cli

import (
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// NewLog returns the log of a command that runs for long: JSON lines, or lines for people
// if w is a terminal.
func NewLog(w io.Writer) zerolog.Logger {
	if f, ok := w.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		w = zerolog.ConsoleWriter{Out: f, TimeFormat: time.DateTime, NoColor: os.Getenv("NO_COLOR") != ""}
	}
	return zerolog.New(w).With().Timestamp().Logger()
}
