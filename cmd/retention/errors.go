package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"blobtail/internal/cli"
	"blobtail/retention"
	"blobtail/storage"
)

// unconfirmed is the error of a plan that has to be confirmed.
type unconfirmed struct {
	*retention.ConfirmError
	command string // that confirms it
}

// again is the command of this run without its confirmation. It names the store and the
// configuration of this run: a user may copy it to another shell.
func (a *app) again(args ...string) string {
	words := append([]string{a.Name, a.verb.Name}, args...)
	words = append(words, cli.Words(a.verb, "now", "grace", "day", "keep-tail")...)
	return cli.ShellWords(append(words, cli.Words(a.verb.Parent, "config", "store")...)...)
}

// exitCode reports an error and returns the exit code.
func (a *app) exitCode(err error) int {
	const role = "retention has to list, create and delete blobs and to list and delete tables: see deploy/ for its role"
	return a.ExitCode(err, a.config.Store, role, a.ownError)
}

// ownError knows the errors of deleting.
func (a *app) ownError(err error) (code int, message string) {
	var (
		refused *retention.RefusedError
		confirm *unconfirmed
	)
	switch {
	case errors.As(err, &refused):
		return cli.Usage, err.Error()
	case errors.As(err, &confirm):
		a.Complain("%v; nothing was done", confirm)
		return cli.Usage, fmt.Sprintf("if it is right: %s --confirm %s", confirm.command, confirm.Hash)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		// A scheduler that repeats runs after exit code 5 must not repeat this one.
		return cli.Incomplete, fmt.Sprintf("%v; nothing more was done, make some room", err)
	}
	return 0, ""
}

// verdict reports the problems of a run and returns the exit code. did says that the run
// has changed something, or only had to list.
func (a *app) verdict(problems []error, did bool) int {
	a.Problems(problems)
	allowed := func(err error) bool { return !errors.Is(err, storage.ErrUnauthorized) }
	switch {
	case len(problems) == 0:
		return cli.OK
	case did || slices.ContainsFunc(problems, allowed):
		return cli.Incomplete
	}
	return cli.Refused
}

// foreign reports objects of other programs. They are no problem: they stay.
func (a *app) foreign(f retention.Foreign) {
	if f.Count == 0 {
		return
	}
	some := strings.Join(f.First[:min(3, len(f.First))], ", ")
	a.Complain("%d objects are no blobs of ours and stay, such as %s", f.Count, cli.SafeLine(some))
}
