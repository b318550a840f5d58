package storagetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"blobtail/storage"
)

// swap swaps a row of the table and partition that these tests use.
func swap(t testing.TB, s storage.TableStore, key, version string, props map[string]any) string {
	t.Helper()
	now, err := s.Swap(t.Context(), "ingesters", "p", storage.Row{Key: key, Version: version, Props: props})
	if err != nil || now == "" || now == version {
		t.Fatalf("Swap of %s from version %q: %q, %v", key, version, now, err)
	}
	return now
}

// notSwapped checks that a swap is refused because the row is in another state.
func notSwapped(t testing.TB, s storage.TableStore, what, key, version string) {
	t.Helper()
	row := storage.Row{Key: key, Version: version, Props: map[string]any{"by": "nobody"}}
	if now, err := s.Swap(t.Context(), "ingesters", "p", row); !errors.Is(err, storage.ErrChanged) || now != "" {
		t.Errorf("%s: %q, %v, want ErrChanged", what, now, err)
	}
}

// isThere checks that every way to read a row finds it in one state.
func isThere(t testing.TB, s storage.TableStore, key, version string, props map[string]any) {
	t.Helper()
	want := storage.Row{Key: key, Version: version, Props: props}
	for row, err := range s.Scan(t.Context(), "ingesters", "p", key, key+"~", 1) {
		if err != nil || !reflect.DeepEqual(row, want) {
			t.Errorf("Scan = %v, %v, want %v", row, err, want)
		}
	}
	want.Props = map[string]any{}
	rows := 0
	for row, err := range s.Scan(t.Context(), "ingesters", "p", key, key+"~", 1, "absent") {
		if rows++; err != nil || !reflect.DeepEqual(row, want) {
			t.Errorf("Scan of a property = %v, %v, want %v", row, err, want)
		}
	}
	if rows != 1 {
		t.Errorf("%d rows of key %s", rows, key)
	}
}

// From no table to a row, and from each state of it to the next.
func testSwap(t *testing.T, s storage.TableStore) {
	none := map[string]any{}
	all := map[string]any{"text": "'x' é", "bin": []byte{0, 255}, "none": []byte{}, "num": int64(-1), "yes": true}
	one := map[string]any{"text": "y"}
	first := swap(t, s, "k", "", all)
	isThere(t, s, "k", first, all)
	second := swap(t, s, "k", first, one) // the older row's other properties are gone
	isThere(t, s, "k", second, one)
	third := swap(t, s, "k", second, none)
	isThere(t, s, "k", third, none)
	other := swap(t, s, "l", "", one) // a row of another key is no hindrance
	isThere(t, s, "k", third, none)
	isThere(t, s, "l", other, one)
	swap(t, s, "k", third, one)
}

// A refused swap changes nothing.
func testSwapChanged(t *testing.T, s storage.TableStore) {
	notSwapped(t, s, "no table", "k", "1")
	first := swap(t, s, "k", "", map[string]any{"n": int64(1)})
	other := swap(t, s, "l", "", map[string]any{"n": int64(1)})
	now := swap(t, s, "k", first, map[string]any{"n": int64(2)})
	notSwapped(t, s, "a row that is there", "k", "")
	notSwapped(t, s, "an older version", "k", first)
	notSwapped(t, s, "the version of another row", "k", other)
	notSwapped(t, s, "no row", "absent", now)
	for _, v := range []string{"*", " ", "0", `"*"`, `W/"*"`, now + " ", strings.ToLower(now) + "x", "\n", "é"} {
		notSwapped(t, s, fmt.Sprintf("version %q", v), "k", v)
	}
	isThere(t, s, "k", now, map[string]any{"n": int64(2)})
	if got := scan(t, s, "ingesters", "p", "", "", 0); len(got) != 2 {
		t.Errorf("Scan = %v", got)
	}
	swap(t, s, "k", now, nil)
}

// Any other write is a change too, even if it writes the same contents. A row that
// changes and changes back is in another state.
func testSwapVersions(t *testing.T, s storage.TableStore) {
	a, b := map[string]any{"n": int64(1)}, map[string]any{"n": int64(2)}
	seen := map[string]bool{}
	version := ""
	for range 5 {
		for _, props := range []map[string]any{a, b} {
			version = swap(t, s, "k", version, props)
			if seen[version] {
				t.Errorf("version %q comes twice", version)
			}
			seen[version] = true
		}
		row := storage.Row{Key: "k", Props: b, Version: version} // Upsert ignores the version
		upsert(t, s, "ingesters", "p", []storage.Row{row})
		notSwapped(t, s, "a row that another wrote", "k", version)
		for r, err := range s.Scan(t.Context(), "ingesters", "p", "", "", 0) {
			if err != nil || seen[r.Version] {
				t.Fatalf("Scan after Upsert: version %q, %v", r.Version, err)
			}
			version = r.Version
			seen[version] = true
		}
		isThere(t, s, "k", version, b)
	}
	if err := s.Drop(t.Context(), "ingesters"); err != nil {
		t.Fatal(err)
	}
	notSwapped(t, s, "a row of a table that was dropped", "k", version)
	upsert(t, s, "ingesters", "p", []storage.Row{{Key: "k", Props: b}})
	notSwapped(t, s, "a row of the table after it", "k", version)
}

