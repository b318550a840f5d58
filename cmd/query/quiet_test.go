package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/reading"
)

// -q hides notes, and not those that say that the output lacks records, or may.
func TestQuietTellsOfGaps(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		var out strings.Builder
		a := &app{Console: cli.Console{Name: "logquery", Stderr: &out, Quiet: quiet}, env: environment{stderr: &out, getenv: func(string) string { return "" }}, now: time.Now().UTC()}
		a.report(&reading.Report{
			Notes: []string{"the ingesters answer again", "ingester 1 on h is announced with best effort only: records that it took while the tables were away may be missing"},
			Gaps:  []reading.Gap{{Service: "web", Records: 5, From: 1, To: 2}},
		})
		a.verdict(t.Context(), &reading.Outcome{})
		read := &reading.Outcome{}
		read.Warnings = []error{errors.New("web: older than 2026-10-26 has expired"), errors.New("there is no store, so records in blobs may be missing: gone")}
		a.verdict(t.Context(), read)
		for text, always := range map[string]bool{"answer again": false, "best effort": true, "5 more between": true, "has expired": false, "there is no store": true} {
			if got := strings.Contains(out.String(), text); got != (always || !quiet) {
				t.Errorf("quiet %t, %s: %t\n%s", quiet, text, got, out.String())
			}
		}
	}
}
