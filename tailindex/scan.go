package tailindex

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

// maxScans is the number of partitions that are read at a time.
const maxScans = 16

// scan reads one kind of rows of one partition of one table.
type scan struct {
	r                         *Reader
	service, table, partition string
	kind                      byte
	heads                     []head
	rows                      []Row
	bad                       *RowError
}

// head is a row without its contents: those of its fields that the key has, and Arrived.
type head struct {
	Row
	inverse int64
	good    bool // of this store, and not damaged
	wanted  bool
}

// read reads all shards of some tables concurrently. A table that is missing has no
// rows. The error joins those of unreadable rows; after any other one there are no scans.
func (r *Reader) read(ctx context.Context, service string, errs bool, tables []string, do func(context.Context, *scan) error) ([]*scan, []Row, error) {
	if !record.ValidStored(service) {
		return nil, nil, fmt.Errorf("read the newest records: %.80q is no name of a service", service)
	}
	var scans []*scan
	for _, table := range tables {
		for shard := range r.o.Shards {
			scans = append(scans, &scan{r: r, service: service, table: table, partition: Partition(service, shard), kind: kind(errs)})
		}
	}
	err := fanout.Each(ctx, len(scans), maxScans, func(ctx context.Context, i int) error {
		if err := do(ctx, scans[i]); err != nil && !errors.Is(err, storage.ErrNotExist) {
			return fmt.Errorf("read the newest records: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	var rows []Row
	var bad []error
	for _, s := range scans {
		rows = append(rows, s.rows...)
		if s.bad != nil {
			bad = append(bad, s.bad)
		}
	}
	return scans, rows, errors.Join(bad...)
}

// after is the least key that is greater than key: a space is the least character
// that keys may have.
func after(key string) string { return key + " " }

// since is the end of the range of rows with a newest record of ns or later.
func (s *scan) since(ns int64) string { return fmt.Sprintf("%c-%019d", s.kind, inverse(ns)+1) }

func (s *scan) wrong(key string, reason error) {
	if s.bad == nil {
		s.bad = &RowError{Table: s.table, Partition: s.partition, Key: key, Reason: reason}
		return
	}
	s.bad.More++
}

// take reads a row, if it is of this store.
func (s *scan) take(row storage.Row) {
	if store, _ := row.Props["store"].(string); store != s.r.o.Store {
		return
	}
	r, reason := s.r.decode(s.service, s.kind, row)
	if reason != nil {
		s.wrong(row.Key, reason)
		return
	}
	s.rows = append(s.rows, r)
}

const (
	// maxTies bounds the number of rows read for records of one and the same tenth of a
	// microsecond.
	maxTies = 1000
	// maxWrong bounds the number of unreadable rows that are read in addition.
	maxWrong = 100
)

// newest reads rows until they include those with the newest n records. n rows are
// enough, and one more to see that no other is as new as the last of them. For if a
// record is among the newest n, so is the newest record of its row. Rows are in the order
// of their newest records, so that row is one of the first n. But the keys are less exact
// than times, and times may be equal. Rows that begin within one tick may be in any
// order, and all of them are read.
func (s *scan) newest(ctx context.Context, n int) error {
	from, to := string(s.kind)+"-", string(s.kind)+"."
	for {
		limit := max(n+1-len(s.rows), 1)
		read, last := 0, ""
		for row, err := range s.r.tables.Scan(ctx, s.table, s.partition, from, to, limit, rowProps()...) {
			if err != nil {
				return err
			}
			read++
			last = row.Key
			s.take(row)
			// Rows of many records suffice before the limit is reached.
			if s.enough(n) {
				return nil
			}
		}
		if read < limit || len(s.rows) > n+maxTies || s.bad != nil && s.bad.More >= maxWrong {
			return nil
		}
		from = after(last)
	}
}

// enough reports whether the rows read so far have the newest n records.
func (s *scan) enough(n int) bool {
	if len(s.rows) == 0 {
		return false
	}
	last := inverse(s.rows[len(s.rows)-1].Last)
	rows, records := 0, 0 // newer than the last tick that was reached
	for i := range s.rows {
		if r := &s.rows[i]; inverse(r.Last) < last {
			rows++
			for j := len(r.Entries) - 1; j >= 0 && inverse(r.Entries[j].Time) < last; j-- {
				records++
			}
		}
	}
	return rows >= n || records >= n
}

// fresh lists the heads of rows from the newest on, to the end of the range, and then
// reads the rows that were not seen and arrived after a time.
func (s *scan) fresh(ctx context.Context, to string, seen map[string]bool, arrived time.Time) error {
	for row, err := range s.r.tables.Scan(ctx, s.table, s.partition, string(s.kind)+"-", to, 0, "store", "arrived") {
		if err != nil {
			return err
		}
		var h head
		var timed bool
		h.Row, h.inverse, h.good = parseKey(row.Key)
		h.Arrived, timed = timeOf(row, "arrived")
		store, _ := row.Props["store"].(string)
		own := store == s.r.o.Store
		if h.good = h.good && timed && own; own && !h.good && !seen[row.Key] {
			s.wrong(row.Key, errors.New("its key or its arrival is not a row's"))
		}
		h.wanted = h.good && !seen[row.Key] && h.Arrived.After(arrived)
		s.heads = append(s.heads, h)
	}
	// Neighbours are read together.
	for i := 0; i < len(s.heads); i++ {
		first := i
		for i < len(s.heads) && s.heads[i].wanted {
			i++
		}
		if i == first {
			continue
		}
		wanted := s.heads[first:i]
		for row, err := range s.r.tables.Scan(ctx, s.table, s.partition, wanted[0].Key, after(wanted[len(wanted)-1].Key), 0, rowProps()...) {
			if err != nil {
				return err
			}
			// Rows that arrived in between are listed next time.
			if slices.ContainsFunc(wanted, func(h head) bool { return h.Key == row.Key }) {
				s.take(row)
			}
		}
	}
	return nil
}
