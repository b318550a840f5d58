package unflushed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
	"blobtail/storage/fanout"
)

// asks reports whether any ingester can be asked.
func (r *Reader) asks() bool {
	return !r.o.Unasked && !r.o.Off && (r.o.Live != nil || r.o.Announced != nil)
}

// distantWait is how long ingesters out of reach may delay a read.
const distantWait = 2 * time.Second

// answers asks for the own records of ingesters. They are in the answer of the ingester that
// the user named, or else in one answer of each ingester that may hold records. Then h has the
// errors of those that do not answer. If no ingester may hold any, none is asked.
func (r *Reader) answers(ctx context.Context, q live.Query, known *survey) (all []*live.Answer, h heard, err error) {
	if r.o.Live != nil {
		answer, err := r.askOne(ctx, r.o.Live, q, known)
		if err != nil {
			return nil, h, err
		}
		return []*live.Answer{answer}, h, nil
	}
	k := known.wait()
	rows := slices.DeleteFunc(k.holders(), func(i lease.Ingester) bool { return k.spares(&i, q.To) })
	switch {
	case k.unlisted() != nil:
		return nil, h, nil // the roster reports it
	case len(rows) == 0:
		return nil, heard{any: true}, nil
	case r.o.Announced == nil:
		return nil, h, errors.New("no ingester to ask is known (BLOBTAIL_LIVE)")
	}
	if k.storeErr != nil || k.store == "" {
		r.identify(ctx, k)
	}
	if k.storeErr != nil {
		return nil, h, k.unknownStore(rows[0].ID)
	}
	answers := make([]*live.Answer, len(rows))
	errs := fanout.All(len(rows), 0, func(i int) (err error) {
		answers[i], err = live.AskAlone(ctx, &rows[i], q, live.AloneOptions{ClientOptions: r.client(&rows[i], k), Store: k.store})
		return err
	})
	h.errs = map[string]error{}
	for i := range rows {
		if answers[i] != nil {
			all = append(all, answers[i])
		}
		if errs[i] != nil {
			h.errs[rows[i].ID] = errs[i]
		}
	}
	return all, h, nil
}

// client says how the ingester of a row is asked.
func (r *Reader) client(row *lease.Ingester, k *roster) live.ClientOptions {
	silent := !row.Live(k.now)
	o := r.options(silent)
	if !silent && r.o.Distant {
		o.Wait = distantWait
	}
	return o
}

// options are those of a client of an announced ingester. A silent one has only a second: perhaps
// it cannot write its row, but most likely it does not run.
func (r *Reader) options(silent bool) live.ClientOptions {
	o := live.ClientOptions{HTTP: r.o.Announced, Trust: r.o.Trust, Token: r.o.Token, PlainHTTP: r.o.PlainHTTP}
	if silent {
		o.Wait = live.HastyWait
	}
	return o
}

// holders are the ingesters that may hold records: a record that was acknowledged before the
// rows were read is in a blob, or in the log of one of these.
func (k *roster) holders() (rows []lease.Ingester) {
	for _, i := range k.rows {
		if i.State == lease.Holding || i.BestEffort && i.Live(k.now) {
			rows = append(rows, i)
		}
	}
	return rows
}

// reach finds a running ingester that answers, for a follower, and reports whether there is
// one. It asks all at the same time.
func (r *Reader) reach(ctx context.Context, known *survey) bool {
	k := known.wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type one struct {
		address string
		self    live.Self
	}
	rows := k.askable()
	found := make(chan one, len(rows))
	var asking fanout.Crew
	for _, i := range rows {
		asking.Go(func() {
			client, err := live.NewClient(i.Address, r.client(&i, k))
			if err != nil {
				return
			}
			if self, err := client.Self(ctx); err == nil {
				found <- one{i.Address, self}
			}
		})
	}
	go func() { asking.Wait(); close(found) }()
	for f := range found {
		if r.ours(ctx, f.self, k) == nil {
			r.last.Store(f.address)
			return true
		}
	}
	return false
}

// ask puts a question to one ingester, which asks its peers, as followers need it. It waits
// for known only if it needs it. The error is [ErrNobody] if there is no ingester to ask.
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
func (k *roster) askable() []lease.Ingester {
	var running, silent []lease.Ingester
	for _, i := range slices.SortedStableFunc(slices.Values(k.rows), func(x, y lease.Ingester) int { return y.At.Compare(x.At) }) {
		switch {
		case i.Address == "":
		case i.Live(k.now):
			running = append(running, i)
		case i.State == lease.Holding:
			silent = append(silent, i)
		}
	}
	return append(running, silent...)
}

// askAt asks the ingester at an address; with silent it waits only a second.
func (r *Reader) askAt(ctx context.Context, address string, silent bool, q live.Query, known *survey) (*live.Answer, error) {
	client, err := live.NewClient(address, r.options(silent))
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
		r.identify(ctx, k)
	}
	switch {
	case k.storeErr != nil:
		return k.unknownStore(self.ID)
	case self.Store == k.store && k.store != "":
		return nil
	}
	return &live.NoAnswerError{Err: fmt.Errorf("ingester %s answers and has never written to %s, whose id is %s: it writes to store %s. Is --store the store of that ingester, and BLOBTAIL_LIVE (live, --live-url) the URL of one of its own?",
		self.ID, cmp.Or(r.o.Name, "this store"), cmp.Or(k.store, "none"), cmp.Or(self.Store, "it has not reached yet"))}
}

// identify reads the id of the store once more: the store may have got it just now, or may be
// reachable again.
func (r *Reader) identify(ctx context.Context, k *roster) {
	ctx, cancel := context.WithTimeout(ctx, tablePatience)
	defer cancel()
	if id, err := r.o.Store(ctx); err == nil {
		k.store, k.storeErr = id, nil
	}
}

// unknownStore is the error about an ingester if the id of the store cannot be read.
func (k *roster) unknownStore(id string) error {
	return fmt.Errorf("the id of the store (_store) cannot be read, so it is not known whether ingester %s writes to it: %w", id, k.storeErr)
}

// elsewhere reports whether another ingester may answer after this error.
func elsewhere(err error) bool {
	var none *live.NoAnswerError
	return errors.As(err, &none)
}
