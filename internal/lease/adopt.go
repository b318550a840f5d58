package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blobtail/record/ack"
	"blobtail/storage"
)

// Silent returns the row of an ingester that another may adopt: it may hold records, is silent, and
// ships its log; or it was forgotten. It refuses if the ingester is not, or if ask has a reason.
func Silent(ctx context.Context, tables storage.TableStore, store, id string, now time.Time, ask Ask) (Ingester, error) {
	i, err := find(ctx, tables, store, id)
	if err != nil {
		return i, err
	}
	forgotten := !i.GivenUp.IsZero() && i.Ships != "" // and what it shipped is there
	if err := i.mayBeForgotten(now); err != nil && !forgotten {
		return i, err
	}
	if i.Ships == "" {
		return i, refuse(i.ID, "it ships no log, so nothing can be adopted: start it again on its log, or run ingest forget "+i.ID)
	}
	if err := ask(ctx, i); err != nil {
		return i, fmt.Errorf("ingester %s: %w", i.ID, err)
	}
	return i, nil
}

// WithoutLog says what to do if the log of a silent ingester is lost.
func (i *Ingester) WithoutLog() string {
	if i.Ships != "" {
		return "have another take over what it shipped, with ingest adopt " + i.ID
	}
	return "give it up with ingest forget " + i.ID
}

// Adopted marks a row, as [Silent] returned it, as stopped, because another ingester has its records. It
// fails if the row has changed: the ingester is back. shipped is the time up to which the log was
// shipped. If the ingester has acknowledged what was on its disk alone, that is noted as a loss.
func Adopted(ctx context.Context, tables storage.TableStore, was Ingester, by string, shipped, now time.Time) error {
	next := was
	next.State, next.Adopter, next.Floor, next.GivenUp = Stopped, by, time.Time{}, time.Time{}
	if was.Ships != ack.Shipped.String() && was.GivenUp.IsZero() {
		if was.Oldest.IsZero() {
			shipped = later(shipped, was.At)
		}
		next.Lost = was.Lost.join(Loss{Since: shipped, Until: now})
	}
	_, err := tables.Swap(ctx, Table, Partition, next.row())
	if errors.Is(err, storage.ErrChanged) {
		return refuse(was.ID, "meanwhile it is back, was forgotten, or another ingester has adopted it: logquery ingesters shows which")
	}
	if err != nil {
		return fmt.Errorf("clear the row of ingester %s: %w", was.ID, err)
	}
	return nil
}
