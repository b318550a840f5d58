// Command bench is `make bench`: it loads a corpus through ingesters into fresh stores,
// reads it back with logquery, holds every answer against the corpus, and measures the
// cost of it all beside a yardstick.
//
//	bench -bin bin -tools ../shared/bench -out docs/bench -svg docs/performance.svg
//	bench draw FILE.json FILE.svg      only the picture of an earlier run
//
// The yardstick is the CPU time of zstd's fastest level for the same corpus, Y. Machines
// differ; costs as multiples of Y are comparable. With -against DIR the binaries of an
// older version run in turn with those of -bin.
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

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/bench/rig"
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
	bin, against, tools         string
	logquery, ingest, retention string
	out, work, profile          string
	filtersOff                  string
	rows                        rig.Globs
	records, rounds, runs       int
	quick, growth               bool
	svg                         string
	delay                       time.Duration
}

func run(args []string) error {
	if len(args) > 1 && args[0] == "launch" {
		return rig.Launch(args[1:])
	}
	if len(args) == 3 && args[0] == "draw" {
		return draw(args[1], args[2])
	}
	o, err := parseFlags(args)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if _, err := os.Stat(o.tools); err != nil {
		fmt.Fprintf(os.Stderr, "bench: no %s, so the end-to-end figures are left out: its generator, sender and yardstick are needed\n", o.tools)
		return nil
	}
	work, err := os.MkdirTemp(o.work, "blobtail-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b, err := newBench(ctx, o, work)
	if err != nil {
		return err
	}
	if err := b.measure(ctx); err != nil {
		return err
	}
	return b.finish()
}

func parseFlags(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.bin, "bin", "bin", "directory of ingest, logquery and retention")
	f.StringVar(&o.logquery, "logquery", "", "logquery, if not that of -bin")
	f.StringVar(&o.ingest, "ingest", "", "ingest, if not that of -bin")
	f.StringVar(&o.retention, "retention", "", "retention, if not that of -bin")
	f.StringVar(&o.against, "against", "", "directory of other binaries, to run in turn with these")
	f.StringVar(&o.tools, "tools", "../shared/bench", "directory of the generator, the sender and the yardstick")
	f.StringVar(&o.out, "out", "", "directory for DATE-COMMIT.json; none is written if empty")
	f.StringVar(&o.work, "work", "", "directory for stores and corpora (the system's for temporary files)")
	f.StringVar(&o.profile, "profile", "", "also write a CPU profile of an ingester to this file")
	f.StringVar(&o.filtersOff, "filters-off", "--no-flush-filters", "flag of ingest that makes blobs without filters; ignored if ingest has no such flag")
	f.Var(&o.rows, "rows", "only rows whose ID matches one of these globs, with commas between; nothing is written then")
	f.IntVar(&o.records, "n", rig.ReferenceRecords, "records of the corpus; figures to reach are for the default")
	f.IntVar(&o.rounds, "rounds", 5, "runs of each row of ingest")
	f.IntVar(&o.runs, "runs", 9, "runs of each read")
	f.StringVar(&o.svg, "svg", "", "picture to draw, if growth is measured")
	f.BoolVar(&o.growth, "growth", true, "measure stores of 2, 8 and 20 million records, and one of 10,000 blobs")
	f.BoolVar(&o.quick, "quick", false, "the reference corpus only: no growth, no compaction, and nothing remote")
	f.DurationVar(&o.delay, "delay", 30*time.Millisecond, "delay of each remote request")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 1 || o.runs < 1 || o.records < 100_000 {
		return o, errors.New("-rounds and -runs must be 1 or more, and -n 100,000 or more")
	}
	return o, nil
}

// draw draws the picture of a report that exists.
func draw(from, to string) error {
	r, err := report.Read[report.Report](from)
	if err != nil {
		return err
	}
	picture, err := report.Draw(r)
	if err != nil {
		return err
	}
	return os.WriteFile(to, picture, 0o644)
}

// sides are the versions that are measured: this one, and perhaps another.
func (o options) sides() []*side {
	pick := func(explicit, dir, name string) string {
		if explicit != "" {
			return explicit
		}
		return filepath.Join(dir, name)
	}
	all := []*side{{logquery: pick(o.logquery, o.bin, "logquery"), ingest: pick(o.ingest, o.bin, "ingest"), retention: pick(o.retention, o.bin, "retention")}}
	if o.against != "" {
		all = append(all, &side{logquery: filepath.Join(o.against, "logquery"), ingest: filepath.Join(o.against, "ingest"), retention: filepath.Join(o.against, "retention")})
	}
	return all
}
