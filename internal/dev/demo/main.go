// Command demo writes the corpus that demo.sh ships: request bodies of NDJSON, and
// the number of records of each kind that a reader must find again.
//
//	demo -n 100000 -dir DIR -from 2026-11-20T10:00:00Z -span 2h -window 30m
//
// It makes DIR/body-000.ndjson and so on, and DIR/expect with lines "name count":
// all, each level, and window: records of level error and critical within two
// minutes from the start of the window.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"blobtail/internal/dev/loggen"
	"blobtail/record"
)

const perBody = 5000

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	n := flags.Int("n", 100_000, "records")
	dir := flags.String("dir", ".", "where to write")
	seed := flags.Uint64("seed", 1, "equal seeds give equal logs")
	from := flags.String("from", "2026-11-20T10:00:00Z", "time of the first record, RFC 3339")
	span := flags.Duration("span", 2*time.Hour, "time from the first record to the last")
	window := flags.Duration("window", 30*time.Minute, "where the two-minute window begins, counted from the first record")
	if err := flags.Parse(args); err != nil {
		return err
	}
	start, err := time.Parse(time.RFC3339, *from)
	if err != nil {
		return err
	}
	var all loggen.Tally
	opens := start.Add(*window)
	inWindow := loggen.Tally{From: opens.UnixNano(), To: opens.Add(2 * time.Minute).UnixNano()}
	g := loggen.New(loggen.Options{Seed: *seed, Records: *n, From: start, Span: *span})
	for i := 0; i*perBody < *n; i++ {
		if err := body(filepath.Join(*dir, fmt.Sprintf("body-%03d.ndjson", i)), g, &all, &inWindow); err != nil {
			return err
		}
	}
	return expect(filepath.Join(*dir, "expect"), all, inWindow)
}

// body writes the next records to a file.
func body(name string, g *loggen.Generator, tallies ...*loggen.Tally) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := 0; i < perBody && g.Next(); i++ {
		w.Write(g.Line())
		for _, t := range tallies {
			t.Add(g.Record())
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func expect(name string, all, window loggen.Tally) error {
	levels := func(t loggen.Tally) (sum [record.NumLevels]int) {
		for _, counts := range t.Counts {
			for l, n := range counts {
				sum[l] += n
			}
		}
		return sum
	}
	text := fmt.Appendf(nil, "all %d\n", all.Total)
	for l, n := range levels(all) {
		text = fmt.Appendf(text, "%s %d\n", record.Level(l), n)
	}
	w := levels(window)
	text = fmt.Appendf(text, "window %d\n", w[record.Error]+w[record.Critical])
	return os.WriteFile(name, text, 0o600)
}
