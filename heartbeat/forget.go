package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"blobtail/storage"
)

// ForgetError says why the row of an ingester cannot be given up.
type ForgetError struct {
	ID     string
	Reason string
}

func (e *ForgetError) Error() string { return fmt.Sprintf("ingester %s: %s", e.ID, e.Reason) }

// Forget marks the row of an ingester whose log is lost as stopped, so that nobody
// waits any more for what was in it, and returns what the row said: what was in no
// blob since its Oldest is given up. It refuses with a [*ForgetError] where there is
// no such row, or its ingester is not silent. Should that come back after all, its
// next announcement replaces the mark.
func Forget(ctx context.Context, tables storage.TableStore, store, id string, now time.Time) (Ingester, error) {
	rows, err := List(ctx, tables, store)
	var unread *RowError
	if err != nil && !errors.As(err, &unread) {
		return Ingester{}, err
	}
	var ids []string
	for _, i := range rows {
		if i.ID != id {
			ids = append(ids, i.ID)
			continue
		}
		if err := i.mayBeForgotten(now); err != nil {
			return Ingester{}, err
		}
		gone := i
		gone.Stopped, gone.GivenUp = true, now
		if err := tables.Upsert(ctx, Table, Partition, []storage.Row{gone.row()}); err != nil {
			return Ingester{}, fmt.Errorf("forget ingester %s: %w", id, err)
		}
		return i, nil
	}
	there := "none"
	if len(ids) > 0 {
		there = strings.Join(ids, ", ")
	}
	return Ingester{}, errors.Join(&ForgetError{id, "there is no such ingester; there is: " + there}, err)
}

func (i Ingester) mayBeForgotten(now time.Time) error {
	age := now.Sub(i.At).Round(time.Second)
	switch {
	case !i.GivenUp.IsZero():
		return &ForgetError{i.ID, "it was forgotten at " + i.GivenUp.UTC().Format(time.RFC3339) + " already"}
	case i.Stopped:
		return &ForgetError{i.ID, "it has ended with all in blobs: there is nothing to forget"}
	case age < Silence && age > -ahead:
		return &ForgetError{i.ID, fmt.Sprintf("it announced itself %s ago; if it runs, stop it, or drain it to keep what it has; if it was killed, wait until it is silent for a minute", max(age, 0))}
	}
	return nil
}
