package tailindex

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"blobtail/record"
	"blobtail/storage"
)

// Erase writes the rows of some services that have a matching line again, without these lines: they
// count as omitted. If it is dry it writes nothing. It returns how many lines matched. Unreadable rows
// are left out, as of [Reader.Newest].
func Erase(ctx context.Context, tables storage.TableStore, o Options, services []string, dry bool,
	match func(service string, line []byte) bool) (lines int64, err error) {
	r, w := NewReader(tables, o), NewWriter(tables, o)
	var names []string
	for name, err := range tables.Tables(ctx, r.o.Prefix) {
		if err != nil {
			return 0, fmt.Errorf("list the tables of the tail: %w", err)
		}
		if _, err := time.Parse("20060102", strings.TrimPrefix(name, r.o.Prefix)); err == nil {
			names = append(names, name)
		}
	}
	var bad []error
	for _, service := range services {
		var mu sync.Mutex
		var again []func(context.Context) error
		_, _, err := r.read(ctx, service, false, names, func(ctx context.Context, s *scan) error {
			for row, err := range tables.Scan(ctx, s.table, s.partition, "", "", 0, rowProps()...) {
				if err != nil {
					return err
				}
				s.kind, s.rows = row.Key[0], s.rows[:0] // it takes all kinds
				if s.take(row); len(s.rows) == 0 {
					continue
				}
				r := s.rows[0]
				n := len(r.Entries)
				r.Entries = slices.DeleteFunc(r.Entries, func(e record.Entry) bool { return match(service, e.Line) })
				if n -= len(r.Entries); n == 0 {
					continue
				}
				to, _ := r.encode(o.Store, w.encoder)
				to.Version = row.Version
				mu.Lock()
				lines += int64(n)
				again = append(again, func(ctx context.Context) error {
					_, err := tables.Swap(ctx, s.table, s.partition, to)
					return err
				})
				mu.Unlock()
			}
			return nil
		})
		if errors.As(err, new(*RowError)) {
			bad = append(bad, err)
		} else if err != nil {
			return lines, err
		}
		for i := 0; i < len(again) && !dry; i++ { // while no scan keeps what a table in a directory had
			// If it has changed, its writer has repeated it, or the table is gone: the next look tells.
			if err := again[i](ctx); err != nil && !errors.Is(err, storage.ErrChanged) && !errors.Is(err, storage.ErrNotExist) {
				return lines, fmt.Errorf("write rows of the tail again: %w", err)
			}
		}
	}
	return lines, errors.Join(bad...)
}
