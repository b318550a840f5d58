package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"blobtail/blobwriter"
	"blobtail/buffer"
	"blobtail/internal/azurelogs"
	"blobtail/internal/azurelogs/imports"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/internal/lease"
	"blobtail/internal/openstore"
	"blobtail/internal/spelling"
	"blobtail/internal/storeid/premises"
	"blobtail/internal/units"
	"blobtail/record"
	"blobtail/storage"
)

// importCmd brings Azure's own logs into the store.
type importCmd struct {
	From     openstore.Spec  `required:"" help:"azurelogs:ACCOUNT[/CONTAINER], or azurelogs:dir:PATH for a copy." placeholder:"LOGS"`
	Services []string        `arg:"" name:"service" help:"Services as logquery ls shows them, or globs."`
	Since    config.Duration `help:"Only hours that began so long ago or later, such as 30d." placeholder:"DURATION"`
	Again    bool            `help:"Import also the hours that were imported whole and have not changed."`
}

// importLane is the lane of the blobs of imports. No ingester finds it by itself before it
// has 98 neighbours, and two on a lane lose nothing.
const importLane = 98

// errIncomplete says that the problems are on stderr.
var errIncomplete = errors.New("incomplete")

// run imports the services. Its records take the way of an ingester: log, buffer, writer. It has a
// log directory of its own, so an ingester may run next to it. It promises no record before that
// is in a blob, so it announces itself to no reader.
func (i *importCmd) run(ctx context.Context, c config.Config, h handling, log zerolog.Logger, stdout, stderr io.Writer) error {
	if !i.From.Logs() {
		return cli.Usagef("--from %s: want azurelogs:ACCOUNT[/CONTAINER] or azurelogs:dir:PATH", i.From)
	}
	if isSame(i.From.Copied(), c.Store.Dir()) {
		return cli.Usagef("--store %s has the logs that --from names; name another directory", c.Store)
	}
	from, err := openstore.OpenWith(ctx, i.From, false, openstore.Options{Ignore: c.AzureLogs.Ignore})
	if err != nil {
		return &sourceError{err, i.From, nil}
	}
	defer from.Close()
	services, err := i.services(ctx, from)
	if err != nil {
		return &sourceError{err, i.From, from}
	}
	c.Ingest.WAL = c.WALDir() + "-import"
	result, err := i.through(ctx, c, h, from, services, log)
	console := cli.Console{Name: "ingest", Stderr: stderr}
	lost := console.Problems(result.Problems.All())
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.As(err, new(*imports.SourceError)) {
		return &sourceError{err, i.From, from}
	}
	if err != nil {
		return err
	}
	for _, text := range result.Unfinished {
		console.Note("%s", text)
	}
	fmt.Fprintf(stdout, "imported %s of %s; %s %s imported before; %s left out; %s of dropped days left out\n",
		units.Count(result.Records, "record"), units.Count(result.Hours, "hour"), units.Count(result.Skipped, "hour"), units.Word(result.Skipped, "was", "were"),
		units.Count(result.Copies, "copy"), units.Count(result.Expired, "record"))
	if lost > 0 {
		console.Complain("INCOMPLETE: %s could not be read", units.Count(lost, "line")+" or "+units.Plural(lost, "blob"))
		return errIncomplete
	}
	return nil
}

// isSame reports whether two paths are one directory.
func isSame(a, b string) bool {
	one, err1 := os.Stat(a)
	other, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(one, other)
}

