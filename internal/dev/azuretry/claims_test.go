package azuretry

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/storagetest"
)

// testContracts runs the tests of the contracts, each in a container and in tables of its own.
func (y *try) testContracts(t *testing.T) {
	var n atomic.Int64
	storagetest.Run(t, func(t *testing.T) (storage.BlobStore, storage.TableStore) {
		i := n.Add(1)
		s, err := azure.Open(fmt.Sprintf("%s-%02d", y.container, i), y.options(nil))
		y.must(t, err)
		y.must(t, s.EnsureContainer(y.ctx))
		return s, below{s, fmt.Sprintf("%s%02dx", y.tables, i)}
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

func last[T any](seq iter.Seq2[T, error]) (err error) {
	seq(func(_ T, e error) bool { err = e; return true })
	return err
}

// code is the status and the code of a refusal.
func code(err error) string {
	if errors.Is(err, storage.ErrExist) {
		return "it is there" // by one of several codes
	}
	if e, ok := errors.AsType[*azure.ServiceError](err); ok {
		return fmt.Sprintf("%d %s", e.Status, e.Code)
	}
	if re, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return fmt.Sprintf("%d %s", re.StatusCode, re.ErrorCode)
	}
	return fmt.Sprint(err)
}

// testClaims tests what the product rests on, or has to live with, and the contracts do not ask.
func (y *try) testClaims(t *testing.T) {
	t.Run("pages of a LIST while its first name is deleted", y.testPages)
	t.Run("Date of answers", func(t *testing.T) {
		begun := time.Now()
		there, err := y.store.Now(y.ctx)
		y.must(t, err)
		ahead := begun.Add(time.Since(begun) / 2).Sub(there.Add(time.Second / 2)) // the header has whole seconds
		t.Logf("this host is %.1f s ahead, to half a second", ahead.Seconds())
	})
	t.Run("wrong MD5", func(t *testing.T) {
		blobs, _ := y.store.Clients()
		sum := md5.Sum([]byte("another body"))
		_, err := blobs.NewBlockBlobClient("claims/md5").Upload(y.ctx, streaming.NopCloser(strings.NewReader("a body")),
			&blockblob.UploadOptions{TransactionalValidation: blob.TransferValidationTypeMD5(sum[:])})
		if _, serr := y.store.Stat(y.ctx, "claims/md5"); err == nil || !errors.Is(serr, storage.ErrNotExist) {
			t.Errorf("PUT: %s; HEAD: %s", code(err), code(serr))
		}
	})
	t.Run("soft delete", y.testSoftDelete)
	t.Run("dropped table", y.testDropped)
	t.Run("transaction", y.testTransaction)
	t.Run("tiers", y.testTiers)
	t.Run("codes of refusals", y.testCodes)
}

// testPages ensures that pages with markers have each name once.
func (y *try) testPages(t *testing.T) {
	var all, got []string
	for i := range 7 {
		all = append(all, fmt.Sprintf("claims/pages/%d", i))
		y.must(t, y.store.Create(y.ctx, all[i], nil, storage.Attrs{}))
	}
	blobs, _ := y.store.Clients()
	prefix, size := "claims/pages/", int32(2)
	for p := blobs.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix, MaxResults: &size}); p.More(); {
		page, err := p.NextPage(y.ctx)
		y.must(t, err)
		for _, b := range page.Segment.BlobItems {
			got = append(got, *b.Name)
		}
		y.must(t, y.store.Delete(y.ctx, storage.Blob{Key: all[0]}))
	}
	if !slices.Equal(got, all) {
		t.Errorf("the pages have %v", got)
	}
}

// testSoftDelete looks for a deleted object. Soft delete is a setting of the account.
func (y *try) testSoftDelete(t *testing.T) {
	key := "claims/soft"
	y.must(t, y.store.Create(y.ctx, key, nil, storage.Attrs{}))
	y.must(t, y.store.Delete(y.ctx, storage.Blob{Key: key}))
	blobs, _ := y.store.Clients()
	with := container.ListBlobsInclude{Deleted: true, Versions: true}
	page, err := blobs.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &key, Include: with}).NextPage(y.ctx)
	if err != nil {
		t.Skip("it cannot be seen: ", code(err))
	}
	t.Logf("a deleted blob stays in %d states (0: off), and costs money for its days", len(page.Segment.BlobItems))
}

// testDropped ensures that a dropped table is missing at once, and that its name is free again.
func (y *try) testDropped(t *testing.T) {
	table := y.tables + "gone"
	y.must(t, y.store.Upsert(y.ctx, table, "p", []storage.Row{{Key: "k"}}))
	if err := y.store.Drop(y.ctx, table); !errors.Is(err, storage.ErrBeingDeleted) {
		y.must(t, err)
	}
	if err := last(y.store.Scan(y.ctx, table, "p", "", "", 0)); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("it is still read: %s", code(err))
	}
	begun, err := time.Now(), storage.ErrBeingDeleted
	for errors.Is(err, storage.ErrBeingDeleted) && y.ctx.Err() == nil && time.Since(begun) < 2*time.Minute {
		err = y.store.Upsert(y.ctx, table, "p", nil)
	}
	y.must(t, err)
	t.Logf("its name is free after %.0f s", time.Since(begun).Seconds())
}

