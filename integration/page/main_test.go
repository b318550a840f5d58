// Package page_test looks at the page of logquery serve as its users do: in a real browser, with
// real ingesters and stores behind it. A story in stories/*.mjs is one thing that a person does,
// and what must be seen then. TestStories runs them by runner.mjs, in one Chromium with a fresh
// context for each story:
//
//	go test ./integration/page -run TestStories/zoom
//
// It needs Chromium and the packages of npm (`make node_modules/.package-lock.json`). Without them
// it is skipped, except in CI.
package page_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"blobtail/internal/dev/testkit"
)

// suite is shared by the tests.
type suite struct {
	root   string // of the repository
	bin    string // directory of the binaries
	parent *testkit.Parent
}

var shared suite

func TestMain(m *testing.M) { os.Exit(shared.run(m)) }

func (s *suite) run(m *testing.M) int {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s.root, s.parent = filepath.Dir(filepath.Dir(dir)), testkit.NewParent()
	if s.bin, err = os.MkdirTemp("", "blobtail-page-bin-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(s.bin)
	// Stories that wait run beside those that have a place.
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build makes the commands of the product, once.
func (s *suite) build() error {
	for _, name := range []string{"ingest", "logquery", "retention"} {
		if _, err := os.Stat(filepath.Join(s.bin, name)); err == nil {
			continue // another test did
		}
		if err := testkit.Build(s.root, s.bin, name); err != nil {
			return err
		}
	}
	return nil
}

// start starts a process that ends with the tests.
func (s *suite) start(cmd *exec.Cmd) error { return s.parent.Start(cmd) }

// missing skips a test if a needed program is not installed, except in CI.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}
