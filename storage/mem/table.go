package mem

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"blobtail/storage"
	"blobtail/storage/internal/bounds"
)

// Upsert implements [storage.TableStore].
func (s *Store) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	if err := errors.Join(ctx.Err(), bounds.Upsert(table, partition, rows)); err != nil {
		return storage.AtKey("upsert", table+"/"+partition, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.partition(table, partition)
	for _, r := range rows {
		s.put(p, r)
	}
	return nil
}

// Swap implements [storage.TableStore].
func (s *Store) Swap(ctx context.Context, table, partition string, row storage.Row) (string, error) {
	err := errors.Join(ctx.Err(), bounds.Upsert(table, partition, []storage.Row{row}))
	if err != nil {
		return "", storage.AtKey("swap", table+"/"+partition+"/"+row.Key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.partition(table, partition)
	if p[row.Key].Version != row.Version {
		return "", storage.AtKey("swap", table+"/"+partition+"/"+row.Key, storage.ErrChanged)
	}
	return s.put(p, row), nil
}

// partition returns a partition, and makes it if it is missing. The caller holds mu.
func (s *Store) partition(table, partition string) map[string]storage.Row {
	t := s.tables[table]
	if t == nil {
		t = map[string]map[string]storage.Row{}
		s.tables[table] = t
	}
	p := t[partition]
	if p == nil {
		p = map[string]storage.Row{}
		t[partition] = p
	}
	return p
}

// put stores a copy of a row under a version of its own. The caller holds mu.
func (s *Store) put(p map[string]storage.Row, r storage.Row) (version string) {
	s.made++
	c := cloneRow(r, nil)
	c.Version = strconv.FormatUint(s.made, 10)
	p[r.Key] = c
	return c.Version
}

// Scan implements [storage.TableStore].
func (s *Store) Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		rows, err := s.scan(ctx, table, partition, from, to, limit, props)
		if err != nil {
			yield(storage.Row{}, storage.AtKey("scan", table+"/"+partition, err))
			return
		}
		for _, r := range rows {
			if err := ctx.Err(); err != nil {
				yield(storage.Row{}, storage.AtKey("scan", table+"/"+partition, err))
				return
			}
			if !yield(cloneRow(r, props), nil) {
				return
			}
		}
	}
}

func (s *Store) scan(ctx context.Context, table, partition, from, to string, limit int, props []string) ([]storage.Row, error) {
	if err := errors.Join(ctx.Err(), bounds.Scan(table, partition, from, to, limit, props)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tables[table]
	if !ok {
		return nil, storage.ErrNotExist
	}
	var rows []storage.Row
	for key, r := range t[partition] {
		if from <= key && (to == "" || key < to) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b storage.Row) int { return strings.Compare(a.Key, b.Key) })
	if limit > 0 && limit < len(rows) {
		rows = rows[:limit]
	}
	return rows, nil
}

// Tables implements [storage.TableStore].
func (s *Store) Tables(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := ctx.Err(); err != nil {
			yield("", storage.AtKey("tables", prefix, err))
			return
		}
		s.mu.Lock()
		names := slices.Sorted(maps.Keys(s.tables))
		s.mu.Unlock()
		for _, name := range names {
			if strings.HasPrefix(name, prefix) && !yield(name, nil) {
				return
			}
		}
	}
}

// Drop implements [storage.TableStore].
func (s *Store) Drop(ctx context.Context, table string) error {
	if err := errors.Join(ctx.Err(), bounds.Table(table)); err != nil {
		return storage.AtKey("drop", table, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tables, table)
	return nil
}

func cloneRow(r storage.Row, props []string) storage.Row {
	c := storage.Row{Key: r.Key, Version: r.Version, Props: make(map[string]any, len(r.Props))}
	for name, v := range r.Props {
		if len(props) > 0 && !slices.Contains(props, name) {
			continue
		}
		if b, ok := v.([]byte); ok {
			v = bytes.Clone(b)
		}
		c.Props[name] = v
	}
	return c
}
