// Package interop_test drives a real ingester by the log shippers that people use: from npm
// and Debian, and a Collector of OpenTelemetry that is built here. Each sends the same kinds
// of records, and the test reads them back with logquery. A table shows for each client how
// many records it sent, how many are stored, and whether they are equal.
//
// The tests run if BLOBTAIL_INTEROP is set: `make interop` sets it to all, `make
// interop-quick` to quick, which leaves the faults and the Collector out. They need the
// programs in bin/interop and in clients/node_modules, which setup.sh puts there.
package interop_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"blobtail/internal/dev/testkit"
)

// A suite is shared by the tests.
type suite struct {
	mode   string // quick, all, or "" for no tests
	root   string // of the repository
	tools  string // made by setup.sh
	bin    string // directory of the binaries
	parent *testkit.Parent

	mu      sync.Mutex
	rows    []row
	skipped []string // clients that are not installed
}

var shared suite

func TestMain(m *testing.M) { os.Exit(shared.run(m)) }

func (s *suite) run(m *testing.M) int {
	s.mode = os.Getenv("BLOBTAIL_INTEROP")
	if s.mode == "" {
		return m.Run()
	}
	s.parent = testkit.NewParent()
	if err := s.build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(s.bin)
	code := m.Run()
	if err := s.print(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// start starts a process that ends with the tests.
func (s *suite) start(cmd *exec.Cmd) error { return s.parent.Start(cmd) }

// build makes the two commands that the tests need.
func (s *suite) build() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	s.root = filepath.Dir(filepath.Dir(dir))
	s.tools = filepath.Join(s.root, "bin", "interop")
	if s.bin, err = os.MkdirTemp("", "blobtail-interop-"); err != nil {
		return err
	}
	for _, name := range []string{"ingest", "logquery"} {
		if err := testkit.Build(s.root, s.bin, name); err != nil {
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
	shared.mu.Lock()
	shared.skipped = append(shared.skipped, what)
	shared.mu.Unlock()
	t.Skip(what)
}
