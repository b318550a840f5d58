package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/openstore"
	"blobtail/reading"
	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/origin"
	"blobtail/storage"
	"blobtail/storage/dir"
)

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){
		"logquery": main,
		"mkstore":  mkstore,
		"announce": announce,
		"expire":   expire,
		"fetch":    fetch,
	})
}

func TestScripts(t *testing.T) {
	testkit.FullOnly(t, "tables of texts, in hundreds of processes")
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exit": testkit.Exits, "shorten": shorten, "port": port, "signal": signals},
		Condition: func(cond string) (bool, error) {
			if cond != "root" {
				return false, fmt.Errorf("no condition %q", cond)
			}
			return os.Geteuid() == 0, nil
		},
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, testkit.EndsAtOnce)
			e.Setenv("TZ", "UTC")
			e.Setenv("BLOBTAIL_STORE", "dir:data")
			return nil
		},
	})
}

// shorten FILE N removes the last N bytes of a file.
func shorten(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	info, err := os.Stat(path)
	ts.Check(err)
	// A file of the store is read-only.
	ts.Check(os.Chmod(path, 0o600))
	ts.Check(os.Truncate(path, info.Size()-int64(n)))
	ts.Check(os.Chmod(path, info.Mode()))
}

// mkstore DIR FILE... makes a dir store with one blob for each file. A file holds JSON
// objects of one service and hour, one a line.
func mkstore() {
	store, err := dir.Open(os.Args[1], dir.Options{Create: true})
	for i := 2; err == nil && i < len(os.Args); i++ {
		var text []byte
		if text, err = os.ReadFile(os.Args[i]); err == nil {
			err = addBlob(store, text, i)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// expire DIR SERVICE DAY [only] drops all days before one, or that day only.
func expire() {
	err := func() error {
		store, err := dir.Open(os.Args[1], dir.Options{})
		if err != nil {
			return err
		}
		day, err := horizon.ParseDay(os.Args[3])
		if err != nil {
			return err
		}
		if len(os.Args) > 4 {
			return horizon.Drop(context.Background(), store, os.Args[2], day)
		}
		return horizon.Publish(context.Background(), store, os.Args[2], day)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// addBlob stores the records of a text, with ascending times, as one blob. Equal texts
// have one origin, like a request that a client sends twice.
func addBlob(store storage.BlobStore, text []byte, number int) error {
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{BlockSize: 4096})
	if err != nil {
		return err
	}
	p := meaning.NewReader()
	var first record.Stamp
	for i, object := range bytes.SplitAfter(bytes.TrimSpace(text), []byte("\n")) {
		if _, err := p.Scan(object); err != nil {
			return err
		}
		line, stamp := p.AppendLine(nil, &meaning.Defaults{})
		if i == 0 {
			first = stamp
		}
		if err := enc.Add(line, stamp.Time, origin.OfBody("", "", 0, text, 0), uint32(i)); err != nil {
			return err
		}
	}
	var batch blobfmt.BatchID
	binary.BigEndian.PutUint64(batch[:], uint64(number))
	body, meta, err := enc.Finish(batch)
	if err != nil {
		return err
	}
	name := blobfmt.Name{Service: first.Service, Period: time.Unix(0, first.Time).UTC().Truncate(time.Hour), Number: 1}
	for ; ; name.Number++ {
		err := store.Create(context.Background(), name.String(), body, storage.Attrs{
			ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: meta.Map(),
		})
		if err == nil || name.Number > 9 {
			return err
		}
	}
}

// terminal runs the command as on a terminal.
func terminal(t *testing.T, store string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(context.Background(), environment{
		args: append([]string{"--store", "dir:" + store}, args...), stdout: &out, stderr: &errs,
		isFile: func(string) bool { return false }, getenv: func(string) string { return "" }, outTTY: true, errTTY: true,
		now: time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC), local: time.UTC,
	})
	return code, out.String(), errs.String()
}

func TestTerminal(t *testing.T) {
	path := t.TempDir() + "/data"
	store, err := dir.Open(path, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for i := range 1500 {
		o, _ := json.Marshal(map[string]any{"ts": 1795183200 + i, "service": "web", "level": "info", "msg": fmt.Sprintf("message %d \x1b[2J", i), "c1": "\u009b\u202e"})
		text.Write(append(o, '\n'))
	}
	if err := addBlob(store, text.Bytes(), 1); err != nil {
		t.Fatal(err)
	}

	code, out, errs := terminal(t, path, "web")
	if code != cli.OK || strings.Count(out, "\n") != 1000 || !strings.Contains(errs, "there is more; -n 0 for all") {
		t.Errorf("exit %d, %d lines, stderr %s", code, strings.Count(out, "\n"), errs)
	}
	if !strings.HasPrefix(out, "\x1b[2m2026-11-20 14:08:20.000\x1b[0m \x1b[32minfo \x1b[0m \x1b[96mweb\x1b[0m message 500 \\x1b[2J \x1b[2mc1=\x1b[0m\\u009b\\u202e\n") {
		t.Errorf("%.200q", out)
	}
	if code, out, errs = terminal(t, path, "web", "-n", "0", "-q", "--color", "never"); code != cli.OK || strings.Count(out, "\n") != 1500 || errs != "" {
		t.Errorf("exit %d, %d lines, stderr %s", code, strings.Count(out, "\n"), errs)
	}
	checkSafe(t, []byte(out))
	if _, out, _ = terminal(t, path, "web", "-o", "json", "-n1"); !strings.Contains(out, `"c1":"\u009b\u202e"`) || !json.Valid([]byte(out)) {
		t.Errorf("%q", out)
	}
	if _, out, _ = terminal(t, path, "web", "-o", "raw", "-n1"); out != "message 1499 \\x1b[2J\n" {
		t.Errorf("%q", out)
	}
	if _, out, errs = terminal(t, path, "web", "--first", "0"); strings.Count(out, "\n") != 1500 || strings.Contains(errs, "more") {
		t.Errorf("%d lines, stderr %s", strings.Count(out, "\n"), errs)
	}
	if _, out, _ = terminal(t, path, "web", "--count"); out != "1500\n" {
		t.Errorf("%q", out)
	}
	if _, out, _ = terminal(t, path, "ls"); !strings.Contains(out, "1,500") || !strings.Contains(out, "2026-11-20 14:00:00") {
		t.Errorf("%s", out)
	}
}

// A remote store is not read completely by mistake.
func TestMaxBytes(t *testing.T) {
	most, path := config.Size(10), t.TempDir()
	for _, c := range []struct {
		store string
		ask   reading.Ask
		most  int64
	}{
		{"azure:logs", reading.Ask{Range: reading.Always()}, 10},
		{"azure:logs", reading.Ask{Range: reading.Range{From: 0, To: reading.Newest}}, 0},
		{"azure:logs", reading.Ask{Range: reading.Always(), Limit: 1}, 0},
		{"azure:logs", reading.Ask{Range: reading.Always(), First: 1}, 0},
		{"dir:" + path, reading.Ask{Range: reading.Always()}, 0},
	} {
		spec, err := openstore.Parse(c.store)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&app{config: config.Config{Store: spec}}).mostStored(&most, &c.ask); got != c.most {
			t.Errorf("%+v: %d", c, got)
		}
	}
	store, err := dir.Open(path, dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := addBlob(store, []byte(`{"ts":1795183200,"service":"web","msg":"x"}`), 1); err != nil {
		t.Fatal(err)
	}
	r, err := reading.Open(reading.OpenOptions{Blobs: store, Now: time.Now, Off: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, most := range []int64{10, 10 << 30} {
		ask := reading.Ask{Services: []string{"web"}, Range: reading.Always(), Here: reading.Here{MaxStored: most}}
		_, err := r.For(nil).Records(t.Context(), ask, func([]byte) error { return nil })
		var much *reading.MuchError
		if errors.As(err, &much) != (most == 10) || most > 10 && err != nil {
			t.Errorf("%d: %v", most, err)
		}
		if much == nil {
			continue
		}
		if code, text := new(app).ownError(t.Context(), err); code != cli.Usage || !strings.Contains(text, "more than --max-bytes 10") {
			t.Errorf("exit %d: %s", code, text)
		}
	}
}
