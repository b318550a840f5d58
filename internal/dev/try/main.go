// Command try keeps blobtail running for people who want to look round, and for the tests of the
// page: an ingester, `logquery serve`, and a shop of five services that logs, with an incident some
// minutes ago. `make try` runs it.
//
//	try
//	try -dir DIR -records 1000000
//	try -json -free -records 100000 -rate 0
//
// It runs the commands in -bin as processes. Ctrl-C and SIGTERM end it; it then deletes what it
// made, unless -dir names a folder to keep.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	// The kernel ends the children with the thread that started them.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes.
const (
	done        = 0
	failed      = 1
	usage       = 2
	interrupted = 130
)

// options are the flags.
type options struct {
	bin, dir           string
	seed               uint64
	records            int
	rate               float64
	span, incident     time.Duration
	at                 time.Time
	json, free, tokens bool
}

// asHistory is the live rate of the history.
const asHistory = -1

func parse(args []string, stdout, stderr io.Writer) (o options, code int, ok bool) {
	flags := flag.NewFlagSet("try", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.bin, "bin", "bin", "directory with ingest and logquery")
	flags.StringVar(&o.dir, "dir", "", "folder for the store, which is kept; it must be empty (a temporary one, deleted at the end)")
	flags.Uint64Var(&o.seed, "seed", 1, "equal seeds give equal logs")
	flags.IntVar(&o.records, "records", 200_000, "records of the history")
	flags.Float64Var(&o.rate, "rate", asHistory, "records a second after that; 0: none; -1: as many as in the history")
	flags.DurationVar(&o.span, "span", 2*time.Hour, "length of the history")
	flags.DurationVar(&o.incident, "incident", 12*time.Minute, "time from the incident to the end of the history")
	flags.Func("at", "end of the history, RFC 3339 (now)", func(s string) (err error) { o.at, err = time.Parse(time.RFC3339Nano, s); return err })
	flags.BoolVar(&o.json, "json", false, "print one line of JSON when ready, and nothing else")
	flags.BoolVar(&o.free, "free", false, "take any free ports (8514 to 8516)")
	flags.BoolVar(&o.tokens, "tokens", false, "let readers in by tokens: one for all services, one for payments alone")
	commands := flags.Bool("commands", false, "print the commands for a look round, and end")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return o, done, false
	case err != nil || flags.NArg() > 0:
		return o, usage, false
	case *commands:
		fmt.Fprint(stdout, look(o.bin, "http://"+usual()[2], ""))
		return o, done, false
	case o.records < 1 || o.span <= 0 || o.incident < 0 || o.incident >= o.span || o.rate < 0 && o.rate != asHistory:
		fmt.Fprintln(stderr, "try: -records must be 1 or more, -incident within -span, -rate 0 or more")
		return o, usage, false
	}
	return o, done, true
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, code, ok := parse(args, stdout, stderr)
	if !ok {
		return code
	}
	w := &world{o: o, stdout: stdout, stderr: stderr, deaths: make(chan *child, 2)}
	err := w.prepare()
	if err == nil {
		err = w.keep(ctx)
	}
	err = errors.Join(err, w.end())
	ended := ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err()))
	switch {
	case ended && w.ready:
		return done
	case ended:
		fmt.Fprintln(stderr, "try: ended before it was ready")
		return interrupted
	}
	fmt.Fprintln(stderr, "try:", err)
	return failed
}
