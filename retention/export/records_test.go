package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parquet-go/parquet-go"

	"blobtail/internal/dev/testkit/box"
	"blobtail/reading"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
	"blobtail/tailindex"
)

// A mark as a reader of an export knows it.
type mark struct {
	Service, Date string
	Part          int
	Records       int64
	Files         []string
}

// marks are the newest ones of each day, by the beginning of the keys of the day.
func marks(t *testing.T, s storage.BlobStore) map[string]mark {
	t.Helper()
	all := map[string]mark{}
	for _, key := range storagetest.KeysOf(t, s, "") {
		day, name := key[:strings.LastIndexByte(key, '/')+1], key[strings.LastIndexByte(key, '/')+1:]
		if !strings.HasPrefix(name, "_whole.") {
			continue
		}
		var m mark
		if err := json.Unmarshal(storagetest.Body(t, s, key), &m); err != nil {
			t.Fatal(err)
		}
		if day != fmt.Sprintf("service=%s/date=%s/", m.Service, m.Date) {
			t.Errorf("%s says %+v", key, m)
		}
		if was, ok := all[day]; !ok || m.Part > was.Part {
			all[day] = m
		}
	}
	return all
}

// sound checks that all that a mark names is there.
func sound(t *testing.T, s storage.BlobStore) {
	t.Helper()
	for day, m := range marks(t, s) {
		n := int64(0)
		for _, name := range m.Files {
			n += opened(t, storagetest.Body(t, s, day+name)).NumRows()
		}
		if n != m.Records {
			t.Errorf("%s has %d records, %+v", day, n, m)
		}
	}
}

func opened(t *testing.T, body []byte) *parquet.File {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// outside runs a function outside of all bubbles of synctest. parquet-go keeps decoders for all of its
// readers, and one that was made in a bubble has a channel that no other bubble may use.
func outside(f func()) {
	calls <- f
	calls <- func() {} // it has ended
}

var calls = make(chan func())

func TestMain(m *testing.M) {
	go func() {
		for f := range calls {
			f()
		}
	}()
	os.Exit(m.Run())
}

// rows are the records of a file as objects of JSON with sorted keys, without the members that are null.
func rows(t *testing.T, f *parquet.File) (all []map[string]any) {
	t.Helper()
	buf := make([]parquet.Row, 100)
	r := parquet.NewReader(f)
	defer outside(func() { r.Close() })
	for {
		var n int
		var err error
		outside(func() { n, err = r.ReadRows(buf) })
		for _, row := range buf[:n] {
			object := map[string]any{}
			for _, v := range row {
				c := f.Schema().Fields()[v.Column()]
				switch logical := c.Type().LogicalType(); {
				case v.IsNull():
				case c.Name() == "time":
					object["ts"] = string(record.AppendTime(nil, v.Int64()))
				case c.Name() == "message":
					object["msg"] = string(v.ByteArray())
				case c.Name() == "rest":
					maps.Copy(object, decoded(t, v.ByteArray()).(map[string]any))
				case v.Kind() == parquet.Int64:
					object[c.Name()] = json.Number(strconv.FormatInt(v.Int64(), 10))
				case v.Kind() == parquet.Double:
					object[c.Name()] = json.Number(strconv.FormatFloat(v.Double(), 'g', -1, 64))
				case v.Kind() == parquet.Boolean:
					object[c.Name()] = v.Boolean()
				case logical != nil && logical.String() == "JSON":
					object[c.Name()] = decoded(t, v.ByteArray())
				default:
					object[c.Name()] = string(v.ByteArray())
				}
			}
			all = append(all, object)
		}
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// read are the records of a read of the store, as rows has those of an export. Fields in text have the
// texts of all their values.
func read(t *testing.T, h *box.House, service string, day time.Time, text ...string) (all []map[string]any) {
	t.Helper()
	o := reading.OpenOptions{Blobs: h.Store, Tables: h.Store, Now: h.Now, Off: true, Tail: tailindex.Options{Prefix: "tail"}}
	r, err := reading.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ask := reading.Ask{Services: []string{service}, Range: reading.Range{From: day.UnixNano(), To: day.Add(24 * time.Hour).UnixNano()}}
	out, err := r.For(nil).Records(t.Context(), ask, func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			object := decoded(t, line).(map[string]any)
			for key, v := range object {
				if _, isText := v.(string); v == nil {
					delete(object, key)
				} else if !isText && slices.Contains(text, key) {
					raw, _ := record.Lookup(line, key)
					object[key] = string(raw)
				}
			}
			all = append(all, object)
		}
		return nil
	})
	if err != nil || !out.Complete() {
		t.Fatal(err, out.Problems())
	}
	return all
}

// compare checks that an export has the records of a day in their order, and returns its files.
func compare(t *testing.T, h *box.House, to storage.BlobStore, service string, day time.Time, text ...string) (all []*parquet.File) {
	t.Helper()
	want := read(t, h, service, day, text...)
	var got []map[string]any
	at := fmt.Sprintf("service=%s/date=%s/", service, day.Format(time.DateOnly))
	for _, name := range marks(t, to)[at].Files {
		f := opened(t, storagetest.Body(t, to, at+name))
		all = append(all, f)
		got = append(got, rows(t, f)...)
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%d of %d and %d records:\n%v\n%v", i, len(got), len(want), got[min(i, len(got)-1)], want[min(i, len(want)-1)])
		}
	}
	return all
}

