package bounds

import (
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

func (t checked) Upsert(ctx context.Context, table, partition string, rows []storage.Row) (err error) {
	defer At("upsert", table+"/"+partition, &err)
	if err := errors.Join(ctx.Err(), Upsert(table, partition, rows)); err != nil {
		return err
	}
	return t.rows.Upsert(ctx, table, partition, rows)
}

func (t checked) Swap(ctx context.Context, table, partition string, row storage.Row) (version string, err error) {
	defer At("swap", table+"/"+partition+"/"+row.Key, &err)
	if err := errors.Join(ctx.Err(), Upsert(table, partition, []storage.Row{row})); err != nil {
		return "", err
	}
	return t.rows.Swap(ctx, table, partition, row)
}

func (t checked) Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[storage.Row, error] {
	return Seq(ctx, "scan", table+"/"+partition, func(give func(storage.Row) bool) error {
		if err := Scan(table, partition, from, to, limit, props); err != nil {
			return err
		}
		return t.rows.Scan(ctx, table, partition, from, to, limit, props, give)
	})
}

func (t checked) Tables(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return Names(ctx, "tables", prefix, func() ([]string, error) {
		names, err := t.rows.List(ctx, prefix)
		return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) }), err
	})
}

func (t checked) Drop(ctx context.Context, table string) (err error) {
	defer At("drop", table, &err)
	if err := errors.Join(ctx.Err(), Table(table)); err != nil {
		return err
	}
	return t.rows.Drop(ctx, table)
}
