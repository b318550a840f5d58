package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/storage"
)

// grammar is the command line. Flags override the environment, the environment overrides
// the file, and the file overrides the defaults.
type grammar struct {
	File    string          `name:"config" help:"Configuration file (YAML)." env:"BLOBTAIL_CONFIG" placeholder:"FILE"`
	Version cli.VersionFlag `help:"Print the version and exit."`
	config.Config
	handling handling // of the configuration
	model    *kong.Application

	Run   struct{} `cmd:"" default:"1" help:"Take records (the default)."`
	Drain struct {
		Timeout config.Duration `help:"How long to wait; none: until all is in blobs." placeholder:"DURATION"`
	} `cmd:"" help:"Have the ingester at --admin take no more, and wait until its log is empty."`
	Adopt struct {
		ID string `arg:"" help:"As logquery ingesters shows it." placeholder:"ID"`
	} `cmd:"" help:"Have the ingester at --admin take over what a silent one has shipped to the store."`
	Forget struct {
		ID     string          `arg:"" optional:"" help:"As logquery ingesters shows it." placeholder:"ID"`
		Lost   bool            `help:"Acknowledge what the ingester has lost, so that reads are complete without it."`
		Silent config.Duration `help:"Every ingester that may hold records and has been silent for so long." placeholder:"DURATION"`
	} `cmd:"" help:"Give up an ingester whose log directory is lost for good, with what was in no blob."`
	Token       tokenCmd   `cmd:"" help:"Make, list and remove the tokens of senders and readers."`
	Import      importCmd  `cmd:"" help:"Bring Azure's own logs into the store; repeat it, and it goes on."`
	Send        sendCmd    `cmd:"" help:"Send the lines of files to an ingester or into the store; repeat it, and it goes on."`
	Try         tryCmd     `cmd:"" help:"Show what an ingester makes of lines: each record, and where its time, level, message and service are from."`
	Loggers     loggersCmd `cmd:"" help:"List the known loggers: what their records have of a time, a level, a message and a service."`
	Check       struct{}   `cmd:"" help:"Try the store, the log directory, the addresses, the clock and NATS, and say what would fail."`
	CheckConfig struct{}   `cmd:"" help:"Say whether the configuration and the files of its tokens and certificates are sound."`
	PrintConfig struct{}   `cmd:"" help:"Print the configuration that is in force."`
	Man         struct{}   `cmd:"" help:"Print the manual page."`
	Completion  struct {
		Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
	} `cmd:"" help:"Print a script that completes verbs and flags in a shell."`
	Complete struct {
		Words []string `arg:"" optional:""`
	} `cmd:"" hidden:""`
}

// Validate returns every mistake in the configuration at once, and compiles it.
func (g *grammar) Validate() (err error) {
	g.handling, err = compile(g.Config)
	return errors.Join(g.Config.Validate(), err)
}

// command runs the program and returns its exit code. It prints an error once.
func command(args []string, stdout, stderr io.Writer) int {
	printed, err := cli.PrintVersion("ingest", args, stdout)
	var g *grammar
	var verb string
	if !printed {
		g, verb, err = parse(args)
	}
	switch {
	case printed:
	case err == nil:
		err = g.run(verb, stdout, stderr)
	default:
		err = &cli.UsageError{Err: err}
	}
	var usage *cli.UsageError
	switch {
	case err == nil:
		return cli.OK
	case errors.Is(err, errLogged) && errors.Is(err, storage.ErrOlder):
		return cli.Usage
	case errors.Is(err, errLogged), errors.Is(err, errSaid):
		return cli.Failed
	case errors.Is(err, errIncomplete):
		return cli.Incomplete
	case errors.Is(err, context.Canceled):
		return cli.Interrupted
	}
	console := cli.Console{Name: "ingest", Stderr: stderr}
	if logs, ok := errors.AsType[*sourceError](err); ok {
		return logs.report(console)
	}
	console.Complain("%v", err)
	if errors.As(err, &usage) || errors.Is(err, storage.ErrOlder) {
		return cli.Usage
	}
	return cli.Failed
}

// errLogged is an error that is already in our own log.
var errLogged = errors.New("logged")

// errSaid is an error that is already on stdout.
var errSaid = errors.New("said")

// run does the work of a verb.
func (g *grammar) run(verb string, stdout, stderr io.Writer) error {
	c := g.Config
	if why := cli.UnknownZone(os.Getenv); why != "" && verb != "run" { // whose log says so
		(&cli.Console{Name: "ingest", Stderr: stderr}).Note("%s", why)
	}
	if guides(verb) {
		return g.guide(verb, stdout)
	}
	switch verb {
	case "check-config":
		err := checkConfig(c)
		if err == nil {
			_, err = fmt.Fprintln(stdout, "the configuration is sound")
		}
		note(c, cli.Console{Name: "ingest", Stderr: stderr})
		return err
	case "print-config":
		text, err := c.YAML()
		if err == nil {
			_, err = stdout.Write(text)
		}
		return err
	case "drain":
		return askDrain(c, g.Drain.Timeout, stdout)
	case "adopt <id>":
		return askAdopt(c, g.Adopt.ID, stdout)
	case "forget", "forget <id>":
		return forget(c, g.Forget.ID, g.Forget.Lost, time.Duration(g.Forget.Silent), stdout)
	}
	if strings.HasPrefix(verb, "token ") {
		return g.Token.run(verb, cmp.Or(g.Token.File, c.Access.Tokens), stdout, stderr)
	}
	ctx, cancel := cli.UntilSignal(0)
	defer cancel()
	if strings.HasPrefix(verb, "try") {
		return g.Try.run(ctx, c, g.handling, os.Stdin, stdout, stderr)
	}
	if verb == "check" {
		return check(ctx, c, stdout)
	}
	log := cli.NewLog(stderr, cli.IsTerminal(stderr))
	if why := cli.UnknownZone(os.Getenv); why != "" && verb == "run" {
		log.Warn().Msg(why)
	}
	if strings.HasPrefix(verb, "send") {
		return g.Send.run(ctx, c, g.handling, log, stdout, stderr)
	}
	if strings.HasPrefix(verb, "import") {
		return g.Import.run(ctx, c, g.handling, log, stdout, stderr)
	}
	if err := run(ctx, c, g.handling, log); err != nil {
		log.Error().Err(err).Msg("ended")
		return fmt.Errorf("%w: %w", errLogged, err)
	}
	return nil
}

// vars are the texts that help has from elsewhere.
func vars() kong.Vars { return kong.Vars{"doors": strings.Join(doorNames(), ", ")} }

// parse returns the command line with the configuration in force, and its verb.
func parse(args []string) (*grammar, string, error) {
	g := &grammar{Config: config.Default()}
	parser, err := cli.NewParser(g, "ingest",
		"Accepts log records over HTTP and from JetStream and writes them as numbered, compressed blobs.",
		vars(), signposts().Help())
	if err != nil {
		return nil, "", err
	}
	cli.Preset(parser)
	k, err := parser.Parse(args)
	if err != nil {
		return nil, "", misread(parser.Model, err)
	}
	if err := signposts().Misplaced(k); err != nil {
		return nil, "", err
	}
	if g.model = parser.Model; guides(k.Command()) {
		return g, k.Command(), nil // it needs no configuration, and works beside a wrong one
	}
	// Now the file is known. Its values are the defaults of the flags.
	if g.Config, err = config.Load(g.File); err != nil {
		return nil, "", err
	}
	cli.Preset(parser)
	if k, err = parser.Parse(args); err != nil {
		return nil, "", err
	}
	return g, k.Command(), g.Validate()
}
