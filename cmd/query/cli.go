package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kong"

	"blobtail/internal/budget"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/openstore"
	"blobtail/internal/progress"
	"blobtail/internal/when"
	"blobtail/reading"
	"blobtail/storage/traffic"
)

// grammar is the command line. Only the store and the ingester can come from the
// environment.
type grammar struct {
	cli.Settings `kong:"-"`
	placeFlags   `kong:"-"`
	zoneFlags    `kong:"-"`
	Places       kong.Plugins `embed:""`
	Color        string       `help:"auto, always or never." enum:"auto,always,never" default:"auto"`
	screenFlags  `kong:"-"`
	contextFlag  `kong:"-"`
	Screen       kong.Plugins    `embed:""`
	Late         config.Duration `default:"2h" help:"How much later than its time a record of Azure's own logs may have come (2h)." placeholder:"DURATION"`
	Version      cli.VersionFlag `help:"Print the version."`
}

// choose sets the flags of the parser.
func (g *grammar) choose(parts cli.Parts) {
	g.Places = parts(&g.Settings, &g.placeFlags, &g.zoneFlags)
	g.Screen = parts(&g.screenFlags, &g.contextFlag)
}

// placeFlags say where records and rights are, beside the store.
type placeFlags struct {
	LiveURL    string `name:"live-url" help:"URL of an ingester to ask for records that are in no blob yet, or off: blobs alone." placeholder:"URL" env:"BLOBTAIL_LIVE"`
	Server     string `help:"URL of a server (logquery serve) that reads the store for you, with the token of --token-file." placeholder:"URL" env:"BLOBTAIL_SERVER"`
	PlainHTTP  bool   `name:"plain-http" help:"Send the token without TLS, also to another host."`
	TokenFile  string `help:"File with the token that is shown to ingesters, or to the server (BLOBTAIL_TOKEN has the token itself)." placeholder:"FILE" env:"BLOBTAIL_TOKEN_FILE"`
	CA         string `name:"ca" help:"File of authorities to believe besides this host's, of ingesters and of the server (PEM)." placeholder:"FILE" env:"BLOBTAIL_CA"`
	Workers    string `help:"URLs of servers that read parts of large questions, with commas." placeholder:"URLS" env:"BLOBTAIL_WORKERS"`
	ServerName string `name:"server-name" help:"The name that their certificates must have, as behind kubectl port-forward (the host of the URL)." placeholder:"NAME" env:"BLOBTAIL_SERVER_NAME"`
}

// zoneFlags say how times are read and shown.
type zoneFlags struct {
	Timezone string `help:"Zone of times without one, and of those shown (local)." placeholder:"ZONE"`
	UTC      bool   `short:"u" name:"utc" help:"The same as --timezone UTC."`
}

// screenFlags say what a terminal shows, and what is a mistake.
type screenFlags struct {
	NoColor bool `hidden:""`
	NoPager bool `help:"Long output is not shown by a pager (PAGER, less) on a terminal."`
	Quiet   bool `short:"q" help:"No notes on stderr, only errors, and notes of records that may be missing."`
	IfAny   bool `help:"A service that does not exist is no mistake: it has no records."`
}

// contextFlag names a context.
type contextFlag struct {
	Context string `help:"Use a context (logquery context): a store by a name of your own." env:"BLOBTAIL_CONTEXT" placeholder:"NAME"`
}

