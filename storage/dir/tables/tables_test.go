package tables_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/dir/tables"
	"blobtail/storage/storagetest"
)

func open(t testing.TB, root string) *tables.Store {
	t.Helper()
	s, err := tables.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) (storage.BlobStore, storage.TableStore) {
		return nil, open(t, t.TempDir())
	})
}

func TestOpenAbsent(t *testing.T) {
	if _, err := tables.Open(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("Open: %v, want ErrNotExist", err)
	}
}

// Tables are no blobs, and blobs no tables.
func TestBesideBlobs(t *testing.T) {
	root := t.TempDir()
	blobs, err := dir.Open(root, dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, root)
	if err := s.Upsert(t.Context(), "tail", "p", []storage.Row{{Key: "k"}}); err != nil {
		t.Fatal(err)
	}
	storagetest.Put(t, blobs, "tail/x", nil)
	n := 0
	for b, err := range blobs.List(t.Context(), "", "") {
		if n++; err != nil || b.Key != "tail/x" {
			t.Errorf("List gives %q, %v", b.Key, err)
		}
	}
	for d, err := range blobs.Dirs(t.Context(), "") {
		if err != nil || d != "tail" {
			t.Errorf("Dirs gives %q, %v", d, err)
		}
	}
	if n != 1 {
		t.Errorf("List gives %d blobs", n)
	}
}

// Two stores on one root stand for two processes: SQLite locks by open file.
func TestTwoProcesses(t *testing.T) {
	root := t.TempDir()
	writer, reader := open(t, root), open(t, root)
	ctx := t.Context()
	for i := range 20 {
		row := storage.Row{Key: fmt.Sprintf("%02d", i), Props: map[string]any{"n": int64(i)}}
		if err := writer.Upsert(ctx, "tail", "p", []storage.Row{row}); err != nil {
			t.Fatal(err)
		}
		if got := count(t, reader, "tail"); got != i+1 {
			t.Fatalf("the reader sees %d of %d rows", got, i+1)
		}
	}
	// One process drops the table, and the other continues with a table of the same
	// name.
	if err := reader.Drop(ctx, "tail"); err != nil {
		t.Fatal(err)
	}
	for _, err := range writer.Scan(ctx, "tail", "p", "", "", 0) {
		if !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("Scan of a dropped table: %v", err)
		}
	}
	if err := writer.Upsert(ctx, "tail", "p", []storage.Row{{Key: "new"}}); err != nil {
		t.Fatal(err)
	}
	if got := count(t, reader, "tail"); got != 1 {
		t.Errorf("the reader sees %d rows of the new table", got)
	}
	entries, err := os.ReadDir(filepath.Join(root, ".tables"))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func count(t *testing.T, s *tables.Store, table string) (n int) {
	t.Helper()
	for _, err := range s.Scan(t.Context(), table, "p", "", "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// A file that is not one of our databases is an error, not a panic or an empty table.
func TestDamaged(t *testing.T) {
	root := t.TempDir()
	table := filepath.Join(root, ".tables", "tail")
	if err := os.MkdirAll(table, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(table, "rows.db"), []byte("not a database, by its looks at least"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, root)
	n := 0
	for _, err := range s.Scan(t.Context(), "tail", "p", "", "", 0) {
		if n++; err == nil || errors.Is(err, storage.ErrNotExist) {
			t.Errorf("Scan: %v", err)
		}
	}
	if n != 1 {
		t.Errorf("Scan yields %d times", n)
	}
}

// Rows of a few kilobytes, written as those of the tail are, leave little room empty.
func TestRoom(t *testing.T) {
	root := t.TempDir()
	s, err := tables.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	payload := 0
	for second := range 10 {
		for service := range 100 {
			body := make([]byte, 1500+(service*37+second*911)%2500)
			rand.Read(body)
			payload += len(body)
			row := storage.Row{Key: fmt.Sprintf("a-%019d-0badcafe-%d", 2516000000000000000-second, second+1), Props: map[string]any{"d": body}}
			if err := s.Upsert(t.Context(), "tail20261120", fmt.Sprintf("service-%d~0", service), []storage.Row{row}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil { // moves the -wal into the file
		t.Fatal(err)
	}
	fi, err := os.Stat(filepath.Join(root, ".tables", "tail20261120", "rows.db"))
	if err != nil {
		t.Fatal(err)
	}
	if ratio := float64(fi.Size()) / float64(payload); ratio > 1.4 {
		t.Errorf("a file of %d bytes for %d bytes of rows: %.2f", fi.Size(), payload, ratio)
	}
}
