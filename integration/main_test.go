// Package integration_test runs the commands as their users do: real processes on
// loopback, a store on disk or in Azurite, requests over HTTP, and the output of
// logquery. Each package tests its own guarantees. The tests here check guarantees of
// the whole system, above all that no acknowledged record is lost or shown twice.
package integration_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

// suite is shared by the tests.
type suite struct {
	testenv.Env
	bin      string          // directory of the binaries
	root     string          // of the repository
	parent   *testkit.Parent // of all processes
	emulated chan struct{}   // places of tests that keep the emulator busy
}

var shared suite

func TestMain(m *testing.M) {
	// The tests compare much data and keep little. GOGC would do the same, but the children
	// inherit it, and an ingester that has it does not bound its garbage.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(1 << 30)
	os.Exit(shared.run(m))
}

func (s *suite) run(m *testing.M) int {
	s.parent, s.emulated = testkit.NewParent(), make(chan struct{}, 5)
	if err := s.build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(s.bin)
	// Most tests wait for their processes most of the time.
	if err := flag.Set("test.parallel", strconv.Itoa(8+runtime.GOMAXPROCS(0))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return s.Env.Run(m)
}

// start starts a process that ends with the tests.
func (s *suite) start(cmd *exec.Cmd) error { return s.parent.Start(cmd) }

// build makes the binaries once. With BLOBTAIL_RACE they have the race detector, which is
// too slow for the daily run.
func (s *suite) build() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	s.root = filepath.Dir(dir)
	if _, err := os.Stat(filepath.Join(s.root, "go.mod")); err != nil {
		return err
	}
	if s.bin, err = os.MkdirTemp("", "blobtail-bin-"); err != nil {
		return err
	}
	var flags []string
	if os.Getenv("BLOBTAIL_RACE") != "" {
		flags = append(flags, "-race")
	}
	for _, name := range []string{"ingest", "logquery", "retention"} {
		if err := testkit.Build(s.root, s.bin, name, flags...); err != nil {
			return err
		}
	}
	return nil
}

// missing skips a test if a needed program is not installed, except in CI.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}
