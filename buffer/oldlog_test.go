package buffer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/buffer"
)

// Older versions wrote runs without places in their tables, and runs records without
// outcomes and arrivals. Their logs are replayed unchanged. testdata/log-v1 has open
// runs, batches and parked copies, written by commit 61e89a5. log-v1.txt is the result of
// that commit's replay.
func TestLogsOfBefore(t *testing.T) {
	dir, sink := oldLog(t), &memSink{}
	sink.setRefuse(refuseAll)
	p := start(t, dir, sink, buffer.Options{Messages: &server{}}, true)
	before, _ := snapshot(t, p.buf, everything())
	sink.setRefuse(nil)
	p.flush()
	same(t, "the snapshot", ordered(before), sink.everything())
	var got []string
	for _, b := range sink.all() {
		for _, l := range b.lines {
			if b.service != "good" {
				got = append(got, fmt.Sprintf("%s %s %s %d %s\n", b.service, time.Unix(0, l.time).UTC().Format("15:04"),
					l.origin, l.index, strings.TrimSuffix(textOf(l.text), "\"}\n")))
			}
		}
	}
	slices.Sort(got)
	want, err := os.ReadFile("testdata/log-v1.txt")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(got, "") != string(want) {
		t.Errorf("got\n%swant\n%s", strings.Join(got, ""), want)
	}
}

// oldLog is a copy of the log in testdata.
func oldLog(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	if err := os.CopyFS(dir, os.DirFS("testdata/log-v1")); err != nil {
		t.Fatal(err)
	}
	return dir
}
