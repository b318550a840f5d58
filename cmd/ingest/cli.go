package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"

	"blobtail/config"
	"blobtail/internal/cli"
	"blobtail/internal/openstore"
)

// grammar is the command line. The values that are not given come from the
// environment, then from the file, then from the defaults: the file's values
// are kong's defaults.
type grammar struct {
	Config  string           `help:"Configuration file (YAML)." env:"BLOBTAIL_CONFIG" placeholder:"FILE"`
	Version kong.VersionFlag `help:"Print the version and exit."`

	Store       openstore.Spec  `help:"dir:PATH or azure:[ACCOUNT/]CONTAINER." env:"BLOBTAIL_STORE" default:"${store}"`
	Listen      string          `help:"Address that shippers send to." env:"BLOBTAIL_LISTEN" default:"${listen}"`
	Admin       string          `help:"Address of /metrics, /healthz, /readyz, /flush, /drain." env:"BLOBTAIL_ADMIN" default:"${admin}"`
	WAL         string          `name:"wal" help:"Directory of the log (default: .wal in a dir store, else ./blobtail-wal)." env:"BLOBTAIL_WAL" default:"${wal}"`
	Lane        string          `help:"auto or 0 to 98: leading part of the blob numbers." env:"BLOBTAIL_LANE" default:"${lane}"`
	Advertise   string          `help:"URL at which readers and other ingesters reach this one." env:"BLOBTAIL_ADVERTISE" default:"${advertise}" placeholder:"URL"`
	Announce    string          `help:"required or best-effort: whether to take records while readers cannot be told of this ingester." env:"BLOBTAIL_ANNOUNCE" default:"${announce}"`
	Period      config.Duration `help:"Slice of event time in a blob's name; minutes that divide 60." env:"BLOBTAIL_PERIOD" default:"${period}"`
	Dedupe      string          `help:"When a retry is recognised: body, key or off." env:"BLOBTAIL_DEDUPE" default:"${dedupe}"`
	Grace       config.Duration `help:"How long a stop may take." env:"BLOBTAIL_GRACE" default:"${grace}"`
	FlushSize   config.Size     `help:"Bytes of lines that make a blob at once." env:"BLOBTAIL_FLUSH_SIZE" default:"${flushsize}"`
	FlushAge    config.Duration `help:"Age at which a blob is made of at least flush-min." env:"BLOBTAIL_FLUSH_AGE" default:"${flushage}"`
	FlushMin    config.Size     `help:"See flush-age." env:"BLOBTAIL_FLUSH_MIN" default:"${flushmin}"`
	FlushMaxAge config.Duration `help:"Age at which a blob is made whatever there is." env:"BLOBTAIL_FLUSH_MAX_AGE" default:"${flushmaxage}"`

	NATS     string          `name:"nats" help:"URL of a NATS server to take a JetStream stream from." env:"BLOBTAIL_NATS" default:"${nats}" placeholder:"URL"`
	Stream   string          `help:"Name of the stream." env:"BLOBTAIL_STREAM" default:"${stream}"`
	Consumer string          `help:"Durable consumer of the stream that all ingesters share." env:"BLOBTAIL_CONSUMER" default:"${consumer}"`
	Lossy    bool            `name:"allow-lossy-stream" help:"Take a stream that may discard messages which are not stored." env:"BLOBTAIL_ALLOW_LOSSY_STREAM" default:"${lossy}"`
	AckWait  config.Duration `help:"When the stream delivers a message again that was not acknowledged." env:"BLOBTAIL_ACK_WAIT" default:"${ackwait}"`

	Run   struct{} `cmd:"" default:"1" help:"Take records (the default)."`
	Drain struct {
		Timeout config.Duration `help:"How long to wait; none: until all is in blobs." placeholder:"DURATION"`
	} `cmd:"" help:"Have the ingester at --admin take no more, and wait until its log is empty."`
	Forget struct {
		ID     string          `arg:"" optional:"" help:"As logquery ingesters shows it." placeholder:"ID"`
		Lost   bool            `help:"Acknowledge what the ingester has lost, so that reads are complete without it."`
		Silent config.Duration `help:"Every ingester that may hold records and has been silent for so long." placeholder:"DURATION"`
	} `cmd:"" help:"Give up an ingester whose log directory is lost for good, with what was in no blob."`
	CheckConfig struct{} `cmd:"" help:"Say whether the configuration is sound."`
	PrintConfig struct{} `cmd:"" help:"Print the configuration that is in force."`
}

