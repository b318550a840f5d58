package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/config"
)

// misread explains an error of the parser. People write a verb such as start or serve,
// because other servers have one.
func misread(app *kong.Application, err error) error {
	err = cli.WithoutValue(err)
	parse, ok := errors.AsType[*kong.ParseError](err)
	word, argument := strings.CutPrefix(err.Error(), "unexpected argument ")
	unknown, _ := strings.CutPrefix(err.Error(), "unknown flag ")
	name, _, _ := strings.Cut(unknown, ",")
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
		verbs = append(verbs, n.Name)
	}
	verbs = slices.DeleteFunc(verbs, func(verb string) bool { return verb == "run" })
	return fmt.Errorf("there is no verb %s; ingest takes records without one, and its verbs are %s; see ingest --help", word, strings.Join(verbs, ", "))
}
