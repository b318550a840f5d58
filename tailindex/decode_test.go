package tailindex_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
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

// firstRow is a row of format 1 of the service web with two lines, and its table.
func firstRow() (table string, at time.Time, row storage.Row) {
	at = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	return "tail20000101", at, storage.Row{Key: "a-2524556159999999999-0badcafe-1", Props: map[string]any{
		"format": int64(1), "store": "", "process": "0badcafe", "number": int64(1),
		"arrived": "2000-01-01T00:00:00.100000000Z", "first": "2000-01-01T00:00:00.000000000Z", "last": "2000-01-01T00:00:00.000000001Z",
		"count": int64(2), "omitted": int64(0), "ids": append(append([]byte{1}, make([]byte, 15)...), 1, 2, 0, 0, 0, 1),
		"lines": line(at, "info", "web", "one") + line(at.Add(1), "error", "web", "two"),
	}}
}

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
	table, at, good := firstRow()
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
		{"newer format", "format", int64(3), "use a newer one"},
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
	table, at, row := firstRow()
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

// A body of another length or with another byte is refused, and so is one that some other
// program wrote.
func TestDamagedBodies(t *testing.T) {
	table, at, good := someRow(t)
	if rows, err := readBack(t, table, at, good); err != nil || len(rows) != 1 || len(rows[0].Entries) != 2 {
		t.Fatalf("the row itself: %v, %v", rows, err)
	}
	body := good.Props["d"].([]byte)
	plain := body[:len(body)-4]
	refused := func(name string, body []byte, want string) {
		row := storage.Row{Key: good.Key, Props: maps.Clone(good.Props)}
		row.Props["d"] = body
		rows, err := readBack(t, table, at, row)
		var bad *tailindex.RowError
		if len(rows) != 0 || !errors.As(err, &bad) || !strings.Contains(bad.Reason, want) {
			t.Errorf("%s: %v, %v; want %q", name, rows, err, want)
		}
	}
	for i := range body {
		other := slices.Clone(body)
		other[i] ^= 1
		refused(fmt.Sprint("byte ", i), other, "checksum")
		refused(fmt.Sprint("length ", i), body[:i], "checksum")
	}
	frame := bytes.Index(plain, []byte("\x28\xb5\x2f\xfd"))
	frameWith := func(text []byte, options ...zstd.EOption) []byte {
		z, err := zstd.NewWriter(nil, options...)
		if err != nil {
			t.Fatal(err)
		}
		return z.EncodeAll(text, slices.Clone(plain[:frame]))
	}
	frameOf := func(options ...zstd.EOption) []byte {
		return frameWith([]byte(line(at, "info", "web", "one")+line(at.Add(1), "error", "web", "two")), options...)
	}
	// Lines that are too long only with their numbers: one of 64 digits, in 32 bytes.
	ids := []byte{1, 15, 1, 2, 0, 4}
	head := plain[:bytes.Index(plain, ids)+len(ids)]
	text := append(bytes.Repeat([]byte("x"), tailindex.MaxLines*tailindex.MaxLine-10), 1, 0x20+64)
	overlong := slices.Concat(head, []byte{32}, make([]byte, 32), frameWith(text)[frame:])
	foreign := zstd.WithEncoderDictRaw(40000, []byte(strings.Repeat("another dictionary ", 20)))
	unknown := append([]byte{2}, plain[1:]...)
	count := slices.Clone(plain)
	count[1]++
	more := append(append(slices.Clone(plain[:1]), 3, 0), plain[3:]...)
	for _, c := range []struct {
		name string
		body []byte
		want string
	}{
		{"nothing", nil, "checksum"},
		{"another flag", unknown, "use a newer one"},
		{"another dictionary", frameOf(foreign), "use a newer one"},
		{"no dictionary, numbers left over", frameOf(), "numbers do not fit"},
		{"another count", count, "2 identities for 3 lines"},
		{"a count without its omitted", more, "2 identities for 3 lines"},
		{"no frame", plain[:frame], "numbers do not fit"},
		{"half a frame", plain[:len(plain)-2], "do not decompress"},
		{"the head alone", plain[:4], "head is damaged"},
		{"a bomb", frameWith(make([]byte, 64<<20)), "do not decompress"},
		{"a bomb of numbers", overlong, "too long"},
	} {
		refused(c.name, tailindex.Sealed(c.body), c.want)
	}
}

