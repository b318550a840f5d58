package unflushed

import (
	"context"
	"errors"

	"blobtail/reading/blobs"
)

// Settle decides which services of a read are absent. An absent service is in no blob, by the error
// or the summary of the read, and no ingester has a record of it. If an ingester has records of a
// service, the read has none only because none match. If the report has problems, the records that
// are missing may be those of the service. If only live records are read, the service may be in
// blobs. Settle returns the error that is left.
func (g *Gathered) Settle(ctx context.Context, sum *blobs.Summary, err error) error {
	if g.r == nil { // of blobs alone
		return err
	}
	names := sum.Unsettled(err)
	if len(names) == 0 {
		return err
	}
	unread := !g.Report.Outcome(nil).Complete()
	var held map[string]bool
	if !unread && ctx.Err() == nil {
		held = g.r.holding(ctx, names)
		if g.mode == Only {
			g.r.stored(ctx, names, held)
		}
	}
	return sum.Settle(err, func(none *blobs.NoServiceError) bool {
		if unread || held[none.Name] && g.mode != Only && sum.Records == 0 {
			sum.Warnings = append(sum.Warnings, none.Elsewhere(unread))
		}
		return unread || held[none.Name]
	})
}

// stored adds those of some names and globs to found that blobs have, or may have: a store that
// cannot be read in time denies none.
func (r *Reader) stored(ctx context.Context, names []string, found map[string]bool) {
	ctx, cancel := context.WithTimeout(ctx, namesPatience)
	defer cancel()
	for _, name := range names {
		if !found[name] {
			_, err := r.o.Blobs.Plan(ctx, blobs.Query{Services: []string{name}, Range: blobs.Range{From: 0, To: 1}})
			_, none := errors.AsType[*blobs.NoServiceError](err)
			found[name] = !none
		}
	}
}
