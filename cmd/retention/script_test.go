package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"blobtail/blobfmt"
	"blobtail/internal/dev/testkit"
	"blobtail/record/meaning"
	"blobtail/record/origin"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/dir/tables"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"retention": main, "mkblob": mkblob, "mktable": mktable})
}

// The scripts test the view of users: output, messages and exit codes.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exit": testkit.Exits, "hash": hash, "stored": stored},
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, testkit.EndsAtOnce)
			e.Setenv("TZ", "America/New_York")
			e.Setenv("BLOBTAIL_STORE", "dir:data")
			day := time.Now().UTC().AddDate(0, 0, -4) // which is over for long enough to be closed
			e.Setenv("DAY", day.Format(time.DateOnly))
			e.Setenv("PATH_OF_DAY", day.Format("2006/01/02"))
			return nil
		},
	})
}

// hash sets HASH to that of the last line of stdout, as text or JSON.
func hash(ts *testscript.TestScript, _ bool, _ []string) {
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	last := lines[len(lines)-1]
	h, ok := strings.CutPrefix(last, "plan ")
	if !ok {
		var o struct{ Plan string }
		ts.Check(json.Unmarshal([]byte(last), &o))
		h = o.Plan
	}
	if len(h) != 64 || strings.Trim(h, "0123456789abcdef") != "" {
		ts.Fatalf("no hash: %s", last)
	}
	ts.Setenv("HASH", h)
}

// stored DAY makes all objects of the store in data look as if they were stored on a day.
func stored(ts *testscript.TestScript, _ bool, args []string) {
	at, err := time.Parse(time.DateOnly, args[0])
	ts.Check(err)
	ts.Check(filepath.WalkDir(ts.MkAbs("data"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = os.Chtimes(path, at, at)
		}
		return err
	}))
}

// mkblob KEY RECORDS makes a blob in the store in data, with so many records at the start
// of its period.
func mkblob() {
	if err := addBlob(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func addBlob(key, records string) error {
	name, err := blobfmt.ParseName(key)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(records)
	if err != nil {
		return err
	}
	store, err := dir.Open("data", dir.Options{Create: true})
	if err != nil {
		return err
	}
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{})
	if err != nil {
		return err
	}
	p := meaning.NewReader()
	for i := range n {
		object := fmt.Appendf(nil, `{"ts":%q,"service":%q,"msg":"number %d of %s"}`, name.Period.Format(time.RFC3339), name.Service, i, key)
		if _, err := p.Scan(object); err != nil {
			return err
		}
		line, stamp := p.AppendLine(nil, &meaning.Defaults{})
		if err := enc.Add(line, stamp.Time, origin.OfBody("", "", 0, []byte(key), 0), uint32(i)); err != nil {
			return err
		}
	}
	var batch blobfmt.BatchID
	copy(batch[:], fmt.Sprintf("%016d", name.Number+int(name.Period.Unix())))
	body, meta, err := enc.Finish(batch)
	if err != nil {
		return err
	}
	return store.Create(context.Background(), key, body, storage.Attrs{
		ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: meta.Map(),
	})
}

// mktable NAME... makes tables in the store in data.
func mktable() {
	t, err := tables.Open("data")
	for _, name := range os.Args[1:] {
		if err == nil {
			err = t.Upsert(context.Background(), name, "p", nil)
		}
	}
	if err == nil {
		err = t.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
