package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"blobtail/blobwriter"
	"blobtail/buffer"
	"blobtail/internal/azurelogs/imports"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/heartbeat"
	"blobtail/internal/openstore"
	"blobtail/internal/storeid/premises"
	"blobtail/record"
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

// run imports the services. Its records take the way of an ingester: log, buffer, writer. It
// has a log directory of its own, so an ingester may run next to it. It promises no record to
// anybody before that is in a blob, so it announces itself to nobody.
func (i *importCmd) run(ctx context.Context, c config.Config, log zerolog.Logger, stdout, stderr io.Writer) error {
	if !i.From.Logs() {
		return cli.Usagef("--from %s: want azurelogs:ACCOUNT[/CONTAINER] or azurelogs:dir:PATH", i.From)
	}
	from, err := openstore.Open(ctx, i.From, false)
	if err != nil {
		return fmt.Errorf("open the logs: %w", err)
	}
	defer from.Close()
	services, err := i.services(ctx, from)
	if err != nil {
		return from.Explained(err)
	}
	c.Ingest.WAL = c.WALDir() + "-import"
	result, err := i.through(ctx, c, from, services, log)
	console := cli.Console{Name: "ingest", Stderr: stderr}
	lost := console.Problems(result.Problems.All())
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return from.Explained(err)
	}
	fmt.Fprintf(stdout, "imported %s records of %s hours; %s hours were imported before; %s copies left out; %s records of dropped days left out\n",
		cli.Thousands(int(result.Records)), cli.Thousands(result.Hours), cli.Thousands(result.Skipped), cli.Thousands(int(result.Copies)), cli.Thousands(int(result.Expired)))
	if lost > 0 {
		console.Complain("INCOMPLETE: %s lines or blobs could not be read", cli.Thousands(lost))
		return errIncomplete
	}
	return nil
}

// services returns the services that names and globs mean.
func (i *importCmd) services(ctx context.Context, from *openstore.Store) (out []string, err error) {
	stored, err := from.Logs.Services(ctx)
	if err != nil {
		return nil, err
	}
	for _, pattern := range i.Services {
		if !record.ValidPattern(pattern) {
			return nil, cli.Usagef("service %q is no name and no glob", pattern)
		}
		any := false
		for _, name := range stored {
			if record.MatchService(pattern, name) {
				out, any = append(out, name), true
			}
		}
		if !any {
			return nil, fmt.Errorf("no service %q in %s; logquery ls --store %s lists them", pattern, i.From, i.From)
		}
	}
	return out, nil
}

// through lets the parts of an ingester work until all records are in blobs.
func (i *importCmd) through(ctx context.Context, c config.Config, from *openstore.Store, services []string, log zerolog.Logger) (result imports.Result, err error) {
	reg := prometheus.NewRegistry()
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
			Source: from.Logs, Accept: buf.Accept, Marks: store.Blobs, Log: part(log, "import"),
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
	row, err := heartbeat.New(premises.Tables(store.Tables), heartbeat.Options{
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
