package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"blobtail/storage"
)

func runTables(t *testing.T, open Open) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, storage.TableStore)
	}{
		{"UpsertThenScan", testUpsertThenScan},
		{"UpsertReplaces", testUpsertReplaces},
		{"UpsertMakesTable", testUpsertMakesTable},
		{"UpsertRefuses", testUpsertRefuses},
		{"UpsertLimits", testUpsertLimits},
		{"UpsertAtOnce", testUpsertAtOnce},
		{"Swap", testSwap},
		{"SwapChanged", testSwapChanged},
		{"SwapVersions", testSwapVersions},
		{"SwapAtOnce", testSwapAtOnce},
		{"SwapCounts", testSwapCounts},
		{"SwapFaults", testSwapFaults},
		{"SwapRefuses", testSwapRefuses},
		{"ScanRanges", testScanRanges},
		{"ScanProps", testScanProps},
		{"ScanManyRows", testScanManyRows},
		{"ScanRefuses", testScanRefuses},
		{"AbsentTable", testAbsentTable},
		{"Tables", testTableNames},
		{"TablesCancelled", testTablesCancelled},
	} {
		t.Run("Tables/"+test.name, func(t *testing.T) {
			_, tables := open(t)
			if tables == nil {
				t.Skip("this driver keeps no tables")
			}
			test.run(t, tables)
		})
	}
}

func testUpsertThenScan(t *testing.T, s storage.TableStore) {
	want := []storage.Row{
		{Key: "a-0001", Props: map[string]any{
			"text": "plain, with 'quotes', \"more\", <tags> and \u00e9\U0001f600\n", "empty": "", "bin": []byte{0, 1, 255}, "none": []byte{},
			"num": int64(1<<63 - 1), "neg": int64(-1), "small": int64(5), "yes": true, "no": false,
		}},
		{Key: "a-0002", Props: map[string]any{}},
		{Key: "b ~!@$^&*()_+-=[]{}|;:\",.<>", Props: map[string]any{"n": int64(0)}},
	}
	upsert(t, s, "tail20261120", "web~0", reversed(want))
	upsert(t, s, "tail20261120", "web~1", []storage.Row{{Key: "a-0001", Props: map[string]any{"n": int64(1)}}})
	got := scan(t, s, "tail20261120", "web~0", "", "", 0)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Scan gives\n%#v, want\n%#v", got, want)
	}
}

// Properties of the older row do not survive in the newer.
func testUpsertReplaces(t *testing.T, s storage.TableStore) {
	old := storage.Row{Key: "k", Props: map[string]any{"old": "x", "both": "x"}}
	replacing := storage.Row{Key: "k", Props: map[string]any{"both": int64(2)}}
	if err := s.Upsert(t.Context(), "tail", "p", []storage.Row{old}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // repeating it is harmless
		if err := s.Upsert(t.Context(), "tail", "p", []storage.Row{replacing}); err != nil {
			t.Fatal(err)
		}
	}
	if got := scan(t, s, "tail", "p", "", "", 0); !reflect.DeepEqual(got, []storage.Row{replacing}) {
		t.Errorf("Scan = %v, want %v", got, replacing)
	}
}

