package azuretry

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"blobtail/storage"
	"blobtail/storage/azure"
)

// names returns the containers and the tables with these prefixes.
func (y *try) names(containers, tables string) (all []string, err error) {
	for name, cerr := range y.account.Containers(y.ctx, containers) {
		all, err = append(all, name), errors.Join(err, cerr)
	}
	for name, terr := range y.store.Tables(y.ctx, tables) {
		all, err = append(all, name), errors.Join(err, terr)
	}
	return all, err
}

// deleteAll deletes the containers and the tables with these prefixes, and the rows of these
// containers in the tables that all containers of an account share.
func (y *try) deleteAll(containers, tables string) (err error) {
	for name, cerr := range y.account.Containers(y.ctx, containers) {
		var s *azure.Store
		if cerr == nil {
			s, cerr = y.account.Container(name)
		}
		if cerr == nil {
			blobs, _ := s.Clients()
			_, cerr = blobs.Delete(y.ctx, nil)
		}
		err = errors.Join(err, cerr)
	}
	for name, terr := range y.store.Tables(y.ctx, tables) {
		if terr == nil {
			terr = y.store.Drop(y.ctx, name)
		}
		if !errors.Is(terr, storage.ErrBeingDeleted) {
			err = errors.Join(err, terr)
		}
	}
	return errors.Join(err, y.deleteRows("ingesters", containers), y.deleteRows("migrations", containers))
}

// deleteRows deletes the rows of containers in a table.
func (y *try) deleteRows(table, containers string) error {
	_, service := y.store.Clients()
	client := service.NewClient(table)
	for pages := client.NewListEntitiesPager(nil); pages.More(); {
		page, err := pages.NextPage(y.ctx)
		if re, ok := errors.AsType[*azcore.ResponseError](err); ok && re.StatusCode == 404 {
			return nil
		} else if err != nil {
			return err
		}
		for _, text := range page.Entities {
			var row aztables.EDMEntity
			err := row.UnmarshalJSON(text)
			of, _ := row.Properties["store"].(string)
			if strings.HasPrefix(of, containers) || strings.HasPrefix(row.PartitionKey, "m~"+containers) {
				_, err = client.DeleteEntity(y.ctx, row.PartitionKey, row.RowKey, nil)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// TestClean deletes what killed runs left. On an emulator it makes that itself, and containers,
// tables and rows of others, which have to stay.
func TestClean(t *testing.T) {
	y := newTry(t)
	if os.Getenv("BLOBTAIL_AZURE_TRY") != "" {
		left, err := y.names(containers, tables)
		y.must(t, errors.Join(err, y.deleteAll(containers, tables)))
		t.Logf("deleted %d: %v", len(left), left)
		return
	}
	for _, name := range []string{"blobtail-try-killed", "logs"} {
		s, err := y.account.Container(name)
		y.must(t, err)
		y.must(t, s.EnsureContainer(y.ctx))
	}
	for _, row := range []struct{ table, partition, key, store string }{
		{"ingesters", "i", "11111111", "blobtail-try-killed"}, {"ingesters", "i", "22222222", "logs"},
		{"migrations", "m~blobtail-try-killed", "000001", ""}, {"blobtailtrykilled20261120", "p", "k", ""}, {"tail20261120", "p", "k", ""},
	} {
		y.must(t, y.store.Upsert(y.ctx, row.table, row.partition, []storage.Row{{Key: row.key, Props: map[string]any{"store": row.store}}}))
	}
	y.must(t, y.deleteAll(containers, tables))
	all, err := y.names("", "")
	for r, serr := range y.store.Scan(y.ctx, "ingesters", "i", "", "", 0) {
		all, err = append(all, r.Key), errors.Join(err, serr)
	}
	for r := range y.store.Scan(y.ctx, "migrations", "m~blobtail-try-killed", "", "", 0) {
		all = append(all, r.Key)
	}
	if err != nil || fmt.Sprint(all) != "[logs ingesters migrations tail20261120 22222222]" {
		t.Errorf("left: %v, %v", all, err)
	}
}