// columns are the names and types of the columns of a file.
func columns(f *parquet.File) (all []string) {
	for _, c := range f.Schema().Fields() {
		all = append(all, c.Name()+" "+c.Type().String())
	}
	return all
}

// Each field has a column of the type of its values, and what no column can have is in the last one. The
// export has all that a read of the store shows.
func TestTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, day := house(t)
		defer h.Stop()
		lines := []string{
			`"whole":1,"real":1.5,"yes":true,"text":"a","mixed":1,"list":[1,{"a":null}],"userId":"u1","none":null`,
			`"whole":-9223372036854775808,"real":2,"yes":false,"text":"\u00e4\u0000\"\\\ud800","mixed":"x","list":{"b":[]},"userId":"u2"`,
			`"whole":9223372036854775808,"real":9007199254740993,"yes":null,"text":"","mixed":[true],"userId":"u3","userid":"other"`,
			`"whole":null,"real":1e400,"mixed":false,"userId":"u4","Date":"x","REST":{"a":1},` +
				`"a b":1,"a,b":2,"":3,"a.b":4,"\u00fcber":5,"x\ty":6`,
			`"` + strings.Repeat("n", 200) + `":"long name","trace_id":"4bf92f3577b34da6"`,
		}
		for i, fields := range lines {
			level := []string{"info", "loud", "error"}[i%3]
			at := day.Add(time.Duration(i)*time.Hour + 123456789)
			send(t, h, box.Line{Time: at, Service: "web", Level: level, Msg: "tab\t\u00e9 \"q\"", Fields: fields})
		}
		send(t, h, box.Line{Time: day, Service: "web"})
		closes(t, h)
		to := mem.New(mem.Options{})
		if r := exports(t, h, to); r.Made != 1 || r.Records != 6 {
			t.Errorf("%+v", r)
		}
		f := compare(t, h, to, "web", day, "mixed")[0]
		want := []string{
			"time TIMESTAMP(isAdjustedToUTC=true,unit=NANOS)", "level STRING", "service STRING", "message STRING",
			"mixed STRING", "real DOUBLE", "userId STRING", "whole INT(64,true)", "text STRING", "yes BOOLEAN", "list JSON",
			"a.b INT(64,true)", "none STRING", "trace_id STRING", "\u00fcber INT(64,true)", "rest JSON",
		}
		if got := columns(f); !slices.Equal(got, want) {
			t.Errorf("%q\n%q", got, want)
		}
	})
}

