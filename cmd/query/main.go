// Command logquery reads logs: records of one or more services in order of time. It also
// lists and verifies the stored blobs.
//
// stdout is data only; all else goes to stderr.
package main

import (
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"blobtail/internal/cli"
)

func main() {
	if slices.Contains(os.Args, "serve") {
		boundMemory(os.Getenv)
	} else {
		collectLater(os.Getenv)
	}
	ctx, stop := cli.UntilSignal(unwatched(os.Args))
	defer stop()
	// If the reader of stdout goes away, a failed write ends the command quietly. By
	// default the signal would kill it before output is flushed.
	signal.Ignore(syscall.SIGPIPE)
	configDir, err := os.UserConfigDir()
	if err != nil {
		configDir = "" // there is no home, and so no file of contexts
	}
	pager, set := os.LookupEnv("PAGER")
	os.Exit(run(ctx, environment{
		args: os.Args[1:], stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv,
		outTTY: isTerminal(os.Stdout), errTTY: isTerminal(os.Stderr), columns: cli.Columns(os.Stdout),
		emptyPager: set && pager == "",
		configDir:  configDir,
		isFile:     func(name string) bool { _, err := os.Lstat(name); return err == nil },
		now:        time.Now(), local: time.Local, exit: os.Exit,
	}))
}

// unwatched is how long a signal ends a run at once. Only tail has to say on a signal where
// another run goes on, serve has clients, and duckdb passes Ctrl-C on.
func unwatched(args []string) time.Duration {
	if slices.Contains(args, "tail") || slices.Contains(args, "serve") || slices.Contains(args, "duckdb") {
		return 0
	}
	return 50 * time.Millisecond
}

// environment is the input of a run from outside.
type environment struct {
	args           []string
	stdout, stderr io.Writer
	getenv         func(string) string
	outTTY, errTTY bool
	emptyPager     bool // PAGER is set to nothing
	columns        int  // of the terminal; 0 without one
	isFile         func(name string) bool
	configDir      string // of the user; "" if there is none
	now            time.Time
	local          *time.Location
	exit           func(code int) // ends the process; nil: the process goes on after the run
}
