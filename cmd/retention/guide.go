package main

import (
	"context"
	"io"
	"os"

	"blobtail/internal/cli"
	"blobtail/internal/guide"
)

// signposts say what kong's model of the command line does not.
func signposts() *guide.Guide {
	return &guide.Guide{
		Uses: map[string][]string{"man": {}, "completion": {}, "key": {}},
		Exits: []guide.Exit{
			{Code: 0, Meaning: "The work is done."},
			{Code: 1, Meaning: "erase: no record matches."},
			{Code: 2, Meaning: "The command line or the configuration is wrong, the plan wants a confirmation, or the store is too old."},
			{Code: 3, Meaning: "Some of the work could not be done; stderr says which."},
			{Code: 4, Meaning: "The store refuses access."},
			{Code: 5, Meaning: "There is no store, or it cannot be reached."},
			{Code: 130, Meaning: "It was interrupted."},
		},
	}
}

// guiding is a verb that tells about the command line alone.
type guiding interface{ guides() }

type manCmd struct{}

func (manCmd) guides() {}

func (manCmd) run(_ context.Context, a *app) (int, error) {
	_, err := os.Stdout.Write(signposts().Manual(a.model))
	return cli.OK, err
}

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (*completionCmd) guides() {}

func (c *completionCmd) run(_ context.Context, a *app) (int, error) {
	_, err := io.WriteString(os.Stdout, guide.Script(c.Shell, a.Name))
	return cli.OK, err
}

// completeCmd prints the completions of the last word, for the script of a shell.
type completeCmd struct {
	Words []string `arg:"" optional:""`
}

func (*completeCmd) guides() {}

func (c *completeCmd) run(_ context.Context, a *app) (int, error) {
	_, err := io.WriteString(os.Stdout, signposts().Print(a.model, c.Words))
	return cli.OK, err
}
