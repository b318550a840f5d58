package integration_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobtail/buffer/wal"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
	"blobtail/storage"
	"blobtail/storage/dir/tables"
	"blobtail/storage/fsys"
	"blobtail/tailindex"
)

// The store and the log of a killed ingester that the commands of commit a960ca37 left
// behind; testdata/a960ca37/README.md describes the contents.
const oldStore = "testdata/a960ca37"

// sum is the output of a read of a service.
type sum struct {
	Lines  int
	SHA256 string
}

// oldSums are the sums that the commands of a960ca37 printed: for the blobs alone, and
// for all records once an ingester had stored those in the log.
type oldSums struct {
	Made       time.Time
	Blobs, All map[string]sum
}

// unpackOld makes a copy of a store, and of the log if it has one.
func unpackOld(t *testing.T, name string) (at place, root, wal string, want oldSums) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(oldStore, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(oldStore, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = unpackOne(in, h, filepath.Join(to, filepath.FromSlash(h.Name)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	root = filepath.Join(to, "store")
	return place{store: "dir:" + root}, root, filepath.Join(to, "log"), want
}

// unpackOne writes a file with its mode and its time, or makes a directory.
func unpackOne(in io.Reader, h *tar.Header, path string) error {
	if h.Typeflag == tar.TypeDir {
		return os.Mkdir(path, h.FileInfo().Mode().Perm())
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(path, h.FileInfo().Mode().Perm()); err != nil {
		return err
	}
	return os.Chtimes(path, h.ModTime, h.ModTime)
}

// sumsOf reads services whole, each with the exit code.
func sumsOf(t *testing.T, at place, services map[string]sum, code int, flags ...string) map[string]sum {
	t.Helper()
	got := map[string]sum{}
	for service, want := range services {
		out, errs, exit := answered(t, at, append([]string{"read", service, "--if-any", "--from", "2020-01-01", "-o", "json"}, flags...)...)
		if exit != code && (want.Lines > 0 || exit != 1) {
			t.Errorf("logquery %s %s exits %d, want %d: %s", service, strings.Join(flags, " "), exit, code, errs)
		}
		hash := sha256.Sum256(out)
		got[service] = sum{strings.Count(string(out), "\n"), hex.EncodeToString(hash[:])}
	}
	return got
}

// sameSums compares the result of a read with that of a960ca37.
func sameSums(t *testing.T, when string, got, want map[string]sum) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s:\n%v, want\n%v", when, got, want)
	}
}

// The blobs of 61e89a5 are readable, with their replacements, and dropped and expired days.
// They have the records that are in those of a960ca37.
func TestReadsBlobsOf61e89a5(t *testing.T) {
	t.Parallel()
	at, _, _, want := unpackOld(t, "blobs-61e89a5.tar.gz")
	sameSums(t, "blobs alone", sumsOf(t, at, want.Blobs, 0, "--live", "off"), want.Blobs)
	if out, errs, code := answered(t, at, "verify"); code != 0 {
		t.Errorf("verify exits %d: %s%s", code, out, errs)
	}
}

// The data written by a960ca37 is readable: blobs, their replacements, dropped and
// expired days, rows of the tail and of ingesters, a log with batches and runs in all
// states. A read before the log is started again reports that it is incomplete.
func TestReadsStoreOfA960ca37(t *testing.T) {
	t.Parallel()
	at, root, wal, want := unpackOld(t, "store.tar.gz")
	sameSums(t, "blobs alone", sumsOf(t, at, want.Blobs, 0, "--live", "off"), want.Blobs)
	if out, errs, code := answered(t, at, "verify"); code != 0 {
		t.Errorf("verify exits %d: %s%s", code, out, errs)
	}
	id := oldRows(t, root, want.Made)
	for _, args := range [][]string{{"web"}, {"tail", "web"}, {"hist", "web", "--from", "2026-10-01", "--to", "2026-10-04"}} {
		if _, errs, code := logquery(t, at, args...); code != 3 || !strings.Contains(errs, id) {
			t.Errorf("logquery %s exits %d, want 3 and ingester %s: %s", strings.Join(args, " "), code, id, errs)
		}
	}

	stayInPlace(t, wal)
	p := start(t, at, wal)
	p.mustFlush()
	for _, name := range []string{"blobtail_buffer_log_damaged_total", "blobtail_buffer_records_lost_total"} {
		if n := p.metric(name); n != 0 {
			t.Errorf("%s is %v", name, n)
		}
	}
	sameSums(t, "the log is started again", sumsOf(t, at, want.All, 0, "--live-url", p.listen), want.All)
	keyed, err := os.ReadFile(filepath.Join(oldStore, "keyed.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	p.mustPost("/ingest/db", keyed, "Idempotency-Key", "a960ca37-1")
	p.mustFlush()
	sameSums(t, "a request is sent again", sumsOf(t, at, want.All, 0, "--live-url", p.listen), want.All)
	if code, _ := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	sameSums(t, "nobody runs", sumsOf(t, at, want.All, 0), want.All)

	for _, args := range [][]string{{"close"}, {"compact", "--grace", "1s"}} {
		if _, errs, code := retain(t, at, args...); code != 0 {
			t.Errorf("%s exits %d: %s", args[0], code, errs)
		}
	}
	sameSums(t, "compacted", sumsOf(t, at, want.All, 0), want.All)
}

// stayInPlace has the notes of the ingester name the directory of its log, which unpacking has copied.
func stayInPlace(t *testing.T, wal string) {
	t.Helper()
	info, err := os.Stat(wal)
	if err != nil {
		t.Fatal(err)
	}
	notes, path := map[string]any{}, filepath.Join(wal, "lease")
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &notes)
	}
	if err == nil {
		notes["inode"], notes["born"] = fsys.Identity(wal, info)
		text, err = json.Marshal(notes)
	}
	if err = errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// oldRows checks the rows of the tables, and returns the id of the killed ingester.
func oldRows(t *testing.T, root string, made time.Time) (id string) {
	t.Helper()
	s, err := tables.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rows, err := lease.List(t.Context(), s, "")
	if err != nil || len(rows) != 2 {
		t.Fatalf("%+v, %v", rows, err)
	}
	states := map[lease.State]lease.Ingester{rows[0].State: rows[0], rows[1].State: rows[1]}
	stopped, holding := states[lease.Stopped], states[lease.Holding]
	if stopped.Lane != 3 || !stopped.Oldest.IsZero() || holding.Lane != 5 || holding.Oldest.IsZero() || made.Sub(holding.At) > 10*time.Minute {
		t.Errorf("%+v", rows)
	}
	tail := tailindex.NewReader(s, tailindex.Options{Now: func() time.Time { return made }})
	newest, err := tail.Newest(t.Context(), "new", false, 10)
	lines := 0
	for _, row := range newest {
		lines += len(row.Entries)
	}
	if err != nil || lines != 5 {
		t.Errorf("the tail of new has %d lines in %d rows: %v", lines, len(newest), err)
	}
	return holding.ID
}

// A row of an ingester or of the tail that only older versions wrote is refused by the name of the
// commit to go through, with exit code 2: by an ingester, by readers and by retention. So is a log.
func TestOlderRows(t *testing.T) {
	t.Parallel()
	refused := func(what, errs string, code int) {
		t.Helper()
		if code != 2 || !strings.Contains(errs, "commit a960ca37") {
			t.Errorf("%s exits %d, want 2: %s", what, code, errs)
		}
	}
	started := func(at place, program string, args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(shared.bin, program), append(args, "--store", at.store)...)
		cmd.Env = testkit.Environ()
		out, _ := cmd.CombinedOutput()
		refused(program, string(out), cmd.ProcessState.ExitCode())
	}
	put := func(root, table, partition, key string, props map[string]any) {
		t.Helper()
		s, err := tables.Open(root)
		if err == nil {
			err = errors.Join(s.Upsert(t.Context(), table, partition, []storage.Row{{Key: key, Props: props}}), s.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	reads := [][]string{{"web"}, {"tail", "web"}, {"tail", "-f", "web"}, {"ingesters"}, {"hist", "web"}}

	at, root, log, _ := unpackOld(t, "store.tar.gz")
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000000Z")
	row := map[string]any{"format": int64(1), "process": "0badcafe", "store": "", "stopped": false, "started": now, "at": now, "oldest": ""}
	put(root, lease.Table, lease.Partition, "0badcafe", row)
	for _, args := range reads {
		_, errs, code := logquery(t, at, args...)
		refused("logquery "+strings.Join(args, " "), errs, code)
	}
	for _, args := range [][]string{{"plan"}, {"apply"}, {"close"}, {"compact"}} {
		_, errs, code := retain(t, at, args...)
		refused("retention "+args[0], errs, code)
	}
	started(at, "ingest", "--wal", log, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	started(at, "logquery", "serve", "--listen", "127.0.0.1:0")

	// The ingester that wrote it may have ended since: only the tail has rows of it.
	at, root, _, _ = unpackOld(t, "blobs-61e89a5.tar.gz")
	today := tailindex.Table("tail", time.Now())
	row["stopped"] = true
	put(root, lease.Table, lease.Partition, "0badcafe", row)
	put(root, today, "web~0", "a-2516000000000000000-0badcafe-1", map[string]any{"format": int64(1), "store": "", "arrived": now})
	_, errs, code := logquery(t, at, "tail", "web", "--live", "off")
	refused("logquery tail", errs, code)

	dir := filepath.Join(t.TempDir(), "log")
	w, err := wal.Open(dir, wal.Options{})
	if err == nil {
		_, err = w.Append(1, []byte{0}) // a request without its arrival
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	at, _ = dirStore(t)
	started(at, "ingest", "--wal", dir, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
}
