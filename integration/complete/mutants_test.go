package complete_test

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

// mutant is a rule left out.
type mutant struct {
	name  string
	edits []edit
	seeds int // within which it must be noticed; 0 is 2,000
}

// edit replaces text that must stand exactly once in a file, so that a mutant
// cannot outlive the rule that it leaves out.
type edit struct{ file, old, new string }

// The simulation is worth what it finds: each rule that "exit 0 implies complete"
// rests on is taken out of the source, and then a read must lack a record within a
// number of seeds. A build that fails, a panic or a simulation that gets stuck does
// not count.
func TestMutants(t *testing.T) {
	testkit.FullOnly(t, "the mutants are built without the race detector")
	only := os.Getenv("BLOBTAIL_COMPLETE_MUTANT")
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
			m.run(t, m.build(t, root))
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
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", file, "-o", binary, "./integration/complete")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the mutant does not build: %v\n%s", err, out)
	}
	return binary
}

var violated = regexp.MustCompile(`violation: (seed \d+: .*(exit 0 without|never sent|comes twice).*)`)

// mutatedEnv tells the simulation that it is run for a mutant.
const mutatedEnv = "BLOBTAIL_COMPLETE_MUTATED"

// run looks for the read that the mutant breaks.
func (m *mutant) run(t *testing.T, binary string) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	seeds := m.seeds
	if seeds == 0 {
		seeds = 2000
	}
	start := time.Now()
	run := exec.CommandContext(ctx, binary, "-test.run", "^TestComplete$")
	run.Dir = t.TempDir()
	run.Env = append(os.Environ(), "GOMAXPROCS=1", fmt.Sprint("BLOBTAIL_COMPLETE_SEEDS=", seeds), "BLOBTAIL_COMPLETE_FIRST=0", mutatedEnv+"=1")
	out, err := run.CombinedOutput()
	var failed *exec.ExitError
	switch found := violated.FindSubmatch(out); {
	case errors.As(err, &failed) && failed.ExitCode() == 1 && found != nil:
		t.Logf("caught after %s: %s", time.Since(start).Round(time.Millisecond), found[1])
	case err == nil:
		t.Errorf("not caught within %d seeds", seeds)
	default:
		t.Errorf("no incomplete read was found, but: %v\n%.3000s", err, out)
	}
}
