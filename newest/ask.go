package newest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"blobtail/internal/heartbeat"
	"blobtail/newest/live"
)

// finder asks the ingesters whose addresses are in their rows.
type finder struct {
	mu      sync.Mutex
	clients map[string]Asker
	last    string // address of the ingester that answered last
}

// asks reports whether any ingester can be asked.
func (r *Reader) asks() bool { return !r.o.Unasked && (r.o.Live != nil || r.o.Dial != nil) }

// ask puts a question to one ingester, which asks its peers. It rejects the answer of an
// ingester of another store. It waits for known only if it needs it. The error is
// [ErrNobody] if there is no ingester to ask.
func (r *Reader) ask(ctx context.Context, q live.Query, known *survey) (*live.Answer, error) {
	if r.o.Live == nil {
		return r.find(ctx, q, known)
	}
	answer, err := r.o.Live.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	return r.ours(ctx, answer, known)
}

// ours returns the answer if its ingester writes to the store of this Reader.
func (r *Reader) ours(ctx context.Context, answer *live.Answer, known *survey) (*live.Answer, error) {
	k := known.wait()
	self := answer.Self()
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
		answer.Close()
		return nil, fmt.Errorf("which store this is cannot be read, so nobody knows whether ingester %s writes to it: %w", self.ID, k.storeErr)
	case self.Store == k.store && k.store != "":
		return answer, nil
	}
	answer.Close()
	return nil, &foreignError{self, cmp.Or(r.o.Name, "this store"), k.store}
}

// foreignError says that an ingester of another store has answered.
type foreignError struct {
	self        live.Self
	name, store string
}

func (e *foreignError) Error() string {
	its, ours := cmp.Or(e.self.Store, "it has not reached yet"), cmp.Or(e.store, "none")
	return fmt.Sprintf("ingester %s answers and has never written to %s, whose id is %s: it writes to store %s. Is --store the store of that ingester, and BLOBTAIL_LIVE (live, --live-url) the URL of one of its own?",
		e.self.ID, e.name, ours, its)
}

// find asks one ingester after another. It starts with the last one that answered,
// without reading the rows, so that slow tables do not block a follower.
func (r *Reader) find(ctx context.Context, q live.Query, known *survey) (*live.Answer, error) {
	f := &r.finder
	f.mu.Lock()
	last := f.last
	f.mu.Unlock()
	var failed error
	if last != "" {
		answer, err := r.askAt(ctx, last, false, q, known)
		if err == nil || !elsewhere(err) {
			return answer, err
		}
		failed = err
	}
	if time.Since(known.begun) > time.Second { // a follower may ask for days, so its survey is old
		known = r.survey(ctx)
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
			f.mu.Lock()
			f.last = i.Address
			f.mu.Unlock()
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
	rows := slices.DeleteFunc(slices.Clone(k.rows), func(i heartbeat.Ingester) bool {
		return i.Address == "" || i.State != heartbeat.Holding && !i.Live(k.now)
	})
	slices.SortStableFunc(rows, func(x, y heartbeat.Ingester) int {
		if a, b := x.Live(k.now), y.Live(k.now); a != b {
			if a {
				return -1
			}
			return 1
		}
		return y.At.Compare(x.At)
	})
	return rows
}

// askAt asks the ingester at an address; with silent it waits only a second.
func (r *Reader) askAt(ctx context.Context, address string, silent bool, q live.Query, known *survey) (*live.Answer, error) {
	f := &r.finder
	f.mu.Lock()
	client := f.clients[address]
	f.mu.Unlock()
	if client == nil {
		var err error
		if client, err = r.o.Dial(address, silent); err != nil {
			return nil, err
		}
		if !silent {
			f.mu.Lock()
			if f.clients == nil {
				f.clients = map[string]Asker{}
			}
			f.clients[address] = client
			f.mu.Unlock()
		}
	}
	answer, err := client.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	return r.ours(ctx, answer, known)
}

// elsewhere reports whether another ingester may answer after this error: the ingester
// cannot be reached, another program has its port now, it is of another store, or it
// speaks another version.
func elsewhere(err error) bool {
	var unreachable *live.UnreachableError
	var version *live.VersionError
	var refused *live.RefusedError
	var foreign *foreignError
	return errors.As(err, &unreachable) || errors.As(err, &refused) || errors.As(err, &foreign) || errors.As(err, &version)
}
