package unflushed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
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
		answers[i], err = r.alone(ctx, &rows[i], q, k)
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

// alone asks the ingester of a row for its own records. A silent one has only a second: perhaps it
// cannot write its row, but most likely it does not run.
func (r *Reader) alone(ctx context.Context, row *lease.Ingester, q live.Query, k *roster) (*live.Answer, error) {
	o := live.ClientOptions{HTTP: r.o.Announced, Trust: r.o.Trust, Token: r.o.Token, PlainHTTP: r.o.PlainHTTP, Hangs: r.o.Hangs}
	switch {
	case !row.Live(k.now):
		o.Wait = live.HastyWait
	case r.o.Distant:
		o.Wait = distantWait
	}
	return live.AskAlone(ctx, row, q, live.AloneOptions{ClientOptions: o, Store: k.store})
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

// reach reports whether any ingester answers a follower. It asks all at the same time.
func (r *Reader) reach(ctx context.Context, known *survey) bool {
	k := known.wait()
	if k.storeErr != nil || k.store == "" {
		r.identify(ctx, k)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rows := k.askable()
	found := make(chan bool, len(rows))
	var asking fanout.Crew
	for _, i := range rows {
		asking.Go(func() {
			answer, err := r.alone(ctx, &i, ends("*"), k)
			if answer != nil {
				answer.Close()
			}
			if found <- err == nil; err == nil {
				cancel()
			}
		})
	}
	asking.Wait()
	close(found)
	for one := range found {
		if one {
			return true
		}
	}
	return false
}

// ends is a question for the ends of logs.
func ends(services string) live.Query {
	return live.Query{Service: services, From: math.MinInt64, To: math.MaxInt64, Follow: true, Now: true}
}

// askable are the ingesters that a follower asks: those that run, or may hold records.
func (k *roster) askable() []lease.Ingester {
	return slices.DeleteFunc(slices.Clone(k.rows), func(i lease.Ingester) bool { return !i.MayHold(k.now) })
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
