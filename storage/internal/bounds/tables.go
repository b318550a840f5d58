package bounds

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"blobtail/storage"
)

// Rows are the tables of a driver. They need no checks of arguments, and their errors
// name no operation and no key: [Tables] adds both.
type Rows interface {
	// Upsert, Swap and Drop are those of [storage.TableStore].
	Upsert(ctx context.Context, table, partition string, rows []storage.Row) error
	Swap(ctx context.Context, table, partition string, row storage.Row) (version string, err error)
	Drop(ctx context.Context, table string) error
	// Scan passes the rows of a range to visit until that returns false. The arguments
	// are those of [storage.TableStore].
	Scan(ctx context.Context, table, partition, from, to string, limit int, props []string, visit func(storage.Row) bool) error
	// List returns the names of all tables that start with prefix, and perhaps of
	// others, in any order.
	List(ctx context.Context, prefix string) ([]string, error)
}

// Tables returns the tables of a driver as a store of tables.
func Tables(rows Rows) storage.TableStore { return checked{rows} }

// checked implements [storage.TableStore].
type checked struct{ rows Rows }

func (t checked) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	err := errors.Join(ctx.Err(), Upsert(table, partition, rows))
	if err == nil {
		err = t.rows.Upsert(ctx, table, partition, rows)
	}
	return storage.AtKey("upsert", table+"/"+partition, err)
}

func (t checked) Swap(ctx context.Context, table, partition string, row storage.Row) (version string, err error) {
	err = errors.Join(ctx.Err(), Upsert(table, partition, []storage.Row{row}))
	if err == nil {
		version, err = t.rows.Swap(ctx, table, partition, row)
	}
	return version, storage.AtKey("swap", table+"/"+partition+"/"+row.Key, err)
}

func (t checked) Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		more := true
		err := errors.Join(ctx.Err(), Scan(table, partition, from, to, limit, props))
		if err == nil {
			err = t.rows.Scan(ctx, table, partition, from, to, limit, props, func(r storage.Row) bool {
				more = yield(r, nil)
				return more && ctx.Err() == nil
			})
		}
		if err = cmp.Or(err, ctx.Err()); err != nil && more {
			yield(storage.Row{}, storage.AtKey("scan", table+"/"+partition, err))
		}
	}
}

func (t checked) Tables(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		names, err := t.rows.List(ctx, prefix)
		if err = cmp.Or(ctx.Err(), err); err != nil {
			yield("", storage.AtKey("tables", prefix, err))
			return
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if strings.HasPrefix(name, prefix) && !yield(name, nil) {
				return
			}
		}
	}
}

func (t checked) Drop(ctx context.Context, table string) error {
	err := errors.Join(ctx.Err(), Table(table))
	if err == nil {
		err = t.rows.Drop(ctx, table)
	}
	return storage.AtKey("drop", table, err)
}