// services returns the services that names and globs mean.
func (i *importCmd) services(ctx context.Context, from *openstore.Store) ([]string, error) {
	var all []string
	for _, pattern := range i.Services {
		pattern = strings.ToLower(pattern)
		if !record.ValidPattern(pattern) {
			return nil, cli.Usagef("service %q is no name and no glob", pattern)
		}
		names, err := from.Logs.Match(ctx, []string{pattern})
		if none, ok := errors.AsType[*azurelogs.NoServiceError](err); ok {
			hint := fmt.Sprintf("logquery ls --store %s lists them", i.From)
			if near := spelling.Near(pattern, none.Stored); near != "" {
				hint = fmt.Sprintf("there is %q", near)
			}
			return nil, cli.Usagef("no service %q in %s; %s", pattern, i.From, hint)
		}
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, cli.Usagef("no service matches %s in %s; logquery ls --store %s lists them", pattern, i.From, i.From)
		}
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// sourceError is a failure of the logs that are imported.
type sourceError struct {
	err  error
	spec openstore.Spec
	from *openstore.Store // nil if they could not be opened
}

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// report prints the failure and returns the exit code, which is that of logquery.
func (e *sourceError) report(console cli.Console) int {
	if e.from != nil {
		console.Explain = e.from.Explain
	}
	return console.ExitCode(e.err, e.spec, "reading needs the role Storage Blob Data Reader", func(err error) (int, string) {
		if errors.Is(err, storage.ErrNotExist) {
			return cli.NoStore, fmt.Sprintf("no logs at %s: %v", e.spec, err)
		}
		return 0, ""
	})
}

// through lets the parts of an ingester work until all records are in blobs.
func (i *importCmd) through(ctx context.Context, c config.Config, h handling, from *openstore.Store, services []string, log zerolog.Logger) (result imports.Result, err error) {
	reg := new(count.Registry)
	limitMemory(c, log)
	store, err := openstore.Open(ctx, c.Store, true)
	if err != nil {
		return result, fmt.Errorf("open the store: %w", err)
	}
	defer store.Close()
	journal, err := openJournal(c, log)
	if err != nil {
		return result, err
	}
	defer journal.Close()
	premises, err := openPremises(ctx, c, store, journal, log)
	if err != nil {
		return result, err
	}
	out := newSink(store, blobwriter.Options{NoFilters: !c.Flush.Filters}, premises, part(log, "horizon"), reg)
	if err := out.SetLane(importLane); err != nil {
		return result, err
	}
	options := bufferOptions(c, part(log, "buffer"), reg)
	options.Expired = out.expired
	if c.Flush.MaxAge == 0 {
		options.MaxAge = 0 // the buffer's own, because nobody asks an import for its records
	}
	buf := buffer.New(journal, out, options)

	working, end := context.WithCancel(ctx)
	defer end()
	group, failed := errgroup.WithContext(working)
	group.Go(func() error { boundGarbage(failed); return nil })
	group.Go(func() error { out.watch.Run(failed); return nil })
	group.Go(func() error { premises.Run(failed); return nil })
	group.Go(func() error { return buf.Run(failed) })
	group.Go(func() error {
		defer end()
		await(failed, time.Now().Add(companyWait), out.watch.First())
		if err := i.announce(failed, c, store, premises, log); err != nil {
			return err
		}
		im := imports.New(imports.Options{
			Source: from.Logs, Accept: h.filtered(buf, reg).Accept, Marks: store.Blobs, Log: part(log, "import"),
			Flush: func(ctx context.Context) error { _, err := buf.Flush(ctx); return err },
		})
		defer func() { result = im.Result() }()
		since := time.Time{}
		if i.Since > 0 {
			since = time.Now().Add(-time.Duration(i.Since))
		}
		for _, service := range services {
			if err := im.Service(failed, service, since, i.Again); err != nil {
				return err
			}
		}
		_, err := im.End(failed)
		return err
	})
	return result, group.Wait()
}

// announceWait is how long the store may take to accept the row of an import.
const announceWait = 15 * time.Second

// announce leaves a row that says that the import holds nothing. Readers would otherwise take
// the table of ingesters of a new store for removed.
func (i *importCmd) announce(ctx context.Context, c config.Config, store *openstore.Store, premises *premises.Premises, log zerolog.Logger) error {
	host, _ := os.Hostname()
	row, err := lease.New(premises.Tables(store.Tables), lease.Options{
		Dir: c.WALDir(), StoreID: premises.StoreID, Lane: importLane, Store: c.Store.Name(), Host: host, Version: cli.Version(), Log: part(log, "announce"),
	})
	if err != nil {
		return err
	}
	for until := time.Now().Add(announceWait); ; {
		if err = row.Absent(ctx); err == nil || ctx.Err() != nil || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
