// Command azuretry tries the product on a real account of Azure Storage, in a container and tables
// of its own, and writes a report that can be pasted into an issue. `make azure-try` runs it;
// docs/AZURE-TRY.md has its needs and its cost.
//
//	azuretry -bin bin -tests bin/azure.test -report bin/azure-try.md
//	azuretry -clean
//
// It runs the commands in -bin as processes, and the tests of the storage contracts in -tests. It
// deletes whatever it made, also after a failure and after Ctrl-C.
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
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// Exit codes. A run is done if each step is ok or was not tried.
const (
	done        = 0
	failed      = 1
	usage       = 2
	interrupted = 130
)

// options are the flags.
type options struct {
	bin, tests, report string
	records            int
	clean, showAccount bool
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("azuretry", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.bin, "bin", "bin", "directory with ingest, logquery and retention")
	flags.StringVar(&o.tests, "tests", "", "tests of storage/azure (go test -c); without it they are not tried")
	flags.StringVar(&o.report, "report", "", "file for the report; without it stdout alone gets it")
	flags.IntVar(&o.records, "records", 2000, "records that are sent while the ingester is killed")
	flags.BoolVar(&o.clean, "clean", false, "delete what earlier runs left, and try nothing")
	flags.BoolVar(&o.showAccount, "show-account", false, "write the name of the account into the report")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return usage
	}
	if getenv("AZURE_STORAGE_ACCOUNT") == "" && getenv("AZURE_STORAGE_CONNECTION_STRING") == "" {
		fmt.Fprintln(stdout, needs)
		return done
	}
	t, err := newTry(o, getenv, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "azuretry:", err)
		return usage
	}
	defer os.RemoveAll(t.dir)
	if o.clean {
		return t.clean(ctx)
	}
	return t.whole(ctx)
}

// needs says how to begin.
const needs = `azure-try is skipped: it needs a storage account of Azure, and AZURE_STORAGE_ACCOUNT names none.
  export AZURE_STORAGE_ACCOUNT=NAME
and one of these as credentials:
  az login                      an identity with Storage Blob Data Contributor and Storage Table Data Contributor
  AZURE_STORAGE_KEY=...         a key: tries the most, as SAS of each role can be made of it
  AZURE_STORAGE_SAS_TOKEN=...   a SAS of the account (ss=bt, srt=sco, sp=rwdlacu)
AZURE_STORAGE_BLOB_ENDPOINT and AZURE_STORAGE_TABLE_ENDPOINT are for other clouds. It costs a few cents at most,
takes some minutes, and deletes what it makes: docs/AZURE-TRY.md.`

// price is said before the first request.
const price = `It sends some 4,000 requests and 20 MB, two thirds of them to write or to list: at the list prices of a hot
account about 2 cents (USD), and nothing from tomorrow on. It takes some minutes, and deletes what it makes.`

// cleanWait bounds the deletion at the end.
const cleanWait = 3 * time.Minute

// whole tries all, cleans up and writes the report.
func (t *try) whole(ctx context.Context) int {
	fmt.Fprintf(t.stderr, "azure-try: account %s by %s, container %s, tables %s...\n%s\n", t.who.account, t.who.kind, t.container, t.tables, price)
	begun := time.Now()
	left, err := t.leftovers(ctx)
	if err == nil && len(left) > 0 {
		fmt.Fprintf(t.stderr, "azure-try: earlier runs left %s; to delete them: make azure-try CLEAN=1\n", list(left))
	}
	t.facts.left = len(left)
	t.steps(ctx)
	t.interrupted = ctx.Err() != nil
	if t.interrupted {
		fmt.Fprintln(t.stderr, "azure-try: interrupted; it deletes what it made")
	}
	// The end of ctx must not end the deletion.
	cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWait)
	defer cancel()
	t.step(cleaning, "clean up", t.cleanUp)
	text := t.mask(t.text(begun))
	fmt.Fprint(t.stdout, text)
	if t.o.report != "" {
		if err := errors.Join(os.MkdirAll(filepath.Dir(t.o.report), 0o755), os.WriteFile(t.o.report, []byte(text), 0o600)); err != nil {
			fmt.Fprintln(t.stderr, "azure-try:", err)
			return failed
		}
		fmt.Fprintln(t.stderr, "azure-try: the report is in", t.o.report)
	}
	switch {
	case t.interrupted:
		return interrupted
	case t.failures() > 0:
		return failed
	}
	return done
}

// clean deletes what earlier runs left.
func (t *try) clean(ctx context.Context) int {
	left, err := t.leftovers(ctx)
	if err == nil && len(left) > 0 {
		err = t.deleteAll(ctx, containerPrefix, tablePrefix)
	}
	if err != nil {
		fmt.Fprintln(t.stderr, "azure-try:", t.mask(t.explained(err)))
		return failed
	}
	if len(left) == 0 {
		fmt.Fprintln(t.stdout, "earlier runs left nothing")
		return done
	}
	fmt.Fprintln(t.stdout, "deleted", list(left))
	return done
}
