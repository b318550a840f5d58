package main

import (
	"context"

	"blobtail/internal/cli"
	"blobtail/internal/guide"
)

type manCmd struct{}

func (manCmd) run(_ context.Context, a *app) (int, error) {
	_, err := a.out.Write(signposts().Manual(a.model))
	return cli.OK, err
}

// signposts say what kong's model of the command line does not. Verbs that read records over a
// store or a server have no entry.
func signposts() *guide.Guide {
	return &guide.Guide{
		Uses: map[string][]string{
			"serve":     {"config", "store", "live-url", "workers", "ca", "server-name", "plain-http", "token-file", "context"},
			"ingesters": {"config", "store", "server", "ca", "server-name", "plain-http", "token-file", "timezone", "utc", "color", "no-pager", "quiet", "context"},
			"cat":       {"config", "store", "server", "ca", "server-name", "plain-http", "token-file", "timezone", "utc", "color", "no-pager", "quiet", "context"},
			"verify": {"config", "store", "live-url", "ca", "server-name", "plain-http", "token-file", "timezone", "utc", "no-pager", "quiet", "if-any",
				"context", "late"},
			"bill":       {"config", "store", "live-url", "ca", "server-name", "plain-http", "token-file", "timezone", "utc", "color", "no-pager", "quiet", "if-any", "context"},
			"cost":       {"color", "no-pager", "quiet"},
			"grant":      {"config", "store", "timezone", "utc", "no-pager", "quiet", "context"},
			"context":    {"config", "store", "live-url", "server", "ca", "server-name", "plain-http", "token-file", "timezone", "quiet"},
			"man":        {"no-pager"},
			"lnav":       {"no-pager", "quiet"},
			"duckdb":     {"config", "store", "timezone", "utc", "no-pager", "quiet", "if-any", "context"},
			"completion": {},
			"version":    {},
		},
		Default: "read",
		Exits: []guide.Exit{
			{Code: cli.OK, Meaning: "The records were printed, and none is missing."},
			{Code: cli.Nothing, Meaning: "There are none."},
			{Code: cli.Usage, Meaning: "The command line or the configuration is wrong, a name is no service, or the store is too old."},
			{Code: cli.Incomplete, Meaning: "Some of the records could not be read; stderr says which."},
			{Code: cli.Refused, Meaning: "The store or the server refuses access."},
			{Code: cli.NoStore, Meaning: "There is no store or server, or it cannot be reached."},
			{Code: cli.Interrupted, Meaning: "It was interrupted."},
		},
		Environment: [][2]string{
			{"BLOBTAIL_TOKEN", "The token that is shown to ingesters, or to the server."},
			{"PAGER", "The program that shows long output on a terminal."},
			{"NO_COLOR", "No colours."},
		},
	}
}
