// Command try keeps blobtail running for people who want to look round, and for the tests of the
// page: an ingester, `logquery serve`, and a shop of five services that logs, with an incident some
// minutes ago. `make try` runs it.
//
//	try
//	try -dir DIR -records 1000000
//	try -json -free -control -records 100000 -rate 0
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
	"path/filepath"
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
	bin, dir       string
	seed           uint64
	records        int
	rate           float64
	span, incident time.Duration
	at             time.Time
	json, free     bool
	control        bool
	tokens         bool
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
	at := flags.String("at", "", "end of the history, RFC 3339 (now)")
	flags.BoolVar(&o.json, "json", false, "print one line of JSON when ready, and nothing else")
	flags.BoolVar(&o.free, "free", false, "take any free ports (8514 to 8516)")
	flags.BoolVar(&o.control, "control", false, "listen for POST /kill/NAME, /start/NAME (serve, ingest), /live?rate=N and /flush, and GET /status")
	flags.BoolVar(&o.tokens, "tokens", false, "let readers in by tokens: one for all services, one for payments alone")
	commands := flags.Bool("commands", false, "print the commands for a look round, and end")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		if errors.Is(err, flag.ErrHelp) {
			return o, done, false
		}
		return o, usage, false
	}
	if *commands {
		fmt.Fprint(stdout, look(o.bin, "http://"+usual()[2], ""))
		return o, done, false
	}
	if *at != "" {
		var err error
		if o.at, err = time.Parse(time.RFC3339Nano, *at); err != nil {
			fmt.Fprintln(stderr, "try: -at:", err)
			return o, usage, false
		}
	}
	if o.records < 1 || o.span <= 0 || o.incident < 0 || o.incident >= o.span || o.rate < 0 && o.rate != asHistory {
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
	w := &world{o: o, stdout: stdout, stderr: stderr, begun: time.Now(), calls: make(chan func()), deaths: make(chan *child, 8)}
	err := w.prepare()
	if err == nil {
		err = w.keep(ctx)
	}
	err = errors.Join(err, w.end())
	switch {
	case ctx.Err() != nil && w.ready && (err == nil || errors.Is(err, ctx.Err())):
		return done
	case ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err())):
		fmt.Fprintln(stderr, "try: ended before it was ready")
		return interrupted
	}
	fmt.Fprintln(stderr, "try:", err)
	return failed
}

// prepare finds the programs, and makes the folder.
func (w *world) prepare() (err error) {
	for _, name := range []string{"ingest", "logquery"} {
		path, err := filepath.Abs(filepath.Join(w.o.bin, name))
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return fmt.Errorf("%w: run make build, or name the folder with -bin", err)
		}
	}
	if w.o.dir == "" {
		w.dir, err = os.MkdirTemp("", "blobtail-try-")
		w.temporary = err == nil
	} else if w.dir, err = filepath.Abs(w.o.dir); err == nil {
		err = empty(w.dir)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Join(w.dir, "tmp"), 0o700)
	}
	return err
}

// empty makes a folder, which must have nothing in it: other records would spoil the counts.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return os.MkdirAll(dir, 0o755)
	}
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty: name another folder, or delete it", dir)
	}
	return err
}
