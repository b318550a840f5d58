package erase_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testenv/stores"
	"blobtail/record"
	"blobtail/storage/dir"
	"blobtail/storage/dir/tables"
	"blobtail/tailindex"
)

var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// Every kind of store behaves alike.
func TestDrivers(t *testing.T) {
	stores.Each(t, &env, func(t *testing.T, open stores.Open) {
		t.Parallel()
		blobs, tables := open()
		w := worldOf(t, blobs, tables)
		w.patience, w.tail = -1, strings.Map(func(r rune) rune { return 'a' + r%26 }, testenv.Name("tail"))
		w.blob("web", ago(3, 10), 100, 10)
		w.blob("web", ago(3, 10), 100, 1)
		w.blob(record.RejectedService, ago(3, 10), 100, 50)
		w.close()
		w.blob("web", ago(0, 0), 100, 10)
		entries := w.entries("web", time.Now().Add(-time.Minute), 60, 10)
		w.row(entries)
		if r := w.erased(); r.Made != 4 || r.Records != 122 || r.Deleted != 4 || r.Lines == 0 {
			t.Errorf("%+v", r)
		}
		for _, e := range entries { // they are in no blob
			delete(w.stay, string(e.Line))
		}
		w.clean("afterwards")
	})
}

// The files of a directory have no bytes of erased rows, and none of a Create that was killed.
func TestFiles(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	blobs, err := dir.Open(path, dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := tables.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	w := worldOf(t, blobs, rows)
	w.patience = -1
	w.blob("web", ago(0, 0), 10, 2)
	var bodies [][]byte
	for range 3 {
		w.row(w.entries("web", time.Now().Add(-time.Minute), 60, 10))
	}
	for shard := range tailindex.DefaultShards {
		table, partition := tailindex.Table("tail", time.Now()), tailindex.Partition("web", shard)
		for row, err := range rows.Scan(context.Background(), table, partition, "", "", 0) {
			if w.must(err); len(row.Props["d"].([]byte)) > 0 {
				bodies = append(bodies, row.Props["d"].([]byte))
			}
		}
	}
	if n := found(t, path, bodies); n < len(bodies) {
		t.Errorf("%d of %d rows are in files before", n, len(bodies))
	}
	for _, at := range []string{"0000", "2300"} { // of a period that has no other object too
		period := filepath.Join(path, "web", ago(0, 0).Format("2006/01/02"), at)
		w.must(os.MkdirAll(period, 0o700))
		w.must(os.WriteFile(filepath.Join(period, ".tmp-X"), bodies[0], 0o440))
	}
	w.erased()
	w.grep("afterwards")
	if n := found(t, path, bodies); n > 0 || len(bodies) < 3 {
		t.Errorf("%d of %d erased rows are in files", n, len(bodies))
	}
}

// found counts the texts that are in a file below a directory.
func found(t *testing.T, path string, texts [][]byte) (n int) {
	t.Helper()
	in := map[int]bool{}
	err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		all, err := os.ReadFile(name)
		for i, text := range texts {
			if half := len(text) / 2; bytes.Contains(all, text[half:half+32]) {
				in[i] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(in)
}
