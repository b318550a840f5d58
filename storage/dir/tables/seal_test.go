package tables_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/storage"
	"blobtail/storage/dir/tables"
)

// swapped makes a table with three rows, each of which was written twice. It returns its directory.
func swapped(t *testing.T, root string) string {
	t.Helper()
	s := open(t, root)
	for n := range 2 {
		for i := range 3 {
			row := storage.Row{Key: fmt.Sprint("ingester-", i), Props: map[string]any{"n": int64(n), "state": "holding", "url": "http://10.0.0.1:9428"}}
			for r, err := range s.Scan(t.Context(), "ingesters", "p", row.Key, "", 1) {
				if err != nil && !errors.Is(err, storage.ErrNotExist) {
					t.Fatal(err)
				}
				row.Version = r.Version
			}
			if _, err := s.Swap(t.Context(), "ingesters", "p", row); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, ".tables", "ingesters")
}

// shown is what a new process reads of the table.
func shown(t *testing.T, root string) (string, error) {
	s, err := tables.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text := ""
	for r, err := range s.Scan(t.Context(), "ingesters", "p", "", "", 0) {
		if err != nil {
			return text, err
		}
		text += fmt.Sprint(r.Key, r.Version, r.Props, "\n")
	}
	return text, nil
}

// Whatever bit flips in the file of a table with swapped rows, and wherever it is cut: a read shows all
// rows as they were written, or fails. No other file has a part of the state.
func TestDamagedRows(t *testing.T) {
	root := t.TempDir()
	folder := swapped(t, root)
	want, err := shown(t, root)
	if err != nil || want == "" {
		t.Fatal(want, err)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if fi, err := file.Info(); err != nil || file.Name() != "rows.db" && fi.Size() > 0 {
			t.Errorf("%s has a part of the state, %v", file.Name(), err)
		}
	}
	wrong, failed, tried := 0, 0, 0
	try := func(path, what string, change func(b []byte) []byte) {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, change(bytes.Clone(whole)), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := shown(t, root)
		tried++
		switch {
		case err != nil:
			failed++
		case got != want:
			wrong++
			t.Errorf("%s, %s: %q and no error, want %q", filepath.Base(path), what, got, want)
		}
		for _, beside := range []string{"-wal", "-shm", "-journal"} {
			if err := os.Remove(filepath.Join(folder, "rows.db"+beside)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		if file.Name() != "rows.db" {
			continue
		}
		path := filepath.Join(folder, file.Name())
		fi, err := file.Info()
		if err != nil {
			t.Fatal(err)
		}
		bits := int(fi.Size()) * 8
		step := max(1, bits/testkit.Share(2000, 200)) | 1
		for bit := 0; bit < bits && wrong < 5; bit += step {
			try(path, fmt.Sprint("bit ", bit), func(b []byte) []byte { b[bit/8] ^= 1 << (bit % 8); return b })
		}
		for size := 0; size < bits/8 && wrong < 5; size += 61 {
			try(path, fmt.Sprint("cut to ", size), func(b []byte) []byte { return b[:size] })
		}
	}
	t.Logf("%d of %d failed, %d wrong", failed, tried, wrong)
	if got, err := shown(t, root); got != want || err != nil {
		t.Errorf("in the end: %q, %v", got, err)
	}
	if failed < tried/20 {
		t.Errorf("%d of %d failed: are the files used?", failed, tried)
	}
}

// A process that is killed leaves its -wal behind, as versions before did, or a process that runs now has
// the table open. The next swap moves the rows into the one file, and seals them; a later write of an
// older version is read too.
func TestSealsOldTables(t *testing.T) {
	for _, running := range []bool{false, true} {
		root := t.TempDir()
		db := old(t, root, map[string][]byte{"a": []byte("\x01\x01ni\x02"), "b": []byte("\x01\x01ni\x04")})
		folder := filepath.Join(root, ".tables", "ingesters")
		if !running {
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(root)); err != nil {
				t.Fatal(err)
			}
			root, folder = copied, filepath.Join(copied, ".tables", "ingesters")
			if err := os.Remove(filepath.Join(folder, "rows.db-shm")); err != nil {
				t.Fatal(err)
			}
		}
		reader := open(t, root)
		for range reader.Scan(t.Context(), "ingesters", "p", "", "", 0) { // a connection stays open
		}
		s := open(t, root)
		if _, err := s.Swap(t.Context(), "ingesters", "p", storage.Row{Key: "c"}); err != nil {
			t.Fatal(err)
		}
		if fi, err := os.Stat(filepath.Join(folder, "rows.db-wal")); err == nil && fi.Size() > 0 {
			t.Errorf("running %t: the -wal has %d bytes", running, fi.Size())
		}
		count := func(want int) {
			t.Helper()
			for _, s := range []*tables.Store{s, reader} {
				n := 0
				for r, err := range s.Scan(t.Context(), "ingesters", "p", "", "", 0) {
					if err != nil {
						t.Errorf("running %t: %v, %v", running, r, err)
					}
					n++
				}
				if n != want {
					t.Errorf("running %t: %d rows, want %d", running, n, want)
				}
			}
		}
		count(3)
		if running {
			if _, err := db.Exec(`INSERT OR REPLACE INTO rows (partition, row, props) VALUES ('p', 'd', x'01')`); err != nil {
				t.Fatal(err)
			}
			count(4)
		}
		if _, err := s.Swap(t.Context(), "ingesters", "p", storage.Row{Key: "e"}); err != nil {
			t.Fatal(err)
		}
		count(map[bool]int{false: 4, true: 5}[running])
	}
}

// A process was killed in the middle of a write. A reader ends it: it sees the rows before that write.
func TestInterruptedSwap(t *testing.T) {
	root := t.TempDir()
	folder := swapped(t, root)
	want, err := shown(t, root)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "rows.db")+"?mode=rw&_pragma=synchronous(OFF)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec(`DELETE FROM rows`); err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	journal := filepath.Join(copied, ".tables", "ingesters", "rows.db-journal")
	if fi, err := os.Stat(journal); err != nil || fi.Size() == 0 {
		t.Fatalf("no write was interrupted: %v", err)
	}
	if got, err := shown(t, copied); got != want || err != nil {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
