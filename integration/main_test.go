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
	bin      string            // directory of the binaries
	root     string            // of the repository
	tasks    chan func() error // run by the thread that is the parent of all children
	emulated chan struct{}     // places of tests that keep the emulator busy
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
	s.tasks, s.emulated = make(chan func() error), make(chan struct{}, 5)
	go s.parent()
	if err := s.build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(s.bin)
	// A context of the person who runs the tests would name another store.
	if err := os.Setenv("XDG_CONFIG_HOME", s.bin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Most tests wait for their processes most of the time.
	if err := flag.Set("test.parallel", strconv.Itoa(8+runtime.GOMAXPROCS(0))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return s.Env.Run(m)
}

// parent starts the children. The kernel kills a child when the thread that started
// it ends, so that thread must live as long as the tests.
func (s *suite) parent() {
	runtime.LockOSThread()
	for task := range s.tasks {
		task() // reports by itself
	}
}

// start starts cmd on the parent thread.
func (s *suite) start(cmd *exec.Cmd) error {
	done := make(chan error)
	s.tasks <- func() error {
		done <- cmd.Start()
		return nil
	}
	return <-done
}

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
