package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"blobtail/internal/testkit"
)

// mutant is a rule of the production code left out.
type mutant struct {
	name  string
	edits []edit
	test  string // that must notice; "" is TestSimulation
	seeds int    // within which it must; 0 is 2,000
}

// edit replaces text that must stand exactly once in a file, so that a mutant
// cannot outlive the rule that it leaves out.
type edit struct{ file, old, new string }

// The simulation is worth what it finds: each rule that commit-protocol relies on
// is taken out of the source, and what is left must break a promise within a
// number of seeds. A build that fails, a panic or a simulation that gets stuck
// does not count.
func TestMutants(t *testing.T) {
	testkit.FullOnly(t, "the mutants are built without the race detector")
	only := os.Getenv("BLOBTAIL_SIM_MUTANT")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	places := make(chan struct{}, 2)
	for _, m := range mutants {
		if only != "" && !strings.Contains(m.name, only) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			binary := m.build(t, root)
			m.run(t, binary)
		})
	}
}

// build makes the test binary of this package with the edits overlaid.
func (m *mutant) build(t *testing.T, root string) string {
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for i, e := range m.edits {
		path := filepath.Join(root, filepath.FromSlash(e.file))
		from := path
		if again, ok := overlay.Replace[path]; ok {
			from = again
		}
		source, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(source, []byte(e.old)); n != 1 {
			t.Fatalf("%s has the text %d times that the mutant replaces:\n%s", e.file, n, e.old)
		}
		to := filepath.Join(dir, fmt.Sprint(i, ".go"))
		if err := os.WriteFile(to, bytes.Replace(source, []byte(e.old), []byte(e.new), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[path] = to
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.test")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", file, "-o", binary, "./integration/sim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the mutant does not build: %v\n%s", err, out)
	}
	return binary
}

var violated = regexp.MustCompile(`violation: (seed \d+[:,] .*)`)

// run looks for the promise that the mutant breaks.
func (m *mutant) run(t *testing.T, binary string) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	test, seeds := m.test, m.seeds
	if test == "" {
		test = "TestSimulation"
	}
	if seeds == 0 {
		seeds = 2000
	}
	start := time.Now()
	run := exec.CommandContext(ctx, binary, "-test.run", "^"+test+"$")
	run.Dir = t.TempDir()
	run.Env = append(os.Environ(), "GOMAXPROCS=1", fmt.Sprint("BLOBTAIL_SIM_SEEDS=", seeds), "BLOBTAIL_SIM_FIRST=0", "BLOBTAIL_CRASH_STATES=75000")
	out, err := run.CombinedOutput()
	var failed *exec.ExitError
	switch found := violated.FindSubmatch(out); {
	case errors.As(err, &failed) && failed.ExitCode() == 1 && found != nil:
		t.Logf("caught after %s: %s", time.Since(start).Round(time.Millisecond), found[1])
	case err == nil:
		t.Errorf("not caught within %d seeds", seeds)
	default:
		t.Errorf("no broken promise was found, but: %v\n%.3000s", err, out)
	}
}