func vars(c config.Config) kong.Vars {
	return kong.Vars{
		"store": c.Store.String(), "listen": c.Ingest.Listen, "admin": c.Ingest.Admin, "wal": c.Ingest.WAL,
		"lane": c.Ingest.Lane, "advertise": c.Ingest.Advertise, "announce": c.Ingest.Announce, "period": c.Ingest.Period.String(), "dedupe": c.Ingest.Dedupe,
		"grace": c.Ingest.Grace.String(), "flushsize": c.Flush.Size.String(), "flushage": c.Flush.Age.String(),
		"flushmin": c.Flush.Min.String(), "flushmaxage": c.Flush.MaxAge.String(),
		"nats": c.NATS.URL, "stream": c.NATS.Stream, "consumer": c.NATS.Consumer,
		"lossy": strconv.FormatBool(c.NATS.AllowLossy), "ackwait": c.NATS.AckWait.String(),
	}
}

// over lays the command line over the file.
func (f *grammar) over(c config.Config) config.Config {
	c.Store = f.Store
	c.Ingest.Listen, c.Ingest.Admin, c.Ingest.WAL = f.Listen, f.Admin, f.WAL
	c.Ingest.Lane, c.Ingest.Period, c.Ingest.Dedupe, c.Ingest.Grace = f.Lane, f.Period, f.Dedupe, f.Grace
	c.Ingest.Advertise, c.Ingest.Announce = f.Advertise, f.Announce
	c.Flush.Size, c.Flush.Age, c.Flush.Min, c.Flush.MaxAge = f.FlushSize, f.FlushAge, f.FlushMin, f.FlushMaxAge
	c.NATS.URL, c.NATS.Stream, c.NATS.Consumer, c.NATS.AllowLossy, c.NATS.AckWait = f.NATS, f.Stream, f.Consumer, f.Lossy, f.AckWait
	return c
}

// command runs the program and returns its exit code. It writes an error once.
func command(args []string, stdout, stderr io.Writer) int {
	unsetEmpty()
	c, f, verb, err := parse(args, stdout)
	if err == nil {
		err = f.run(verb, c, stdout, stderr)
	} else if !errors.Is(err, cli.ErrDone) {
		err = &cli.UsageError{Err: err}
	}
	var usage *cli.UsageError
	switch {
	case err == nil, errors.Is(err, cli.ErrDone):
		return cli.OK
	case errors.Is(err, errLogged):
		return cli.Failed
	}
	console := cli.Console{Name: "ingest", Stderr: stderr}
	console.Complain("%v", err)
	if errors.As(err, &usage) {
		return cli.Usage
	}
	return cli.Failed
}

// errLogged is an error that is in our own log already.
var errLogged = errors.New("logged")

// run does the work of a verb.
func (f *grammar) run(verb string, c config.Config, stdout, stderr io.Writer) error {
	switch verb {
	case "check-config":
		_, err := fmt.Fprintln(stdout, "the configuration is sound")
		return err
	case "print-config":
		text, err := c.YAML()
		if err == nil {
			_, err = stdout.Write(text)
		}
		return err
	case "drain":
		return askDrain(c, f.Drain.Timeout, stdout)
	case "forget", "forget <id>":
		return forget(c, f.Forget.ID, f.Forget.Lost, time.Duration(f.Forget.Silent), stdout)
	}
	log := zerolog.New(stderr).With().Timestamp().Logger()
	ctx, cancel := cli.UntilSignal()
	defer cancel()
	if err := run(ctx, c, log); err != nil {
		log.Error().Err(err).Msg("ended")
		return errLogged
	}
	return nil
}

// parse returns the configuration in force, the command line and its verb.
func parse(args []string, stdout io.Writer) (c config.Config, f grammar, verb string, err error) {
	c, err = config.Load(configPath(args))
	if err != nil {
		return c, f, "", err
	}
	parser, err := cli.NewParser(&f, "ingest",
		"Takes log records over HTTP and from JetStream and writes them as numbered, compressed blobs.", vars(c))
	if err != nil {
		return c, f, "", err
	}
	k, err := parser.Parse(args, stdout)
	if err != nil {
		return c, f, "", err
	}
	c = f.over(c)
	return c, f, k.Command(), c.Validate()
}

// unsetEmpty makes a variable that is set to nothing, as in compose files with
// optional values, count as not set.
func unsetEmpty() {
	for _, kv := range os.Environ() {
		if name, value, _ := strings.Cut(kv, "="); value == "" && strings.HasPrefix(name, "BLOBTAIL_") {
			os.Unsetenv(name)
		}
	}
}

// configPath finds the file before the command line is parsed, because the
// file's values are the defaults of the flags.
func configPath(args []string) string {
	for i, a := range args {
		if path, ok := strings.CutPrefix(a, "--config="); ok {
			return path
		}
		if a == "--config" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return os.Getenv("BLOBTAIL_CONFIG")
}
