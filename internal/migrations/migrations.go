// Package migrations brings the tables of a store to the form that this version of the
// program writes. It applies numbered steps one after the other, and records each
// applied step in a table. The idea is AzureTableStorageMigrator's.
//
//	table migrations, partition m~<store>, one row for each step:
//	id, version, description, applied, by
//
// An ingester calls [Apply] with [Steps] in the background of its start. Two may do so
// at the same time, so a step must be harmless when it is repeated. It is recorded only
// afterwards. Released steps are never changed or removed, only followed by others.
package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"blobtail/internal/lease"
	"blobtail/storage"
	"blobtail/tailindex"
)

// Table is the name of the table.
const Table = "migrations"

// Step is one change of the tables.
type Step struct {
	Version     int    // counts from 1
	ID          string // a name that never changes
	Description string
	// Apply makes the change. It may have been made before.
	Apply func(ctx context.Context, tables storage.TableStore) error
}

// ErrNewer says that a newer program has changed the tables. This one may not
// understand all their rows, and readers may miss the rows that it writes.
var ErrNewer = errors.New("use a newer one")

// Steps are all steps in order. The prefix is that of the tables of the newest records. There is one:
// a second one would make programs of commit a960ca37 refuse a store while its ingesters are
// upgraded. The formats of rows are in the rows.
func Steps(prefix string, now func() time.Time) []Step {
	return []Step{{
		Version: 1, ID: "format-1",
		Description: "the tables of the newest records and of the ingesters",
		Apply: func(ctx context.Context, tables storage.TableStore) error {
			for _, t := range []struct{ table, partition string }{
				{lease.Table, lease.Partition}, {tailindex.Table(prefix, now()), "tail"},
			} {
				if err := tables.Upsert(ctx, t.table, t.partition, nil); err != nil {
					return fmt.Errorf("make table %s: %w", t.table, err)
				}
			}
			return nil
		},
	}}
}

// Options are the settings of Apply.
type Options struct {
	Store string           // the container, if several share the tables
	By    string           // the program that applies them: host and version, say
	Now   func() time.Time // nil: time.Now
}

// Apply applies the pending steps in order, and returns them. It ends at the first that
// fails. [ErrNewer] says that the tables are ahead of the steps. All known steps
// have been applied then.
func Apply(ctx context.Context, tables storage.TableStore, steps []Step, o Options) ([]Step, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	done, newest, err := list(ctx, tables, o.Store)
	if err != nil {
		return nil, err
	}
	var applied []Step
	known := 0
	for _, s := range steps {
		known = max(known, s.Version)
		if slices.Contains(done, int64(s.Version)) {
			continue
		}
		if err := s.Apply(ctx, tables); err != nil {
			return applied, fmt.Errorf("apply migration %d (%s): %w", s.Version, s.ID, err)
		}
		row := storage.Row{Key: key(int64(s.Version)), Props: map[string]any{
			"id": s.ID, "version": int64(s.Version), "description": s.Description,
			"applied": o.Now().UTC().Format("2006-01-02T15:04:05.000000000Z"), "by": strings.ToValidUTF8(o.By[:min(len(o.By), 1024)], "?"),
		}}
		if err := tables.Upsert(ctx, Table, partition(o.Store), []storage.Row{row}); err != nil {
			return applied, fmt.Errorf("write down migration %d (%s): %w", s.Version, s.ID, err)
		}
		applied = append(applied, s)
	}
	if n := len(done); n > 0 && done[n-1] > int64(known) {
		return applied, fmt.Errorf("the tables are at version %d (%s: %s; applied by %s), and this program knows versions up to %d: %w",
			done[n-1], newest["id"], newest["description"], newest["by"], known, ErrNewer)
	}
	return applied, nil
}

// partition is that of a store; its name has no tilde.
func partition(store string) string { return "m~" + store }

func key(version int64) string { return fmt.Sprintf("%06d", version) }

// list returns the versions of the steps that were applied to a store, in order, and the
// properties of the last one's row. It skips rows that are no migrations.
func list(ctx context.Context, tables storage.TableStore, store string) (done []int64, newest map[string]any, err error) {
	for row, err := range tables.Scan(ctx, Table, partition(store), "", "", 0) {
		if errors.Is(err, storage.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("list the migrations: %w", err)
		}
		version, _ := row.Props["version"].(int64)
		if version < 1 || version > 999999 || row.Key != key(version) {
			continue
		}
		done, newest = append(done, version), row.Props
	}
	return done, newest, nil
}
