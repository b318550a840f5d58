package tailindex_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/tailindex"
)

// someRow is a row of the service web with two lines and its table.
func someRow(t *testing.T) (table string, at time.Time, row storage.Row) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		w, stop := start(t, s, tailindex.Options{Process: "0badcafe"})
		defer stop()
		at = time.Now()
		w.Accepted(1, newRun("web", 1, line(at, "info", "web", "one"), line(at.Add(1), "error", "web", "two")))
		time.Sleep(time.Second)
		table = tailindex.Table("tail", at)
		for r, err := range s.Scan(t.Context(), table, "web~0", "a", "b", 0) {
			if err != nil {
				t.Fatal(err)
			}
			row = r
		}
	})
	return table, at, row
}

// readBack reads a row back as part of a table.
func readBack(t testing.TB, table string, at time.Time, row storage.Row) ([]tailindex.Row, error) {
	s := mem.New(mem.Options{})
	if err := s.Upsert(t.Context(), table, "web~0", []storage.Row{row}); err != nil {
		t.Skip(err)
	}
	r := tailindex.NewReader(s, tailindex.Options{Now: func() time.Time { return at }})
	return r.Newest(t.Context(), "web", false, 10)
}

// An invalid row is reported with its reason, and none of its records are returned.
func TestDamagedRows(t *testing.T) {
	table, at, good := someRow(t)
	if rows, err := readBack(t, table, at, good); err != nil || len(rows) != 1 {
		t.Fatalf("the row itself: %v, %v", rows, err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := z.EncodeAll(make([]byte, 64<<20), nil)
	lines := good.Props["lines"].(string)
	one, two, _ := strings.Cut(lines, "\n")
	one += "\n"
	for _, c := range []struct {
		name, prop string
		value      any
		want       string
	}{
		{"newer format", "format", int64(2), "use a newer one"},
		{"no format", "format", nil, "not of the newest records"},
		{"no arrival", "arrived", "soon", "arrived is no time"},
		{"no first", "first", "2026", "first is no time"},
		{"another last", "last", "2026-11-20T15:04:05.000000000Z", "times do not fit its key"},
		{"negative count", "count", int64(-1), "counts"},
		{"great count", "count", int64(1 << 60), "counts"},
		{"more lines than a row has", "count", int64(1000), "counts"},
		{"another count", "count", int64(3), "2 identities for 3 lines"},
		{"omitted too many", "omitted", int64(3), "counts"},
		{"no identities", "ids", []byte{}, "identities are damaged"},
		{"identities with a rest", "ids", append(good.Props["ids"].([]byte), 0), "identities are damaged"},
		{"identities of no origin", "ids", []byte{0, 2, 0, 0, 0, 0}, "identities are damaged"},
		{"many origins", "ids", []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, "identities are damaged"},
		{"too few lines", "lines", one, "fewer lines"},
		{"too many lines", "lines", lines + one, "more lines"},
		{"unsorted lines", "lines", two + one, "out of order"},
		{"no newline", "lines", strings.TrimSuffix(lines, "\n"), "fewer lines"},
		{"another service", "lines", strings.ReplaceAll(lines, `"service":"web"`, `"service":"wez"`), "not of this service"},
		{"a service within the level", "lines", strings.ReplaceAll(lines, `"service":"web"`, `"service":"x","service":"web"`), "is not canonical"},
		{"not canonical", "lines", strings.ReplaceAll(lines, `{"ts"`, `{"Ts"`), "is not canonical"},
		{"another time", "lines", strings.ReplaceAll(lines, `{"ts":"2000`, `{"ts":"1999`), "not of the row's times"},
		{"bomb", "z0", bomb[:min(len(bomb), storage.MaxBinary)], "do not decompress"},
		{"nothing packed", "z0", []byte{}, "fewer lines"},
		{"not packed", "z0", []byte("hello"), "do not decompress"},
	} {
		row := storage.Row{Key: good.Key, Props: maps.Clone(good.Props)}
		row.Props[c.prop] = c.value
		if c.value == nil {
			delete(row.Props, c.prop)
		}
		if c.prop == "z0" {
			delete(row.Props, "lines")
		}
		rows, err := readBack(t, table, at, row)
		var bad *tailindex.RowError
		if len(rows) != 0 || !errors.As(err, &bad) || bad.Key != good.Key || !strings.Contains(bad.Reason, c.want) {
			t.Errorf("%s: %v, %v; want %q", c.name, rows, err, c.want)
		}
	}
	for _, key := range []string{"a", "a-x", good.Key + "x", good.Key[:31], good.Key[:31] + "01", strings.Replace(good.Key, "0badcafe", "0BADCAFE", 1), "a-+" + good.Key[3:]} {
		rows, err := readBack(t, table, at, storage.Row{Key: key, Props: good.Props})
		var bad *tailindex.RowError
		if key == "a" { // not in the range
			continue
		}
		if len(rows) != 0 || !errors.As(err, &bad) {
			t.Errorf("key %s: %v, %v", key, rows, err)
		}
	}
}

// An earlier version wrote the beginning of a long line, and marked it by an odd origin.
// A reader counts such a line among the omitted.
func TestCutRows(t *testing.T) {
	table, at, row := someRow(t)
	ids := row.Props["ids"].([]byte)
	for _, cut := range [][]int{{1}, {2}, {1, 2}} {
		old := storage.Row{Key: row.Key, Props: maps.Clone(row.Props)}
		marked := slices.Clone(ids)
		for _, n := range cut {
			marked[len(ids)-2*n]++
		}
		old.Props["ids"] = marked
		rows, err := readBack(t, table, at, old)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%v: %v, %v", cut, rows, err)
		}
		if r := rows[0]; len(r.Entries) != 2-len(cut) || r.Omitted != len(cut) || r.Count != 2 || r.OldestOmitted() {
			t.Errorf("%v: %+v", cut, r)
		}
		if len(cut) == 1 && string(rows[0].Entries[0].Line) != strings.SplitAfter(row.Props["lines"].(string), "\n")[cut[0]-1] {
			t.Errorf("%v: %s is left", cut, rows[0].Entries[0].Line)
		}
	}
}

// A row with any contents is read whole or refused, and the returned records are
// in order and within bounds.
func FuzzRow(f *testing.F) {
	lines := line(time.Unix(1800000000, 0), "info", "web", "one") + line(time.Unix(1800000001, 0), "error", "web", "two")
	ids := append(append([]byte{1}, make([]byte, 16)...), 2, 0, 0, 0, 1)
	last := "2027-01-15T08:00:01.000000000Z"
	key := "a-" + "2516192639987999999" + "-0badcafe-1"
	f.Add(key, "2027-01-15T08:00:00.000000000Z", last, int64(2), int64(0), ids, lines, []byte(nil))
	f.Add(key, "2027-01-15T08:00:00.000000000Z", last, int64(3), int64(1), ids, "", []byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, key, first, last string, count, omitted int64, ids []byte, lines string, packed []byte) {
		at := time.Unix(1800000002, 0)
		row := storage.Row{Key: key, Props: map[string]any{
			"format": int64(1), "store": "", "arrived": "2027-01-15T08:00:02.000000000Z",
			"first": first, "last": last, "count": count, "omitted": omitted, "ids": ids,
		}}
		if packed != nil {
			row.Props["z0"] = packed
		} else {
			row.Props["lines"] = lines
		}
		rows, err := readBack(t, tailindex.Table("tail", at), at, row)
		var bad *tailindex.RowError
		if err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
		for _, r := range rows {
			if len(r.Entries) > tailindex.MaxLines || r.Count != r.Omitted+len(r.Entries) || r.Omitted < 0 || r.Number == 0 {
				t.Fatalf("%+v", r)
			}
			for i := range r.Entries {
				e := &r.Entries[i]
				if i > 0 && r.Entries[i-1].Compare(e) >= 0 || e.Time < r.First || e.Time > r.Last || len(e.Line) > tailindex.MaxLine {
					t.Fatalf("entry %d of %+v", i, r)
				}
			}
		}
	})
}
