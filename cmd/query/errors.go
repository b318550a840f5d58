package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"blobtail/internal/openstore"
	"blobtail/query"
	"blobtail/storage"
)

// Exit codes.
const (
	exitFound      = 0
	exitNothing    = 1
	exitUsage      = 2
	exitIncomplete = 3
	exitRefused    = 4
	exitNoStore    = 5
	exitInterrupt  = 130
)

// usageError is a mistake on the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// exitCode says on stderr what went wrong, in one line with what to do about it,
// and gives the code to exit with.
func (a *app) exitCode(err error) int {
	var (
		usage   *usageError
		bad     *query.BadQueryError
		spec    *openstore.BadSpecError
		service *query.NoServiceError
		blob    *query.NoBlobError
		output  *outputError
	)
	switch {
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return exitFound // who reads has had enough
	case errors.Is(err, context.Canceled):
		return exitInterrupt
	case errors.As(err, &output):
		a.complain("%v", err)
		return exitIncomplete
	case errors.As(err, &usage), errors.As(err, &bad), errors.As(err, &spec):
		a.complain("%v", err)
		return exitUsage
	case errors.As(err, &service):
		a.complain("%s", a.noService(service))
		return exitNothing
	case errors.As(err, &blob) && blob.Expired:
		a.complain("%v", err)
		return exitNothing
	case errors.As(err, &blob):
		a.complain("%v; logquery ls SERVICE DAY lists them", err)
		return exitNothing
	case errors.Is(err, storage.ErrUnauthorized):
		if openstore.Remote(a.store) {
			err = fmt.Errorf("%w; reading needs the role Storage Blob Data Reader", err)
		}
		a.complain("%v", err)
		return exitRefused
	case errors.Is(err, storage.ErrDamaged):
		a.complain("%v", err)
		return exitIncomplete
	case errors.Is(err, storage.ErrNotExist):
		a.complain("%s", a.noStore())
		return exitNoStore
	}
	a.complain("%v", err)
	return exitNoStore
}

// complain writes a line to stderr, of which nothing can reach the terminal but
// text.
func (a *app) complain(format string, args ...any) {
	fmt.Fprintf(a.env.stderr, "logquery: %s\n", sanitizeString(fmt.Sprintf(format, args...)))
}

// note writes a line to stderr unless -q says not to.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		a.complain(format, args...)
	}
}

func (a *app) noService(e *query.NoServiceError) string {
	switch {
	case e.Near != "":
		return fmt.Sprintf("%v; there is %q", e, e.Near)
	case strings.ContainsAny(e.Name, `*?[\`), !a.searches:
		return fmt.Sprintf("%v; logquery ls lists them", e)
	}
	return fmt.Sprintf("%v; to search text: -F %s", e, shellWord(e.Name))
}

func (a *app) noStore() string {
	path := strings.TrimPrefix(a.store, "dir:")
	if a.store == openstore.Default {
		return fmt.Sprintf("no store at %s (the default); set BLOBTAIL_STORE or --store", path)
	}
	return fmt.Sprintf("no store at %s; set BLOBTAIL_STORE or --store", path)
}

// shellWord quotes a word for a shell where it needs to be.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r == '-' || r == '_' || r == '.' || r == '/' || r == ':' || r == '=' || r == '+' || r == ',' ||
			r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
