// Command compare is `make compare`: it loads the same corpora into blobtail and VictoriaLogs,
// holds each stored record and each answer of both against the corpus, and measures both in turn.
//
//	compare -bin bin -docs docs          the whole run: a result in docs/compare, page and plot
//	compare -bin bin -quick              fewer records and rounds; writes nothing
//	compare -bin bin -rows 'ingest.*'    some rows; writes nothing
//	compare agree A.json B.json          whether two runs on one machine agree
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/result"
)

func main() {
	// Children die with the thread that started them.
	runtime.LockOSThread()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	bin, tools, loghub string
	docs, out, work    string
	rows               rig.Globs
	streams            string
	quick              bool
	size               size
}

func run(args []string) error {
	if len(args) > 1 && args[0] == "launch" {
		return rig.Launch(args[1:])
	}
	if len(args) == 3 && args[0] == "agree" {
		return agree(args[1], args[2])
	}
	o, err := parseFlags(args)
	if err != nil {
		return err
	}
	for _, dir := range []string{o.tools, o.loghub} {
		if _, err := os.Stat(dir); err != nil {
			fmt.Fprintf(os.Stderr, "compare: no %s, so nothing is compared: the generator, and the logs of the second corpus, are needed\n", dir)
			return nil
		}
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	work, err := os.MkdirTemp(o.work, "blobtail-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	c, err := newComparison(ctx, o, work)
	if err != nil {
		return err
	}
	err = c.measure(ctx)
	if ctx.Err() != nil {
		return errors.New("nothing is written: it was interrupted")
	}
	if err != nil {
		return fmt.Errorf("nothing is written: %w", err)
	}
	return c.finish()
}

func parseFlags(args []string) (o options, err error) {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.StringVar(&o.bin, "bin", "bin", "directory of ingest, logquery and retention")
	f.StringVar(&o.tools, "tools", "../shared/bench", "directory of the generator")
	f.StringVar(&o.loghub, "loghub", "../shared/data/loghub", "directory of the logs of the second corpus")
	f.StringVar(&o.docs, "docs", "", "directory of COMPARISON.md, compare.svg and compare/DATE.json, to write them")
	f.StringVar(&o.out, "out", "", "file for the result, also of -quick and -rows")
	f.StringVar(&o.work, "work", "", "directory for stores and corpora (the system's for temporary files)")
	f.Var(&o.rows, "rows", "only rows whose ID matches one of these globs, with commas between; the page stays")
	f.StringVar(&o.streams, "streams", "", "fields of VictoriaLogs' streams, such as service,level, in place of service alone; the page stays")
	f.BoolVar(&o.quick, "quick", false, "fewer records and rounds, in 4 minutes; the page stays")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("what is %q? The flags are those of -help, and agree takes two files", f.Args())
	}
	o.size = whole()
	if o.quick {
		o.size = quick()
	}
	return o, nil
}

// agree prints the rows in which two runs differ, and the ranges of those that are too short.
func agree(a, b string) error {
	x, err := result.Read(a)
	if err != nil {
		return err
	}
	y, err := result.Read(b)
	if err != nil {
		return err
	}
	short := result.Small(x, y)
	for _, line := range short {
		fmt.Println("short:", line)
	}
	differ := result.Agree(x, y)
	for _, line := range differ {
		fmt.Println("DIFFERS:", line)
	}
	if len(differ) > 0 {
		return fmt.Errorf("%s and %s differ in %d places", filepath.Base(a), filepath.Base(b), len(differ))
	}
	fmt.Printf("%d rows agree; %d of their figures are too short to tell\n", len(x.Rows), len(short))
	return nil
}

// size is how much is measured.
type size struct {
	records   int // of the reference corpus
	protocols int // of it by each protocol; with few, VictoriaLogs' fixed cost of a flush would count
	single    int // of it with one record a request
	repeats   int // of each log of loghub
	loads     int // of a whole corpus, by each side
	rounds    int // of a protocol, by each side
	singles   int // the same, of one record a request
	reads     int // rounds of a question
	// budget is the time of a run. Rows have fewer rounds if it would take longer.
	budget time.Duration
}

func whole() size {
	return size{records: rig.ReferenceRecords, protocols: 500_000, single: 100_000, repeats: 60, loads: 3, rounds: 4, singles: 3, reads: 5, budget: 16 * time.Minute}
}

func quick() size {
	return size{records: 400_000, protocols: 100_000, single: 10_000, repeats: 20, loads: 2, rounds: 2, singles: 2, reads: 2, budget: 4 * time.Minute}
}
