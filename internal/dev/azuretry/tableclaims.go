package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"blobtail/storage"
)

func (t *try) tableClaims() []claimed {
	return []claimed{
		{"A transaction of 100 rows is all or nothing; the product sends no more", t.claimTransaction},
		{"A row replaces the row of its key whole, and may be sent twice", t.claimReplace},
		{"A write on the condition of a version is refused if the row has another: 412", t.claimSwap},
		{"A write on the condition of no row is refused if there is one: 409", t.claimAdd},
		{"Each write gives a row another ETag, also two in a row", t.claimVersions},
		{"Of 8 writers on one version, one wins", t.claimSwaps},
		{"Rows come in the order of their keys, also over pages of 1,000", t.claimRows},
		{"A row takes 15 properties of 48 KiB, and a text of 32 Ki units of UTF-16", t.claimSizes},
		{"A row that was just written is in the next scan", t.claimFresh},
		{"Tables are found by the beginning of their names", t.claimTables},
		{"A table that is dropped is missing for readers at once", t.claimDropped},
		{"A name is free again some time after a drop; the product waits, or takes another day's", t.seeFree},
		{"Two partitions in one transaction; the product sends one", t.seePartitions},
	}
}

func (t *try) rows(ctx context.Context, table, partition string) (keys []string, all []storage.Row, err error) {
	for r, err := range t.store.Scan(ctx, table, partition, "", "", 0) {
		if err != nil {
			return nil, nil, err
		}
		keys, all = append(keys, r.Key), append(all, r)
	}
	return keys, all, nil
}

func numbered(from, n int) (rows []storage.Row) {
	for i := from; i < from+n; i++ {
		rows = append(rows, storage.Row{Key: fmt.Sprintf("%06d", i), Props: map[string]any{"n": int64(i)}})
	}
	return rows
}

// claimTransaction sends 100 rows, and then 100 new ones of which the last has a key that the
// service must refuse. Our own driver would refuse it first, so the SDK sends that one.
func (t *try) claimTransaction(ctx context.Context) (string, error) {
	table := t.tables + "claims"
	if err := t.store.Upsert(ctx, table, "tx", numbered(0, storage.MaxTxRows)); err != nil {
		return "", err
	}
	_, service := t.store.Clients()
	var actions []aztables.TransactionAction
	for i := range storage.MaxTxRows {
		key, kind := fmt.Sprintf("%06d", 100+i), aztables.TransactionTypeAdd
		if i == storage.MaxTxRows-1 {
			key = "000000" // there is one
		}
		text, err := json.Marshal(aztables.EDMEntity{Entity: aztables.Entity{PartitionKey: "tx", RowKey: key}})
		if err != nil {
			return "", err
		}
		actions = append(actions, aztables.TransactionAction{ActionType: kind, Entity: text})
	}
	_, err := service.NewClient(table).SubmitTransaction(ctx, actions, nil)
	keys, _, serr := t.rows(ctx, table, "tx")
	if serr != nil {
		return "", serr
	}
	return want(err != nil && len(keys) == storage.MaxTxRows, "100 rows; of 100 more with one that is there, none (%d rows)", len(keys))
}

func (t *try) claimReplace(ctx context.Context) (string, error) {
	table := t.tables + "claims"
	var err error
	for _, props := range []map[string]any{{"old": "x", "both": int64(1)}, {"both": int64(2)}, {"both": int64(2)}} {
		err = errors.Join(err, t.store.Upsert(ctx, table, "replace", []storage.Row{{Key: "k", Props: props}}))
	}
	_, all, serr := t.rows(ctx, table, "replace")
	if err = errors.Join(err, serr); err != nil {
		return "", err
	}
	return want(len(all) == 1 && fmt.Sprint(all[0].Props) == "map[both:2]", "%d row: %v", len(all), all[0].Props)
}

func (t *try) claimSwap(ctx context.Context) (string, error) {
	table := t.tables + "claims"
	one, err := t.store.Swap(ctx, table, "swap", storage.Row{Key: "k"})
	if err == nil {
		_, err = t.store.Swap(ctx, table, "swap", storage.Row{Key: "k", Version: one})
	}
	if err != nil {
		return "", err
	}
	_, err = t.store.Swap(ctx, table, "swap", storage.Row{Key: "k", Version: one})
	return want(errors.Is(err, storage.ErrChanged), "%s", code(err))
}

func (t *try) claimAdd(ctx context.Context) (string, error) {
	table := t.tables + "claims"
	if _, err := t.store.Swap(ctx, table, "add", storage.Row{Key: "k"}); err != nil {
		return "", err
	}
	_, err := t.store.Swap(ctx, table, "add", storage.Row{Key: "k"})
	return want(errors.Is(err, storage.ErrChanged), "%s", code(err))
}

func (t *try) claimVersions(ctx context.Context) (string, error) {
	table, version := t.tables+"claims", ""
	seen := map[string]bool{}
	const n = 10
	for range n {
		var err error
		if version, err = t.store.Swap(ctx, table, "versions", storage.Row{Key: "k", Version: version}); err != nil {
			return "", err
		}
		seen[version] = true
	}
	_, all, err := t.rows(ctx, table, "versions")
	if err != nil {
		return "", err
	}
	return want(len(seen) == n && len(all) == 1 && all[0].Version == version, "%d of %d writes; the scan has the last one", len(seen), n)
}

