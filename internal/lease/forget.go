package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"blobtail/storage"
	"blobtail/storage/fanout"
)

// refuse says why the row of an ingester cannot be given up.
func refuse(id, reason string) error { return fmt.Errorf("ingester %s: %s", id, reason) }

// Ask asks a silent ingester at its address whether it runs: perhaps it only cannot write
// its row. It returns the reason not to give it up, nil if there is none. It is called by
// several goroutines at once.
type Ask func(ctx context.Context, i Ingester) error

// Forget marks the row of an ingester as stopped because its log is lost. Reads then no
// longer wait for its records. Forget returns the former row: the unflushed records
// since its Oldest are given up. It refuses if there is no such row, if the ingester
// is not silent, or if ask has a reason. If the ingester comes back after all, its next
// announcement replaces the mark.
func Forget(ctx context.Context, tables storage.TableStore, store, id string, now time.Time, ask Ask) (Ingester, error) {
	return amend(ctx, tables, store, id, func(i *Ingester) error {
		if err := i.mayBeForgotten(now); err != nil {
			return err
		}
		if err := ask(ctx, *i); err != nil {
			return fmt.Errorf("ingester %s: %w", i.ID, err)
		}
		i.State, i.GivenUp, i.Floor = Stopped, now, time.Time{}
		i.acknowledge()
		return nil
	})
}

// asked is how many ingesters are asked at once.
const asked = 32

// ForgetSilent forgets every ingester that may hold records and has been silent for so
// long, but for those that ship their logs. It returns the rows that it marked, and joins an
// error for each that it could not, that others have to adopt, or that ask has a reason for.
func ForgetSilent(ctx context.Context, tables storage.TableStore, store string, silent time.Duration, now time.Time, ask Ask) ([]Ingester, error) {
	l, err := scan(ctx, tables, store)
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		return nil, err
	}
	rows := slices.DeleteFunc(l.rows, func(i Ingester) bool {
		return i.State != Holding || now.Sub(i.At) < silent
	})
	gone := make([]Ingester, len(rows))
	errs := fanout.All(len(rows), asked, func(i int) (err error) {
		if rows[i].Ships != "" {
			return refuse(rows[i].ID, "it shipped its log: "+rows[i].WithoutLog())
		}
		gone[i], err = Forget(ctx, tables, store, rows[i].ID, now, ask)
		return err
	})
	gone = slices.DeleteFunc(gone, func(i Ingester) bool { return i.ID == "" })
	return gone, errors.Join(append(l.bad, errs...)...)
}

// ForgetLoss acknowledges the loss of an ingester, so that reads are complete without
// the lost records. It returns the former row. It refuses if there is no such row, or no
// such loss.
func ForgetLoss(ctx context.Context, tables storage.TableStore, store, id string) (Ingester, error) {
	return amend(ctx, tables, store, id, func(i *Ingester) error {
		if !i.Lost.Any() {
			return refuse(i.ID, "it has lost nothing that was not acknowledged already")
		}
		i.acknowledge()
		return nil
	})
}

// acknowledge notes the loss in the row as acknowledged.
func (i *Ingester) acknowledge() {
	i.acked, i.Lost = later(i.acked, i.Lost.Until), Loss{}
}

// amend changes the row of an ingester and returns the former row. It tries again when
// the row has changed meanwhile.
func amend(ctx context.Context, tables storage.TableStore, store, id string, change func(*Ingester) error) (Ingester, error) {
	for range tries {
		was, err := find(ctx, tables, store, id)
		if err != nil {
			return Ingester{}, err
		}
		next := was
		if err := change(&next); err != nil {
			return Ingester{}, err
		}
		_, err = tables.Swap(ctx, Table, Partition, next.row())
		if errors.Is(err, storage.ErrChanged) {
			continue
		}
		if err != nil {
			return Ingester{}, fmt.Errorf("forget ingester %s: %w", id, err)
		}
		return was, nil
	}
	return Ingester{}, refuse(id, "its row changes while this is done: it runs")
}

// find returns the row of an ingester of a store.
func find(ctx context.Context, tables storage.TableStore, store, id string) (Ingester, error) {
	l, err := scan(ctx, tables, store)
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		return Ingester{}, err
	}
	var ids []string
	for _, i := range l.rows {
		if i.ID == id {
			return i, nil
		}
		ids = append(ids, i.ID)
	}
	there := cmp.Or(strings.Join(ids, ", "), "none")
	return Ingester{}, errors.Join(append(l.bad, refuse(id, "there is no such ingester; there is: "+there))...)
}

func (i Ingester) mayBeForgotten(now time.Time) error {
	age := now.Sub(i.At).Round(time.Second)
	switch {
	case !i.GivenUp.IsZero():
		return refuse(i.ID, "it was forgotten at "+i.GivenUp.UTC().Format(time.RFC3339)+" already")
	case i.Adopter != "":
		return refuse(i.ID, "ingester "+i.Adopter+" has adopted it already; what it has lost, ingest forget --lost acknowledges")
	case i.State != Holding && i.Lost.Any():
		return refuse(i.ID, "it runs or has ended in order; to acknowledge what it has lost, add --lost")
	case i.State != Holding:
		return refuse(i.ID, fmt.Sprintf("it is %s: all that it took is in blobs, and there is nothing to forget", i.State))
	case age < Silence && age > -ahead:
		return refuse(i.ID, fmt.Sprintf("it announced itself %s ago; if it runs, stop it, or drain it to keep what it has; if it was killed, wait until it is silent for a minute", max(age, 0)))
	}
	return nil
}
