// Command demo writes the corpus that demo.sh ships: request bodies of NDJSON, and the number of
// records of each kind that a reader must find again.
//
//	demo -n 100000 -dir DIR -from 2026-11-20T10:00:00Z -span 2h -window 30m
//
// It makes DIR/body-000.ndjson and so on, and DIR/expect with lines "name count": all, each level,
// and window: records of level error and critical within two minutes from the start of the window.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"blobtail/internal/dev/corpus"
	"blobtail/record"
)

// perBody is the number of records of a request.
const perBody = 5000

func main() {
	n := flag.Int("n", 100_000, "records")
	dir := flag.String("dir", ".", "where to write")
	seed := flag.Uint64("seed", 1, "equal seeds give equal logs")
	from := flag.String("from", "2026-11-20T10:00:00Z", "time of the first record, RFC 3339")
	span := flag.Duration("span", 2*time.Hour, "time from the first record to the last")
	opens := flag.Duration("window", 30*time.Minute, "where the two-minute window begins, counted from the first record")
	flag.Parse()
	start, err := time.Parse(time.RFC3339, *from)
	if err == nil {
		o := corpus.Options{Seed: *seed, Records: *n, From: start, Span: *span, Odd: true}
		err = write(*dir, o, corpus.NewWindow("", start.Add(*opens), 2*time.Minute))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func write(dir string, o corpus.Options, window *corpus.Window) error {
	var text []byte
	all := corpus.Counts{}
	for r := range o.All() {
		text = append(text, r.Line...)
		all.Add(r)
		window.Add(r)
	}
	for i, body := range corpus.Bodies(text, perBody) {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("body-%03d.ndjson", i)), body, 0o600); err != nil {
			return err
		}
	}
	var expect bytes.Buffer
	fmt.Fprintln(&expect, "all", all.Of())
	for l := range record.Level(record.NumLevels) {
		fmt.Fprintln(&expect, l, all.Of(l))
	}
	fmt.Fprintln(&expect, "window", window.Counts.Of(record.Error, record.Critical))
	return os.WriteFile(filepath.Join(dir, "expect"), expect.Bytes(), 0o600)
}
