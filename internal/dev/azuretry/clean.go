package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"blobtail/internal/trial"
	"blobtail/storage"
)

// sharedTables are the tables that the product makes once for all containers of an account. Their
// names cannot be chosen, so a try may find rows of others in them, and deletes its own rows.
var sharedTables = []string{"ingesters", "migrations", trial.Table}

// free makes a table, and waits while an older one of that name is being deleted.
func (t *try) free(ctx context.Context, table string) (waited bool, err error) {
	for begun := time.Now(); ; waited = true {
		err := t.store.Upsert(ctx, table, "p", nil)
		if !errors.Is(err, storage.ErrBeingDeleted) || time.Since(begun) > 2*time.Minute {
			return waited, err
		}
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
}

// leftovers returns the containers and tables of other runs.
func (t *try) leftovers(ctx context.Context) (left []string, err error) {
	for name, err := range t.account.Containers(ctx, containerPrefix) {
		if err != nil {
			return nil, err
		}
		left = append(left, "container "+name)
	}
	for name, err := range t.store.Tables(ctx, tablePrefix) {
		if err != nil {
			return nil, err
		}
		left = append(left, "table "+name)
	}
	return left, nil
}

// cleanUp deletes what this run made, and says what is left.
func (t *try) cleanUp(ctx context.Context) (string, error) {
	t.ingester.stop()
	if !t.made {
		return "", skip("nothing was made")
	}
	err := t.deleteAll(ctx, t.container, t.tables)
	if t.interrupted { // a request of a killed process may have come later
		time.Sleep(2 * time.Second)
		err = t.deleteAll(ctx, t.container, t.tables)
	}
	if err != nil {
		return "", err
	}
	return "containers, tables and rows of this run are deleted", nil
}

// deleteAll deletes the containers and the tables with these prefixes, and the rows of these
// containers in shared tables. It goes on after an error.
func (t *try) deleteAll(ctx context.Context, containers, tables string) error {
	var errs []error
	for _, name := range t.ours(ctx, containers) {
		store, err := t.account.Container(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		blobs, _ := store.Clients()
		if _, err := blobs.Delete(ctx, nil); err != nil && !strings.Contains(brief(err), "ContainerNotFound") {
			errs = append(errs, fmt.Errorf("delete container %s: %s", name, brief(err)))
		}
	}
	for name, err := range t.store.Tables(ctx, tables) {
		if err == nil {
			err = t.store.Drop(ctx, name)
		}
		if err != nil && !errors.Is(err, storage.ErrBeingDeleted) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, t.deleteRows(ctx, containers))...)
}

// ours returns the containers with a prefix. Some SAS may not list them; then there are those that
// this run makes.
func (t *try) ours(ctx context.Context, prefix string) (names []string) {
	for name, err := range t.account.Containers(ctx, prefix) {
		if err != nil {
			return append(names, t.container, t.container+"-logs")
		}
		names = append(names, name)
	}
	return names
}

// deleteRows deletes the rows of containers in the shared tables. A table goes whole if it has no
// other rows, and this run has not found it.
func (t *try) deleteRows(ctx context.Context, containers string) error {
	others := 0
	for _, table := range sharedTables {
		rest, err := t.deleteFrom(ctx, table, func(row aztables.EDMEntity) bool {
			of, _ := row.Properties["store"].(string)
			return strings.HasPrefix(of, containers) || strings.HasPrefix(row.PartitionKey, "m~"+containers)
		})
		if table == trial.Table {
			rest = others // it has one row, which is the same for all
		}
		others += rest
		if err == nil && rest == 0 && !t.found[table] {
			err = t.store.Drop(ctx, table)
		}
		if err != nil && !errors.Is(err, storage.ErrBeingDeleted) {
			return fmt.Errorf("clean table %s: %w", table, err)
		}
	}
	return nil
}

// deleteFrom deletes rows of a table, and counts the others.
func (t *try) deleteFrom(ctx context.Context, table string, of func(aztables.EDMEntity) bool) (rest int, err error) {
	_, service := t.store.Clients()
	client := service.NewClient(table)
	for pages := client.NewListEntitiesPager(nil); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			if text := brief(err); strings.HasPrefix(text, "404") || strings.Contains(text, "TableBeingDeleted") {
				return 0, nil
			}
			return 0, errors.New(brief(err))
		}
		for _, text := range page.Entities {
			var row aztables.EDMEntity
			if err := row.UnmarshalJSON(text); err != nil {
				return 0, err
			}
			if !of(row) {
				rest++
				continue
			}
			if _, err := client.DeleteEntity(ctx, row.PartitionKey, row.RowKey, nil); err != nil && !strings.HasPrefix(brief(err), "404") {
				return 0, errors.New(brief(err))
			}
		}
	}
	return rest, nil
}