// testTransaction ensures that a transaction whose last row is there already adds no row.
func (y *try) testTransaction(t *testing.T) {
	table := y.tables + "gone"
	y.must(t, y.store.Upsert(y.ctx, table, "tx", []storage.Row{{Key: "99"}}))
	var actions []aztables.TransactionAction
	for i := range storage.MaxTxRows {
		row := fmt.Appendf(nil, `{"PartitionKey":"tx","RowKey":"%02d"}`, i)
		actions = append(actions, aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: row})
	}
	_, service := y.store.Clients()
	_, err := service.NewClient(table).SubmitTransaction(y.ctx, actions, nil)
	rows := 0
	for _, serr := range y.store.Scan(y.ctx, table, "tx", "", "", 0) {
		y.must(t, serr)
		rows++
	}
	if err == nil || rows != 1 {
		t.Errorf("%d rows, %s", rows, code(err))
	}
}

// testTiers moves a blob to each tier, and reads it.
func (y *try) testTiers(t *testing.T) {
	const key = "claims/tiers"
	y.must(t, y.store.Create(y.ctx, key, []byte("x"), storage.Attrs{}))
	blobs, _ := y.store.Clients()
	for _, tier := range []blob.AccessTier{blob.AccessTierCool, blob.AccessTierCold, blob.AccessTierArchive} {
		if _, err := blobs.NewBlobClient(key).SetTier(y.ctx, tier, nil); err != nil {
			t.Logf("%s: the account refuses it: %s", tier, code(err))
			continue
		}
		body, err := y.store.Get(y.ctx, key, 0, -1)
		if err == nil {
			body.Close()
		}
		if archived := tier == blob.AccessTierArchive; archived != (code(err) == "409 BlobArchived") || !archived && err != nil {
			t.Errorf("GET from tier %s: %v", tier, err)
		}
	}
}

// testCodes tests the codes of refusals, by which the product chooses its advice, and the rights of
// the roles of deploy/azure/roles, as a SAS has them.
func (y *try) testCodes(t *testing.T) {
	if y.vars["AZURE_STORAGE_KEY"] == "" {
		t.Skip("no key to make SAS of")
	}
	table := y.tables + "gone"
	list := func(s *azure.Store) error { return last(s.List(y.ctx, "claims/", "")) }
	create := func(s *azure.Store) error { return s.Create(y.ctx, "claims/only", nil, storage.Attrs{}) }
	remove := func(s *azure.Store) error { return s.Delete(y.ctx, storage.Blob{Key: "claims/only"}) }
	row := func(s *azure.Store) error { // the emulator checks no rights of transactions
		_, err := s.Swap(y.ctx, table, "sas", storage.Row{Key: "k"})
		return err
	}
	drop := func(s *azure.Store) error { return s.Drop(y.ctx, table) }
	const (
		emulators = "403 AuthorizationFailure" // in place of that of a signature
		signature = "403 AuthenticationFailed"
		rights    = "403 AuthorizationPermissionMismatch"
	)
	const ingester, retention, reader = "rlacwu", "rlacwd", "rl"
	for _, c := range []struct {
		name string
		vars map[string]string
		do   func(*azure.Store) error
		code string
	}{
		{"wrong signature, blobs", y.signed(t, reader), list, signature},
		{"wrong signature, tables", y.signed(t, reader), row, signature},
		{"wrong key", map[string]string{"AZURE_STORAGE_KEY": "bm8ga2V5IG9mIGFueSBhY2NvdW50"}, list, signature},
		{"reader creates", y.signed(t, reader), create, rights},
		{"ingester creates", y.signed(t, ingester), create, "<nil>"},
		{"ingester deletes", y.signed(t, ingester), remove, rights},
		{"ingester drops", y.signed(t, ingester), drop, rights},
		{"create without write where a blob is", y.signed(t, "rlc"), create, "it is there"},
		{"reader deletes", y.signed(t, reader), remove, rights},
		{"reader adds a row", y.signed(t, reader), row, rights},
		{"reader drops", y.signed(t, reader), drop, rights},
		{"retention deletes", y.signed(t, retention), remove, "<nil>"},
	} {
		if strings.HasPrefix(c.name, "wrong signature") {
			c.vars["AZURE_STORAGE_SAS_TOKEN"] = strings.Replace(c.vars["AZURE_STORAGE_SAS_TOKEN"], "sig=", "sig=AAAA", 1)
		}
		s, err := azure.Open(y.container, y.options(c.vars))
		y.must(t, err)
		if got := code(c.do(s)); got != c.code && (c.code != signature || got != emulators) {
			t.Errorf("%s: %s, not %s", c.name, got, c.code)
		}
	}
	missing, err := y.account.Container(y.container + "-missing")
	y.must(t, err)
	if err := list(missing); code(err) != "404 ContainerNotFound" {
		t.Errorf("a missing container: %s", code(err))
	}
}
