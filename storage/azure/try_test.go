package azure_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/storagetest"
)

// TestAccount runs the tests of the contracts on a real account, for internal/dev/azuretry. The
// credentials are those of the environment. Each test has a container and tables of its own, with
// names that begin with the two variables; azuretry deletes them.
func TestAccount(t *testing.T) {
	containers, prefix := os.Getenv("BLOBTAIL_TRY_CONTAINER"), os.Getenv("BLOBTAIL_TRY_TABLES")
	if containers == "" || prefix == "" {
		t.Skip("make azure-try runs it")
	}
	var n atomic.Int64
	storagetest.Run(t, func(t *testing.T) (storage.BlobStore, storage.TableStore) {
		i := n.Add(1)
		s, err := azure.Open(fmt.Sprintf("%s-%02d", containers, i), azure.Options{})
		if err == nil {
			err = s.EnsureContainer(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return s, below{s, fmt.Sprintf("%s%02dx", prefix, i)}
	})
}

// below has the tables with a prefix, under names without it. Names that no table can have stay as
// they are: the driver has to refuse them.
type below struct {
	storage.TableStore
	prefix string
}

func (b below) name(table string) string {
	if regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{2,62}$`).MatchString(table) && !strings.EqualFold(table, "tables") {
		return b.prefix + table
	}
	return table
}

func (b below) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	return b.TableStore.Upsert(ctx, b.name(table), partition, rows)
}

func (b below) Swap(ctx context.Context, table, partition string, row storage.Row) (string, error) {
	return b.TableStore.Swap(ctx, b.name(table), partition, row)
}

func (b below) Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[storage.Row, error] {
	return b.TableStore.Scan(ctx, b.name(table), partition, from, to, limit, props...)
}

func (b below) Tables(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name, err := range b.TableStore.Tables(ctx, b.prefix+prefix) {
			if !yield(strings.TrimPrefix(name, b.prefix), err) {
				return
			}
		}
	}
}

func (b below) Drop(ctx context.Context, table string) error {
	return b.TableStore.Drop(ctx, b.name(table))
}