// Several callers swap one state at once: one wins and the others get an error.
func testSwapAtOnce(t *testing.T, s storage.TableStore) {
	version := ""
	for round := range 10 {
		var won atomic.Int32
		var next atomic.Value
		var wg sync.WaitGroup
		for w := range 3 {
			wg.Go(func() {
				row := storage.Row{Key: "k", Version: version, Props: map[string]any{"by": int64(w)}}
				now, err := s.Swap(t.Context(), "ingesters", "p", row)
				switch {
				case err == nil:
					won.Add(1)
					next.Store(now)
				case !errors.Is(err, storage.ErrChanged):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d: %d win", round, won.Load())
		}
		version = next.Load().(string)
	}
	notSwapped(t, s, "an older state", "k", "")
}

// Several callers count up a number by swaps, and no increment is lost.
func testSwapCounts(t *testing.T, s storage.TableStore) {
	const workers, each = 3, 10
	count := func() error {
		row := storage.Row{Key: "k", Props: map[string]any{"n": int64(0)}}
		for r, err := range s.Scan(t.Context(), "ingesters", "p", "k", "", 1) {
			if err != nil && !errors.Is(err, storage.ErrNotExist) {
				return err
			}
			if err == nil {
				row = r
			}
		}
		row.Props["n"] = row.Props["n"].(int64) + 1
		_, err := s.Swap(t.Context(), "ingesters", "p", row)
		return err
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for done := 0; done < each; {
				err := count()
				if err == nil {
					done++
				} else if !errors.Is(err, storage.ErrChanged) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := scan(t, s, "ingesters", "p", "", "", 0); len(got) != 1 || got[0].Props["n"] != int64(workers*each) {
		t.Errorf("Scan = %v, want %d", got, workers*each)
	}
}

// A lost request, a lost answer, and a request that is late.
func testSwapFaults(t *testing.T, s storage.TableStore) {
	late := make(chan struct{})
	f := FaultyTables(s, InTurn(
		Times(1, Swap, "ingesters/p", Fault{Before: ErrFault}),
		Times(1, Swap, "ingesters/p", Fault{After: ErrFault}),
		Times(1, Swap, "ingesters/p", Fault{Block: late}),
	))
	row := storage.Row{Key: "k", Props: map[string]any{"n": int64(1)}}
	try := func() (string, error) { return f.Swap(t.Context(), "ingesters", "p", row) }
	if _, err := try(); !errors.Is(err, ErrFault) {
		t.Errorf("lost request: %v", err)
	}
	if version, err := try(); !errors.Is(err, ErrFault) || version != "" {
		t.Errorf("lost answer: %q, %v", version, err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := try()
		done <- err
	}()
	// The writer finds its own row.
	version := ""
	notSwapped(t, s, "again after a lost answer", "k", "")
	for r, err := range s.Scan(t.Context(), "ingesters", "p", "", "", 0) {
		if err != nil || r.Props["n"] != row.Props["n"] {
			t.Fatalf("after a lost answer: %v, %v", r, err)
		}
		version = r.Version
	}
	now := swap(t, s, "k", version, map[string]any{"n": int64(2)})
	close(late)
	if err := <-done; !errors.Is(err, storage.ErrChanged) {
		t.Errorf("a late request: %v, want ErrChanged", err)
	}
	isThere(t, s, "k", now, map[string]any{"n": int64(2)})
}

func testSwapRefuses(t *testing.T, s storage.TableStore) {
	for name, c := range map[string]struct {
		table, partition string
		row              storage.Row
	}{
		"table name":     {"tail-1", "p", storage.Row{Key: "k"}},
		"partition":      {"tail", "p' or PartitionKey ne '", storage.Row{Key: "k"}},
		"key":            {"tail", "p", storage.Row{Key: "a/b"}},
		"property name":  {"tail", "p", storage.Row{Key: "k", Props: map[string]any{"odata.etag": "x"}}},
		"reserved name":  {"tail", "p", storage.Row{Key: "k", Props: map[string]any{"etag": "x"}}},
		"type":           {"tail", "p", storage.Row{Key: "k", Props: map[string]any{"a": 1}}},
		"too long":       {"tail", "p", storage.Row{Key: "k", Props: map[string]any{"a": make([]byte, storage.MaxBinary+1)}}},
		"no name at all": {"tail", "p", storage.Row{Key: "k", Props: map[string]any{"": []byte("x")}}},
	} {
		if version, err := s.Swap(t.Context(), c.table, c.partition, c.row); err == nil || version != "" || errors.Is(err, storage.ErrChanged) {
			t.Errorf("bad %s: %q, %v", name, version, err)
		}
	}
	if got := collect(t, s.Tables(t.Context(), "")); len(got) > 0 {
		t.Errorf("tables %q are there", got)
	}
}