func (t *try) claimSwaps(ctx context.Context) (string, error) {
	table := t.tables + "claims"
	version, err := t.store.Swap(ctx, table, "swaps", storage.Row{Key: "k"})
	if err != nil {
		return "", err
	}
	const writers = 8
	errs := make(chan error, writers)
	for w := range writers {
		go func() {
			_, err := t.store.Swap(ctx, table, "swaps", storage.Row{Key: "k", Version: version, Props: map[string]any{"by": int64(w)}})
			errs <- err
		}()
	}
	won, lost := 0, 0
	for range writers {
		switch err := <-errs; {
		case err == nil:
			won++
		case errors.Is(err, storage.ErrChanged):
			lost++
		}
	}
	return want(won == 1 && lost == writers-1, "%d won, %d were told that it changed", won, lost)
}

func (t *try) claimRows(ctx context.Context) (string, error) {
	table := t.tables + "claims"
	const n = 1100
	for at := n - 100; at >= 0; at -= 100 {
		if err := t.store.Upsert(ctx, table, "order", numbered(at, 100)); err != nil {
			return "", err
		}
	}
	keys, _, err := t.rows(ctx, table, "order")
	if err != nil {
		return "", err
	}
	return want(len(keys) == n && slices.IsSorted(keys), "%d rows in order", len(keys))
}

func (t *try) claimSizes(ctx context.Context) (string, error) {
	row := storage.Row{Key: "k", Props: map[string]any{"lines": strings.Repeat("é", storage.MaxString-100)}}
	other := storage.Row{Key: "l", Props: map[string]any{}}
	for i := range 15 {
		other.Props[fmt.Sprint("z", i)] = make([]byte, 48<<10)
	}
	table := t.tables + "claims"
	for _, r := range []storage.Row{row, other} {
		if err := t.store.Upsert(ctx, table, "sizes", []storage.Row{r}); err != nil {
			return "", err
		}
	}
	_, all, err := t.rows(ctx, table, "sizes")
	if err != nil {
		return "", err
	}
	return want(len(all) == 2 && len(all[1].Props) == 15 && all[0].Props["lines"] == row.Props["lines"], "%d rows come back", len(all))
}

func (t *try) claimFresh(ctx context.Context) (string, error) {
	const rounds = 10
	for i := range rounds {
		if err := t.store.Upsert(ctx, t.tables+"claims", "fresh", numbered(i, 1)); err != nil {
			return "", err
		}
		keys, _, err := t.rows(ctx, t.tables+"claims", "fresh")
		if err != nil || len(keys) != i+1 {
			return "", fmt.Errorf("%d rows after %d writes, %v", len(keys), i+1, err)
		}
	}
	return fmt.Sprintf("in %d of %d rounds", rounds, rounds), nil
}

func (t *try) claimTables(ctx context.Context) (string, error) {
	for _, name := range []string{"listb", "lista", "lisu"} {
		if err := t.store.Upsert(ctx, t.tables+name, "p", nil); err != nil {
			return "", err
		}
	}
	var got []string
	for name, err := range t.store.Tables(ctx, t.tables+"list") {
		if err != nil {
			return "", err
		}
		got = append(got, strings.TrimPrefix(name, t.tables))
	}
	return want(slices.Equal(got, []string{"lista", "listb"}), "%v", got)
}

func (t *try) claimDropped(ctx context.Context) (string, error) {
	table := t.tables + "gone"
	err := t.store.Upsert(ctx, table, "p", numbered(0, 1))
	if err == nil {
		err = t.store.Drop(ctx, table)
	}
	if err != nil && !errors.Is(err, storage.ErrBeingDeleted) {
		return "", err
	}
	_, _, err = t.rows(ctx, table, "p")
	return want(errors.Is(err, storage.ErrNotExist), "%s", code(err))
}

// seeFree measures how long the name of the table that was just dropped stays taken.
func (t *try) seeFree(ctx context.Context) (string, error) {
	begun := time.Now()
	err := t.store.Upsert(ctx, t.tables+"gone", "p", nil)
	if err == nil {
		return "it is free at once", errAside
	}
	if !errors.Is(err, storage.ErrBeingDeleted) {
		return "", err
	}
	first := code(err)
	if _, err := t.free(ctx, t.tables+"gone"); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s for %.0f s", first, time.Since(begun).Seconds()), errAside
}

// seePartitions sends what the product never sends.
func (t *try) seePartitions(ctx context.Context) (string, error) {
	_, service := t.store.Clients()
	var actions []aztables.TransactionAction
	for _, partition := range []string{"p1", "p2"} {
		text, err := json.Marshal(aztables.EDMEntity{Entity: aztables.Entity{PartitionKey: partition, RowKey: "k"}})
		if err != nil {
			return "", err
		}
		actions = append(actions, aztables.TransactionAction{ActionType: aztables.TransactionTypeInsertReplace, Entity: text})
	}
	if _, err := service.NewClient(t.tables+"claims").SubmitTransaction(ctx, actions, nil); err != nil {
		return "refused", errAside
	}
	return "accepted, as Azurite does", errAside
}