// verbs are the commands.
type verbs struct {
	Read       readCmd       `help:"Print records in order of time (the default)."`
	Tail       tailCmd       `help:"Print the newest records; with -f go on with what comes in."`
	Hist       histCmd       `help:"Count records by time and level."`
	Top        topCmd        `help:"Count the values of a field, the most frequent first."`
	Fields     fieldsCmd     `help:"List the fields of records: types, share and examples."`
	Patterns   patternsCmd   `help:"List the texts that messages have in common, the most frequent first."`
	New        newCmd        `help:"List the patterns of messages that a window before does not have."`
	Ls         lsCmd         `help:"List services; the days of one; the blobs of a day."`
	Serve      serveCmd      `help:"Answer over HTTP: Grafana, logcli, scripts."`
	Ingesters  ingestersCmd  `help:"List the ingesters: who is alive, lane, oldest unflushed record, version."`
	Cat        catCmd        `help:"Print the lines of one blob, of the store or in a file."`
	Verify     verifyCmd     `help:"Check every blob: checksums, order, metadata, name; and whether closed days have all their blobs."`
	Bill       billCmd       `help:"Tell who logs how much, and what it costs here and would cost elsewhere."`
	Cost       costCmd       `help:"Tell what a planned load would cost a day, here and elsewhere."`
	Grant      grantCmd      `help:"Make a SAS with which others can read one service for a time (Azure)."`
	Contexts   contextCmd    `name:"context" help:"Give stores names: list, add, use or remove contexts."`
	Completion completionCmd `help:"Print a script that completes verbs, flags, services and fields in a shell."`
	Complete   completeCmd   `hidden:""`
	Man        manCmd        `help:"Print the manual page."`
	Lnav       lnavCmd       `help:"Print the format by which lnav reads records, or install it."`
	Duckdb     duckdbCmd     `help:"Open DuckDB with a view of records: of blobs, or of an export."`
	Vers       versionCmd    `name:"version" help:"Print the version."`
}

type versionCmd struct{}

func (versionCmd) run(_ context.Context, a *app) (int, error) {
	fmt.Fprintln(a.out, cli.Build(a.Name))
	return cli.OK, nil
}

// app is one run of the command.
type app struct {
	cli.Console
	env      environment
	flags    grammar
	verbs    verbs
	model    *kong.Application
	verb     *kong.Node
	args     []string         // as arranged, up to "--"
	config   config.Config    // under the flags
	source   reading.Source   // nil until open
	store    *openstore.Store // nil until open, and while a server reads it
	color    bool
	contexts *config.Contexts
	now      time.Time // at the start, in the zone of the user
	started  time.Time
	out      *output
	progress progress.Counter
	sent     traffic.Counter // to ingesters; the store counts its own
	paged    atomic.Bool     // the user may be in a pager
	lingers  atomic.Bool     // the run takes its own time to end
	made     *budget.Budget  // for values that flags make of records
	names    struct {
		all  []string // services; nil: not listed yet
		told []string // that are no service
	}
}

// verb is one command of the grammar.
type verb interface {
	run(ctx context.Context, a *app) (code int, err error)
}

// run parses the command line, runs the verb and returns the exit code.
func run(ctx context.Context, env environment) int {
	a := &app{Console: cli.Console{Name: "logquery", Stderr: env.stderr}, env: env, out: newOutput(env.stdout), started: time.Now()}
	defer func() {
		if a.store != nil && env.exit == nil {
			_ = a.store.Close() // it was only read; the end of a process closes it too
		}
	}()
	code := 0
	defer a.leave(ctx)()
	printed, err := cli.PrintVersion(a.Name, env.args, a.out)
	if printed {
		return a.exitCode(ctx, cmp.Or(err, a.out.flush()))
	}
	v, err := a.parse()
	if err == nil {
		line := cli.ShowProgress(a.progressTo(), &a.progress, "blob")
		a.Stderr = line.Over(env.stderr)
		left := func() {} // waits until the user leaves the pager
		if env.outTTY {
			a.out.before = func() {
				line.End()
				if a.pages() {
					a.paged.Store(true)
					left = a.page()
				}
			}
		}
		code, err = a.within(ctx, v)
		line.End()
		defer func() { left() }()
		if errors.Is(err, context.Canceled) {
			line.Interrupted(&a.Console)
		}
		err = cmp.Or(err, a.out.flush())
	}
	if err != nil {
		return a.exitCode(ctx, err)
	}
	return code
}

