// Command termshot makes a picture of a terminal session: it runs commands on a
// pseudo-terminal, one after another, and writes their output as SVG.
//
//	termshot -o tail.svg 'logquery tail web -n 8' '5s|logquery tail -f web'
//
// A command behind a duration and "|" is interrupted that time after its first output, as
// by Ctrl-C. Termshot understands the output of our programs: text, colours and attributes
// (SGR), carriage returns, tabs and line feeds. It ignores other sequences.
//
//	pty.go      a command on a pseudo-terminal
//	screen.go   from bytes to cells
//	svg.go      from cells to a picture
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"blobtail/internal/dev/testkit/pty"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "termshot:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("termshot", flag.ContinueOnError)
	out := flags.String("o", "session.svg", "file to write")
	columns := flags.Int("columns", 120, "width of the terminal")
	title := flags.String("title", "logquery", "text of the title bar")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := newScreen(*columns)
	for _, command := range flags.Args() {
		var after time.Duration
		if head, rest, ok := strings.Cut(command, "|"); ok {
			if d, err := time.ParseDuration(head); err == nil {
				after, command = d, rest
			}
		}
		fmt.Fprintf(s, "\x1b[1;32m$\x1b[0m \x1b[1m%s\x1b[0m\n", command)
		if err := pty.Run(command, *columns, after, s); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
	}
	return os.WriteFile(*out, s.svg(*title), 0o644)
}
