package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// knownLoggers is the table of docs/reference/loggers.md, with tabs between its columns. A test of
// docs writes both of the rows of source/body/loggers. A start does not touch it.
//
//go:embed loggers.tsv
var knownLoggers string

// loggersCmd prints the table.
type loggersCmd struct {
	Words []string `arg:"" optional:"" help:"Only loggers whose rows have all of these words, in any case." placeholder:"WORD"`
}

func (l *loggersCmd) run(stdout io.Writer) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	head, rows, _ := strings.Cut(knownLoggers, "\n")
	fmt.Fprintln(w, head)
	found := false
	for row := range strings.Lines(rows) {
		lower := strings.ToLower(row)
		if !slices.ContainsFunc(l.Words, func(word string) bool { return !strings.Contains(lower, strings.ToLower(word)) }) {
			found = true
			fmt.Fprint(w, row)
		}
	}
	if !found {
		return errors.New("no known logger has these words; ingest try shows what becomes of the lines of any")
	}
	return w.Flush()
}
