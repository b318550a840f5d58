package tables_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/storage"
	"blobtail/storage/dir/tables"
)

// age makes the database of a table look unchanged for a while. Each call sets another time.
func age(t *testing.T, root string, n int) {
	t.Helper()
	old := time.Now().Add(-time.Hour).Add(time.Duration(n) * time.Millisecond)
	if err := os.Chtimes(filepath.Join(root, ".tables", "tail", "rows.db"), old, old); err != nil {
		t.Fatal(err)
	}
}

// generation makes rows that fill several pages, and all say n.
func generation(n int) (rows []storage.Row) {
	for i := range 40 {
		props := map[string]any{"n": int64(n), "pad": make([]byte, 700)}
		rows = append(rows, storage.Row{Key: fmt.Sprintf("%02d", i), Props: props})
	}
	return rows
}

// write writes a generation as a process of its own does.
func write(t *testing.T, root string, n int) {
	t.Helper()
	s, err := tables.Open(root)
	if err == nil {
		err = s.Upsert(t.Context(), "tail", "p", generation(n))
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// numbers are the generations of all rows.
func numbers(t *testing.T, s *tables.Store) map[int64]int {
	t.Helper()
	found := map[int64]int{}
	for r, err := range s.Scan(t.Context(), "tail", "p", "", "", 0) {
		if err != nil {
			t.Error(err)
			break
		}
		found[r.Props["n"].(int64)]++
	}
	return found
}

// A reader of a table at rest leaves no file behind. It sees the next write, both while
// the writer has the table open and after that.
func TestAtRest(t *testing.T) {
	root := t.TempDir()
	write(t, root, 0)
	age(t, root, 0)
	reader := open(t, root)
	if got := numbers(t, reader); len(got) != 1 || got[0] != 40 {
		t.Errorf("at rest: %v", got)
	}
	n := 0
	for range reader.Scan(t.Context(), "tail", "p", "", "", 3) {
		n++
	}
	if n != 3 {
		t.Errorf("limit 3: %d rows", n)
	}
	files, err := os.ReadDir(filepath.Join(root, ".tables", "tail"))
	if err != nil || len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
	writer := open(t, root)
	if err := writer.Upsert(t.Context(), "tail", "p", generation(1)); err != nil {
		t.Fatal(err)
	}
	age(t, root, 1) // the rows are in the -wal
	if got := numbers(t, reader); len(got) != 1 || got[1] != 40 {
		t.Errorf("beside a writer: %v", got)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	age(t, root, 2)
	if got := numbers(t, open(t, root)); len(got) != 1 || got[1] != 40 {
		t.Errorf("after the writer: %v", got)
	}
}

// Every read sees one state, never an older one than the read before, whenever a table that
// has been at rest is written.
func TestRestEnds(t *testing.T) {
	generations := testkit.Share(1000, 50)
	root := t.TempDir()
	write(t, root, 0)
	age(t, root, 0)
	stop := make(chan struct{})
	reads := sync.WaitGroup{}
	reads.Go(func() {
		last := int64(0)
		for ended := false; !ended && !t.Failed(); {
			select {
			case <-stop:
				ended = true
			default:
			}
			reader, err := tables.Open(root)
			if err != nil {
				t.Error(err)
				return
			}
			got := numbers(t, reader)
			for n, rows := range got {
				if len(got) != 1 || rows != 40 || n < last {
					t.Errorf("after %d: %v", last, got)
				}
				last = n
			}
			if err := reader.Close(); err != nil {
				t.Error(err)
			}
		}
		if last != int64(generations) {
			t.Errorf("the last state that was read is %d", last)
		}
	})
	defer reads.Wait()
	defer close(stop)
	for n := 1; n <= generations; n++ {
		write(t, root, n)
		age(t, root, n)
	}
}

// A reader that asks a table at rest again sees each write of another process, and gets the rows
// of the question that it asks.
func TestRestAgain(t *testing.T) {
	root := t.TempDir()
	write(t, root, 0)
	age(t, root, 0)
	reader := open(t, root)
	for n := range 5 {
		for range 3 {
			if got := numbers(t, reader); len(got) != 1 || got[int64(n)] != 40 {
				t.Errorf("generation %d: %v", n, got)
			}
			for _, want := range []int{1, 7, 3} {
				got := ""
				for r, err := range reader.Scan(t.Context(), "tail", "p", "05", "", want, "n") {
					if err != nil || r.Props["n"] != int64(n) || len(r.Props) != 1 {
						t.Errorf("generation %d, limit %d: %v, %v", n, want, r.Props, err)
					}
					got += r.Key + " "
					clear(r.Props) // it is the caller's
				}
				if want := "05 06 07 08 09 10 11 "[:3*want]; got != want {
					t.Errorf("generation %d: %q, want %q", n, got, want)
				}
			}
		}
		writer := open(t, root)
		if err := writer.Upsert(t.Context(), "tail", "p", generation(n+1)); err != nil {
			t.Fatal(err)
		}
		age(t, root, n) // the rows are in the -wal, and the file has the time of the last look
		if got := numbers(t, reader); len(got) != 1 || got[int64(n+1)] != 40 {
			t.Errorf("beside a writer of generation %d: %v", n+1, got)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		age(t, root, n+1)
	}
}

// A table at rest is changed, and the file gets its size and time again, as touch -r and copies with
// times do. A reader that has asked it before sees the change.
func TestRestSameTime(t *testing.T) {
	root := t.TempDir()
	write(t, root, 0)
	file := filepath.Join(root, ".tables", "tail", "rows.db")
	old := time.Now().Add(-time.Hour)
	was := int64(0)
	reader := open(t, root)
	for n := range 3 {
		if n > 0 {
			write(t, root, n)
		}
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || n > 0 && info.Size() != was {
			t.Fatalf("%d bytes, want %d, %v", info.Size(), was, err)
		}
		was = info.Size()
		for range 2 {
			if got := numbers(t, reader); len(got) != 1 || got[int64(n)] != 40 {
				t.Errorf("generation %d: %v", n, got)
			}
		}
	}
}