// exitCode reports an error, if there is one, and returns the exit code. With --if-any a name of
// nothing is none.
func (a *app) exitCode(ctx context.Context, err error) int {
	if _, none := errors.AsType[*reading.NoServiceError](err); none && a.flags.IfAny && a.Quiet {
		return cli.Nothing
	}
	return a.ExitCode(err, a.config.Store, "reading needs the role Storage Blob Data Reader", func(err error) (int, string) { return a.ownError(ctx, err) })
}

// mostMade bounds the bytes that the flags of a run make of records and hold at once.
const mostMade = 256 << 20

// within runs a verb with a budget. A server gives one to each of its queries.
func (a *app) within(ctx context.Context, v verb) (code int, err error) {
	if _, serves := v.(*serveCmd); serves {
		return v.run(ctx, a)
	}
	ctx, a.made = budget.Alone(mostMade).Begin(ctx)
	defer a.made.End()
	code, err = v.run(ctx, a)
	if over, ok := errors.AsType[*budget.Error](a.made.Err()); ok {
		err = &cli.UsageError{Err: over}
	}
	if code <= cli.Nothing && slices.ContainsFunc(a.names.told, func(name string) bool { return a.mistaken(ctx, name) }) {
		code = cli.Usage
	}
	return code, err
}

// patience is how long an interrupted run may take to end by itself.
const patience = 2 * time.Second

// leave ends the process if a run does not end by itself after an interrupt. A write to a pipe
// that nobody reads, and a template without end, do not notice the interrupt. The user of a
// pager leaves that first. The run calls ended when it is over.
func (a *app) leave(ctx context.Context) (ended func()) {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-over:
		case <-time.After(patience):
			if a.env.exit != nil && !a.paged.Load() && !a.lingers.Load() {
				a.env.exit(cli.Interrupted)
			}
		}
	})
	return func() {
		stop()
		close(over)
	}
}

// progressTo is the terminal for the line of progress; nil: there is none, or DuckDB has it.
func (a *app) progressTo() io.Writer {
	if !a.env.errTTY || a.Quiet || slices.Contains([]string{"serve", "duckdb"}, a.verb.Name) {
		return nil
	}
	return a.env.stderr
}

func (a *app) parse() (verb, error) {
	// Making the model of all verbs and flags costs more than the rest of a start. A mistake may
	// be explained by another verb.
	err := a.parseBy(a.named())
	if err != nil {
		err = a.parseBy(a.all())
	}
	if err == nil {
		err = a.configure()
	}
	if err != nil {
		return nil, err
	}
	return a.verb.Target.Addr().Interface().(verb), nil
}

// named returns a parser of the verbs and flags that the arguments may name, or of all if these
// are shown.
func (a *app) named() (*kong.Kong, error) {
	for _, arg := range a.env.args {
		letters := len(arg) > 1 && arg[0] == '-' && arg[1] != '-'
		name, _, _ := strings.Cut(arg, "=")
		if letters && strings.Contains(arg, "h") || slices.Contains([]string{"help", "--help", "completion", "complete", "man"}, name) {
			return a.all()
		}
	}
	return a.parser(func(verb string) bool { return verb == "read" || slices.Contains(a.env.args, verb) }, cli.PartsOf(a.env.args))
}

// all returns a parser of all verbs.
func (a *app) all() (*kong.Kong, error) {
	return a.parser(func(string) bool { return true }, cli.AllParts)
}

// parser returns a parser of some verbs, by the fields of [verbs], and of some of their flags.
func (a *app) parser(wanted func(verb string) bool, parts cli.Parts) (*kong.Kong, error) {
	a.flags.choose(parts)
	options := []kong.Option{kong.ConfigureHelp(kong.HelpOptions{Compact: true}), signposts().Help()}
	fields := reflect.ValueOf(&a.verbs).Elem()
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		name := cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name))
		if !wanted(name) {
			continue
		}
		target := fields.Field(i).Addr().Interface()
		if v, ok := target.(interface{ choose(parts cli.Parts) }); ok {
			v.choose(parts)
		}
		var tags []string
		if _, hidden := field.Tag.Lookup("hidden"); hidden {
			tags = append(tags, `hidden:""`)
		}
		options = append(options, kong.DynamicCommand(name, field.Tag.Get("help"), "", target, tags...))
	}
	return cli.NewParser(&a.flags, a.Name, "Read logs that are kept in blobs. Times, filters and forms of output: logquery read --help.", options...)
}

