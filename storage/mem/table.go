package mem

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"blobtail/storage"
)

// tables implements [bounds.Rows].
type tables struct{ *Store }

func (s tables) Upsert(_ context.Context, table, partition string, rows []storage.Row) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.partition(table, partition)
	for _, r := range rows {
		s.put(p, r)
	}
	return nil
}

func (s tables) Swap(_ context.Context, table, partition string, row storage.Row) (version string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.partition(table, partition)
	if p[row.Key].Version != row.Version {
		return "", storage.ErrChanged
	}
	return s.put(p, row), nil
}

// partition returns a partition, and makes it if it is missing. The caller holds mu.
func (s tables) partition(table, partition string) map[string]storage.Row {
	if s.rows[table] == nil {
		s.rows[table] = map[string]map[string]storage.Row{}
	}
	if s.rows[table][partition] == nil {
		s.rows[table][partition] = map[string]storage.Row{}
	}
	return s.rows[table][partition]
}

// put stores a copy of a row under a version of its own. The caller holds mu.
func (s tables) put(p map[string]storage.Row, r storage.Row) (version string) {
	c := cloneRow(r, nil)
	c.Version = s.version()
	p[r.Key] = c
	return c.Version
}

func (s tables) Scan(_ context.Context, table, partition, from, to string, limit int, props []string, visit func(storage.Row) bool) error {
	s.mu.Lock()
	t, ok := s.rows[table]
	var rows []storage.Row
	for key, r := range t[partition] {
		if from <= key && (to == "" || key < to) {
			rows = append(rows, r)
		}
	}
	s.mu.Unlock()
	if !ok {
		return storage.ErrNotExist
	}
	slices.SortFunc(rows, func(a, b storage.Row) int { return strings.Compare(a.Key, b.Key) })
	if limit > 0 && limit < len(rows) {
		rows = rows[:limit]
	}
	for _, r := range rows {
		if !visit(cloneRow(r, props)) {
			break
		}
	}
	return nil
}

func (s tables) List(context.Context, string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.rows)), nil
}

func (s tables) Drop(_ context.Context, table string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rows, table)
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
