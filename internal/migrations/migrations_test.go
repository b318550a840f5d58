package migrations_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testenv/stores"
	"blobtail/internal/migrations"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// noon is a fixed time.
func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// The first step makes the tables, and is applied once, in every kind of store.
func TestFirstStep(t *testing.T) {
	stores.Each(t, &env, func(t *testing.T, open stores.Open) {
		t.Parallel()
		_, s := open()
		store := testenv.Name("store")
		o := migrations.Options{Store: store, By: "logs-a v0.4.0", Now: noon}
		steps := migrations.Steps("newest", noon)
		// Two ingesters start at the same time.
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if _, err := migrations.Apply(t.Context(), s, steps, o); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if again, err := migrations.Apply(t.Context(), s, steps, o); len(again) != 0 || err != nil {
			t.Errorf("applied again: %v, %v", again, err)
		}
		want := map[string]any{"id": "format-1", "version": int64(1), "description": steps[0].Description,
			"applied": "2026-11-20T12:00:00.000000000Z", "by": "logs-a v0.4.0"}
		if rows := written(t, s, store); len(rows) != 1 || rows[0].Key != "000001" || !maps.Equal(rows[0].Props, want) {
			t.Errorf("%+v", rows)
		}
		var names []string
		for name, err := range s.Tables(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		for _, name := range []string{"ingesters", "migrations", "newest20261120"} {
			if !slices.Contains(names, name) {
				t.Errorf("no table %s among %v", name, names)
			}
		}
		// Another container of the account has its own history.
		if rows := written(t, s, store+"x"); len(rows) != 0 {
			t.Errorf("another store has %+v", rows)
		}
	})
}

// written returns the rows of the steps that were applied to a store.
func written(t *testing.T, s storage.TableStore, store string) (rows []storage.Row) {
	for row, err := range s.Scan(t.Context(), migrations.Table, "m~"+store, "", "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// Steps are applied in order. A step that fails stops the later ones, and is applied
// the next time.
func TestOrder(t *testing.T) {
	var applied []string
	step := func(version int, id string) migrations.Step {
		return migrations.Step{Version: version, ID: id, Apply: func(context.Context, storage.TableStore) error {
			applied = append(applied, id)
			return nil
		}}
	}
	broken := true
	second := step(2, "second")
	second.Apply = func(context.Context, storage.TableStore) error {
		if broken {
			return errors.New("not today")
		}
		applied = append(applied, "second")
		return nil
	}
	s := mem.New(mem.Options{})
	steps := []migrations.Step{step(1, "first"), second, step(3, "third")}
	if _, err := migrations.Apply(t.Context(), s, steps, migrations.Options{}); err == nil || !strings.Contains(err.Error(), "migration 2 (second): not today") {
		t.Errorf("%v", err)
	}
	broken = false
	got, err := migrations.Apply(t.Context(), s, steps, migrations.Options{})
	if err != nil || len(got) != 2 || got[1].ID != "third" {
		t.Errorf("%v, %v", got, err)
	}
	if want := []string{"first", "second", "third"}; !slices.Equal(applied, want) {
		t.Errorf("applied %v", applied)
	}
}

// A program that is older than the tables reports that, and names the newest step.
func TestNewerTables(t *testing.T) {
	s := mem.New(mem.Options{})
	nothing := func(context.Context, storage.TableStore) error { return nil }
	later := migrations.Step{Version: 7, ID: "by-host", Description: "rows by host", Apply: nothing}
	if _, err := migrations.Apply(t.Context(), s, []migrations.Step{later}, migrations.Options{By: "v9"}); err != nil {
		t.Fatal(err)
	}
	got, err := migrations.Apply(t.Context(), s, migrations.Steps("tail", noon), migrations.Options{})
	if !errors.Is(err, migrations.ErrNewer) || len(got) != 1 ||
		!strings.Contains(err.Error(), "version 7 (by-host: rows by host; applied by v9), and this program knows versions up to 1: use a newer one") {
		t.Errorf("%v, %v", got, err)
	}
}

// A step that cannot be recorded is applied again. A row that is no migration's is
// skipped.
func TestFaults(t *testing.T) {
	s := mem.New(mem.Options{})
	for _, r := range []storage.Row{{Key: "x", Props: map[string]any{"version": int64(3)}}, {Key: "000004", Props: map[string]any{"version": "4"}}} {
		if err := s.Upsert(t.Context(), migrations.Table, "m~", []storage.Row{r}); err != nil {
			t.Fatal(err)
		}
	}
	faulty := storagetest.FaultyTables(s, storagetest.Times(1, storagetest.Upsert, migrations.Table, storagetest.Fault{Before: storagetest.ErrFault}))
	steps := migrations.Steps("tail", noon)
	if _, err := migrations.Apply(t.Context(), faulty, steps, migrations.Options{}); !errors.Is(err, storagetest.ErrFault) {
		t.Errorf("%v", err)
	}
	if got, err := migrations.Apply(t.Context(), faulty, steps, migrations.Options{}); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	down := storagetest.FaultyTables(s, storagetest.Times(1, storagetest.Scan, migrations.Table, storagetest.Fault{Before: storagetest.ErrFault}))
	if _, err := migrations.Apply(t.Context(), down, steps, migrations.Options{}); !errors.Is(err, storagetest.ErrFault) {
		t.Errorf("%v", err)
	}
}
