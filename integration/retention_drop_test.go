package integration_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/storagetest"
	"blobtail/tailindex"
)

// A day that contains a secret is dropped. Nothing of the secret is left anywhere in
// the store, and nothing else is missing.
func TestDropLeavesNothingOfASecret(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		e := newEstate(t, at, "default: 30d")
		root, isDir := strings.CutPrefix(at.store, "dir:")
		wal := t.TempDir()
		if isDir {
			wal = filepath.Join(root, ".wal") // its default place
		}
		p := start(t, at, wal, e.flag)
		secret := "hunter2-" + rand.Text()
		day := e.day(1)
		// As late as possible yesterday: for the newest records in tables, too.
		late := (day + 1).Start().Add(-time.Millisecond).UnixNano()
		leaking := appendRecord(nil, late, "oops", "the password is "+secret)
		leaking = append(leaking, bytes.Replace(appendRecord(nil, late, "ouch", secret), []byte("info"), []byte("error"), 1)...)
		p.mustPost("/ingest/web", leaking)
		p.mustPost("/ingest/web", e.lines("web", 10, 0, 1, 2))
		p.mustPost("/ingest/web2", e.lines("web2", 10, 0, 1, 2))
		l := &leak{t: t, at: at, prefix: e.prefix, secret: []byte(secret), service: "web"}
		var packed [][]byte // of the rows with it
		testkit.Until(t, "the secret is in a table", func() bool {
			_, packed = l.tables()
			return len(packed) > 1 // one is of errors
		})
		p.mustFlush()
		if len(l.blobs()) == 0 {
			t.Fatal("the secret is in no blob: this test finds nothing")
		}
		before := logs(t, at)

		// Without the hash it reports the records to be deleted.
		out, errs := e.must(2, "drop", "web", "--day", day.String())
		m := regexp.MustCompile(`--confirm ([0-9a-f]{64})`).FindStringSubmatch(out + errs)
		if m == nil {
			t.Fatalf("no hash to confirm in\n%s%s", out, errs)
		}
		if got := logs(t, at); !slices.Equal(got, before) {
			t.Fatalf("something is gone: %v", got)
		}
		e.must(0, "drop", "web", "--day", day.String(), "--confirm", m[1])
		if rows, _ := l.tables(); len(rows) > 0 || len(l.blobs()) > 0 {
			t.Errorf("the secret is still in %v, %v", rows, l.blobs())
		}
		want := slices.DeleteFunc(slices.Clone(before), func(k string) bool {
			return len(of([]string{k}, "web", func(d horizon.Day) bool { return d == day })) > 0
		})
		if got := logs(t, at); !slices.Equal(got, want) || len(want) != len(before)-2 {
			t.Errorf("what stays: %v, want %v", got, want)
		}
		// An ingester that stops keeps the last segment of its log, with its
		// contents, until it starts again. That is checked below.
		if code, _ := p.stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if isDir {
			for _, text := range append(packed, []byte(secret)) {
				if files := grep(t, root, text[len(text)/4:len(text)*3/4], ".wal"); len(files) > 0 {
					t.Errorf("the secret is still in %v", files)
				}
			}
		}
		delete(e.want["web"], day)
		e.counts("web", 0)
		e.counts("web2", 0)
		for _, args := range [][]string{{"web", "-n", "1000"}, {"tail", "web", "-n", "100"}, {"web", "-F", secret}} {
			out, note, code := answered(t, at, args...)
			if bytes.Contains(out, []byte(secret)) || code > 1 || !strings.Contains(note, "expired") && args[0] != "tail" {
				t.Errorf("logquery %v: exit code %d, %s\n%s", args, code, note, out)
			}
		}

		// Records sent again are answered, and kept nowhere.
		p = start(t, at, wal, e.flag)
		e.knows(p, "web", day)
		again := appendRecord(nil, late, "again", "it is still "+secret)
		if a := p.expired("/ingest/web", append(again, e.lines("web", 1, 0)...)); a != (expiring{Accepted: 1, Expired: 1}) {
			t.Errorf("%+v", a)
		}
		control := &leak{t: t, at: at, prefix: e.prefix, secret: fmt.Appendf(nil, "web-%s-11 ", e.day(0)), service: "web"}
		testkit.Until(t, "what came with it is in a table", func() bool {
			rows, _ := control.tables()
			return len(rows) > 0
		})
		p.mustFlush()
		if rows, _ := l.tables(); len(rows) > 0 || len(l.blobs()) > 0 {
			t.Errorf("the secret is in %v, %v again", rows, l.blobs())
		}
		p.stop()
		if isDir {
			if files := grep(t, root, []byte(secret)); len(files) > 0 {
				t.Errorf("the secret is in %v again", files)
			}
		}
		e.counts("web", 0)
	})
}

