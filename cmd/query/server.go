package main

import (
	"errors"
	"fmt"
	"strings"

	"blobtail/internal/cli"
	"blobtail/internal/trust"
	"blobtail/reading"
	"blobtail/reading/fan"
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
	if err != nil {
		return nil, wrongURL("--server", err)
	}
	a.source = c
	return c, nil
}

// openWorkers returns the servers that read parts of questions.
func openWorkers(a *app, believed *trust.Trust) (reading.Sharing, error) {
	token, err := a.token()
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	const fails = "a worker does not answer, so others read its part"
	failed := func(worker string, err error) { a.Note("%s: %s: %v", fails, worker, err) }
	if a.verb.Name == "serve" {
		log := cli.NewLog(a.env.stderr, a.env.errTTY)
		failed = func(worker string, err error) { log.Warn().Err(err).Str("worker", worker).Msg(fails) }
	}
	o := fan.Options{Remote: remote.Options{Token: token, PlainHTTP: a.flags.PlainHTTP, Trust: believed}, Failed: failed}
	if a.verb.Name != "serve" {
		o.Begins = func(d *reading.Division, workers int) {
			if x := d.Explain(workers); x.Bytes >= manyBytes {
				a.Note("reads up to %s %s", bytesText(x.Bytes), wayText(&x, a.config.Store.Remote()))
			}
		}
	}
	c, err := fan.New(strings.Split(a.config.Workers, ","), o)
	if err != nil {
		return nil, wrongURL("--workers", err)
	}
	return c, nil
}

// wrongURL is an error of the URLs of a flag.
func wrongURL(flag string, err error) error {
	if plain, ok := errors.AsType[*remote.PlainError](err); ok {
		err = fmt.Errorf("%w, or --plain-http if nobody can listen on the way", plain)
	}
	return cli.Usagef("%s: %w", flag, err)
}
