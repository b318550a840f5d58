package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/heartbeat"
	"blobtail/internal/openstore"
	"blobtail/newest/live"
	"blobtail/storage"
)

// forgetWait bounds all requests to the store.
const forgetWait = 30 * time.Second

// forget gives up an ingester whose log is lost, or all that have been silent for so
// long. With lost it acknowledges lost records. It prints the consequence.
func forget(c config.Config, id string, lost bool, silent time.Duration, stdout io.Writer) error {
	switch {
	case id == "" && silent == 0:
		return cli.Usagef("forget which ingester? Give its ID, as `logquery ingesters` shows it, or --silent 24h for all that are gone")
	case id != "" && silent != 0, silent != 0 && lost:
		return cli.Usagef("--silent stands alone: give either it, or an ID (with --lost, if that is meant)")
	}
	if err := forgetRow(c, id, lost, silent, stdout); err != nil {
		return fmt.Errorf("not forgotten: %w", err)
	}
	return nil
}

func forgetRow(c config.Config, id string, lost bool, silent time.Duration, stdout io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), forgetWait)
	defer cancel()
	opened, err := openstore.Open(ctx, c.Store, false)
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(opened.Explained(err), opened.Close()) }()
	now, err := storage.Now(ctx, opened.Blobs, time.Now())
	if err != nil {
		return err
	}
	tables, store := opened.Tables, c.Store.Name()
	switch {
	case silent != 0:
		gone, err := heartbeat.ForgetSilent(ctx, tables, store, silent, now)
		for _, was := range gone {
			forgotten(stdout, was)
		}
		if len(gone) == 0 && err == nil {
			fmt.Fprintf(stdout, "no ingester that may hold records has been silent for %s\n", config.Duration(silent))
		}
		return err
	case lost:
		was, err := heartbeat.ForgetLoss(ctx, tables, store, id)
		if err == nil {
			fmt.Fprintf(stdout, "acknowledged: ingester %s on %s lost records that it took before %s; reads are complete without them\n",
				was.ID, hostName(was), was.Lost.Until.UTC().Format(time.RFC3339))
		}
		return err
	}
	token, err := config.Token(os.Getenv, "BLOBTAIL_PEER_TOKEN", c.Access.PeerTokenFile)
	if err != nil {
		return err
	}
	if err := answering(ctx, tables, store, id, token); err != nil {
		return err
	}
	was, err := heartbeat.Forget(ctx, tables, store, id, now)
	if err == nil {
		forgotten(stdout, was)
	}
	return err
}

// answering refuses to forget an ingester that answers at its address: it may only be
// unable to write its row.
func answering(ctx context.Context, tables storage.TableStore, store, id, token string) error {
	rows, err := heartbeat.List(ctx, tables, store)
	if _, err = heartbeat.Unread(err); err != nil {
		return nil // forgetting fails for the same reason, and says so
	}
	for _, i := range rows {
		if i.ID != id || i.Address == "" || i.State != heartbeat.Holding {
			continue
		}
		client, err := live.NewClient(i.Address, live.ClientOptions{Wait: live.HastyWait, Token: token})
		if err != nil {
			return nil
		}
		defer client.Close()
		answer, err := client.Ask(ctx, live.Query{Service: "-", From: math.MinInt64, To: math.MaxInt64})
		if no, ok := errors.AsType[*live.NoAnswerError](err); ok && (no.Status == http.StatusUnauthorized || no.Status == http.StatusForbidden) {
			return fmt.Errorf("ingester %s: something runs at its address %s and wants a token; set BLOBTAIL_PEER_TOKEN, so that it can be asked: %w", i.ID, i.Address, err)
		}
		if err != nil {
			return nil // it is gone, or does not answer
		}
		defer answer.Close()
		if answer.Self.ID == id {
			return fmt.Errorf("ingester %s: it answers at %s and only its announcements fail: mend these, or drain or stop it first", id, i.Address)
		}
	}
	return nil
}

// forgotten prints the records that are given up.
func forgotten(stdout io.Writer, was heartbeat.Ingester) {
	fmt.Fprintf(stdout, "ingester %s on %s is forgotten; it was last seen %s\n", was.ID, hostName(was), was.At.UTC().Format(time.RFC3339))
	since := was.At
	if !was.Oldest.IsZero() {
		since = was.Oldest
	}
	fmt.Fprintf(stdout, "given up: what it took since %s and is in no blob; if its log is found after all, start it again on that\n", since.UTC().Format(time.RFC3339))
}

func hostName(i heartbeat.Ingester) string {
	return cmp.Or(cli.SafeLine(i.Host), "an unknown host")
}
