package newest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blobtail/internal/heartbeat"
	"blobtail/newest/live"
)

// asks reports whether any ingester can be asked.
func (r *Reader) asks() bool { return !r.o.Unasked && (r.o.Live != nil || r.o.Announced != nil) }

// ask puts a question to one ingester, which asks its peers. It waits for known only if
// it needs it. The error is [ErrNobody] if there is no ingester to ask.
//
// With announced addresses it asks one ingester after another. It starts with the last one
// that answered, without reading the rows, so that slow tables do not block a follower.
func (r *Reader) ask(ctx context.Context, q live.Query, known *survey) (*live.Answer, error) {
	if r.o.Live != nil {
		return r.askOne(ctx, r.o.Live, q, known)
	}
	var failed error
	last, _ := r.last.Load().(string)
	if last != "" {
		answer, err := r.askAt(ctx, last, false, q, known)
		if err == nil || !elsewhere(err) {
			return answer, err
		}
		failed = err
	}
	if time.Since(known.begun) > time.Second { // a follower may ask for days, so its survey is old
		known = r.survey(ctx, nil)
	}
	k := known.wait()
	if k.err != nil && !absent(k.err) {
		return nil, cmp.Or(failed, fmt.Errorf("no ingester to ask is known: %w", k.err))
	}
	rows := k.askable()
	if len(rows) == 0 {
		return nil, ErrNobody // the last one that answered has ended
	}
	for _, i := range rows {
		if i.Address == last {
			continue
		}
		answer, err := r.askAt(ctx, i.Address, !i.Live(k.now), q, known)
		if err == nil {
			r.last.Store(i.Address)
			return answer, nil
		}
		failed = cmp.Or(failed, err)
		if !elsewhere(err) {
			return nil, err
		}
	}
	return nil, failed
}

// askable are the ingesters that have an address and may answer: first the running ones,
// by latest heartbeat, then silent ones that may hold records.
func (k *roster) askable() []heartbeat.Ingester {
	var running, silent []heartbeat.Ingester
	for _, i := range slices.SortedStableFunc(slices.Values(k.rows), func(x, y heartbeat.Ingester) int { return y.At.Compare(x.At) }) {
		switch {
		case i.Address == "":
		case i.Live(k.now):
			running = append(running, i)
		case i.State == heartbeat.Holding:
			silent = append(silent, i)
		}
	}
	return append(running, silent...)
}

// askAt asks the ingester at an address; with silent it waits only a second.
func (r *Reader) askAt(ctx context.Context, address string, silent bool, q live.Query, known *survey) (*live.Answer, error) {
	o := live.ClientOptions{HTTP: r.o.Announced, Token: r.o.Token}
	if silent {
		o.Wait = live.HastyWait
	}
	client, err := live.NewClient(address, o)
	if err != nil {
		return nil, err
	}
	return r.askOne(ctx, client, q, known)
}

// askOne asks one ingester. It rejects the answer of an ingester of another store.
func (r *Reader) askOne(ctx context.Context, client *live.Client, q live.Query, known *survey) (*live.Answer, error) {
	answer, err := client.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	if err := r.ours(ctx, answer.Self, known.wait()); err != nil {
		answer.Close()
		return nil, err
	}
	return answer, nil
}

// ours checks that an ingester writes to the store of this Reader.
func (r *Reader) ours(ctx context.Context, self live.Self, k *roster) error {
	if k.storeErr != nil || self.Store != k.store {
		// The store may have got its id just now, or may be reachable again.
		ctx, cancel := context.WithTimeout(ctx, tablePatience)
		defer cancel()
		if id, err := r.o.Store(ctx); err == nil {
			k.store, k.storeErr = id, nil
		}
	}
	switch {
	case k.storeErr != nil:
		return fmt.Errorf("which store this is cannot be read, so nobody knows whether ingester %s writes to it: %w", self.ID, k.storeErr)
	case self.Store == k.store && k.store != "":
		return nil
	}
	return &live.NoAnswerError{Err: fmt.Errorf("ingester %s answers and has never written to %s, whose id is %s: it writes to store %s. Is --store the store of that ingester, and BLOBTAIL_LIVE (live, --live-url) the URL of one of its own?",
		self.ID, cmp.Or(r.o.Name, "this store"), cmp.Or(k.store, "none"), cmp.Or(self.Store, "it has not reached yet"))}
}

// elsewhere reports whether another ingester may answer after this error.
func elsewhere(err error) bool {
	var none *live.NoAnswerError
	return errors.As(err, &none)
}