// Of many fields the most frequent ones have columns. Groups of rows are in the order of time, with bounds,
// and the filters of ids know all of them.
func TestFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, day := house(t)
		defer h.Stop()
		var lines []box.Line
		for i := range 3000 {
			fields := fmt.Sprintf(`"request_id":"%032x","userID":%d,"often":%d`, i*7919, i, i%3)
			for n := range 1 + i%100 {
				fields += fmt.Sprintf(`,"f%02d":%d`, n, i)
			}
			lines = append(lines, box.Line{Time: day.Add(time.Duration(i) * time.Second), Service: "web", Fields: fields})
		}
		send(t, h, lines...)
		send(t, h, lines[100:200]...) // other records, of equal times
		closes(t, h)
		to := mem.New(mem.Options{})
		exports(t, h, to)
		f := compare(t, h, to, "web", day)[0]
		names := columns(f)
		if len(names) != 4+60+1 || !strings.HasPrefix(names[4], "f00 ") || !strings.HasPrefix(names[63], "f56 ") {
			t.Errorf("%d columns: %v", len(names), names)
		}
		for _, name := range []string{"request_id", "userID"} {
			c, _ := f.Schema().Lookup(name)
			for i := range 3100 {
				id := parquet.Int64Value(int64(i))
				if name == "request_id" {
					id = parquet.ByteArrayValue(fmt.Appendf(nil, "%032x", i*7919))
				}
				ok, err := f.RowGroups()[0].ColumnChunks()[c.ColumnIndex].BloomFilter().Check(id)
				if err != nil || i < 3000 && !ok {
					t.Fatalf("%s %v: %v, %v", name, id, ok, err)
				}
			}
		}
		stats := f.Metadata().RowGroups[0].Columns[0].MetaData.Statistics
		first, last := parquet.Int64.Value(stats.MinValue).Int64(), parquet.Int64.Value(stats.MaxValue).Int64()
		if first != day.UnixNano() || last != day.Add(2999*time.Second).UnixNano() {
			t.Errorf("times from %d to %d", first, last)
		}
	})
}

// A large day has several files and groups of rows. A late record changes none before it. In a directory
// they are files that any program reads, and what a killed run has left goes.
func TestLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, day := house(t)
		defer h.Stop()
		rnd := rand.New(rand.NewPCG(1, 2))
		text := make([]byte, 100<<10)
		for i := range 5 {
			var lines []box.Line
			for n := range 60 {
				for k := range text {
					text[k] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[rnd.IntN(64)]
				}
				at := day.Add(time.Duration(i)*2*time.Hour + time.Duration(n)*time.Minute)
				lines = append(lines, box.Line{Time: at, Service: "web", Msg: string(text)})
			}
			send(t, h, lines...)
		}
		closes(t, h)
		path := t.TempDir()
		to, err := dir.Open(path, dir.Options{Bare: true})
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		exports(t, h, to)
		all := compare(t, h, to, "web", day)
		was := files(t, to)
		if len(all) != 2 || len(all[0].RowGroups()) != 1 {
			t.Errorf("%d files: %v", len(all), was)
		}
		body, err := os.ReadFile(filepath.Join(path, was[0]))
		if err != nil || opened(t, body).NumRows() != all[0].NumRows() {
			t.Errorf("%v", err)
		}
		send(t, h, box.Line{Time: day.Add(21 * time.Hour), Service: "web"})
		closes(t, h)
		left := filepath.Join(path, filepath.Dir(was[0]), ".tmp-left")
		if err := os.WriteFile(left, []byte("a secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		exports(t, h, to)
		compare(t, h, to, "web", day)
		if now := files(t, to); len(now) != 2 || now[0] != was[0] || now[1] == was[1] {
			t.Errorf("%v, were %v", now, was)
		}
		if _, err := os.Stat(left); !os.IsNotExist(err) {
			t.Error(err)
		}
	})
}
