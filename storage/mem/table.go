package mem

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"blobtail/storage"
	"blobtail/storage/internal/bounds"
)

// Upsert implements [storage.TableStore].
func (s *Store) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	err := errors.Join(ctx.Err(), bounds.Upsert(table, partition, rows))
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		p := s.partition(table, partition)
		for _, r := range rows {
			s.put(p, r)
		}
	}
	return storage.AtKey("upsert", table+"/"+partition, err)
}

// Swap implements [storage.TableStore].
func (s *Store) Swap(ctx context.Context, table, partition string, row storage.Row) (version string, err error) {
	if err = errors.Join(ctx.Err(), bounds.Upsert(table, partition, []storage.Row{row})); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if p := s.partition(table, partition); p[row.Key].Version == row.Version {
			version = s.put(p, row)
		} else {
			err = storage.ErrChanged
		}
	}
	return version, storage.AtKey("swap", table+"/"+partition+"/"+row.Key, err)
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
	c := cloneRow(r, nil)
	c.Version = s.version()
	p[r.Key] = c
	return c.Version
}

// Scan implements [storage.TableStore].
func (s *Store) Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[storage.Row, error] {
	return walk(ctx, "scan", table+"/"+partition, func() ([]storage.Row, error) {
		return s.scan(table, partition, from, to, limit, props)
	})
}

func (s *Store) scan(table, partition, from, to string, limit int, props []string) ([]storage.Row, error) {
	if err := bounds.Scan(table, partition, from, to, limit, props); err != nil {
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
	for i, r := range rows {
		rows[i] = cloneRow(r, props)
	}
	return rows, nil
}

// Tables implements [storage.TableStore].
func (s *Store) Tables(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return walk(ctx, "tables", prefix, func() ([]string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		names := slices.Sorted(maps.Keys(s.tables))
		return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) }), nil
	})
}

// Drop implements [storage.TableStore].
func (s *Store) Drop(ctx context.Context, table string) error {
	err := errors.Join(ctx.Err(), bounds.Table(table))
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.tables, table)
	}
	return storage.AtKey("drop", table, err)
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
