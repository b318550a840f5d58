package main

import (
	"errors"

	"blobtail/internal/cli"
	"blobtail/reading"
	"blobtail/reading/remote"
)

// openServer returns the source of --server. It sends nothing yet.
func (a *app) openServer() (reading.Source, error) {
	token, err := a.token()
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	believed, err := a.trust()
	if err != nil {
		return nil, err
	}
	c, err := remote.New(a.flags.Server, remote.Options{Token: token, PlainHTTP: a.flags.PlainHTTP, Trust: believed})
	if plain, ok := errors.AsType[*remote.PlainError](err); ok {
		return nil, cli.Usagef("%w, or --plain-http if nobody can listen on the way", plain)
	}
	if err != nil {
		return nil, cli.Usagef("--server: %w", err)
	}
	a.source = c
	return c, nil
}
