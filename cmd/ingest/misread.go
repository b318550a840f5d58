package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/config"
)

// elsewhere are verbs that people write here, and other commands have.
var elsewhere = map[string]string{
	"tail": "logquery tail", "read": "logquery", "query": "logquery", "ls": "logquery ls", "list": "logquery ls", "verify": "logquery verify",
	"ingesters": "logquery ingesters", "status": "logquery ingesters", "apply": "retention apply",
	"plan": "retention plan", "compact": "retention compact", "drop": "retention drop", "tokens": "ingest token list", "version": "ingest --version", "help": "ingest --help",
}

// misread explains an error of the parser. People write a verb such as start or serve,
// because other servers have one.
func misread(app *kong.Application, err error) error {
	err = cli.WithoutValue(err)
	parse, ok := errors.AsType[*kong.ParseError](err)
	word, argument := strings.CutPrefix(err.Error(), "unexpected argument ")
	unknown, flag := strings.CutPrefix(err.Error(), "unknown flag ")
	name, _, _ := strings.Cut(unknown, ",")
	if flag && ok {
		if err := signposts().Elsewhere(app, parse.Context.Selected(), name); err != nil {
			return err
		}
	}
	first, _, _ := strings.Cut(word, ",")
	if other := elsewhere[first]; argument && ok && other != "" && parse.Context.Selected() == nil {
		return fmt.Errorf("there is no verb %s; for that: %s", first, other)
	}
	meant := cli.MeantListen(name, config.Default().Ingest.Listen)
	switch {
	case meant != "":
		return fmt.Errorf("unknown flag %s; %s", name, meant)
	case !argument && !strings.HasPrefix(err.Error(), "unknown flag "):
		return err // it is about a value, and says which there are
	case !ok || !argument || strings.Contains(word, "did you mean") || parse.Context.Selected() != nil:
		return fmt.Errorf("%w; see ingest --help", err)
	}
	var verbs []string
	for _, n := range app.Children {
		if !n.Hidden && n.Name != "run" {
			verbs = append(verbs, n.Name)
		}
	}
	return fmt.Errorf("there is no verb %s; ingest takes records without one, and its verbs are %s; see ingest --help", word, strings.Join(verbs, ", "))
}