// A table has rows of both formats after an upgrade, and while old and new ingesters run. Readers
// and followers return them together.
func TestBothFormats(t *testing.T) {
	table, at, first := firstRow()
	_, _, second := someRow(t)
	first.Key = strings.Replace(first.Key, "0badcafe", "0ddba11e", 1)
	first.Props["process"] = "0ddba11e"
	s := mem.New(mem.Options{})
	write := func(row storage.Row) {
		if err := s.Upsert(t.Context(), table, "web~0", []storage.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	r := tailindex.NewReader(s, tailindex.Options{Now: func() time.Time { return at.Add(time.Second) }})
	watch := r.Watch("web", false, at.Add(-time.Second))
	write(first)
	for _, want := range []string{"0ddba11e", "0badcafe"} {
		rows, missed, err := watch.Poll(t.Context())
		if err != nil || len(missed) != 0 || len(rows) != 1 || rows[0].Process != want || rows[0].Number != 1 {
			t.Errorf("%s: %+v, %v, %v", want, rows, missed, err)
		}
		write(second)
	}
	rows, err := r.Newest(t.Context(), "web", false, 100)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%+v, %v", rows, err)
	}
	for i := range rows[0].Entries {
		if a, b := rows[0].Entries[i], rows[1].Entries[i]; string(a.Line) != string(b.Line) || a.Time != b.Time || a.ID.Index != b.ID.Index {
			t.Errorf("line %d: %+v and %+v", i, a, b)
		}
	}
	if len(rows[0].Entries) != 2 || len(rows[1].Entries) != 2 {
		t.Errorf("%+v", rows)
	}
}

// Rows that earlier versions wrote are read as they were, and those of this version are read by
// later ones: testdata has some of each format.
func TestStoredRows(t *testing.T) {
	for _, format := range []string{"1", "2"} {
		for key, got := range storedRows(t, "testdata/format"+format+".json") {
			want := map[string]string{
				"a web": "4 of 3 lines, 1 omitted", "e web": "2 of 2 lines, 0 omitted", "a big": "130 of 100 lines, 30 omitted",
			}[key]
			if shown := fmt.Sprintf("%d of %d lines, %d omitted", got.Count, len(got.Entries), got.Omitted); shown != want {
				t.Errorf("format %s, row %s: %s, want %s", format, key, shown, want)
			}
			start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
			if !got.Arrived.Equal(start.Add(100*time.Millisecond)) || got.Process != "0badcafe" || got.Number != 1 {
				t.Errorf("format %s, row %s: %+v", format, key, got)
			}
			for i, e := range got.Entries {
				var want string
				switch {
				case got.Service == "big":
					at := start.Add(time.Duration(30+i) * time.Millisecond)
					want = line(at, "info", "big", fmt.Sprint(strings.Repeat("text of some length ", 30), 30+i))
				default:
					if got.Errors {
						i++
					}
					want = line(start.Add(time.Duration(i)*time.Microsecond), []string{"info", "error", "critical"}[i], "web", []string{"one", "two ü", "three"}[i])
				}
				if string(e.Line) != want {
					t.Errorf("format %s, row %s, line %d: %s", format, key, i, e.Line)
				}
			}
		}
	}
}

// storedRows reads rows back by kind and service.
func storedRows(t *testing.T, file string) map[string]tailindex.Row {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var stored []struct {
		Table, Partition, Key string
		Props                 map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	s := mem.New(mem.Options{})
	for _, r := range stored {
		row := storage.Row{Key: r.Key, Props: map[string]any{}}
		for name, p := range r.Props {
			for kind, v := range p {
				var text string
				var number int64
				var binary []byte
				switch kind {
				case "string":
					err = json.Unmarshal(v, &text)
					row.Props[name] = text
				case "int64":
					err = json.Unmarshal(v, &number)
					row.Props[name] = number
				default:
					err = json.Unmarshal(v, &binary)
					row.Props[name] = binary
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := s.Upsert(t.Context(), r.Table, r.Partition, []storage.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]tailindex.Row{}
	r := tailindex.NewReader(s, tailindex.Options{Now: func() time.Time { return time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC) }})
	for _, service := range []string{"web", "big"} {
		for _, errs := range []bool{false, true} {
			rows, err := r.Newest(t.Context(), service, errs, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				all[map[bool]string{false: "a ", true: "e "}[errs]+service] = row
			}
		}
	}
	if len(all) != len(stored) || len(all) != 3 {
		t.Fatalf("%d rows of %d", len(all), len(stored))
	}
	return all
}

// The lines of a row need the dictionary of its format, which docs/FORMAT-TAIL.md has.
func TestDictionary(t *testing.T) {
	table, at, row := someRow(t)
	body := row.Props["d"].([]byte)
	var h zstd.Header
	if err := h.Decode(body[bytes.Index(body, []byte("\x28\xb5\x2f\xfd")):]); err != nil || h.DictionaryID != 32801 {
		t.Errorf("dictionary %d, %v", h.DictionaryID, err)
	}
	if rows, err := readBack(t, table, at, row); err != nil || len(rows) != 1 {
		t.Errorf("%v, %v", rows, err)
	}
	page, err := os.ReadFile("../docs/FORMAT-TAIL.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("dictionary.bin")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.ReplaceAll(string(page), "\n", ""), "```text"+base64.StdEncoding.EncodeToString(file)+"```") {
		t.Error("docs/FORMAT-TAIL.md has another dictionary")
	}
}

// Any text comes back from the numbers that are kept apart from it.
func FuzzNumbers(f *testing.F) {
	for _, text := range []string{
		"", "12", "007 007 123 0123456789012345678901234567890", "deadbeef1 deadbeef1 0badcafe deadbeef",
		`{"ts":"2026-11-10T12:00:00.123456000Z","id":"550e8400-e29b-41d4-a716-446655440000","n":1e100000}` + "\n",
		strings.Repeat("a1", 40), "999 18446744073709551615 000000 1000000000", "\xff123\xfe",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if lines, ok := tailindex.Apart(text); ok && lines != text {
			t.Errorf("%q became %q", text, lines)
		}
	})
}

// A body with any contents is read whole or refused.
func FuzzBody(f *testing.F) {
	at := time.Unix(1800000002, 0)
	key := "a-" + "2516023007989999999" + "-0badcafe-1"
	body, err := os.ReadFile("testdata/body")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(key, body[:len(body)-4])
	f.Fuzz(func(t *testing.T, key string, body []byte) {
		rows, err := readBack(t, tailindex.Table("tail", at), at, storage.Row{Key: key, Props: map[string]any{
			"format": int64(2), "arrived": "2027-01-15T08:00:02.000000000Z", "d": tailindex.Sealed(body),
		}})
		checkRead(t, rows, err)
	})
}

// A row with any contents is read whole or refused, and the returned records are
// in order and within bounds.
func FuzzRow(f *testing.F) {
	lines := line(time.Unix(1800000000, 0), "info", "web", "one") + line(time.Unix(1800000001, 0), "error", "web", "two")
	ids := append(append([]byte{1}, make([]byte, 16)...), 2, 0, 0, 0, 1)
	last := "2027-01-15T08:00:01.000000000Z"
	key := "a-" + "2516023007989999999" + "-0badcafe-1"
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
		checkRead(t, rows, err)
	})
}

// checkRead checks the rows of a read of anything.
func checkRead(t *testing.T, rows []tailindex.Row, err error) {
	t.Helper()
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
}
