package rig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/bench/rig"
)

// TestMain lets this binary be the child that runs commands.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "launch" {
		if err := rig.Launch(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A run has the output, the exit code, and the cost of the command, not of this process.
func TestRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ballast := make([]byte, 200<<20) // resident here when the child starts
	for i := range ballast {
		ballast[i] = 1
	}
	r := &rig.Runner{Self: self}
	const script = `echo "$GREETING"; echo note >&2; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.05; head -c 3000000 /dev/zero; exit 7`
	for range 2 { // the second run uses the memory of the first
		out, u, errs, err := r.Run(t.Context(), []string{"GREETING=hello", "PATH=" + os.Getenv("PATH")}, "sh", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		if len(out) != 3_000_006 || !strings.HasPrefix(string(out), "hello\n") || errs != "note\n" || u.Code != 7 {
			t.Errorf("%d bytes, %q on stderr, exit code %d", len(out), errs, u.Code)
		}
		if u.WallMS < 50 || u.CPUs <= 0 || u.CPUs > u.WallMS/1000*2 || u.RSSMB < 0.5 || u.RSSMB > 100 {
			t.Errorf("implausible: %+v", u)
		}
	}
	if ballast[len(ballast)-1] != 1 {
		t.Error("the ballast is gone")
	}
	if _, _, _, err := r.Run(t.Context(), nil, "/no/such/program"); err == nil {
		t.Error("a missing program is no error")
	}
}

// The CPU time of other processes is that of the machine without ours.
func TestOthers(t *testing.T) {
	at := time.Now()
	before, after := rig.Busy{At: at, All: 1000, Own: 10}, rig.Busy{At: at.Add(2 * time.Second), All: 1003, Own: 12}
	if got := after.Others(before); got != 0.5 {
		t.Errorf("%v cores", got)
	}
	if now := rig.BusyNow(); now.All <= 0 || now.Own <= 0 || now.Own > now.All {
		t.Errorf("implausible: %+v", now)
	}
}

// A blob of the store counts; the log, the tables and other objects do not.
func TestBlobsOf(t *testing.T) {
	store := t.TempDir()
	for name, size := range map[string]int{"web/2026/11/10/1500/000001.log": 100, "web/2026/11/10/1600/000001.log": 20, ".wal/000001.log": 1000, ".tables/t.db": 1000, "_store": 7} {
		path := filepath.Join(store, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := rig.CopyStore(store, copied); err != nil {
		t.Fatal(err)
	}
	for _, store := range []string{store, copied} {
		if n, size, err := rig.BlobsOf(store); n != 2 || size != 120 || err != nil {
			t.Errorf("%s: %d blobs of %d bytes, %v", store, n, size, err)
		}
	}
	for name, there := range map[string]bool{"_store": true, ".tables/t.db": true, ".wal": false} {
		if _, err := os.Stat(filepath.Join(copied, name)); (err == nil) != there {
			t.Errorf("%s in the copy: %v", name, err)
		}
	}
}

// Globs choose the rows that one of them matches, and all without any.
func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		rows string
		ids  []string
		want bool
	}{
		{"i", []string{"i"}, true}, {"i", []string{"ii"}, false}, {"v,iii-*", []string{"iii-w"}, true},
		{"remote-*", []string{"i", "remote-tail"}, true}, {"remote-*", []string{"i"}, false},
	} {
		var g rig.Globs
		if all := g.Choose(c.ids...); !all {
			t.Error("no globs do not choose all")
		}
		if err := g.Set(c.rows); err != nil || g.String() != c.rows || g.Choose(c.ids...) != c.want {
			t.Errorf("-rows %q: %q of %q, %v", c.rows, g, c.ids, err)
		}
	}
	if err := new(rig.Globs).Set("i,["); err == nil || !strings.Contains(err.Error(), "[") {
		t.Errorf("a glob that is none: %v", err)
	}
}

// Lines are those of a file, also a long one and one without an end. A file that is not there, or a
// line beyond all bounds, is an error.
func TestLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lines")
	long := strings.Repeat("x", 2<<20)
	for text, want := range map[string][]string{"a\n" + long + "\n\nb": {"a", long, "", "b"}, "a\n" + strings.Repeat(long, 9): {"a", "an error"}} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line, err := range rig.Lines(name) {
			if err != nil {
				line = []byte("an error")
			}
			got = append(got, string(line))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d lines, want %d", len(got), len(want))
		}
	}
	for line, err := range rig.Lines(filepath.Join(name, "none")) {
		if err == nil {
			t.Errorf("a line of no file: %q", line)
		}
	}
}
