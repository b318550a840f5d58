package unflushed

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed/live"
)

// floor is a time that no unflushed record of an ingester is before; zero: not known. The
// row of another store has none here.
func (k *roster) floor(i *lease.Ingester) time.Time {
	if i.StoreID != k.store || k.store == "" || k.storeErr != nil || i.BestEffort {
		return time.Time{}
	}
	return i.Floor
}

// spares reports whether a read of records from before a time is complete without the
// answer of an ingester.
func (k *roster) spares(i *lease.Ingester, to int64) bool {
	return !k.floor(i).IsZero() && i.Spares(to)
}

// needed are those of the ingesters without an answer that a query needs.
func (k *roster) needed(lacking []lease.Ingester, q *blobs.Query) []lease.Ingester {
	return slices.DeleteFunc(lacking, func(i lease.Ingester) bool { return k.spares(&i, q.Range.To) })
}

// settles reports whether the rows alone prove that no unflushed record is in the range of
// a query, which ends before now.
func (k *roster) settles(q *blobs.Query) bool {
	if k.err != nil || k.unread != nil || k.storeErr != nil || k.store == "" || q.Range.To == blobs.Newest || len(k.rows) == 0 {
		return false
	}
	return !slices.ContainsFunc(k.rows, func(i lease.Ingester) bool {
		return i.State == lease.Holding && !k.spares(&i, q.Range.To) || i.State == lease.Idle && i.BestEffort
	})
}

// end is how an answer ended for a query: without the ingesters that the query does not
// need. If it broke off, it is as if none of those in it had answered.
func (k *roster) end(answer *live.Answer, end error, q *blobs.Query) error {
	if _, cut := errors.AsType[*live.CutError](end); cut {
		in := slices.DeleteFunc(slices.Clone(k.rows), func(i lease.Ingester) bool {
			return answer.Snapshots[i.ID] == "" || i.State != lease.Holding
		})
		switch needed := k.needed(in, q); {
		case k.settles(q):
			return io.EOF
		case len(needed) > 0:
			return fmt.Errorf("%w%s", end, k.whole(needed))
		}
		return end
	}
	lacks, ok := errors.AsType[*live.IncompleteError](end)
	if !ok || lacks.Damage != "" {
		return end
	}
	rest := *lacks
	rest.Missing = slices.DeleteFunc(slices.Clone(lacks.Missing), func(m live.Missing) bool {
		return !m.Damaged && slices.ContainsFunc(k.rows, func(i lease.Ingester) bool { return i.ID == m.ID && k.spares(&i, q.Range.To) })
	})
	rest.Answered += len(lacks.Missing) - len(rest.Missing)
	if len(rest.Missing) == 0 {
		return io.EOF
	}
	return &rest
}

// whole says up to when a query is whole without ingesters.
func (k *roster) whole(lacking []lease.Ingester) string {
	var floors []time.Time
	for _, i := range lacking {
		floors = append(floors, k.floor(&i))
	}
	return lease.Whole(floors...)
}
