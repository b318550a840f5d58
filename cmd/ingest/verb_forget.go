package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/lease"
	"blobtail/internal/openstore"
	"blobtail/internal/trust"
	"blobtail/reading/unflushed/live"
	"blobtail/storage"
)

// forgetWait bounds all requests to the store and to ingesters.
const forgetWait = time.Minute

// forget gives up an ingester with a lost log, or all that have been silent for so long, unless
// they answer. With lost it acknowledges lost records. It prints the consequence.
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
	if lost {
		was, err := lease.ForgetLoss(ctx, tables, store, id)
		if err == nil {
			fmt.Fprintf(stdout, "acknowledged: ingester %s on %s lost records that it took before %s; reads are complete without them\n",
				was.ID, hostName(was), was.Lost.Until.UTC().Format(time.RFC3339))
		}
		return err
	}
	q, err := newQuestion(c)
	if err != nil {
		return err
	}
	var gone []lease.Ingester
	if silent != 0 {
		gone, err = lease.ForgetSilent(ctx, tables, store, silent, now, q.ask)
		if len(gone) == 0 && err == nil {
			fmt.Fprintf(stdout, "no ingester that may hold records has been silent for %s\n", config.Duration(silent))
		}
	} else if was, failed := lease.Forget(ctx, tables, store, id, now, q.ask); failed != nil {
		err = failed
	} else {
		gone = append(gone, was)
	}
	for _, was := range gone {
		q.forgotten(stdout, was)
	}
	return err
}

// A question asks silent ingesters whether they run. Its methods may be called at once.
type question struct {
	token string // for the ingesters, "" for none
	trust *trust.Trust

	mu         sync.Mutex
	unanswered map[string]string // why, by id
}

func newQuestion(c config.Config) (*question, error) {
	token, err := config.Token(os.Getenv, "BLOBTAIL_PEER_TOKEN", c.Access.PeerTokenFile)
	if err != nil {
		return nil, err
	}
	believed, err := believed(c.TLS)
	return &question{token: token, trust: believed, unanswered: make(map[string]string)}, err
}

// ask is a [lease.Ask].
func (q *question) ask(ctx context.Context, i lease.Ingester) error {
	if i.Address == "" {
		q.note(i, "it announces no address, so it was not asked whether it runs")
		return nil
	}
	client, err := live.NewClient(i.Address, live.ClientOptions{Wait: live.OwnWait, Trust: q.trust, Token: q.token})
	if err != nil {
		q.note(i, "it was not asked whether it runs: "+err.Error())
		return nil
	}
	defer client.Close()
	self, err := client.Self(ctx)
	if ctx.Err() != nil {
		return fmt.Errorf("it was not asked whether it runs: %w", ctx.Err())
	}
	refused, _ := errors.AsType[*live.NoAnswerError](err)
	unknown := false
	if refused != nil {
		_, unknown = errors.AsType[*tls.CertificateVerificationError](refused.Err)
	}
	switch {
	case err == nil && self.ID == i.ID:
		return fmt.Errorf("it answers at %s and only its announcements fail: mend these, or drain or stop it first", i.Address)
	case err == nil:
		q.note(i, "ingester "+self.ID+" answers at its address")
	case unknown:
		return fmt.Errorf("something runs at its address with a certificate that this host does not believe, so it cannot be asked: %w", err)
	case refused != nil && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden):
		return fmt.Errorf("something runs at its address %s and wants a token; set BLOBTAIL_PEER_TOKEN, so that it can be asked: %w", i.Address, err)
	case refused != nil && (refused.Ingester || refused.Status == http.StatusMisdirectedRequest):
		return fmt.Errorf("an ingester runs at its address and does not say which one it is; ask again, or stop it first: %w", err)
	default:
		q.note(i, "it does not answer: "+err.Error())
	}
	return nil
}

// note keeps why an ingester did not answer.
func (q *question) note(i lease.Ingester, reason string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unanswered[i.ID] = reason
}

// forgotten prints the records that are given up.
func (q *question) forgotten(stdout io.Writer, was lease.Ingester) {
	q.mu.Lock()
	defer q.mu.Unlock()
	fmt.Fprintf(stdout, "ingester %s on %s is forgotten; it was last seen %s\n", was.ID, hostName(was), was.At.UTC().Format(time.RFC3339))
	since := was.At
	if !was.Oldest.IsZero() {
		since = was.Oldest
	}
	fmt.Fprintf(stdout, "%s\n", cli.SafeLine(q.unanswered[was.ID]))
	fmt.Fprintf(stdout, "given up: what it took since %s and is in no blob; if its log is found after all, start it again on that\n", since.UTC().Format(time.RFC3339))
	if was.Ships != "" {
		fmt.Fprintln(stdout, "or "+was.WithoutLog())
	}
}

func hostName(i lease.Ingester) string {
	return cmp.Or(cli.SafeLine(i.Host), "an unknown host")
}
