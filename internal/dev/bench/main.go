// Command bench measures ingesters, reads and stores, and holds every answer against the corpus.
//
//	bench table -bin bin -docs docs/measured      make bench-table: the table of docs/measured/performance.md; docs/measured/bench
//	bench compare -bin bin -docs docs/measured    make compare: beside VictoriaLogs; docs/measured/compare, page and plot
//	bench agree A.json B.json            whether two runs of compare on one machine agree
//
// The table's yardstick is the CPU time of zstd's fastest level for the same corpus, Y. Machines
// differ; costs as multiples of Y are comparable. With -against DIR the binaries of an older version
// run in turn with those of -bin. A wrong answer ends a run, and nothing is written then.
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

	"blobtail/internal/dev/bench/result"
	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/corpus"
)

func main() {
	// Children die with the thread that started them.
	runtime.LockOSThread()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	bin, work, docs, out string
	rows                 rig.Globs
	quick                bool
	against, profile     string // of table
	growth               bool
	loghub, streams      string // of compare
	size                 size
}

// size is how much is measured.
type size struct {
	records   int // of the reference corpus
	protocols int // of it by each protocol; with few, VictoriaLogs' fixed cost of a flush would count
	single    int // of it with one record a request; 0: no such row
	plain     int // of it without filters; 0: no such row
	repeats   int // of each log of loghub
	loads     int // of a whole corpus, by each side
	rounds    int // of a protocol, by each side
	singles   int // the same, of one record a request
	reads     int // rounds of a read
	// budget is the time of a run. Rows have fewer rounds if it would take longer.
	budget time.Duration
}

func run(args []string) (err error) {
	if len(args) == 0 {
		return errors.New("what shall it do? table, compare, or agree FILE FILE")
	}
	switch verb, rest := args[0], args[1:]; {
	case verb == "launch" && len(rest) > 0:
		return rig.Launch(rest)
	case verb == "agree" && len(rest) == 2:
		return agree(rest[0], rest[1])
	case verb != "table" && verb != "compare":
		return fmt.Errorf("what is %q? It is table, compare, or agree FILE FILE", args)
	}
	o, err := parseFlags(args[0], args[1:])
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	work, err := os.MkdirTemp(o.work, "blobtail-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	defer func() {
		switch e := recover().(type) {
		case nil:
		case fault:
			err = fmt.Errorf("nothing is written: %w", e.error)
		default:
			panic(e)
		}
	}()
	d := newDriver(ctx, o, work)
	if args[0] == "table" {
		d.table(ctx)
	} else {
		d.compare(ctx)
	}
	check(ctx.Err())
	return d.finish(args[0] == "compare")
}

func parseFlags(verb string, args []string) (o options, err error) {
	f := flag.NewFlagSet("bench "+verb, flag.ContinueOnError)
	f.StringVar(&o.bin, "bin", "bin", "directory of ingest, logquery and retention")
	f.StringVar(&o.docs, "docs", "", "directory of docs, to write result, page and picture of a whole run")
	f.StringVar(&o.out, "out", "", "file for the result, also of -quick and -rows")
	f.StringVar(&o.work, "work", "", "directory for stores and corpora (the system's for temporary files)")
	f.Var(&o.rows, "rows", "only rows whose ID matches one of these globs, with commas between; docs stay as they are")
	if verb == "table" {
		o.size = size{records: corpus.ReferenceRecords, protocols: 400_000, plain: corpus.ReferenceRecords, loads: 5, rounds: 5, reads: 9, budget: 24 * time.Hour}
		f.StringVar(&o.against, "against", "", "directory of other binaries, to run in turn with these")
		f.StringVar(&o.profile, "profile", "", "also write a CPU profile of an ingester to this file")
		f.BoolVar(&o.growth, "growth", true, "measure stores of 2, 8 and 20 million records, and one of 10,000 blobs")
		f.BoolVar(&o.quick, "quick", false, "the reference corpus only: no growth, no compaction, and nothing remote")
	} else {
		o.size = size{records: corpus.ReferenceRecords, protocols: 500_000, single: 100_000, repeats: 60, loads: 3, rounds: 4, singles: 3, reads: 5, budget: 16 * time.Minute}
		f.StringVar(&o.loghub, "loghub", "../shared/data/loghub", "directory of the logs of the second corpus, which is left out without them")
		f.StringVar(&o.streams, "streams", "", "fields of VictoriaLogs' streams, such as service,level, in place of service alone; docs stay as they are")
		f.BoolVar(&o.quick, "quick", false, "fewer records and rounds, in 4 minutes; docs stay as they are")
	}
	f.IntVar(&o.size.records, "n", o.size.records, "records of the reference corpus; figures to reach are for the default")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.size.records < 100_000 {
		return o, fmt.Errorf("what is %q? The flags are those of -help, and -n is 100,000 or more", f.Args())
	}
	o.size.plain = min(o.size.plain, o.size.records)
	if verb == "compare" && o.quick {
		o.size = size{records: min(400_000, o.size.records), protocols: 100_000, single: 10_000, repeats: 20, loads: 2, rounds: 2, singles: 2, reads: 2, budget: 4 * time.Minute}
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
	differ, short := result.Agree(x, y)
	for _, line := range short {
		fmt.Println("short:", line)
	}
	for _, line := range differ {
		fmt.Println("DIFFERS:", line)
	}
	if len(differ) > 0 {
		return fmt.Errorf("%s and %s differ in %d places", filepath.Base(a), filepath.Base(b), len(differ))
	}
	fmt.Printf("%d rows agree; %d of their figures are too short to tell\n", len(x.Rows), len(short))
	return nil
}
