package retention

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/storage"
	"blobtail/tailindex"
)

// Azure goes on deleting a table after it has confirmed the deletion. Until then it
// answers requests for the table with a conflict, for 40 s or more. A run waits for
// tables a little longer than that.
const (
	tablePatience = 2 * time.Minute
	tablePause    = time.Second
	maxTablePause = 20 * time.Second
)

// tablesOf lists the tail's tables of the wanted days of arrival.
func (j *Job) tablesOf(ctx context.Context, wanted func(horizon.Day) bool) ([]string, error) {
	if j.o.Prefix == "" {
		return nil, nil
	}
	var names []string
	for name, err := range j.tables.Tables(ctx, j.o.Prefix) {
		if err != nil {
			return nil, fmt.Errorf("list the tables of the tail: %w", err)
		}
		d, err := horizon.ParseDay(strings.TrimPrefix(name, j.o.Prefix))
		if err == nil && tailindex.Table(j.o.Prefix, d.Start()) == name && wanted(d) {
			names = append(names, name)
		}
	}
	return names, nil
}

// dropTables drops tables, and retries the failed ones after a while.
func (r *run) dropTables(ctx context.Context, names []string) {
	end := time.Now().Add(tablePatience)
	for pause := tablePause; len(names) > 0; pause = min(2*pause, maxTablePause) {
		var left []string
		var errs []error // of left
		for _, name := range names {
			err := r.job.tables.Drop(ctx, name)
			if err == nil {
				r.Tables = append(r.Tables, name)
				r.log.Info().Str("table", name).Msg("table of the tail dropped")
				continue
			}
			err = fmt.Errorf("drop table %s: %w", name, err)
			if errors.Is(err, storage.ErrUnauthorized) {
				r.Problems = append(r.Problems, err)
				continue
			}
			left, errs = append(left, name), append(errs, err)
		}
		if len(left) == 0 || ctx.Err() != nil || time.Now().Add(pause).After(end) {
			r.Problems = append(r.Problems, errs...)
			return
		}
		r.log.Info().Err(errs[0]).Int("tables", len(left)).Float64("pause_seconds", pause.Seconds()).Msg("tables of the tail are not gone yet; they are tried again")
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		names = left
	}
}
