package tables_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"blobtail/storage"
	"blobtail/storage/dir/tables"
)

// old makes a table as commit 61e89a5 did, without versions in its rows.
func old(t *testing.T, root string, rows map[string][]byte) *sql.DB {
	t.Helper()
	dir := filepath.Join(root, ".tables", "ingesters")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "rows.db")+"?mode=rwc&_pragma=journal_mode(WAL)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	_, err = db.ExecContext(t.Context(), `CREATE TABLE rows (partition TEXT NOT NULL, row TEXT NOT NULL, props BLOB NOT NULL,
		PRIMARY KEY (partition, row)) WITHOUT ROWID`)
	for key, props := range rows {
		if err == nil {
			_, err = db.ExecContext(t.Context(), `INSERT OR REPLACE INTO rows (partition, row, props) VALUES ('p', ?, ?)`, key, props)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// Rows of an older version can be read, distinguished and swapped. A write by an older
// process between newer ones is a change.
func TestOldRows(t *testing.T) {
	root := t.TempDir()
	one, two := []byte("\x01\x01ni\x02"), []byte("\x01\x01ni\x04")
	db := old(t, root, map[string][]byte{"empty": {1}, "k": one})
	s := open(t, root)
	read := func() map[string]storage.Row {
		t.Helper()
		rows := map[string]storage.Row{}
		for r, err := range s.Scan(t.Context(), "ingesters", "p", "", "", 0) {
			if err != nil || r.Version == "" {
				t.Fatalf("Scan: %v, %v", r, err)
			}
			rows[r.Key] = r
		}
		return rows
	}
	before := read()
	if got := before["k"].Props; !reflect.DeepEqual(got, map[string]any{"n": int64(1)}) || len(before["empty"].Props) > 0 || before["empty"].Version == before["k"].Version {
		t.Fatalf("Scan = %v", before)
	}
	for key, r := range before {
		r.Props = map[string]any{"n": int64(7)}
		version, err := s.Swap(t.Context(), "ingesters", "p", r)
		if err != nil {
			t.Fatal(err)
		}
		if got := read()[key]; got.Version != version || !reflect.DeepEqual(got.Props, r.Props) {
			t.Errorf("Scan = %v, want version %s", got, version)
		}
		if _, err := s.Swap(t.Context(), "ingesters", "p", r); !errors.Is(err, storage.ErrChanged) {
			t.Errorf("Swap of what is swapped: %v", err)
		}
	}
	mine := read()["k"]
	if _, err := db.ExecContext(t.Context(), `INSERT OR REPLACE INTO rows (partition, row, props) VALUES ('p', 'k', ?)`, two); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Swap(t.Context(), "ingesters", "p", mine); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("Swap after an older process wrote: %v", err)
	}
	theirs := read()["k"]
	if theirs.Props["n"] != int64(2) {
		t.Errorf("Scan = %v", theirs)
	}
	if _, err := s.Swap(t.Context(), "ingesters", "p", theirs); err != nil {
		t.Error(err)
	}
}

// A swap in a table that has been moved elsewhere meanwhile is no success. It reports
// nothing about the table that other processes see.
func TestSwapAfterMove(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	db := old(t, root, nil)
	s := open(t, root)
	if _, err := s.Swap(t.Context(), "ingesters", "p", storage.Row{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	hold, err := db.BeginTx(t.Context(), nil) // nobody else writes
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	for _, key := range []string{"k", "l"} {
		go func() {
			_, err := s.Swap(t.Context(), "ingesters", "p", storage.Row{Key: key})
			done <- err
		}()
	}
	// By now the swaps wait for the lock, or find no store: both are failures.
	time.Sleep(100 * time.Millisecond)
	if err := os.Rename(root, root+".away"); err != nil {
		t.Fatal(err)
	}
	if err := hold.Rollback(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-done; err == nil || errors.Is(err, storage.ErrChanged) {
			t.Errorf("Swap: %v", err)
		}
	}
}

// Processes that begin on a fresh store make a table while others swap rows in it already.
func TestMadeWhileSwapped(t *testing.T) {
	for range 8 {
		root := t.TempDir()
		var all sync.WaitGroup
		for n := range 6 {
			all.Go(func() {
				s, err := tables.Open(root)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				for i := range 3 {
					if err := s.Upsert(t.Context(), "ingesters", "p", nil); err != nil {
						t.Error(err)
					}
					row := storage.Row{Key: fmt.Sprint(n, "-", i), Props: map[string]any{"A": "b"}}
					if _, err := s.Swap(t.Context(), "ingesters", "p", row); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
}
