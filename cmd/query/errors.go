package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/query"
	"blobtail/storage"
)

// ownError knows the errors of reading.
func (a *app) ownError(err error) (code int, message string) {
	var (
		bad     *query.BadQueryError
		service *query.NoServiceError
		blob    *query.NoBlobError
	)
	switch {
	case errors.As(err, &bad):
		return cli.Usage, err.Error()
	case errors.As(err, &service):
		return cli.Nothing, a.noService(service)
	case errors.As(err, &blob) && blob.Expired:
		return cli.Nothing, err.Error()
	case errors.As(err, &blob):
		return cli.Nothing, fmt.Sprintf("%v; logquery ls SERVICE DAY lists them", err)
	case errors.Is(err, errOutput), errors.Is(err, storage.ErrDamaged):
		return cli.Incomplete, err.Error()
	}
	return 0, ""
}

func (a *app) noService(e *query.NoServiceError) string {
	switch {
	case e.Near != "":
		return fmt.Sprintf("%v; there is %q", e, e.Near)
	case strings.ContainsAny(e.Name, `*?[\`), !slices.ContainsFunc(a.verb.Flags, func(f *kong.Flag) bool { return f.Short == 'F' }):
		return fmt.Sprintf("%v; logquery ls lists them", e)
	}
	return fmt.Sprintf("%v; to search text: -F %s", e, cli.ShellWords(e.Name))
}
