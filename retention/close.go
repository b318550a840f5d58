package retention

import (
	"context"
	"errors"
	"fmt"

	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/retention/closing"
)

// firstDays are how many days the first run closes.
const firstDays = 31

// close closes the days that have ended since the last run, and leaves a root. Then nothing needs
// the accounts of deleted days any more: the root has their horizon.
func (r *run) close(ctx context.Context) error {
	if r.job.o.Closing == nil {
		return nil
	}
	o := *r.job.o.Closing
	o.Now, o.Daily, o.Log = r.Plan.now, true, r.log
	last, err := catalog.LastRoot(ctx, r.job.blobs)
	switch {
	case errors.Is(err, closed.ErrUnread):
		r.Problems = append(r.Problems, fmt.Errorf("%w; retention close closes the days that this run leaves", err))
	case err != nil:
		return fmt.Errorf("read the last account: %w", err)
	}
	// Older days of a store that has no root yet are closed when an operator says so.
	o.From = closing.Last(o.Now, o.After) - firstDays + 1
	if last != nil {
		if day, err := horizon.ParseDay(last.Through); err == nil {
			o.From = min(closing.Last(o.Now, o.After), day+1)
		}
	}
	out, err := closing.Run(ctx, r.job.blobs, o)
	r.Problems = append(r.Problems, out.Problems...)
	if err != nil {
		return fmt.Errorf("close the days that are over: %w", err)
	}
	r.Closed = out
	r.delete(ctx, r.Plan.accounts)
	return nil
}
