package storagetest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"blobtail/storage"
)

// DropsTake returns s as a service in which the deletion of a table lasts for d. It
// uses the clock of package time, so d is virtual in a bubble of testing/synctest.
// During the deletion the name is listed, Drop, Upsert and Swap of it fail with
// [storage.ErrBeingDeleted], and Scan finds nothing. The Drop that begins the deletion
// fails in the same way, as if its answer had been lost and the request sent again. The
// rows are gone from s at once.
func DropsTake(s storage.TableStore, d time.Duration) storage.TableStore {
	return &droppingTables{s: s, takes: d, until: map[string]time.Time{}}
}

type droppingTables struct {
	s     storage.TableStore
	takes time.Duration

	mu    sync.Mutex
	until map[string]time.Time // when the deletion of a table is over
}

// going reports whether a table is being deleted.
func (d *droppingTables) going(table string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	until, ok := d.until[table]
	if ok && !time.Now().Before(until) {
		delete(d.until, table)
		return false
	}
	return ok
}

// begin starts a deletion.
func (d *droppingTables) begin(table string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until[table] = time.Now().Add(d.takes)
}

func (d *droppingTables) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	if d.going(table) {
		return fmt.Errorf("upsert %s/%s: %w", table, partition, storage.ErrBeingDeleted)
	}
	return d.s.Upsert(ctx, table, partition, rows)
}

func (d *droppingTables) Swap(ctx context.Context, table, partition string, row storage.Row) (string, error) {
	if d.going(table) {
		return "", fmt.Errorf("swap %s/%s: %w", table, partition, storage.ErrBeingDeleted)
	}
	return d.s.Swap(ctx, table, partition, row)
}

func (d *droppingTables) Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[storage.Row, error] {
	if !d.going(table) {
		return d.s.Scan(ctx, table, partition, from, to, limit, props...)
	}
	return func(yield func(storage.Row, error) bool) {
		yield(storage.Row{}, fmt.Errorf("scan %s/%s: %w", table, partition, storage.ErrNotExist))
	}
}

func (d *droppingTables) Tables(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []string
		for name, err := range d.s.Tables(ctx, prefix) {
			if err != nil {
				yield("", err)
				return
			}
			names = append(names, name)
		}
		d.mu.Lock()
		for name, until := range d.until {
			if strings.HasPrefix(name, prefix) && time.Now().Before(until) {
				names = append(names, name)
			}
		}
		d.mu.Unlock()
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if !yield(name, nil) {
				return
			}
		}
	}
}

func (d *droppingTables) Drop(ctx context.Context, table string) error {
	busy := fmt.Errorf("drop %s: %w", table, storage.ErrBeingDeleted)
	if d.going(table) {
		return busy
	}
	for name, err := range d.s.Tables(ctx, table) {
		if err != nil {
			return err
		}
		if name != table {
			continue
		}
		if err := d.s.Drop(ctx, table); err != nil {
			return err
		}
		d.begin(table)
		return busy
	}
	return d.s.Drop(ctx, table)
}
