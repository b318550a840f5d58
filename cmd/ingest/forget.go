package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"blobtail/config"
	"blobtail/heartbeat"
	"blobtail/internal/openstore"
	"blobtail/storage"
)

// forgetWait bounds what is asked of the store.
const forgetWait = 30 * time.Second

// forget gives up an ingester whose log is lost, and says what is given up.
func forget(c config.Config, id string, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithTimeout(context.Background(), forgetWait)
	defer cancel()
	was, err := forgetRow(ctx, c, id)
	if err != nil {
		fmt.Fprintln(stderr, "ingest: not forgotten:", err)
		return exitFailed
	}
	fmt.Fprintf(stdout, "ingester %s on %s is forgotten; it was last seen %s\n", was.ID, printable(was.Host), was.At.UTC().Format(time.RFC3339))
	if was.Oldest.IsZero() {
		fmt.Fprintln(stdout, "it had nothing that is in no blob, as far as it said")
	} else {
		fmt.Fprintf(stdout, "given up: what it took since %s and is in no blob; if its log is found after all, start it again on that\n", was.Oldest.UTC().Format(time.RFC3339))
	}
	return exitOK
}

func forgetRow(ctx context.Context, c config.Config, id string) (was heartbeat.Ingester, err error) {
	blobs, closeStore, err := openstore.Open(ctx, c.Store, false)
	if err != nil {
		return was, fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	tables, closeTables, err := openstore.Tables(c.Store, blobs)
	if err != nil {
		return was, fmt.Errorf("open the tables of the store: %w", err)
	}
	defer func() { err = errors.Join(err, closeTables()) }()
	now := time.Now()
	if clock, ok := blobs.(storage.Clock); ok {
		if now, err = clock.Now(ctx); err != nil {
			return was, fmt.Errorf("ask the store for its time: %w", err)
		}
	}
	return heartbeat.Forget(ctx, tables, openstore.Name(c.Store), id, now)
}

// printable is what of a text from the table does nothing to a terminal.
func printable(s string) string {
	if s == "" {
		return "an unknown host"
	}
	q := fmt.Sprintf("%q", s)
	return q[1 : len(q)-1]
}
