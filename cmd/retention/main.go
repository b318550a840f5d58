// Command retention deletes expired logs and days of a service that must not have been
// logged. It also replaces small blobs by large ones.
//
// main.go     one error, one exit code
// cli.go      the flags and verbs
// plan.go, apply.go, drop.go, compact.go   the verbs
// print.go    plans and results as text and JSON
// metrics.go  metrics of a run, for Prometheus
// errors.go   exit codes and messages of errors
//
// stdout has plans and results; stderr has notes, and for the record a JSON line for
// each day that is hidden and each blob that is deleted.
package main

import (
	"io"
	"os"
	"time"

	"blobtail/internal/cli"
)

func main() {
	ctx, stop := cli.UntilSignal()
	defer stop()
	os.Exit(run(ctx, environment{args: os.Args[1:], stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, clock: time.Now}))
}

// environment is the input of a run from outside, apart from the store and files.
type environment struct {
	args           []string
	stdout, stderr io.Writer
	getenv         func(string) string
	clock          func() time.Time
}