// leak searches a store for a text, also in compressed form.
type leak struct {
	t       testing.TB
	at      place
	prefix  string // of the tail's tables
	secret  []byte
	service string
}

func (l *leak) in(data []byte) bool {
	return bytes.Contains(data, l.secret) || bytes.Contains(unpacked(l.t, data), l.secret)
}

// unpacked returns the decompressed zstd data at the start of some bytes.
func unpacked(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out, err := z.DecodeAll(data, nil)
	if err != nil && len(out) == 0 {
		return nil // not zstd
	}
	return out
}

// blobs returns the objects that hold it.
func (l *leak) blobs() (found []string) {
	l.t.Helper()
	store := blobsOfPlace(l.t, l.at)
	for _, key := range keys(l.t, l.at, "") {
		if l.in(storagetest.Body(l.t, store, key)) {
			found = append(found, key)
		}
	}
	return found
}

// tables returns the rows of the service that hold it, among those of its newest 100 records, and
// their packed bodies.
func (l *leak) tables() (found []string, bodies [][]byte) {
	l.t.Helper()
	tables, end := tablesOf(l.t, l.at)
	defer end()
	for _, errs := range []bool{false, true} {
		rows, err := tailindex.NewReader(tables, tailindex.Options{Prefix: l.prefix, Store: spec(l.t, l.at).Name()}).Newest(l.t.Context(), l.service, errs, tailindex.MaxLines)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, row := range rows {
			if row.Omitted > 0 {
				l.t.Fatalf("row %s omits records: this test does not see all", row.Key)
			}
			if slices.ContainsFunc(row.Entries, func(e record.Entry) bool { return l.in(e.Line) }) {
				found = append(found, row.Key)
			}
		}
	}
	for name, err := range tables.Tables(l.t.Context(), l.prefix) {
		if err != nil {
			l.t.Fatal(err)
		}
		for shard := range tailindex.DefaultShards {
			for row, err := range tables.Scan(l.t.Context(), name, tailindex.Partition(l.service, shard), "", "", 0) {
				if errors.Is(err, storage.ErrNotExist) {
					break
				}
				if err != nil {
					l.t.Fatal(err)
				}
				if body, _ := row.Props["d"].([]byte); slices.Contains(found, row.Key) {
					bodies = append(bodies, body)
				}
			}
		}
	}
	return found, bodies
}

// grep finds the files below a directory, except some, that hold a text, plain or in
// zstd.
func grep(t testing.TB, root string, text []byte, besides ...string) (found []string) {
	t.Helper()
	l := leak{t: t, secret: text}
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && slices.Contains(besides, d.Name()) {
			return fs.SkipDir
		}
		if err != nil || !d.Type().IsRegular() || d.Name() == "ballast" {
			return err
		}
		data, err := os.ReadFile(path)
		if l.in(data) {
			found = append(found, path)
		}
		files++
		return err
	})
	if err != nil || files < 5 {
		t.Fatalf("%d files below %s: %v", files, root, err)
	}
	return found
}
