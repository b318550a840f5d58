package integration_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/record"
)

// The test shows readers each kind of damage to a file of the store. It checks their
// output, their messages and the exit code. Package blobs tests every flipped bit and
// every cut.
func TestCorruption(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	p := start(t, at, t.TempDir())
	const records = 9000
	p.mustPost("/ingest/web", threeBlocks(records))
	p.mustPost("/ingest/api", []byte(two))
	if code, _ := p.stop(); code != 0 {
		t.Fatalf("SIGTERM: exit code %d", code)
	}
	const key = "web/2026/11/10/1200/000001.log"
	path := filepath.Join(root, key)
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := query(t, at, "web", "-o", "json")
	x := index(t, key, sound)
	if len(x.Blocks) < 3 {
		t.Fatalf("%d blocks, want several", len(x.Blocks))
	}
	second, end := x.Blocks[1], int(x.Offset)
	attrs := bytes.LastIndex(sound, []byte("content-type="))
	for _, c := range []struct {
		name    string
		flip    int // the byte with a flipped bit, or
		cut     int // new length of the file, unless 0
		missing int // lines, at most
		read    int // exit code of a read; verify's is always 3
	}{
		{"bit of a block", int(second.Offset + second.Stored/2), 0, second.Records, 3},
		{"bit of a block's header", int(second.Offset), 0, second.Records, 3},
		{"bit of the origins", end + 8, 0, 0, 0},
		{"bit of the index", attrs - 8 - 32 - 40, 0, 0, 0},
		{"bit of the footer", attrs - 8 - 20, 0, 0, 0},
		{"bit of the attributes", attrs + 20, 0, 0, 3},
		{"bit of the file's end", len(sound) - 2, 0, 0, 3},
		{"cut in a block", 0, int(second.Offset + second.Stored/2), records - x.Blocks[0].Records, 3},
		{"cut in the index", 0, end + 4, 0, 3},
		{"cut in the attributes", 0, len(sound) - 5, 0, 3},
		{"nothing left", 0, -1, records, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := bytes.Clone(sound)
			if c.cut == 0 {
				bad[c.flip] ^= 4
			} else {
				bad = bad[:max(0, c.cut)]
			}
			replace(t, path, bad)
			checkDamaged(t, at, key, all, c.missing, c.read)
		})
	}
	replace(t, path, sound)
	if out := query(t, at, "web", "-o", "json"); !bytes.Equal(out, all) {
		t.Error("the sound blob does not come back")
	}
}

// threeBlocks makes a body of n records. 9,000 records fill three blocks.
func threeBlocks(n int) (body []byte) {
	base := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC).UnixNano()
	for i := range n {
		body = record.AppendTime(append(body, `{"time":"`...), base+int64(i)*3e8+1)
		body = fmt.Appendf(body, `","msg":"record %d","pad":"%0250d"}`+"\n", i, i*i*7919)
	}
	return body
}

// checkDamaged reads a service with one damaged blob.
func checkDamaged(t *testing.T, at place, key string, all []byte, missing, want int) {
	t.Helper()
	out, errs, code := logquery(t, at, "web", "-o", "json")
	if code != want || !strings.Contains(errs, key) && !strings.Contains(errs, "index") && want != 0 {
		t.Errorf("a read exits %d, want %d: %s", code, want, errs)
	}
	if (want == 3) != strings.Contains(errs, "INCOMPLETE") {
		t.Errorf("exit code %d, and it says %s", code, errs)
	}
	n := bytes.Count(all, []byte("\n"))
	got := bytes.Count(out, []byte("\n"))
	if got < n-missing || got > n {
		t.Errorf("%d of %d lines, at most %d may be missing", got, n, missing)
	}
	rest := all
	for line := range bytes.Lines(out) {
		i := bytes.Index(rest, line)
		if i < 0 {
			t.Fatalf("never stored, or out of order: %s", line)
		}
		rest = rest[i+len(line):]
	}
	out, errs, code = logquery(t, at, "web", "--count")
	// The index also counts the records of a damaged block, and rightly so.
	counted := fmt.Sprintf("%s exits %d", bytes.TrimSpace(out), code)
	if counted != fmt.Sprintf("%d exits %d", got, want) && counted != fmt.Sprintf("%d exits 0", n) {
		t.Errorf("--count says %s, a read %d and %d: %s", counted, got, want, errs)
	}
	if _, errs, code = logquery(t, at, "verify"); code != 3 || !strings.Contains(errs, key) {
		t.Errorf("verify exits %d: %s", code, errs)
	}
	if out := query(t, at, "api", "-o", "json"); string(out) != wantTwo("api") {
		t.Errorf("another service: %s", out)
	}
}

// index reads a blob's index from its file.
func index(t testing.TB, key string, file []byte) *blobfmt.Index {
	t.Helper()
	// The attributes of the file follow the blob.
	size := int64(bytes.LastIndex(file, []byte("BLOBTAIL")) + len("BLOBTAIL"))
	x, err := blobfmt.ReadIndex(key, size, func(off, n int64) ([]byte, error) { return file[off : off+n], nil })
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// replace puts another file in the place of one, with the mode of the store's files.
func replace(t testing.TB, path string, body []byte) {
	t.Helper()
	err := os.Remove(path)
	if err = errors.Join(err, os.WriteFile(path, body, 0o440)); err != nil {
		t.Fatal(err)
	}
}
