package tailindex_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
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

// parts are the contents of a row's body. A frame stands in place of the lines.
type parts struct {
	count, omitted, span uint64
	below                byte
	ids, frame           []byte
	lines                string
}

// body puts the parts together.
func (p *parts) body() []byte {
	b := binary.AppendUvarint([]byte{0}, p.count)
	b = binary.AppendUvarint(b, p.omitted)
	b = binary.AppendUvarint(append(b, p.below), p.span)
	b = append(append(b, p.ids...), 0)
	if p.frame != nil {
		return append(b, p.frame...)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return z.EncodeAll([]byte(p.lines), b)
}

// craftedRow is a row of the service web, and its table.
func craftedRow(p *parts) (table string, at time.Time, row storage.Row) {
	at = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	return "tail20000101", at, storage.Row{Key: "a-2524556159999999999-0badcafe-1", Props: map[string]any{
		"format": int64(2), "arrived": "2000-01-01T00:00:00.100000000Z", "d": tailindex.Sealed(p.body()),
	}}
}

// twoLines are the parts of a row with two lines.
func twoLines() parts {
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	return parts{count: 2, below: 1, span: 1, ids: append(append([]byte{1, 0, 1}, make([]byte, 15)...), 2, 0, 4),
		lines: line(at, "info", "web", "one") + line(at.Add(1), "error", "web", "two")}
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
	sound := twoLines()
	table, at, good := craftedRow(&sound)
	rows, err := readBack(t, table, at, good)
	if err != nil || len(rows) != 1 || len(rows[0].Entries) != 2 || rows[0].Entries[1].ID.Index != 1 {
		t.Fatalf("the row itself: %+v, %v", rows, err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := sound.lines
	one, two, _ := strings.Cut(lines, "\n")
	one += "\n"
	refused := func(name string, row storage.Row, want string) {
		rows, err := readBack(t, table, at, row)
		var bad *tailindex.RowError
		if len(rows) != 0 || !errors.As(err, &bad) || bad.Key != good.Key || !strings.Contains(bad.Reason.Error(), want) || errors.Is(err, storage.ErrOlder) {
			t.Errorf("%s: %v, %v; want %q", name, rows, err, want)
		}
	}
	for _, c := range []struct {
		name, prop string
		value      any
		want       string
	}{
		{"newer format", "format", int64(3), "use a newer one"},
		{"no format", "format", nil, "not of the newest records"},
		{"format 0", "format", int64(0), "not of the newest records"},
		{"no arrival", "arrived", "soon", "arrived is no time"},
	} {
		row := storage.Row{Key: good.Key, Props: maps.Clone(good.Props)}
		row.Props[c.prop] = c.value
		if c.value == nil {
			delete(row.Props, c.prop)
		}
		refused(c.name, row, c.want)
	}
	for _, c := range []struct {
		name string
		edit func(p *parts)
		want string
	}{
		{"negative count", func(p *parts) { p.count = 1 << 63 }, "head is damaged"},
		{"great count", func(p *parts) { p.count = 1 << 60 }, "counts"},
		{"more lines than a row has", func(p *parts) { p.count = 1000 }, "counts"},
		{"another count", func(p *parts) { p.count = 3 }, "2 identities for 3 lines"},
		{"omitted too many", func(p *parts) { p.omitted = 3 }, "counts"},
		{"a great span", func(p *parts) { p.span = 1 << 63 }, "head is damaged"},
		{"no tick", func(p *parts) { p.below = 100 }, "head is damaged"},
		{"identities with a rest", func(p *parts) { p.ids = append(p.ids, 5) }, "do not decompress"},
		{"identities of no origin", func(p *parts) { p.ids = []byte{0, 2, 0, 0} }, "identities are damaged"},
		{"many origins", func(p *parts) { p.ids = []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1} }, "identities are damaged"},
		{"an origin of 17 bytes", func(p *parts) { p.ids[1] = 17 }, "identities are damaged"},
		{"an index before the first", func(p *parts) { p.ids[len(p.ids)-2] = 2 }, "identities are damaged"},
		{"too few lines", func(p *parts) { p.lines = one }, "fewer lines"},
		{"too many lines", func(p *parts) { p.lines += one }, "more lines"},
		{"unsorted lines", func(p *parts) { p.lines = two + one }, "out of order"},
		{"no newline", func(p *parts) { p.lines = strings.TrimSuffix(lines, "\n") }, "fewer lines"},
		{"another service", func(p *parts) { p.lines = strings.ReplaceAll(lines, `"service":"web"`, `"service":"wez"`) }, "not of this service"},
		{"a service within the level", func(p *parts) {
			p.lines = strings.ReplaceAll(lines, `"service":"web"`, `"service":"x","service":"web"`)
		}, "is not canonical"},
		{"not canonical", func(p *parts) { p.lines = strings.ReplaceAll(lines, `{"ts"`, `{"Ts"`) }, "is not canonical"},
		{"another time", func(p *parts) { p.lines = strings.ReplaceAll(lines, `{"ts":"2000`, `{"ts":"1999`) }, "not of the row's times"},
		{"bomb", func(p *parts) { p.frame = z.EncodeAll(make([]byte, 64<<20), nil) }, "do not decompress"},
		{"nothing packed", func(p *parts) { p.frame = []byte{} }, "fewer lines"},
		{"not packed", func(p *parts) { p.frame = []byte("hello") }, "do not decompress"},
	} {
		p := twoLines()
		c.edit(&p)
		_, _, row := craftedRow(&p)
		refused(c.name, row, c.want)
	}
	for _, key := range []string{"a", "a-x", good.Key + "x", good.Key[:31], good.Key[:31] + "01", "a-0000000000000000000-0badcafe-1", strings.Replace(good.Key, "0badcafe", "0BADCAFE", 1), "a-+" + good.Key[3:]} {
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
		if len(rows) != 0 || !errors.As(err, &bad) || !strings.Contains(bad.Reason.Error(), want) {
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

// A row that only an earlier version wrote is refused by the name of the commit to go through. The
// rows beside it are returned, to readers and to followers.
func TestOlderRow(t *testing.T) {
	table, at, row := someRow(t)
	older := storage.Row{Key: strings.Replace(row.Key, "0badcafe", "0ddba11e", 1), Props: map[string]any{
		"format": int64(1), "store": "", "process": "0ddba11e", "number": int64(1),
		"arrived": "2000-01-01T00:00:00.100000000Z", "first": "2000-01-01T00:00:00.000000000Z", "last": "2000-01-01T00:00:00.000000001Z",
		"count": int64(1), "omitted": int64(0), "ids": append(append([]byte{1}, make([]byte, 16)...), 1, 0, 0),
		"lines": line(at.Add(1), "error", "web", "older"),
	}}
	s := mem.New(mem.Options{})
	if err := s.Upsert(t.Context(), table, "web~0", []storage.Row{older, row}); err != nil {
		t.Fatal(err)
	}
	r := tailindex.NewReader(s, tailindex.Options{Now: func() time.Time { return at.Add(time.Second) }})
	newest, err := r.Newest(t.Context(), "web", false, 100)
	written, werr := r.Written(t.Context(), "web", false, at.Add(-time.Second))
	for _, got := range []struct {
		rows []tailindex.Row
		err  error
	}{{newest, err}, {written, werr}} {
		var bad *tailindex.RowError
		if len(got.rows) != 1 || got.rows[0].Process != "0badcafe" || !errors.Is(got.err, storage.ErrOlder) ||
			!errors.As(got.err, &bad) || bad.Key != older.Key || !strings.Contains(got.err.Error(), "commit a960ca37") {
			t.Errorf("%+v, %v", got.rows, got.err)
		}
	}
}

// Rows that versions since commit a960ca37 wrote are read as they were: testdata has some.
func TestStoredRows(t *testing.T) {
	for key, got := range storedRows(t, "testdata/format2.json") {
		want := map[string]string{
			"a web": "4 of 3 lines, 1 omitted", "e web": "2 of 2 lines, 0 omitted", "a big": "130 of 100 lines, 30 omitted",
		}[key]
		if shown := fmt.Sprintf("%d of %d lines, %d omitted", got.Count, len(got.Entries), got.Omitted); shown != want {
			t.Errorf("row %s: %s, want %s", key, shown, want)
		}
		start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		if !got.Arrived.Equal(start.Add(100*time.Millisecond)) || got.Process != "0badcafe" || got.Number != 1 {
			t.Errorf("row %s: %+v", key, got)
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
				t.Errorf("row %s, line %d: %s", key, i, e.Line)
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

// The lines of a row need the dictionary of its format, which docs/reference/format-tail.md has.
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
	page, err := os.ReadFile("../docs/reference/format-tail.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("dictionary.bin")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.ReplaceAll(string(page), "\n", ""), "```text"+base64.StdEncoding.EncodeToString(file)+"```") {
		t.Error("docs/reference/format-tail.md has another dictionary")
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
	sound := twoLines()
	f.Add("a-2524556159999999999-0badcafe-1", sound.count, sound.omitted, sound.span, sound.below, sound.ids, sound.lines, []byte(nil))
	f.Add("a-2524556159999999999-0badcafe-1", uint64(3), uint64(1), sound.span, sound.below, sound.ids, "", []byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, key string, count, omitted, span uint64, below byte, ids []byte, lines string, frame []byte) {
		table, at, row := craftedRow(&parts{count: count, omitted: omitted, span: span, below: below, ids: ids, lines: lines, frame: frame})
		row.Key = key
		rows, err := readBack(t, table, at, row)
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
