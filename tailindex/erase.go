package tailindex

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"blobtail/record"
	"blobtail/storage"
)

// An Erasure is what [Erase] looks for.
type Erasure struct {
	Services []string
	Wanted   func(day time.Time) bool // of arrival: selects the tables
	Match    func(service string, line []byte) bool
	Dry      bool // nothing is written
}

// Erase writes the rows that have a matching line again, without these lines: they count as omitted. It
// returns how many lines matched. Unreadable rows are left out, as of [Reader.Newest].
func Erase(ctx context.Context, tables storage.TableStore, o Options, of Erasure) (lines int64, err error) {
	r, w := NewReader(tables, o), NewWriter(tables, o)
	var names []string
	for name, err := range tables.Tables(ctx, r.o.Prefix) {
		if err != nil {
			return 0, fmt.Errorf("list the tables of the tail: %w", err)
		}
		day, err := time.Parse("20060102", strings.TrimPrefix(name, r.o.Prefix))
		if err == nil && of.Wanted(day) {
			names = append(names, name)
		}
	}
	var found atomic.Int64
	var bad []error
	for _, service := range of.Services {
		for _, errs := range []bool{false, true} {
			_, _, err := r.read(ctx, service, errs, names, func(ctx context.Context, s *scan) error {
				from, to := string(s.kind)+"-", string(s.kind)+"."
				for row, err := range tables.Scan(ctx, s.table, s.partition, from, to, 0, rowProps()...) {
					if err != nil {
						return err
					}
					s.rows = s.rows[:0]
					if s.take(row); len(s.rows) == 0 {
						continue
					}
					again := s.rows[0]
					n := len(again.Entries)
					again.Entries = slices.DeleteFunc(again.Entries, func(e record.Entry) bool { return of.Match(service, e.Line) })
					n -= len(again.Entries)
					if found.Add(int64(n)); n == 0 || of.Dry {
						continue
					}
					// If it has changed, its writer has repeated it, or the table is gone: the next look tells.
					to, _ := again.encode(o.Store, w.encoder)
					to.Version = row.Version
					if _, err := tables.Swap(ctx, s.table, s.partition, to); err != nil && !errors.Is(err, storage.ErrChanged) {
						return err
					}
				}
				return nil
			})
			if errors.As(err, new(*RowError)) {
				bad = append(bad, err)
			} else if err != nil {
				return found.Load(), err
			}
		}
	}
	return found.Load(), errors.Join(bad...)
}