// Upsert without rows makes an empty table.
func testUpsertMakesTable(t *testing.T, s storage.TableStore) {
	for range 2 {
		if err := s.Upsert(t.Context(), "tail20261121", "p", nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := scan(t, s, "tail20261121", "p", "", "", 0); len(got) > 0 {
		t.Errorf("Scan = %v", got)
	}
	if got := collect(t, s.Tables(t.Context(), "tail")); !slices.Equal(got, []string{"tail20261121"}) {
		t.Errorf("Tables = %q", got)
	}
}

func testUpsertRefuses(t *testing.T, s storage.TableStore) {
	one := []storage.Row{{Key: "k"}}
	long := strings.Repeat("x", 513)
	for _, c := range []struct {
		name, table, partition string
		rows                   []storage.Row
	}{
		{"short table name", "ab", "p", one},
		{"long table name", strings.Repeat("a", 64), "p", one},
		{"dash in a table name", "tail-1", "p", one},
		{"digit first", "1tail", "p", one},
		{"the service's own table", "Tables", "p", one},
		{"path as a table name", "../tail", "p", one},
		{"empty partition", "tail", "", one},
		{"slash in a partition", "tail", "a/b", one},
		{"quote in a partition", "tail", "p' or PartitionKey ne '", one},
		{"long partition", "tail", long, one},
		{"empty key", "tail", "p", []storage.Row{{Key: ""}}},
		{"long key", "tail", "p", []storage.Row{{Key: long}}},
		{"not ASCII", "tail", "p", []storage.Row{{Key: "é"}}},
		{"hash in a key", "tail", "p", []storage.Row{{Key: "a#b"}}},
		{"two rows of one key", "tail", "p", []storage.Row{{Key: "k"}, {Key: "l"}, {Key: "k"}}},
		{"property name", "tail", "p", []storage.Row{{Key: "k", Props: map[string]any{"a-b": ""}}}},
		{"property name of the service", "tail", "p", []storage.Row{{Key: "k", Props: map[string]any{"RowKey": "x"}}}},
		{"annotation as a property", "tail", "p", []storage.Row{{Key: "k", Props: map[string]any{"a@odata.type": "Edm.Int64"}}}},
		{"type int", "tail", "p", []storage.Row{{Key: "k", Props: map[string]any{"a": 1}}}},
		{"type nil", "tail", "p", []storage.Row{{Key: "k", Props: map[string]any{"a": nil}}}},
		{"not UTF-8", "tail", "p", []storage.Row{{Key: "k", Props: map[string]any{"a": "\xff"}}}},
	} {
		if err := s.Upsert(t.Context(), c.table, c.partition, c.rows); err == nil {
			t.Errorf("%s: taken", c.name)
		}
	}
	if got := collect(t, s.Tables(t.Context(), "")); len(got) > 0 {
		t.Errorf("tables %q are there", got)
	}
}

func testUpsertLimits(t *testing.T, s storage.TableStore) {
	rows := func(n, props, size int) []storage.Row {
		var rows []storage.Row
		for i := range n {
			r := storage.Row{Key: fmt.Sprintf("%04d", i), Props: map[string]any{}}
			for p := range props {
				r.Props[fmt.Sprint("p", p)] = bytes.Repeat([]byte{byte(i)}, size)
			}
			rows = append(rows, r)
		}
		return rows
	}
	text := func(s string) []storage.Row { return []storage.Row{{Key: "text", Props: map[string]any{"s": s}}} }
	for _, c := range []struct {
		name string
		rows []storage.Row
		ok   bool
	}{
		{"100 rows", rows(100, 1, 10), true},
		{"101 rows", rows(101, 1, 10), false},
		{"64 KiB of binary", rows(1, 1, storage.MaxBinary), true},
		{"a byte more", rows(1, 1, storage.MaxBinary+1), false},
		{"32 Ki characters", text(strings.Repeat("é", storage.MaxString)), true},
		{"one more", text(strings.Repeat("x", storage.MaxString+1)), false},
		{"16 Ki characters of two units", text(strings.Repeat("\U0001f600", storage.MaxString/2)), true},
		{"one more unit", text(strings.Repeat("\U0001f600", storage.MaxString/2) + "x"), false},
		{"a row of 700 KiB", rows(1, 14, 50<<10), true},
		{"a row over 1 MiB", rows(1, 17, 64<<10), false},
		{"2.9 MiB", rows(50, 1, 60<<10), true},
		{"over 4 MiB", rows(80, 1, 60<<10), false},
	} {
		err := s.Upsert(t.Context(), "tail", "p", c.rows)
		if (err == nil) != c.ok {
			t.Errorf("%s: %.200v", c.name, err)
		}
	}
	if got := scan(t, s, "tail", "p", "text", "", 0); len(got) != 1 || len(got[0].Props["s"].(string)) != 4*storage.MaxString/2 {
		t.Error("the longest string comes back otherwise")
	}
	got := scan(t, s, "tail", "p", "0000", "0100", 0)
	if len(got) != 100 || !bytes.Equal(got[49].Props["p0"].([]byte), bytes.Repeat([]byte{49}, 60<<10)) {
		t.Errorf("%d rows come back, or changed", len(got))
	}
}

func testUpsertAtOnce(t *testing.T, s storage.TableStore) {
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 10 {
				rows := []storage.Row{
					{Key: fmt.Sprintf("%d-%02d", w, i), Props: map[string]any{"n": int64(i)}},
					{Key: fmt.Sprintf("%d-%02de", w, i), Props: map[string]any{"n": int64(i)}},
				}
				if err := s.Upsert(t.Context(), "tail20261120", fmt.Sprintf("web~%d", w%2), rows); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n := len(scan(t, s, "tail20261120", "web~0", "", "", 0)) + len(scan(t, s, "tail20261120", "web~1", "", "", 0))
	if n != 80 {
		t.Errorf("%d of 80 rows are there", n)
	}
}

func testScanRanges(t *testing.T, s storage.TableStore) {
	all := []string{"A", "a", "a-", "a-0", "a-1", "a-10", "a-2", "b", "e-0", "e-1", "~"}
	var rows []storage.Row
	for _, key := range all {
		rows = append(rows, storage.Row{Key: key, Props: map[string]any{"k": key}})
	}
	upsert(t, s, "tail", "p", reversed(rows))
	upsert(t, s, "tail", "q", rows[:3])
	for _, from := range append([]string{"", "a-00", "zz"}, all...) {
		for _, to := range append([]string{"", "a-00", "zz"}, all...) {
			for _, limit := range []int{0, 1, 3, 100} {
				want := slices.DeleteFunc(slices.Clone(all), func(k string) bool { return k < from || to != "" && k >= to })
				if limit > 0 && limit < len(want) {
					want = want[:limit]
				}
				var got []string
				for _, r := range scan(t, s, "tail", "p", from, to, limit) {
					if r.Props["k"] != r.Key {
						t.Errorf("row %s holds %v", r.Key, r.Props)
					}
					got = append(got, r.Key)
				}
				if !slices.Equal(got, want) {
					t.Errorf("Scan(%q, %q, %d) = %q, want %q", from, to, limit, got, want)
				}
			}
		}
	}
	if got := scan(t, s, "tail", "nothing", "", "", 0); len(got) > 0 {
		t.Errorf("an absent partition holds %v", got)
	}
}

func testScanProps(t *testing.T, s storage.TableStore) {
	rows := []storage.Row{
		{Key: "1", Props: map[string]any{"a": int64(1), "b": "x", "c": []byte("y")}},
		{Key: "2", Props: map[string]any{"b": "z"}},
		{Key: "3", Props: map[string]any{"d": true}},
	}
	upsert(t, s, "tail", "p", rows)
	want := []storage.Row{
		{Key: "1", Props: map[string]any{"a": int64(1), "c": []byte("y")}},
		{Key: "2", Props: map[string]any{}},
		{Key: "3", Props: map[string]any{}},
	}
	if got := scan(t, s, "tail", "p", "", "", 0, "a", "c", "absent"); !reflect.DeepEqual(got, want) {
		t.Errorf("Scan of a and c = %v, want %v", got, want)
	}
}

// More rows than a service returns at once.
func testScanManyRows(t *testing.T, s storage.TableStore) {
	const n = 1100
	for first := 0; first < n; first += 100 {
		var rows []storage.Row
		for i := first; i < first+100; i++ {
			rows = append(rows, storage.Row{Key: fmt.Sprintf("%06d", i), Props: map[string]any{"n": int64(i)}})
		}
		upsert(t, s, "tail", "p", rows)
	}
	for _, limit := range []int{0, 1001} {
		got := scan(t, s, "tail", "p", "", "", limit)
		want := n
		if limit > 0 {
			want = limit
		}
		if len(got) != want {
			t.Errorf("limit %d: %d rows, want %d", limit, len(got), want)
		}
		for i, r := range got {
			if r.Props["n"] != int64(i) {
				t.Fatalf("row %d is %s", i, r.Key)
			}
		}
	}
	for range s.Scan(t.Context(), "tail", "p", "", "", 0) { // a consumer may stop
		break
	}
}

func testScanRefuses(t *testing.T, s storage.TableStore) {
	upsert(t, s, "tail", "p", []storage.Row{{Key: "k"}})
	const attack = "p' or PartitionKey ne '"
	for name, err := range map[string]error{
		"partition": last(s.Scan(t.Context(), "tail", attack, "", "", 0)),
		"from":      last(s.Scan(t.Context(), "tail", "p", attack, "", 0)),
		"to":        last(s.Scan(t.Context(), "tail", "p", "", attack, 0)),
		"property":  last(s.Scan(t.Context(), "tail", "p", "", "", 0, "a,b")),
		"table":     last(s.Scan(t.Context(), "tail/x", "p", "", "", 0)),
		"limit":     last(s.Scan(t.Context(), "tail", "p", "", "", -1)),
	} {
		if err == nil || errors.Is(err, storage.ErrNotExist) {
			t.Errorf("bad %s: %v", name, err)
		}
	}
}

func testAbsentTable(t *testing.T, s storage.TableStore) {
	if err := last(s.Scan(t.Context(), "tail20261120", "p", "", "", 0)); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("Scan: %v, want ErrNotExist", err)
	}
	if err := s.Drop(t.Context(), "tail20261120"); err != nil {
		t.Errorf("Drop: %v", err)
	}
	if got := collect(t, s.Tables(t.Context(), "tail")); len(got) > 0 {
		t.Errorf("Tables = %q", got)
	}
	upsert(t, s, "tail20261120", "p", []storage.Row{{Key: "k"}})
	if err := s.Drop(t.Context(), "tail20261120"); err != nil {
		t.Errorf("Drop: %v", err)
	}
	if err := last(s.Scan(t.Context(), "tail20261120", "p", "", "", 0)); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("Scan after Drop: %v, want ErrNotExist", err)
	}
	if err := s.Drop(t.Context(), "tail20261120"); err != nil {
		t.Errorf("second Drop: %v", err)
	}
}

func testTableNames(t *testing.T, s storage.TableStore) {
	for _, name := range []string{"tail20261121", "ingesters", "tail20261120", "tailX", "taix"} {
		if err := s.Upsert(t.Context(), name, "p", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Drop(t.Context(), "tail20261120"); err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string][]string{
		"":        {"ingesters", "tail20261121", "tailX", "taix"},
		"tail":    {"tail20261121", "tailX"},
		"tailX":   {"tailX"},
		"tail3":   nil,
		"nothing": nil,
	} {
		if got := collect(t, s.Tables(t.Context(), prefix)); !slices.Equal(got, want) {
			t.Errorf("Tables(%q) = %q, want %q", prefix, got, want)
		}
	}
}

func testTablesCancelled(t *testing.T, s storage.TableStore) {
	upsert(t, s, "tail", "p", []storage.Row{{Key: "k"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, swapErr := s.Swap(ctx, "tail", "p", storage.Row{Key: "l"})
	for op, err := range map[string]error{
		"Swap":   swapErr,
		"Upsert": s.Upsert(ctx, "tail", "p", []storage.Row{{Key: "l"}}),
		"Scan":   last(s.Scan(ctx, "tail", "p", "", "", 0)),
		"Tables": last(s.Tables(ctx, "")),
		"Drop":   s.Drop(ctx, "tail"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", op, err)
		}
	}
	if got := scan(t, s, "tail", "p", "", "", 0); len(got) != 1 {
		t.Errorf("Scan = %v", got)
	}
}

func upsert(t testing.TB, s storage.TableStore, table, partition string, rows []storage.Row) {
	t.Helper()
	if err := s.Upsert(t.Context(), table, partition, rows); err != nil {
		t.Fatal(err)
	}
}

// scan returns rows without their versions, which each must have.
func scan(t testing.TB, s storage.TableStore, table, partition, from, to string, limit int, props ...string) []storage.Row {
	t.Helper()
	rows := collect(t, s.Scan(t.Context(), table, partition, from, to, limit, props...))
	for i := range rows {
		if rows[i].Version == "" {
			t.Errorf("row %s has no version", rows[i].Key)
		}
		rows[i].Version = ""
	}
	return rows
}

func reversed(rows []storage.Row) []storage.Row {
	r := slices.Clone(rows)
	slices.Reverse(r)
	return r
}
