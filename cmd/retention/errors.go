package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"blobtail/internal/openstore"
	"blobtail/retention"
	"blobtail/storage"
)

// Exit codes.
const (
	exitDone       = 0
	exitUsage      = 2 // also: not confirmed, no policy, a clock that is wrong
	exitIncomplete = 3
	exitRefused    = 4
	exitNoStore    = 5
	exitInterrupt  = 130
)

// usageError is a mistake on the command line or in the configuration.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// unconfirmed says that a plan has to be confirmed, and how.
type unconfirmed struct {
	*retention.ConfirmError
	command string // that confirms it
}

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// again is the command that words make, for the store and the configuration of this
// run: whoever copies it may be somewhere else.
func (a *app) again(words ...string) string {
	words = append([]string{"retention"}, words...)
	if a.cli.Config != "" {
		words = append(words, "--config", a.cli.Config)
	}
	if a.cli.Store != "" {
		words = append(words, "--store", a.cli.Store)
	}
	for i, w := range words {
		if strings.ContainsFunc(w, needsQuotes) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// needsQuotes tells what a shell may take for something else.
func needsQuotes(c rune) bool {
	plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./:,+@", c)
	return !plain
}

// exitCode says on stderr what went wrong, with what to do about it, and gives the
// code to exit with.
func (a *app) exitCode(err error) int {
	var (
		usage   *usageError
		refused *retention.RefusedError
		confirm *unconfirmed
	)
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return exitDone
	case errors.Is(err, context.Canceled):
		return exitInterrupt
	case errors.As(err, &usage), errors.As(err, &refused):
		a.complain("%v", err)
		return exitUsage
	case errors.As(err, &confirm):
		a.complain("%v; nothing was done", confirm)
		a.complain("if it is right: %s --confirm %s", confirm.command, confirm.Hash)
		return exitUsage
	case errors.Is(err, storage.ErrUnauthorized):
		if openstore.Remote(a.config.Store) {
			err = fmt.Errorf("%w; retention has to list, create and delete blobs and to list and delete tables: see deploy/ for its role", err)
		}
		a.complain("%v", err)
		return exitRefused
	case errors.Is(err, storage.ErrNotExist):
		a.complain("%s", a.noStore())
		return exitNoStore
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		// Whoever tries again when the store could not be reached need not do so.
		a.complain("%v; nothing more was done, make some room", err)
		return exitIncomplete
	}
	a.complain("%v", err)
	return exitNoStore
}

func (a *app) noStore() string {
	path, byDefault := strings.TrimPrefix(a.config.Store, "dir:"), ""
	if a.config.Store == openstore.Default {
		byDefault = " (the default)"
	}
	return fmt.Sprintf("no store at %s%s; set BLOBTAIL_STORE or --store", path, byDefault)
}

// fewProblems is how many problems are told one by one.
const fewProblems = 10

// verdict tells what a run could not do and gives the exit code.
func (a *app) verdict(problems []error, did bool) int {
	refused := true
	for i, err := range problems {
		refused = refused && errors.Is(err, storage.ErrUnauthorized)
		if i < fewProblems {
			a.complain("%v", err)
		}
	}
	if n := len(problems) - fewProblems; n > 0 {
		a.complain("and %d more", n)
	}
	switch {
	case len(problems) == 0:
		return exitDone
	case refused && !did:
		return exitRefused
	}
	return exitIncomplete
}

// foreign tells of what is not ours. It is no problem: it stays.
func (a *app) foreign(f retention.Foreign) {
	if f.Count == 0 {
		return
	}
	some := slices.Clone(f.First[:min(3, len(f.First))])
	for i := range some {
		some[i] = strings.ReplaceAll(some[i], "\n", `\n`) // a name must not write lines
	}
	a.complain("%d objects are no blobs of ours and stay, such as %s", f.Count, strings.Join(some, ", "))
}

// complain writes a line to stderr, of which nothing can reach a terminal but text.
func (a *app) complain(format string, args ...any) {
	fmt.Fprintf(a.env.stderr, "retention: %s\n", printable(fmt.Sprintf(format, args...)))
}

// printable is a text with what a terminal would act on escaped.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strconv.IsPrint(r) || r == '\n' {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRuneToASCII(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}
