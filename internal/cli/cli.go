// Package cli has the parts of a command line that ingest, logquery and
// retention share: the parser, exit codes, messages on stderr, safe text for
// terminals and the version.
//
// A command makes a parser for its flags with [NewParser], reports errors with
// [Console.ExitCode], and exits with the code. The package opens no store and
// reads no configuration.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"blobtail/internal/openstore"
	"blobtail/storage"
)

// Exit codes of all commands.
const (
	OK          = 0
	Nothing     = 1 // logquery: there are no such records
	Failed      = 1 // ingest: an error while it ran
	Usage       = 2 // the command line or the configuration is wrong, or the store is of an older version
	Incomplete  = 3 // some of the data could not be read, or some of the work not done
	Refused     = 4 // the store refuses access
	NoStore     = 5 // there is no store, or it cannot be reached
	Interrupted = 130
)

// UsageError is a mistake on the command line or in the configuration. Its
// message names the mistake, its place and the fix.
type UsageError struct{ Err error }

// Error implements error.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the mistake itself.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a [*UsageError] as [fmt.Errorf] makes an error.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Console writes the messages of a command to stderr.
type Console struct {
	Name   string // of the command
	Stderr io.Writer
	Quiet  bool // Note writes nothing
	// Explain returns a remedy for an error of the store, or ""; nil: none is known.
	Explain func(error) string
}

// Complain writes a message. Control characters in it are escaped.
func (c *Console) Complain(format string, args ...any) {
	fmt.Fprintf(c.Stderr, "%s: %s\n", c.Name, Safe(fmt.Sprintf(format, args...)))
}

// Note writes a message that the user can do without, unless Quiet is set.
func (c *Console) Note(format string, args ...any) {
	if !c.Quiet {
		c.Complain(format, args...)
	}
}

// Problems writes the first few errors of a run, and the number of the others. It returns the
// number of all. An error with a method Parts stands for so many.
func (c *Console) Problems(list []error) (all int) {
	const most = 20
	for i, err := range list {
		if i < most {
			c.Complain("%v", err)
		}
		if many, ok := err.(interface{ Parts() int }); ok {
			all += many.Parts()
		} else {
			all++
		}
	}
	if all > most {
		c.Complain("and %d more", all-most)
	}
	return all
}

// ExitCode reports an error in one line, with its fix, and returns the exit code. The store
// is the one that the command uses; role names the access that it needs if that is remote.
// ExitCode first calls own for the errors that only the command knows; own returns the message ""
// for all others. No error, and an output without a reader, are [OK].
func (c *Console) ExitCode(err error, store openstore.Spec, role string, own func(error) (code int, message string)) int {
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return OK
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	var (
		usage *UsageError
		spec  *openstore.BadSpecError
	)
	code, message := own(err)
	explained := ""
	if c.Explain != nil {
		explained = c.Explain(err)
	}
	switch {
	case message != "":
	case errors.As(err, &usage), errors.As(err, &spec), errors.Is(err, storage.ErrOlder):
		code, message = Usage, err.Error()
	case explained != "":
		code, message = NoStore, fmt.Sprintf("%v; %s", err, explained)
		if errors.Is(err, storage.ErrUnauthorized) {
			code = Refused
		}
	case errors.Is(err, storage.ErrUnauthorized) && store.Remote():
		code, message = Refused, fmt.Sprintf("%v; %s", err, role)
	case errors.Is(err, storage.ErrUnauthorized):
		code, message = Refused, err.Error()
	case errors.Is(err, storage.ErrNotExist):
		path := cmp.Or(store.Dir(), store.String())
		if store == openstore.Default() {
			path += " (the default)"
		}
		code, message = NoStore, fmt.Sprintf("no store at %s; set BLOBTAIL_STORE or --store", path)
	default:
		code, message = NoStore, err.Error()
	}
	c.Complain("%s", message)
	return code
}

// UntilSignal returns a context that ends at the first SIGTERM or SIGINT. The second one
// ends the process at once; no command loses data by that. timeout(1) and shells send one
// signal to the process and one to its group: signals within 100 ms of the first one count as
// one.
//
// During the first time unwatched, a signal ends the process at once too, as it ends programs
// that do not watch signals. The Go runtime starts three threads for watching, and that is a
// twentieth of the CPU that a start takes.
func UntilSignal(unwatched time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	await := func() {
		<-signals
		cancel()
		time.Sleep(100 * time.Millisecond)
		for len(signals) > 0 {
			<-signals
		}
		<-signals
		os.Exit(Interrupted)
	}
	if unwatched == 0 {
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
		go await()
		return ctx, cancel
	}
	time.AfterFunc(unwatched, func() {
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
		await()
	})
	return ctx, cancel
}