// parseBy parses the command line by a parser.
func (a *app) parseBy(parser *kong.Kong, err error) error {
	if err != nil {
		return err
	}
	a.model = parser.Model
	if given := a.env.args; len(given) > 1 && given[0] == "help" && given[1][:min(1, len(given[1]))] != "-" && verbOf(parser.Model, given[1]) == nil {
		return cli.Usagef("there is no command %s; see logquery --help", cli.ShellWords(given[1]))
	}
	args := arrange(parser.Model, a.env.args)
	a.args = args
	if at := slices.Index(args, "--"); at >= 0 {
		a.args = args[:at]
	}
	parsed, err := parser.Parse(args)
	if err := a.mistake(parser.Model, args); err != nil {
		return err
	}
	if err != nil {
		verb := args[0]
		if verbOf(parser.Model, verb) == nil {
			verb = ""
		}
		return a.misread(verb, cli.WithoutValue(err))
	}
	a.verb = parsed.Selected()
	return nil
}

// configure reads the common flags, the environment, the contexts and the file.
func (a *app) configure() error {
	a.Quiet = a.flags.Quiet
	if err := a.useContext(); err != nil {
		return err
	}
	var err error
	if a.config, err = a.flags.Load(); err != nil {
		return err
	}
	a.config.Live, a.config.Workers = cmp.Or(a.flags.LiveURL, a.config.Live), cmp.Or(a.flags.Workers, a.config.Workers)
	a.config.Forms = append(a.contexts.All[a.flags.Context].Forms, a.config.Forms...)
	if err := errors.Join(a.config.Forms.Check()...); err != nil {
		return &cli.UsageError{Err: err}
	}
	if a.flags.Server != "" {
		a.config.Store = openstore.Spec{} // the server knows its own
	}
	switch a.flags.Color {
	case "always":
		a.color = true
	case "auto":
		a.color = a.env.outTTY && a.env.getenv("TERM") != "dumb" && a.env.getenv("CLICOLOR") != "0" || a.forced()
		a.color = a.color && a.env.getenv("NO_COLOR") == "" && !a.flags.NoColor
	}
	zone := a.env.local
	switch {
	case a.flags.UTC && a.flags.Timezone != "" && a.flags.Timezone != "UTC":
		return cli.Usagef("-u and --timezone %s contradict each other", a.flags.Timezone)
	case a.flags.UTC:
		zone = time.UTC
	case a.flags.Timezone != "":
		if zone, err = when.Zone(a.flags.Timezone); err != nil {
			return cli.Usagef("--timezone: %w", err)
		}
	default:
		a.noteZone()
	}
	a.now = a.env.now.In(zone)
	return nil
}

// noteZone says that the zone of the environment is unknown, to a person.
func (a *app) noteZone() {
	why := cli.UnknownZone(a.env.getenv)
	switch {
	case why == "" || slices.Contains([]string{"complete", "completion", "man", "version"}, a.verb.Name):
	case a.verb.Name == "serve":
		log := cli.NewLog(a.env.stderr, a.env.errTTY)
		log.Warn().Msg(why)
	default:
		a.Note("%s", why)
	}
}

// forced reports whether the environment asks for colours on any output.
func (a *app) forced() bool {
	for _, name := range []string{"CLICOLOR_FORCE", "FORCE_COLOR"} {
		if v := a.env.getenv(name); v != "" && v != "0" {
			return true
		}
	}
	return false
}
