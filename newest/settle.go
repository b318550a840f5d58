package newest

import (
	"context"
	"errors"
	"slices"

	"blobtail/query"
)

// Settle decides which services of a read are absent: those in no blob, by the error or the
// summary of the read, of which no ingester has a record either. Of a service that an ingester
// holds, the read has no records only because none match. If the report has problems, the
// records that are missing may be those of the service. With live records only it may well have
// none. Settle returns the error that is left.
func (g *Gathered) Settle(ctx context.Context, sum *query.Summary, err error) error {
	if g.r == nil { // of blobs alone
		return err
	}
	if none, ok := errors.AsType[*query.NoServiceError](err); ok && g.exists(ctx, none, sum) {
		err = nil
	}
	sum.Absent = slices.DeleteFunc(sum.Absent, func(none *query.NoServiceError) bool { return g.exists(ctx, none, sum) })
	return err
}

// exists reports whether a service that is in no blob exists, or may, and warns of it.
func (g *Gathered) exists(ctx context.Context, none *query.NoServiceError, sum *query.Summary) bool {
	if len(g.Report.Problems) > 0 {
		sum.Warnings = append(sum.Warnings, none.Elsewhere(true))
		return true
	}
	if g.mode == Only {
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	holds, err := g.r.Holds(ctx, none.Name)
	if err != nil || !holds {
		return false // if nobody can tell, it is not known
	}
	if sum.Records == 0 {
		sum.Warnings = append(sum.Warnings, none.Elsewhere(false))
	}
	return true
}
