package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/query"
	"blobtail/record"
	"blobtail/storage"
)

// ownError knows the errors of reading.
func (a *app) ownError(ctx context.Context, err error) (code int, message string) {
	var (
		bad     *query.BadQueryError
		service *query.NoServiceError
		blob    *query.NoBlobError
	)
	switch {
	case errors.As(err, &bad):
		return cli.Usage, err.Error()
	case errors.As(err, &service):
		return cli.Nothing, a.noService(ctx, service)
	case errors.As(err, &blob) && blob.Expired:
		return cli.Nothing, err.Error()
	case errors.As(err, &blob):
		return cli.Nothing, fmt.Sprintf("%v; logquery ls SERVICE DAY lists them", err)
	case errors.Is(err, errOutput), errors.Is(err, storage.ErrDamaged):
		return cli.Incomplete, err.Error()
	}
	return 0, ""
}

// noService says what was probably meant by a name that is no service.
func (a *app) noService(ctx context.Context, e *query.NoServiceError) string {
	if a.held(ctx, e.Name) {
		return fmt.Sprintf("%s has no blob yet; ingesters have its records: logquery %s", e.Name, e.Name)
	}
	level := record.ParseLevel([]byte(e.Name))
	has := func(flag rune) bool {
		return slices.ContainsFunc(a.verb.Flags, func(f *kong.Flag) bool { return f.Short == flag })
	}
	hint := "logquery ls lists them"
	switch verb := verbOf(a.model, e.Name); {
	case a.env.isFile(e.Name):
		hint = "a file has that name: if the shell made it of *, quote that: '*'"
	case e.Near != "":
		hint = fmt.Sprintf("there is %q", e.Near)
	case strings.ContainsAny(e.Name, `*?[\`):
	case verb != nil:
		hint = fmt.Sprintf("for the verb write it first: logquery %s SERVICE", e.Name)
	case level != record.Other && has('l'):
		hint = fmt.Sprintf("for the level: --level %s", level)
	case has('F'):
		hint = "to search text: -F " + cli.ShellWords(e.Name)
	}
	return fmt.Sprintf("%v; %s%s", e, hint, a.thereAre(ctx, e))
}

// thereAre lists the services that exist, if they are few enough for a line.
func (a *app) thereAre(ctx context.Context, e *query.NoServiceError) string {
	const most = 10
	names := slices.DeleteFunc(slices.Clone(e.Stored), func(name string) bool { return name[0] == '_' })
	if len(names) == 0 && a.logs != nil {
		names, _ = a.logs.Services(ctx) // they are a help only
	}
	switch {
	case len(names) == 0 || e.Near != "":
		return ""
	case len(names) > most:
		return fmt.Sprintf("; there are %s and %d more (logquery ls)", strings.Join(names[:most], ", "), len(names)-most)
	case len(names) == 1:
		return "; there is only " + names[0]
	}
	return "; there are " + strings.Join(names, ", ")
}

// misread explains an error of the parser.
func (a *app) misread(err error) error {
	if strings.HasPrefix(err.Error(), `expected "<service>`) {
		return cli.Usagef("which service? logquery ls lists them; all of them are '*'")
	}
	return cli.Usagef("%w; see logquery --help", err)
}
